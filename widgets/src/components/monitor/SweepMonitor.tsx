/** The monitor of a sweep: the same in a notebook cell and on its page. It asks again and again while the sweep goes on. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { paths, type Client } from "../../core/service/api";
import { clock, coreHours, metric as show } from "../../core/format/format";
import { t } from "../../core/format/language";
import { countsWords, ended, hasEnded, inOrder, paramNames, paramText, paramWords, spentWords, sweepReference, sweepTone, sweepWord, trialTone, trialWaits, trialWord, type SweepSnapshot } from "../../core/jobs/sweep";
import type { Sweep, SweepCurve, SweepTrial } from "../../core/service/wire";
import { Chip, Empty, ErrorBox, Facts, Heading, Icon, Loading, Table, type Column } from "../basics/basics";
import { Confirm, Dialog } from "../basics/Dialog";
import { useId, useLoad, useNow } from "../basics/hooks";
import { Parallel, SweepCurves } from "../charts/SweepPlots";

const EVERY = 2000;
const CURVES_EVERY = 4000;
/** Rows of the table of trials that are shown at first. */
const ROWS = 10;
/** Trials that are compared at a click: the best of them. */
const COMPARED = 3;

export interface SweepMonitorProps {
  client: Client;
  user: string;
  name: string;
  /** The page of a sweep: its heading is the page's. */
  page: boolean;
  /** What a saved notebook keeps, shown where no service answers. */
  saved: SweepSnapshot | null;
  /** How a trial's job is named: a link, where there are pages. */
  job: (name: string) => ComponentChildren;
  /** Leads to these trials' jobs laid over each other, where there are pages. */
  compare?: (jobs: readonly string[]) => void;
  onDeleted?: () => void;
}

export function SweepMonitor({ client, user, name, page, saved, job, compare, onDeleted }: SweepMonitorProps): JSX.Element {
  const [over, setOver] = useState(false);
  const path = paths.sweep(user, name);
  const sweep = useLoad(path, () => client.get<Sweep>(path).then((s) => { setOver(hasEnded(s)); return s; }), over ? 0 : EVERY);
  const curves = useLoad(`${path} curves ${over}`, () => client.get<SweepCurve[]>(`${path}/curves?most=60`), over ? 0 : CURVES_EVERY);
  const [pointed, point] = useState<number | null>(null);
  const s = sweep.data ?? saved?.sweep ?? null;
  const now = useNow(1000, s !== null && !hasEnded(s));
  if (!s) {
    return sweep.error ? <ErrorBox error={sweep.error} retry={() => void sweep.reload()} /> : <div class="mlp-monitor"><Loading what={t("Loading sweep {name}", { name })} lines={5} /></div>;
  }
  const live = sweep.data !== null;
  const drawn = curves.data ?? saved?.curves ?? [];
  return (
    <div class="mlp-monitor" data-sweep={s.name} data-state={s.state} data-live={live}>
      <div class="mlp-head">
        <div class="mlp-title">
          {page ? <h1 title={s.name}>{s.name}</h1> : <h2 title={s.name}>{s.name}</h2>}
          <span class="mlp-dim mlp-run">{t("run {run}", { run: s.run })}</span>
          <Chip kind={sweepTone(s.state)}><Icon name={sweepTone(s.state)} />{sweepWord(s.state)}</Chip>
          {live ? null : <span class="mlp-connection">{sweep.error ? t("Saved picture") : t("Saved picture · connecting")}</span>}
        </div>
        {live ? <SweepActions client={client} sweep={s} onDone={() => { setOver(false); void sweep.reload(); }} {...(onDeleted ? { onDeleted } : {})} /> : null}
      </div>
      <p class="mlp-hidden" role="status" aria-live="polite">{t("Sweep {name}: {state}", { name: s.name, state: sweepWord(s.state) })}</p>
      {live && sweep.error ? <ErrorBox error={sweep.error} retry={() => void sweep.reload()} /> : null}
      <SweepFacts sweep={s} now={now} />
      {s.message ? <p class="mlp-message">{s.message}</p> : null}
      <SweepProgress sweep={s} />
      <Best sweep={s} job={job} />
      <SweepCurves sweep={s} curves={drawn} pointed={{ trial: pointed, point }} />
      <Parallel sweep={s} pointed={{ trial: pointed, point }} />
      <Trials sweep={s} job={job} {...(compare ? { compare } : {})} />
    </div>
  );
}

