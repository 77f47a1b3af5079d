/** What came of a what-if: both runs beside each other, in all, per tenant, per job and over time. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, Icon, Table, type Column } from "../components/basics";
import { useNow } from "../components/hooks";
import { plural, trim } from "../core/format";
import { rowOf, seconds, startClock, startWords, WHOLE, waitsOf, whyTheSame, whyWords, withClocks, WORK, type Mark, type Row } from "../core/whatif";
import type { Simulated, SimulatedMove, SimulatedRun, SimulatedWork } from "../core/wire";
import { href, Link } from "./router";

const MARKS: Record<Mark, [string, string]> = { better: ["good", "better"], worse: ["bad", "worse"], same: ["idle", "same"] };

/** Of these nothing is said where there is nothing. */
const SILENT = new Set(["GPU in use", "Waits after a stop"]);

function MarkChip({ row }: { row: Row }): JSX.Element {
  if (row.mark === "same") return <span class="mlp-dim">{row.before === row.after ? "same" : ""}</span>;
  const [kind, word] = MARKS[row.mark];
  return <Chip kind={kind}>{word}</Chip>;
}

export function Result({ answer }: { answer: Simulated }): JSX.Element {
  const { before, after, moves } = answer;
  if (!before || !moves) return <Empty title="There is nothing to compare with" />;
  if (!before.jobs) {
    return (
      <Empty title="No work to try it on">
        <p>Nothing runs, nothing waits, or no job ended in that time. Choose another span of time.</p>
      </Empty>
    );
  }
  const rows = WHOLE.map((figure) => rowOf(figure, before, after)).filter((r) => !SILENT.has(r.title) || r.before !== r.after || !/^0 /.test(r.before));
  const columns: Column<Row>[] = [
    { title: "Figure", cell: (r) => <span title={r.hint}>{r.title}</span>, kind: "name" },
    { title: "As it is", cell: (r) => r.before, kind: "num" },
    { title: "With the changes", cell: (r) => r.after, kind: "num" },
    { title: "Mark", cell: (r) => <MarkChip row={r} />, kind: "tight" },
    { title: "By", cell: (r) => r.by, kind: "grow low" },
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
      <section class="mlp-card" aria-label="In all">
        <div class="mlp-card-head">
          <h2>In all</h2>
          <span class="mlp-dim">{`${plural(before.jobs, "job")}`}</span>
          <span class="mlp-dim">{waitsOf(before, after)}</span>
          {answer.recorded?.jobs ? <span class="mlp-dim">{`Really waited: ${seconds(answer.recorded.avg_wait_s)} on average`}</span> : null}
        </div>
        <Table stack caption="All jobs, as it is and with the changes" columns={columns} rows={rows} rowKey={(r) => r.title} />
      </section>
      <PerTenant before={before} after={after} />
      <Moves moves={moves} begin={answer.recorded ? answer.begin : null} />
      <Pictures before={before} after={after} begin={answer.recorded ? answer.begin : null} />
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

/** How many, and how many of them are in no wait because they ran already. */
function Jobs({ of }: { of: SimulatedWork | undefined }): JSX.Element {
  return (
    <span class="mlp-change">
      {of?.jobs ?? 0}
      {of?.running ? <span class="mlp-dim">{`${of.running} ran already`}</span> : null}
    </span>
  );
}

function PerTenant({ before, after }: { before: SimulatedRun; after: SimulatedRun }): JSX.Element {
  const names = Object.keys(after.per_tenant).filter((n) => (after.per_tenant[n]?.jobs ?? 0) > 0).sort();
  const columns: Column<string>[] = [
    { title: "Tenant", cell: (n) => <Link to={href("admin", "tenants", n)}>{n}</Link>, kind: "name" },
    { title: "Jobs", cell: (n) => <Jobs of={after.per_tenant[n]} />, kind: "num low" },
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
    { title: "What it waits for", cell: (m) => <span class="mlp-dim">{whyWords(m)}</span>, kind: "grow" },
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
function Pictures({ before, after, begin }: { before: SimulatedRun; after: SimulatedRun; begin: string | null }): JSX.Element | null {
  const [which, setWhich] = useState<"before" | "after">("after");
  const now = useNow(60_000);
  const drawn = (which === "before" ? before : after).gantt;
  if (!before.gantt || !after.gantt || !drawn) return null;
  const svg = begin === null ? drawn : withClocks(drawn, begin, now);
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
      <p class="mlp-dim mlp-whatif-scroll">Wider than this window: scroll it sideways</p>
      <div class="mlp-whatif-picture" tabIndex={0} role="group" aria-label="Picture; scroll it where it is wide">
        <img alt={`${names[which]}: what each node hosts and each tenant holds over time`} src={`data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`} />
      </div>
    </section>
  );
}
