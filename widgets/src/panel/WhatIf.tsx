/** What-if: the hub as it is beside the hub with other quotas, nodes or policy, run in virtual time. Changes nothing. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Icon, Loading, Table, type Column } from "../components/basics";
import { useId, useLoad, useNow } from "../components/hooks";
import { paths } from "../core/api";
import { duration, plural, trim } from "../core/format";
import {
  askedOf, draftOf, kindsOf, kindWords, NO_NODES, NO_TENANT, rowOf, seconds, startClock, startWords, textsOf, WHOLE, WORK,
  type Draft, type Kind, type Mark, type NewNodes, type NewTenant, type Row, type TenantTexts,
} from "../core/whatif";
import type { Node, Simulated, SimulatedMove, SimulatedRun, Tenant } from "../core/wire";
import { useHub } from "./context";
import { PageHead, Select } from "./form";
import { href, Link } from "./router";

const POLICIES: [string, string][] = [
  ["", "As it is"],
  ["fair", "Fair share with memory"],
  ["maxmin", "Fair share of now"],
  ["priority", "Priority, then age"],
  ["fifo", "First come, first served"],
  ["finish", "Fair finish"],
];
const SOURCES: [string, string][] = [["now", "From now on"], ["1", "The last day"], ["7", "The last 7 days"], ["30", "The last 30 days"]];

export function WhatIfPage(): JSX.Element {
  const { client } = useHub();
  const tenants = useLoad("what-if-tenants", () => client.list<Tenant>(paths.tenants));
  const nodes = useLoad("what-if-nodes", () => client.list<Node>("/nodes"));
  const error = tenants.error ?? nodes.error;
  const head = <PageHead title="What-if" sub="Try other quotas, nodes or a policy on the hub's own work. Nothing is changed." />;
  if (tenants.data && nodes.data) {
    return (
      <>
        {head}
        <Workbench tenants={tenants.data.items} kinds={kindsOf(nodes.data.items)} />
      </>
    );
  }
  const retry = (): void => void Promise.all([tenants.reload(), nodes.reload()]);
  return (
    <>
      {head}
      {error ? <ErrorBox error={error} retry={retry} /> : <Loading what="tenants and nodes" lines={6} />}
    </>
  );
}

function Workbench({ tenants, kinds }: { tenants: Tenant[]; kinds: Kind[] }): JSX.Element {
  const { client } = useHub();
  const [draft, setDraft] = useState<Draft>(() => draftOf(tenants, kinds));
  const [running, setRunning] = useState<number | null>(null);
  const [shown, setShown] = useState<{ answer: Simulated; of: Draft } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [tried, setTried] = useState(false);
  const result = useRef<HTMLElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const asked = askedOf(draft, tenants, kinds, Date.now());
  const faults = tried ? asked.faults : {};
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change });
  const run = async (event: Event): Promise<void> => {
    event.preventDefault();
    setTried(true);
    const bad = Object.keys(asked.faults);
    if (bad.length) {
      form.current?.querySelector<HTMLInputElement>(`input[name="${CSS.escape(bad[0] ?? "")}"]`)?.focus();
      return;
    }
    setError(null);
    setRunning(Date.now());
    try {
      setShown({ answer: await client.post<Simulated>(paths.simulate, asked.body), of: draft });
    } catch (e) {
      setError(e);
    } finally {
      setRunning(null);
    }
  };
  useEffect(() => {
    if (shown) result.current?.focus();
  }, [shown]);
  return (
    <>
      <form ref={form} class="mlp-whatif" onSubmit={(e) => void run(e)} noValidate aria-label="What would be other">
        <section class="mlp-card" aria-label="Quotas">
          <div class="mlp-card-head">
            <h2>Quotas</h2>
            <span class="mlp-dim">An empty field means no limit</span>
          </div>
          <TenantRows draft={draft} tenants={tenants} faults={faults} set={set} />
        </section>
        <section class="mlp-card" aria-label="Nodes">
          <div class="mlp-card-head">
            <h2>Nodes</h2>
            <span class="mlp-dim">How many there would be of each kind</span>
          </div>
          <NodeRows draft={draft} kinds={kinds} faults={faults} set={set} />
        </section>
        <section class="mlp-card mlp-whatif-run" aria-label="Run">
          <Select label="Work" name="from" value={draft.from} onChange={(from) => set({ from })} options={SOURCES} />
          <Select label="Policy" name="policy" value={draft.policy} onChange={(policy) => set({ policy })} options={POLICIES} />
          <Select
            label="Preemption"
            name="preemption"
            value={draft.preemption}
            onChange={(preemption) => set({ preemption })}
            options={[["", "As it is"], ["on", "Allowed"], ["off", "Never"]]}
          />
          <div class="mlp-whatif-go">
            <span class="mlp-dim" role="status">
              {asked.changes ? plural(asked.changes, "change") : "No change yet"}
            </span>
            <button type="button" class="mlp-button" disabled={!asked.changes} onClick={() => setDraft({ ...draftOf(tenants, kinds), from: draft.from })}>
              Start over
            </button>
            <button type="submit" class="mlp-button mlp-primary" disabled={running !== null}>
              Run
            </button>
          </div>
        </section>
      </form>
      {running !== null ? <Progress since={running} /> : null}
      {error && running === null ? <ErrorBox error={error} retry={() => form.current?.requestSubmit()} /> : null}
      {shown ? (
        <section ref={result} class="mlp-whatif-result" tabIndex={-1} aria-label="Result" data-stale={shown.of !== draft}>
          {shown.of !== draft ? <p class="mlp-dim">The form was changed since; run again to see what that means.</p> : null}
          <Result answer={shown.answer} />
        </section>
      ) : running === null && !error ? (
        <Empty title="Nothing was run yet">
          <p>Change what you like, then run: the same work is scheduled twice, as things are and with your changes.</p>
        </Empty>
      ) : null}
    </>
  );
}

function Progress({ since }: { since: number }): JSX.Element {
  const now = useNow(1000);
  return (
    <div class="mlp-whatif-wait" role="status">
      <Loading what="both runs" lines={4} />
      <p class="mlp-dim">{`Running both, for ${duration(Math.max(0, now - since) / 1000)}; at most a minute.`}</p>
    </div>
  );
}

// ------------------------------------------------------------------ the form

function Cell({ name, label, value, was, fault, onInput, placeholder = "no limit" }: {
  name: string;
  label: string;
  value: string;
  /** What it is now; undefined for something new. */
  was?: string | undefined;
  fault: string | undefined;
  onInput: (value: string) => void;
  placeholder?: string;
}): JSX.Element {
  const id = useId("cell");
  const other = was !== undefined && value.trim() !== was;
  return (
    <span class={`mlp-cell-field${other ? " mlp-cell-other" : ""}${fault ? " mlp-field-bad" : ""}`}>
      <input
        class="mlp-input"
        name={name}
        aria-label={label}
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={Boolean(fault)}
        aria-describedby={fault || other ? id : undefined}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
      {fault ? (
        <span id={id} class="mlp-field-error" role="alert">{fault}</span>
      ) : other ? (
        <span id={id} class="mlp-field-hint">{`now ${was || "no limit"}`}</span>
      ) : null}
    </span>
  );
}

