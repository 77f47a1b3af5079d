/** Who changed what, and what the scheduler decided about any job and why. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../components/basics";
import { Story } from "../components/Explained";
import { useId, useLoad, useNow } from "../components/hooks";
import { detailWords, filtered, NO_FILTERS, request, type Filters } from "../core/audit";
import { clock, ms, plural } from "../core/format";
import type { AuditEntry, JobDecision } from "../core/wire";
import { useHub } from "./context";
import { PageHead, Select } from "./form";
import { href, Link } from "./router";

const EVERY = 10_000;
const SPANS: [string, string][] = [["", "All that is kept"], ["3600", "Last hour"], ["86400", "Last day"], ["604800", "Last 7 days"], ["2592000", "Last 30 days"]];
const KINDS: [string, string][] = [["", "All decisions"], ["admitted", "Admitted"], ["preempted", "Preempted"], ["resized", "Resized"]];
const TONES: Record<string, string> = { admitted: "good", preempted: "wait" };
/** What the hub writes down; any other action may be typed too. */
const ACTIONS = ["tenant.", "member.", "user.", "booking.", "quota.", "jobs.expire"];

type Row = { key: string; entry: AuditEntry } | { key: string; made: JobDecision };

interface Pages {
  rows: Row[] | null;
  next: string | null;
  error: unknown;
  busy: boolean;
  more: () => void;
  reload: () => void;
}

/** The first page, renewed now and then; once more was asked for, all pages stay as they are. */
function usePages(filters: Filters): Pages {
  const { client } = useHub();
  const key = JSON.stringify(filters);
  const [later, setLater] = useState<{ key: string; rows: Row[]; next: string | null }>({ key: "", rows: [], next: null });
  const [failed, setFailed] = useState<{ key: string; error: unknown } | null>(null);
  const [busy, setBusy] = useState(false);
  const mine = later.key === key;
  const load = async (cursor: string | null): Promise<{ rows: Row[]; next: string | null }> => {
    const path = request(filters, Date.now(), cursor);
    if (filters.of === "changes") {
      const page = await client.list<AuditEntry>(path);
      return { rows: page.items.map((entry) => ({ key: String(entry.id), entry })), next: page.next };
    }
    const page = await client.list<JobDecision>(path);
    const named = (m: JobDecision): string => `${m.user} ${m.job} ${m.decision.time} ${m.decision.kind}`;
    return { rows: page.items.map((made) => ({ key: named(made), made })), next: page.next };
  };
  const first = useLoad(key, () => load(null), mine ? 0 : EVERY);
  const next = mine ? later.next : (first.data?.next ?? null);
  const more = (): void => {
    setBusy(true);
    setFailed(null);
    load(next)
      .then(
        (page) => setLater({ key, rows: [...(mine ? later.rows : []), ...page.rows], next: page.next }),
        (error: unknown) => setFailed({ key, error }),
      )
      .finally(() => setBusy(false));
  };
  const bad = failed?.key === key ? failed.error : null;
  return {
    rows: first.data ? [...first.data.rows, ...(mine ? later.rows : [])] : null,
    next,
    error: first.error ?? bad,
    busy,
    more,
    reload: () => (first.error ? void first.reload() : more()),
  };
}

/** A filter that counts once it is complete: on Enter, or when it is left. */
function Find({ label, value, onChange, choices }: { label: string; value: string; onChange: (value: string) => void; choices?: string[] }): JSX.Element {
  const id = useId("find");
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  return (
    <label class="mlp-inline">
      <span class="mlp-hidden">{label}</span>
      <input class="mlp-input mlp-find" type="search" placeholder={label} value={typed} maxLength={255} spellcheck={false} autocomplete="off" {...(choices ? { list: id } : {})} onInput={(e) => setTyped(e.currentTarget.value)} onChange={(e) => onChange(e.currentTarget.value)} />
      {choices ? <datalist id={id}>{choices.map((c) => <option key={c} value={c} />)}</datalist> : null}
    </label>
  );
}

function Why({ made }: { made: JobDecision }): JSX.Element {
  const [open, setOpen] = useState(false);
  const id = useId("why");
  const { decision } = made;
  return (
    <>
      {decision.summary}{" "}
      <button type="button" class="mlp-link" aria-expanded={open} aria-controls={id} aria-label={`Why ${decision.kind}, ${made.job} of ${made.user}`} onClick={() => setOpen(!open)}>
        why?
      </button>
      {open ? (
        <div id={id} class="mlp-decision" role="group" aria-label={`Why ${made.job} of ${made.user} was ${decision.kind}`}>
          <Story d={decision} />
        </div>
      ) : null}
    </>
  );
}