function SweepFacts({ sweep, now }: { sweep: Sweep; now: number }): JSX.Element {
  const stop = { none: "", asha: "ASHA", median: t("median") }[sweep.stop];
  const facts = [
    [t("Team"), sweep.tenant],
    ...(sweep.metric ? [[t("Goal"), sweep.goal === "max" ? t("most {metric}", { metric: sweep.metric }) : t("least {metric}", { metric: sweep.metric })]] : []),
    ...(stop ? [[t("Rule for early stops"), stop]] : []),
    [t("Spent"), spentWords(sweep)],
    ...(sweep.deadline ? [[t("Deadline"), clock(sweep.deadline, now)]] : []),
    [t("Started"), clock(sweep.submitted_at, now)],
    ...(sweep.ended_at ? [[t("Ended"), clock(sweep.ended_at, now)]] : []),
  ] as [string, string][];
  return <Facts facts={facts} />;
}

function SweepProgress({ sweep }: { sweep: Sweep }): JSX.Element {
  const share = Math.round((100 * ended(sweep)) / Math.max(sweep.budget_trials, 1));
  return (
    <div class="mlp-progress">
      <div class={`mlp-progress-track mlp-progress-${sweep.state}`} role="progressbar" aria-label={t("Progress")} aria-valuemin={0} aria-valuemax={100} aria-valuenow={share}>
        <span class="mlp-progress-fill" style={{ width: `${share}%` }} />
      </div>
      <span class="mlp-progress-text mlp-sweep-counts">{countsWords(sweep)}</span>
    </div>
  );
}

function Best({ sweep, job }: { sweep: Sweep; job: SweepMonitorProps["job"] }): JSX.Element | null {
  const { best } = sweep;
  if (!best || !sweep.metric) return null;
  return (
    <p class="mlp-sweep-best">
      <span class="mlp-dim">{hasEnded(sweep) ? t("Best") : t("Best so far")}</span> <b>{`${sweep.metric} ${show(best.value)}`}</b>{" "}
      {best.job ? job(best.job) : null} <code>{paramWords(best)}</code>
    </p>
  );
}

function Trials({ sweep, job, compare }: { sweep: Sweep; job: SweepMonitorProps["job"]; compare?: SweepMonitorProps["compare"] }): JSX.Element {
  const [all, setAll] = useState(false);
  const rows = inOrder(sweep);
  const best = rows.flatMap((x) => (x.job && x.value !== null ? [x.job] : [])).slice(0, COMPARED);
  const columns: Column<SweepTrial>[] = [
    { title: t("Trial"), kind: "name", cell: (x) => (x.job ? job(x.job) : x.number) },
    { title: t("State"), kind: "tight", cell: (x) => <Chip kind={trialWaits(x) ? "wait" : trialTone(x.state)}>{trialWord(x)}</Chip> },
    ...(sweep.metric ? [{ title: sweep.metric, kind: "num", cell: (x: SweepTrial) => (x.value === null ? "–" : show(x.value)) }] : []),
    ...paramNames(sweep).slice(0, 6).map((name) => ({ title: name, kind: "num", cell: (x: SweepTrial) => paramText(x.params[name]) })),
    { title: t("Core-hours"), kind: "num low", cell: (x) => coreHours(x.core_hours) },
    { title: t("Note"), hideTitle: true, kind: "grow", cell: (x) => <span class="mlp-clip" title={x.message}>{["failed", "stopped"].includes(x.state) || trialWaits(x) ? x.message : ""}</span> },
  ];
  if (!rows.length) return <Empty title={t("No trials yet")} />;
  return (
    <section role="group" class="mlp-section" aria-label={t("Trials of {name}", { name: sweep.name })}>
      <div class="mlp-section-head">
        <Heading>{sweep.metric ? t("Trials, the best first") : t("Trials")}</Heading>
        {compare && best.length > 1 ? (
          <button type="button" class="mlp-button mlp-small" onClick={() => compare(best)}>{t("Compare the best {n}", { n: best.length })}</button>
        ) : null}
        {rows.length > ROWS ? (
          <button type="button" class="mlp-button mlp-small" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? t("Show fewer") : t("Show all {n}", { n: rows.length })}
          </button>
        ) : null}
      </div>
      <Table stack caption={t("Trials of {name}", { name: sweep.name })} columns={columns} rows={all ? rows : rows.slice(0, ROWS)} rowKey={(x) => String(x.number)} />
    </section>
  );
}

