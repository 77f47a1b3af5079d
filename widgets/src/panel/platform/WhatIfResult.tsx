/** What came of a what-if: both runs beside each other, in all, per tenant, per job and over time. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, Icon, Table, type Column } from "../../components/basics/basics";
import { useNow } from "../../components/basics/hooks";
import { trim } from "../../core/format/format";
import { pinned } from "../../core/jobs/runs";
import { rowOf, seconds, startClock, startWords, WHOLE, waitsOf, whyTheSame, whyWords, withClocks, WORK, type Mark, type Row, type SimulatedWork } from "../../core/platform/whatif";
import type { Simulated, SimulatedMove, SimulatedRun } from "../../core/service/wire";
import { href, Link } from "../shared/address";
import { n, t } from "../../core/format/language";

const marks = (): Record<Mark, [string, string]> => ({ better: ["good", t("better")], worse: ["bad", t("worse")], same: ["idle", t("same")] });

function MarkChip({ row }: { row: Row }): JSX.Element {
  if (row.mark === "same") return <span class="mlp-dim">{row.before === row.after ? t("same") : ""}</span>;
  const [kind, word] = marks()[row.mark];
  return <Chip kind={kind}>{word}</Chip>;
}

export function Result({ answer }: { answer: Simulated }): JSX.Element {
  const { before, after, moves } = answer;
  if (!before || !moves) return <Empty title={t("There is nothing to compare with")} />;
  if (!before.jobs) {
    return (
      <Empty title={t("No jobs to compare")}>
        <p>{t("Nothing is running or waiting, or no job ended in that time. Choose another time span.")}</p>
      </Empty>
    );
  }
  const rows = WHOLE.map((figure) => rowOf(figure, before, after)).filter((r) => !r.silent);
  const columns: Column<Row>[] = [
    { title: t("Figure"), cell: (r) => <span title={r.hint}>{r.title}</span>, kind: "name" },
    { title: t("As it is"), cell: (r) => r.before, kind: "num" },
    { title: t("With the changes"), cell: (r) => r.after, kind: "num" },
    { title: t("Assessment"), cell: (r) => <MarkChip row={r} />, kind: "tight" },
    { title: t("By"), cell: (r) => r.by, kind: "grow low" },
  ];
  const same = whyTheSame(answer);
  return (
    <>
      {same ? (
        <div class="mlp-note mlp-note-idle mlp-whatif-same" role="note">
          <Icon name="wait" />
          <p class="mlp-note-text">{same}</p>
        </div>
      ) : null}
      <section class="mlp-card" aria-label={t("In all")}>
        <div class="mlp-card-head">
          <h2>{t("In all")}</h2>
          <span class="mlp-dim">{n("1 job", "{n} jobs", before.jobs)}</span>
          <span class="mlp-dim">{waitsOf(before, after)}</span>
          {answer.recorded?.jobs ? <span class="mlp-dim">{t("Actual wait: {span} on average", { span: seconds(answer.recorded.avg_wait_s) })}</span> : null}
        </div>
        <Table stack caption={t("All jobs, as it is and with the changes")} columns={columns} rows={rows} rowKey={(r) => r.title} />
      </section>
      <PerTenant before={before} after={after} />
      <Moves moves={moves} begin={answer.recorded ? answer.begin : null} />
      <Pictures before={before} after={after} begin={answer.recorded ? answer.begin : null} />
      {answer.remarks.length ? (
        <section class="mlp-card" aria-label={t("Assumptions")}>
          <div class="mlp-card-head">
            <h2>{t("Assumptions")}</h2>
          </div>
          <ul class="mlp-whatif-remarks">{answer.remarks.map((r) => <li key={r}>{r}</li>)}</ul>
        </section>
      ) : null}
    </>
  );
}

function Change({ row }: { row: Row }): JSX.Element {
  const [kind, word] = marks()[row.mark];
  return (
    <span class={`mlp-change mlp-change-${kind}`} title={row.hint}>
      {row.mark === "same" && row.before === row.after ? row.after : (
        <>
          <span class="mlp-dim">{row.before}<span aria-hidden="true"> →</span></span>
          <span class="mlp-hidden">{" "}{t("becomes")}{" "}</span>
          <span class="mlp-change-now">
            <b>{row.after}</b>
            {row.mark === "same" ? null : <><Icon name={kind} /><span class="mlp-hidden">{` ${word}`}</span></>}
          </span>
        </>
      )}
    </span>
  );
}

const percent = (value: number): string => `${trim(value * 100, 1)} %`;

/** How many, and how many of them are in no wait because they ran already. */
function Jobs({ of }: { of: SimulatedWork | undefined }): JSX.Element {
  return (
    <span class="mlp-change">
      {of?.jobs ?? 0}
      {of?.running ? <span class="mlp-dim">{t("{n} already running", { n: of.running })}</span> : null}
    </span>
  );
}