const AMOUNTS: [keyof TenantTexts, string][] = [["cpu", "CPU"], ["gpu", "GPU"], ["ram", "Memory"], ["weight", "Weight"]];

function TenantRows({ draft, tenants, faults, set }: {
  draft: Draft;
  tenants: Tenant[];
  faults: Record<string, string>;
  set: (change: Partial<Draft>) => void;
}): JSX.Element {
  const edit = (i: number, change: Partial<NewTenant>): void => set({ added: draft.added.map((t, at) => (at === i ? { ...t, ...change } : t)) });
  const cells = (key: string, label: string, texts: TenantTexts, was: TenantTexts | undefined, change: (c: Partial<TenantTexts>) => void): JSX.Element[] =>
    AMOUNTS.map(([field, title]) => (
      <td key={field} data-title={title}>
        <Cell
          name={`${key}.${field}`}
          label={`${title} of ${label}`}
          value={texts[field]}
          was={was?.[field]}
          fault={faults[`${key}.${field}`]}
          onInput={(value) => change({ [field]: value })}
          placeholder={field === "weight" ? "1" : "no limit"}
        />
      </td>
    ));
  return (
    <>
      <div class="mlp-table-box">
        <table class="mlp-table mlp-edit">
          <caption class="mlp-hidden">Quota of each tenant as it would be</caption>
          <thead>
            <tr>
              <th scope="col">Tenant</th>
              {AMOUNTS.map(([field, title]) => <th key={field} scope="col">{title}</th>)}
              <th scope="col"><span class="mlp-hidden">Remove</span></th>
            </tr>
          </thead>
          <tbody>
            {tenants.map((t) => {
              const texts = draft.tenants[t.name] ?? textsOf(t);
              return (
                <tr key={t.name}>
                  <th scope="row" class="mlp-col-name">{t.name}</th>
                  {cells(t.name, t.name, texts, textsOf(t), (c) => set({ tenants: { ...draft.tenants, [t.name]: { ...texts, ...c } } }))}
                  <td />
                </tr>
              );
            })}
            {draft.added.map((t, i) => (
              <tr key={`new-${i}`}>
                <th scope="row" class="mlp-col-name">
                  <Cell name={`new-${i}.name`} label={`Name of new tenant ${i + 1}`} value={t.name} fault={faults[`new-${i}.name`]} onInput={(name) => edit(i, { name })} placeholder="name" />
                </th>
                {cells(`new-${i}`, t.name || `new tenant ${i + 1}`, t, undefined, (c) => edit(i, c))}
                <td>
                  <button type="button" class="mlp-button mlp-small" aria-label={`Remove new tenant ${i + 1}`} onClick={() => set({ added: draft.added.filter((_, at) => at !== i) })}>
                    Remove
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <button type="button" class="mlp-button mlp-small" onClick={() => set({ added: [...draft.added, NO_TENANT] })}>
        Add a tenant
      </button>
    </>
  );
}

function NodeRows({ draft, kinds, faults, set }: {
  draft: Draft;
  kinds: Kind[];
  faults: Record<string, string>;
  set: (change: Partial<Draft>) => void;
}): JSX.Element {
  const edit = (i: number, change: Partial<NewNodes>): void => set({ nodes: draft.nodes.map((n, at) => (at === i ? { ...n, ...change } : n)) });
  const part = (i: number, n: NewNodes, field: keyof NewNodes, title: string, placeholder = ""): JSX.Element => (
    <label class="mlp-whatif-part">
      <span>{title}</span>
      <Cell name={`nodes-${i}.${field}`} label={`${title} of new nodes ${i + 1}`} value={n[field]} fault={faults[`nodes-${i}.${field}`]} onInput={(value) => edit(i, { [field]: value })} placeholder={placeholder} />
    </label>
  );
  return (
    <>
      <ul class="mlp-whatif-kinds">
        {kinds.map((kind) => (
          <li key={kind.key}>
            <Cell
              name={`kind.${kind.key}`}
              label={`Nodes of ${kindWords(kind)}`}
              value={draft.kinds[kind.key] ?? ""}
              was={String(kind.names.length)}
              fault={faults[`kind.${kind.key}`]}
              onInput={(value) => set({ kinds: { ...draft.kinds, [kind.key]: value } })}
              placeholder="0"
            />
            <span>
              {`× ${kindWords(kind)} `}
              <span class="mlp-dim">{kind.names.slice(0, 3).join(", ")}{kind.names.length > 3 ? ` and ${kind.names.length - 3} more` : ""}</span>
            </span>
          </li>
        ))}
        {draft.nodes.map((n, i) => (
          <li key={`nodes-${i}`}>
            {part(i, n, "count", "New nodes", "1")}
            {part(i, n, "cpu", "CPU", "8")}
            {part(i, n, "ram", "Memory", "32 GiB")}
            {part(i, n, "gpu", "GPU", "0")}
            {part(i, n, "gpu_kind", "GPU kind", "any")}
            <button type="button" class="mlp-button mlp-small" aria-label={`Remove new nodes ${i + 1}`} onClick={() => set({ nodes: draft.nodes.filter((_, at) => at !== i) })}>
              Remove
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="mlp-button mlp-small" onClick={() => set({ nodes: [...draft.nodes, NO_NODES] })}>
        Add nodes of another kind
      </button>
    </>
  );
}

// ---------------------------------------------------------------- the result

const MARKS: Record<Mark, [string, string]> = { better: ["good", "better"], worse: ["bad", "worse"], same: ["idle", "same"] };

function MarkChip({ row }: { row: Row }): JSX.Element {
  if (row.mark === "same") return <span class="mlp-dim">{row.before === row.after ? "same" : ""}</span>;
  const [kind, word] = MARKS[row.mark];
  return <Chip kind={kind}>{word}</Chip>;
}

function Result({ answer }: { answer: Simulated }): JSX.Element {
  const { before, after, moves } = answer;
  if (!before || !moves) return <Empty title="There is nothing to compare with" />;
  if (!before.jobs) {
    return (
      <Empty title="No work to try it on">
        <p>Nothing runs, nothing waits, or no job ended in that time. Choose another span of time.</p>
      </Empty>
    );
  }
  const rows = WHOLE.map((figure) => rowOf(figure, before, after)).filter((r) => !(r.title === "GPU in use" && r.before === "0 %" && r.after === "0 %"));
  const columns: Column<Row>[] = [
    { title: "Figure", cell: (r) => <span title={r.hint}>{r.title}</span>, kind: "name" },
    { title: "As it is", cell: (r) => r.before, kind: "num" },
    { title: "With the changes", cell: (r) => r.after, kind: "num" },
    { title: "Mark", cell: (r) => <MarkChip row={r} />, kind: "tight" },
    { title: "By", cell: (r) => r.by, kind: "grow low" },
  ];
  return (
    <>
      <section class="mlp-card" aria-label="In all">
        <div class="mlp-card-head">
          <h2>In all</h2>
          <span class="mlp-dim">{`${plural(before.jobs, "job")}`}</span>
          {answer.recorded?.jobs ? <span class="mlp-dim">{`Really waited: ${seconds(answer.recorded.avg_wait_s)} on average`}</span> : null}
        </div>
        <Table stack caption="All jobs, as it is and with the changes" columns={columns} rows={rows} rowKey={(r) => r.title} />
      </section>
      <PerTenant before={before} after={after} />
      <Moves moves={moves} begin={answer.recorded ? answer.begin : null} />
      <Pictures before={before} after={after} />
      {answer.remarks.length ? (
        <section class="mlp-card" aria-label="What was assumed">
          <div class="mlp-card-head">
            <h2>What was assumed</h2>
          </div>
          <ul class="mlp-whatif-remarks">{answer.remarks.map((r) => <li key={r}>{r}</li>)}</ul>
        </section>
      ) : null}
    </>
  );
}

function Change({ row }: { row: Row }): JSX.Element {
  const [kind, word] = MARKS[row.mark];
  return (
    <span class={`mlp-change mlp-change-${kind}`} title={row.hint}>
      {row.mark === "same" && row.before === row.after ? row.after : (
        <>
          <span class="mlp-dim">{row.before}<span aria-hidden="true"> →</span></span>
          <span class="mlp-hidden"> becomes </span>
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

function PerTenant({ before, after }: { before: SimulatedRun; after: SimulatedRun }): JSX.Element {
  const names = Object.keys(after.per_tenant).filter((n) => (after.per_tenant[n]?.jobs ?? 0) > 0).sort();
  const columns: Column<string>[] = [
    { title: "Tenant", cell: (n) => <Link to={href("admin", "tenants", n)}>{n}</Link>, kind: "name" },
    { title: "Jobs", cell: (n) => after.per_tenant[n]?.jobs ?? 0, kind: "num low" },
    ...WORK.map((figure): Column<string> => ({
      title: figure.title,
      kind: "num",
      cell: (n): ComponentChildren => {
        const [a, b] = [before.per_tenant[n], after.per_tenant[n]];
        return a && b ? <Change row={rowOf(figure, a, b)} /> : "–";
      },
    })),
    {
      title: "Share of use",
      kind: "num",
      cell: (n): ComponentChildren => {
        const [a, b] = [before.per_tenant[n], after.per_tenant[n]];
        if (!a || !b) return "–";
        const same = percent(a.share) === percent(b.share);
        return (
          <span class="mlp-change" title="Of all that was used; fair is its part by weight">
            {same ? null : <span class="mlp-dim">{percent(a.share)}<span aria-hidden="true"> →</span><span class="mlp-hidden"> becomes </span></span>}
            <b>{percent(b.share)}</b>
            <span class="mlp-dim">{`fair ${percent(b.fair_share)}`}</span>
          </span>
        );
      },
    },
  ];
  return (
    <section class="mlp-card" aria-label="Per tenant">
      <div class="mlp-card-head">
        <h2>Per tenant</h2>
        <span class="mlp-dim">As it is → with the changes</span>
      </div>
      <Table stack caption="Each tenant, as it is and with the changes" columns={columns} rows={names} rowKey={(n) => n} />
    </section>
  );
}

function moveWords(m: SimulatedMove): JSX.Element {
  if (m.before_s === null) return <Chip kind="good">starts at all</Chip>;
  if (m.after_s === null) return <Chip kind="bad">never starts</Chip>;
  const by = m.after_s - m.before_s;
  return <Chip kind={by < 0 ? "good" : "bad"}>{`${seconds(Math.abs(by))} ${by < 0 ? "earlier" : "later"}`}</Chip>;
}

function Moves({ moves, begin }: { moves: NonNullable<Simulated["moves"]>; begin: string | null }): JSX.Element {
  const now = useNow(60_000);
  const start = (at: number | null): string => (begin === null ? startWords(at) : startClock(at, begin, now));
  const columns: Column<SimulatedMove>[] = [
    { title: "Job", cell: (m) => <Link to={href("jobs", m.user, m.job)}>{m.job}</Link>, kind: "name" },
    { title: "User", cell: (m) => m.user },
    { title: "Tenant", cell: (m) => m.tenant, kind: "low" },
    { title: "As it is", cell: (m) => start(m.before_s), kind: "num" },
    { title: "With the changes", cell: (m) => start(m.after_s), kind: "num" },
    { title: "Moves", cell: moveWords, kind: "tight" },
    { title: "Why", cell: (m) => (m.why_never ? <span class="mlp-dim">{m.why_never}</span> : null), kind: "grow" },
  ];
  const said = [
    moves.earlier ? `${moves.earlier} earlier` : "", moves.later ? `${moves.later} later` : "", moves.unmoved ? `${moves.unmoved} as before` : "",
    moves.only_after ? `${moves.only_after} that would not start otherwise` : "", moves.only_before ? `${moves.only_before} that would never start` : "",
  ].filter(Boolean);
  return (
    <section class="mlp-card" aria-label="Starts that move">
      <div class="mlp-card-head">
        <h2>Starts that move</h2>
        <span class="mlp-dim">{said.join(", ") || "No job has to start"}</span>
      </div>
      {moves.most.length ? (
        <Table stack caption="Jobs whose start moves most" columns={columns} rows={moves.most} rowKey={(m) => `${m.user}/${m.job}`} />
      ) : (
        <p class="mlp-dim">No start moves.</p>
      )}
    </section>
  );
}

/** As an image, so that nothing in it can run; its colours follow the reader's theme all the same. */
function Pictures({ before, after }: { before: SimulatedRun; after: SimulatedRun }): JSX.Element | null {
  const [which, setWhich] = useState<"before" | "after">("after");
  const svg = (which === "before" ? before : after).gantt;
  if (!before.gantt || !after.gantt || !svg) return null;
  const names = { before: "As it is", after: "With the changes" };
  return (
    <section class="mlp-card" aria-label="Over time">
      <div class="mlp-card-head">
        <h2>Over time</h2>
        <span class="mlp-row" role="group" aria-label="Which run">
          {(["before", "after"] as const).map((w) => (
            <button key={w} type="button" class={`mlp-button mlp-small${which === w ? " mlp-primary" : ""}`} aria-pressed={which === w} onClick={() => setWhich(w)}>
              {names[w]}
            </button>
          ))}
        </span>
      </div>
      <div class="mlp-whatif-picture" tabIndex={0} role="group" aria-label="Picture; scroll it where it is wide">
        <img alt={`${names[which]}: what each node hosts and each tenant holds over time`} src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`} />
      </div>
    </section>
  );
}