/** Stop, extend, delete: what cannot be undone asks first, a refusal stands where one clicked. */
function SweepActions({ client, sweep, onDone, onDeleted }: { client: Client; sweep: Sweep; onDone: () => void; onDeleted?: () => void }): JSX.Element {
  const [asking, setAsking] = useState<"cancel" | "extend" | "delete" | null>(null);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const path = paths.sweep(sweep.user, sweepReference(sweep));
  const close = (): void => {
    setAsking(null);
    setError(null);
  };
  const run = async (work: () => Promise<unknown>, then: () => void): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await work();
      close();
      then();
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  const bad = error ? <ErrorBox error={error} /> : null;
  const extends_ = ["running", "finished", "cancelled"].includes(sweep.state) && !sweep.array;
  return (
    <div class="mlp-actions">
      {sweep.state === "running" ? <button type="button" class="mlp-button mlp-small" onClick={() => setAsking("cancel")}>{t("Stop sweep")}</button> : null}
      {extends_ ? <button type="button" class="mlp-button mlp-small" onClick={() => setAsking("extend")}>{t("Extend")}</button> : null}
      {hasEnded(sweep) && onDeleted && sweep.state !== "deleting" ? <button type="button" class="mlp-button mlp-small mlp-quiet-danger" onClick={() => setAsking("delete")}>{t("Delete")}</button> : null}
      {asking === "cancel" ? (
        <Confirm title={t("Stop sweep {name}?", { name: sweep.name })} text={<p>{t("No more trials start, and running trials are ended. Their reported results stay. You can extend the sweep later.")}</p>} yes={t("Stop sweep")} no={t("Let it continue")} busy={busy} error={bad} onYes={() => void run(() => client.put(`${path}:cancel`), onDone)} onNo={close} />
      ) : null}
      {asking === "delete" ? (
        <Confirm title={t("Delete sweep {name}?", { name: sweep.name })} text={<p>{t("Its trials are deleted too, with their jobs, logs, curves and files. This cannot be undone.")}</p>} yes={t("Delete")} busy={busy} error={bad} onYes={() => void run(() => client.delete(path), () => onDeleted?.())} onNo={close} />
      ) : null}
      {asking === "extend" ? <Extend sweep={sweep} busy={busy} error={bad} onClose={close} onExtend={(more) => void run(() => client.put(`${path}:extend`, more), onDone)} /> : null}
    </div>
  );
}

function Extend({ sweep, busy, error, onClose, onExtend }: {
  sweep: Sweep;
  busy: boolean;
  error: JSX.Element | null;
  onClose: () => void;
  onExtend: (more: Record<string, number>) => void;
}): JSX.Element {
  const [trials, setTrials] = useState("10");
  const [hours, setHours] = useState("");
  const more = { trials: Number(trials || 0), core_hours: Number(hours || 0) };
  const right = Object.values(more).every((v) => Number.isFinite(v) && v >= 0) && Number.isInteger(more.trials) && (more.trials > 0 || more.core_hours > 0);
  return (
    <Dialog title={t("Extend sweep {name}", { name: sweep.name })} onClose={onClose}>
      <form
        onSubmit={(e) => {
          e.preventDefault();
          if (right) onExtend(Object.fromEntries(Object.entries(more).filter(([, v]) => v > 0)));
        }}
      >
        <Amount label={t("More trials")} value={trials} onInput={setTrials} autofocus />
        {sweep.budget_core_hours !== null ? <Amount label={t("More core-hours")} value={hours} onInput={setHours} /> : null}
        <p class="mlp-dim">{hasEnded(sweep) ? t("It continues from its results so far.") : t("It continues until these are used up too.")}</p>
        {error}
        <div class="mlp-dialog-buttons">
          <button type="button" class="mlp-button" onClick={onClose}>{t("Leave it")}</button>
          <button type="submit" class="mlp-button mlp-primary" disabled={busy || !right}>{t("Extend")}</button>
        </div>
      </form>
    </Dialog>
  );
}

function Amount({ label, value, onInput, autofocus = false }: { label: string; value: string; onInput: (value: string) => void; autofocus?: boolean }): JSX.Element {
  const id = useId("amount");
  return (
    <div class="mlp-field">
      <label for={id}>{label}</label>
      <input id={id} type="text" inputMode="decimal" autocomplete="off" value={value} {...(autofocus ? { "data-autofocus": "" } : {})} onInput={(e) => onInput(e.currentTarget.value)} />
    </div>
  );
}