function PerTenant({ before, after }: { before: SimulatedRun; after: SimulatedRun }): JSX.Element {
  const names = Object.keys(after.per_tenant).filter((n) => (after.per_tenant[n]?.jobs ?? 0) > 0).sort();
  const columns: Column<string>[] = [
    { title: t("Team"), cell: (n) => <Link to={href("admin", "tenants", n)}>{n}</Link>, kind: "name" },
    { title: t("Jobs"), cell: (n) => <Jobs of={after.per_tenant[n]} />, kind: "num low" },
    ...WORK.map((figure): Column<string> => ({
      title: figure.title(),
      kind: "num",
      cell: (n): ComponentChildren => {
        const [a, b] = [before.per_tenant[n], after.per_tenant[n]];
        return a && b ? <Change row={rowOf(figure, a, b)} /> : "–";
      },
    })),
    {
      title: t("Share of use"),
      kind: "num",
      cell: (n): ComponentChildren => {
        const [a, b] = [before.per_tenant[n], after.per_tenant[n]];
        if (!a || !b) return "–";
        const same = percent(a.share) === percent(b.share);
        return (
          <span class="mlp-change" title={t("Share of all use; fair is its share by weight")}>
            {same ? null : <span class="mlp-dim">{percent(a.share)}<span aria-hidden="true"> →</span><span class="mlp-hidden">{" "}{t("becomes")}{" "}</span></span>}
            <b>{percent(b.share)}</b>
            <span class="mlp-dim">{t("fair {percent}", { percent: percent(b.fair_share) })}</span>
          </span>
        );
      },
    },
  ];
  return (
    <section class="mlp-card" aria-label={t("Per team")}>
      <div class="mlp-card-head">
        <h2>{t("Per team")}</h2>
        <span class="mlp-dim">{t("As it is → with the changes")}</span>
      </div>
      <Table stack caption={t("Each team, as it is and with the changes")} columns={columns} rows={names} rowKey={(n) => n} />
    </section>
  );
}

function moveWords(m: SimulatedMove): JSX.Element {
  if (m.before_s === null) return <Chip kind="good">{t("starts only with the changes")}</Chip>;
  if (m.after_s === null) return <Chip kind="bad">{t("never starts")}</Chip>;
  const by = m.after_s - m.before_s;
  return <Chip kind={by < 0 ? "good" : "bad"}>{by < 0 ? t("{span} earlier", { span: seconds(-by) }) : t("{span} later", { span: seconds(by) })}</Chip>;
}

function Moves({ moves, begin }: { moves: NonNullable<Simulated["moves"]>; begin: string | null }): JSX.Element {
  const now = useNow(60_000);
  const start = (at: number | null): string => (begin === null ? startWords(at) : startClock(at, begin, now));
  const columns: Column<SimulatedMove>[] = [
    { title: t("Job"), cell: (m) => (m.job.includes(" ") ? m.job : <Link to={href("jobs", m.user, pinned(m.job))}>{m.job}</Link>), kind: "name" },
    { title: t("User"), cell: (m) => m.user },
    { title: t("Team"), cell: (m) => m.tenant, kind: "low" },
    { title: t("As it is"), cell: (m) => start(m.before_s), kind: "num" },
    { title: t("With the changes"), cell: (m) => start(m.after_s), kind: "num" },
    { title: t("Moves"), cell: moveWords, kind: "tight" },
    { title: t("Reason for the wait"), cell: (m) => <span class="mlp-dim">{whyWords(m)}</span>, kind: "grow" },
  ];
  const said = [
    moves.earlier ? t("{n} earlier", { n: moves.earlier }) : "", moves.later ? t("{n} later", { n: moves.later }) : "", moves.unmoved ? t("{n} as before", { n: moves.unmoved }) : "",
    moves.only_after ? t("{n} that start only with the changes", { n: moves.only_after }) : "", moves.only_before ? t("{n} that never start with the changes", { n: moves.only_before }) : "",
  ].filter(Boolean);
  return (
    <section class="mlp-card" aria-label={t("Changed start times")}>
      <div class="mlp-card-head">
        <h2>{t("Changed start times")}</h2>
        <span class="mlp-dim">{said.join(t(", ")) || t("No job needs to start")}</span>
      </div>
      {moves.most.length ? (
        <Table stack caption={t("Jobs whose start time changes most")} columns={columns} rows={moves.most} rowKey={(m) => `${m.user}/${m.job}`} />
      ) : (
        <p class="mlp-dim">{t("No start time changes.")}</p>
      )}
    </section>
  );
}

/** As an image, so that nothing in it can run; its colours follow the reader's theme all the same. */
function Pictures({ before, after, begin }: { before: SimulatedRun; after: SimulatedRun; begin: string | null }): JSX.Element | null {
  const [which, setWhich] = useState<"before" | "after">("after");
  const now = useNow(60_000);
  const drawn = (which === "before" ? before : after).gantt;
  if (!before.gantt || !after.gantt || !drawn) return null;
  const svg = begin === null ? drawn : withClocks(drawn, begin, now);
  const names = { before: t("As it is"), after: t("With the changes") };
  return (
    <section class="mlp-card" aria-label={t("Over time")}>
      <div class="mlp-card-head">
        <h2>{t("Over time")}</h2>
        <span class="mlp-row" role="group" aria-label={t("Which run")}>
          {(["before", "after"] as const).map((w) => (
            <button key={w} type="button" class={`mlp-button mlp-small${which === w ? " mlp-primary" : ""}`} aria-pressed={which === w} onClick={() => setWhich(w)}>
              {names[w]}
            </button>
          ))}
        </span>
      </div>
      <p class="mlp-dim mlp-whatif-scroll">{t("Wider than this window: scroll sideways")}</p>
      <div class="mlp-whatif-picture" tabIndex={0} role="group" aria-label={t("Picture; scroll sideways if it is wide")}>
        <img alt={t("{run}: workloads of each node and use of each team over time", { run: names[which] })} src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`} />
      </div>
    </section>
  );
}
