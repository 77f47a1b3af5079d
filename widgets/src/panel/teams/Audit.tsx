/** Who changed what, and what the scheduler decided about any job and why. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { Story } from "../../components/monitor/Explained";
import { useId, useLoad, useNow } from "../../components/basics/hooks";
import { chainWords, detailWords, exported, filtered, NO_FILTERS, request, type Filters } from "../../core/teams/audit";
import { clock, ms } from "../../core/format/format";
import { eventWord } from "../../core/format/words";
import { reference, title } from "../../core/jobs/runs";
import type { AuditEntry, AuditHead, Job, JobDecision } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { PageHead, Select } from "../../components/basics/form";
import { href, Link } from "../shared/address";
import { n, t } from "../../core/format/language";

const EVERY = 10_000;
const spans = (): [string, string][] => [["", t("All records")], ["3600", t("Last hour")], ["86400", t("Last day")], ["604800", t("Last 7 days")], ["2592000", t("Last 30 days")]];
const kinds = (): [string, string][] => [["", t("All decisions")], ["admitted", t("Admitted")], ["preempted", t("Preempted")], ["resized", t("Resized")]];
const TONES: Record<string, string> = { admitted: "good", preempted: "wait" };
/** What the hub writes down; any other action may be typed too. */
const ACTIONS = ["tenant.", "member.", "user.", "service_account.", "booking.", "quota.", "join.", "job.", "jobs.expire"];

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
    const named = (m: JobDecision): string => `${m.user} ${m.job} ${m.run} ${m.decision.time} ${m.decision.kind}`;
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
  const said = { what: eventWord(decision.kind), job: title(named(made)), user: made.user };
  return (
    <>
      {decision.summary}{" "}
      <button type="button" class="mlp-link" aria-expanded={open} aria-controls={id} aria-label={t("Why {what}, {job} of {user}", said)} onClick={() => setOpen(!open)}>
        {t("why?")}
      </button>
      {open ? (
        <div id={id} class="mlp-decision" role="group" aria-label={t("Why {job} of {user} was {what}", said)}>
          <Story d={decision} />
        </div>
      ) : null}
    </>
  );
}

const named = (made: JobDecision): Pick<Job, "name" | "run"> => ({ name: made.job, run: made.run });