export function AuditPage(): JSX.Element {
  const [filters, setFilters] = useState<Filters>(NO_FILTERS);
  const pages = usePages(filters);
  const now = useNow(30_000);
  const set = (change: Partial<Filters>): void => setFilters((old) => ({ ...old, ...change }));
  const changes = filters.of === "changes";
  const when = (time: string): JSX.Element => <time dateTime={time} title={time}>{clock(ms(time), now, true)}</time>;
  const columns: Column<Row>[] = changes ? [
    { title: "When", cell: (r) => ("entry" in r ? when(r.entry.time) : null), kind: "tight" },
    { title: "Who", cell: (r) => ("entry" in r ? r.entry.actor : null), kind: "name" },
    { title: "What", cell: (r) => ("entry" in r ? <code>{r.entry.action}</code> : null), kind: "tight" },
    { title: "To", cell: (r) => ("entry" in r ? <ObjectName entry={r.entry} /> : null) },
    { title: "Details", cell: (r) => ("entry" in r ? <Details entry={r.entry} now={now} /> : null), kind: "grow" },
  ] : [
    { title: "When", cell: (r) => ("made" in r ? when(r.made.decision.time) : null), kind: "tight" },
    { title: "Job", cell: (r) => ("made" in r ? <Link to={href("jobs", r.made.user, r.made.job)}>{`${r.made.job} of ${r.made.user}`}</Link> : null), kind: "name" },
    { title: "Tenant", cell: (r) => ("made" in r ? r.made.tenant : null), kind: "low" },
    { title: "What", cell: (r) => ("made" in r ? <Chip kind={TONES[r.made.decision.kind] ?? "idle"}>{r.made.decision.kind}</Chip> : null), kind: "tight" },
    { title: "Why", cell: (r) => ("made" in r ? <Why made={r.made} /> : null), kind: "grow" },
  ];
  const count = pages.rows ? `${plural(pages.rows.length, changes ? "change" : "decision")}${pages.next ? " (the newest)" : ""}` : undefined;
  return (
    <>
      <PageHead title="Audit" sub={count}>
        <Select label="Show" name="of" hideLabel value={filters.of} onChange={(of) => set({ of: of as Filters["of"] })} options={[["changes", "Who changed what"], ["decisions", "What the scheduler decided"]]} />
        {changes ? (
          <>
            <Find key="actor" label="Who" value={filters.actor} onChange={(actor) => set({ actor })} />
            <Find key="action" label="What" value={filters.action} onChange={(action) => set({ action })} choices={ACTIONS} />
            <Find key="object" label="To" value={filters.object} onChange={(object) => set({ object })} />
          </>
        ) : (
          <>
            <Select label="Kind" name="kind" hideLabel value={filters.kind} onChange={(kind) => set({ kind })} options={KINDS} />
            <Find key="user" label="User" value={filters.user} onChange={(user) => set({ user })} />
            <Find key="job" label="Job" value={filters.job} onChange={(job) => set({ job })} />
          </>
        )}
        <Select label="Since" name="since" hideLabel value={filters.back} onChange={(back) => set({ back })} options={SPANS} />
      </PageHead>
      {pages.error ? <ErrorBox error={pages.error} retry={pages.reload} /> : null}
      {!pages.rows ? (
        pages.error ? null : <Loading what={changes ? "the audit log" : "decisions"} lines={6} />
      ) : pages.rows.length ? (
        <Table stack caption={changes ? "Changes, the newest first" : "Decisions of the scheduler, the newest first"} columns={columns} rows={pages.rows} rowKey={(r) => r.key} />
      ) : (
        <Empty title={filtered(filters) ? "Nothing passes these filters" : changes ? "Nothing was changed yet" : "Nothing was decided in the last days"}>
          {filtered(filters) ? (
            <p>
              <button type="button" class="mlp-button" onClick={() => setFilters({ ...NO_FILTERS, of: filters.of })}>
                Show all
              </button>
            </p>
          ) : null}
        </Empty>
      )}
      {pages.rows && pages.next ? (
        <p class="mlp-more">
          <button type="button" class="mlp-button" disabled={pages.busy} onClick={pages.more}>
            Show more
          </button>
        </p>
      ) : null}
    </>
  );
}

function ObjectName({ entry }: { entry: AuditEntry }): JSX.Element {
  if (entry.tenant === entry.object && entry.action !== "tenant.delete") return <Link to={href("admin", "tenants", entry.object)}>{entry.object}</Link>;
  return <span class="mlp-wrap">{entry.object}{entry.tenant && entry.tenant !== entry.object ? <span class="mlp-dim"> {`in ${entry.tenant}`}</span> : null}</span>;
}

/** Long ones are cut after two lines, until somebody wants them. */
function Details({ entry, now }: { entry: AuditEntry; now: number }): JSX.Element {
  const [open, setOpen] = useState(false);
  const text = detailWords(entry, now);
  return (
    <>
      <span class={open ? "mlp-dim mlp-wrap" : "mlp-clip"}>{text}</span>
      {text.length > LONG ? (
        <button type="button" class="mlp-link" aria-expanded={open} aria-label={`Details of ${entry.action} to ${entry.object}`} onClick={() => setOpen(!open)}>
          {open ? "less" : "all"}
        </button>
      ) : null}
    </>
  );
}

const LONG = 160;