/** The end of the chain, and files with what the filters let through. */
function Chain({ filters, now }: { filters: Filters; now: number }): JSX.Element {
  const { client } = useHub();
  const head = useLoad("audit head", () => client.get<AuditHead>("/audit:head"), EVERY);
  const broken = head.data?.sound === false;
  return (
    <div class="mlp-head mlp-dim mlp-audit-chain">
      {head.data ? <span class="mlp-wrap" role={broken ? "alert" : undefined}>{broken ? <Chip kind="bad">{t("Broken")}</Chip> : null} <span title={head.data.hash ?? ""}>{chainWords(head.data, now)}</span></span> : <span />}
      <span class="mlp-actions">
        <a class="mlp-button mlp-small" href={client.base + exported(filters, now, "csv")} download="audit.csv">{t("CSV")}</a>
        <a class="mlp-button mlp-small" href={client.base + exported(filters, now, "lines")} download="audit.jsonl">{t("JSON lines")}</a>
      </span>
    </div>
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
    { title: t("When"), cell: (r) => ("entry" in r ? when(r.entry.time) : null), kind: "tight" },
    { title: t("Who"), cell: (r) => ("entry" in r ? r.entry.actor : null), kind: "name" },
    { title: t("What"), cell: (r) => ("entry" in r ? <code>{r.entry.action}</code> : null), kind: "tight" },
    { title: t("To"), cell: (r) => ("entry" in r ? <ObjectName entry={r.entry} /> : null) },
    { title: t("Details"), cell: (r) => ("entry" in r ? <Details entry={r.entry} now={now} /> : null), kind: "grow" },
  ] : [
    { title: t("When"), cell: (r) => ("made" in r ? when(r.made.decision.time) : null), kind: "tight" },
    { title: t("Job"), cell: (r) => ("made" in r ? <Link to={href("jobs", r.made.user, reference(named(r.made)))}>{t("{job} of {user}", { job: title(named(r.made)), user: r.made.user })}</Link> : null), kind: "name" },
    { title: t("Team"), cell: (r) => ("made" in r ? r.made.tenant : null), kind: "low" },
    { title: t("What"), cell: (r) => ("made" in r ? <Chip kind={TONES[r.made.decision.kind] ?? "idle"}>{eventWord(r.made.decision.kind)}</Chip> : null), kind: "tight" },
    { title: t("Why"), cell: (r) => ("made" in r ? <Why made={r.made} /> : null), kind: "grow" },
  ];
  const many = pages.rows?.length ?? 0;
  const all = changes ? n("1 change", "{n} changes", many) : n("1 decision", "{n} decisions", many);
  const count = !pages.rows ? undefined : pages.next ? t("{all} (the newest)", { all }) : all;
  return (
    <>
      <PageHead title={t("Audit")} sub={count}>
        <Select label={t("Show")} name="of" hideLabel value={filters.of} onChange={(of) => set({ of: of as Filters["of"] })} options={[["changes", t("Record of changes")], ["decisions", t("Decisions of the scheduler")]]} />
        {changes ? (
          <>
            <Find key="actor" label={t("Who")} value={filters.actor} onChange={(actor) => set({ actor })} />
            <Find key="action" label={t("What")} value={filters.action} onChange={(action) => set({ action })} choices={ACTIONS} />
            <Find key="object" label={t("To")} value={filters.object} onChange={(object) => set({ object })} />
          </>
        ) : (
          <>
            <Select label={t("Kind")} name="kind" hideLabel value={filters.kind} onChange={(kind) => set({ kind })} options={kinds()} />
            <Find key="user" label={t("User")} value={filters.user} onChange={(user) => set({ user })} />
            <Find key="job" label={t("Job")} value={filters.job} onChange={(job) => set({ job })} />
          </>
        )}
        <Select label={t("Since")} name="since" hideLabel value={filters.back} onChange={(back) => set({ back })} options={spans()} />
      </PageHead>
      {changes ? <Chain filters={filters} now={now} /> : null}
      {pages.error ? <ErrorBox error={pages.error} retry={pages.reload} /> : null}
      {!pages.rows ? (
        pages.error ? null : <Loading what={changes ? t("Loading the audit log") : t("Loading decisions")} lines={6} />
      ) : pages.rows.length ? (
        <Table stack caption={changes ? t("Changes, the newest first") : t("Decisions of the scheduler, the newest first")} columns={columns} rows={pages.rows} rowKey={(r) => r.key} />
      ) : (
        <Empty title={filtered(filters) ? t("No entry matches these filters") : changes ? t("No changes yet") : t("No decisions in the last days")}>
          {filtered(filters) ? (
            <p>
              <button type="button" class="mlp-button" onClick={() => setFilters({ ...NO_FILTERS, of: filters.of })}>
                {t("Show all")}
              </button>
            </p>
          ) : null}
        </Empty>
      )}
      {pages.rows && pages.next ? (
        <p class="mlp-more">
          <button type="button" class="mlp-button" disabled={pages.busy} onClick={pages.more}>
            {t("Show more")}
          </button>
        </p>
      ) : null}
    </>
  );
}

function ObjectName({ entry }: { entry: AuditEntry }): JSX.Element {
  if (entry.tenant === entry.object && entry.action !== "tenant.delete") return <Link to={href("admin", "tenants", entry.object)}>{entry.object}</Link>;
  return <span class="mlp-wrap">{entry.object}{entry.tenant && entry.tenant !== entry.object ? <span class="mlp-dim"> {t("in {tenant}", { tenant: entry.tenant })}</span> : null}</span>;
}

/** Long ones are cut after two lines, until somebody wants them. */
export function Details({ entry, now }: { entry: AuditEntry; now: number }): JSX.Element {
  const [open, setOpen] = useState(false);
  const text = detailWords(entry, now);
  return (
    <>
      <span class={open ? "mlp-dim mlp-wrap" : "mlp-clip"}>{text}</span>
      {text.length > LONG ? (
        <button type="button" class="mlp-link" aria-expanded={open} aria-label={open ? t("less, details of {action} to {object}", { action: entry.action, object: entry.object }) : t("all, details of {action} to {object}", { action: entry.action, object: entry.object })} onClick={() => setOpen(!open)}>
          {open ? t("less") : t("all")}
        </button>
      ) : null}
    </>
  );
}

const LONG = 160;
