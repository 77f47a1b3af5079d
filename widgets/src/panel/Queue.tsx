/** Running and waiting work of all tenants, live: the service hints that something changed, the page asks anew. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, StateBadge, Table, type Column } from "../components/basics";
import { useLoad, useNow } from "../components/hooks";
import { paths, type Client } from "../core/api";
import { ago, cores, duration, ms, plural, ram, starts } from "../core/format";
import { backoff } from "../core/stream";
import { isWaiting } from "../core/phase";
import { LINE_PER_TENANT, orderWords, policyWords } from "../core/policy";
import { capital, reasonWords, unknownStart } from "../core/reasons";
import { waits } from "../core/spans";
import type { QueueEntry, Scheduling, Tenant } from "../core/wire";
import { useHub } from "./context";
import { PageHead, Select } from "./form";
import { href, Link } from "./router";

/** Also without a hint the page asks now and then: a hint may have been lost. */
const EVERY = 15_000;
/** Many hints in a row are answered by one request. */
const GATHER = 150;

/** Calls back when the queue changed; heals by itself. True while connected; only a platform admin may listen. */
export function useQueueHints(client: Client, changed: () => void, on = true): boolean {
  const [live, setLive] = useState(false);
  const told = useRef(changed);
  told.current = changed;
  useEffect(() => {
    if (!on) return undefined;
    let socket: WebSocket | null = null;
    let retry: number | undefined;
    let gather: number | undefined;
    let attempt = 0;
    let stopped = false;
    const hint = (): void => {
      gather ??= window.setTimeout(() => {
        gather = undefined;
        told.current();
      }, GATHER);
    };
    const connect = (): void => {
      socket = new WebSocket(client.socketUrl("/queue:stream"));
      socket.onopen = () => {
        if (attempt) hint(); // what happened while the connection was away
        attempt = 0;
        setLive(true);
      };
      socket.onmessage = hint;
      socket.onclose = () => {
        setLive(false);
        if (stopped) return;
        retry = window.setTimeout(() => void client.session(true).catch(() => undefined).then(() => stopped || connect()), backoff(attempt, Math.random()));
        attempt += 1;
      };
    };
    connect();
    return () => {
      stopped = true;
      clearTimeout(retry);
      clearTimeout(gather);
      socket?.close();
    };
  }, [client, on]);
  return live;
}

function need(e: QueueEntry): string {
  return [`${cores(e.cpu)} cpu`, e.gpu ? `${cores(e.gpu)} gpu` : "", ram(e.ram)].filter(Boolean).join(", ");
}

/** Why it waits, and where its start is not known why that is so. */
function Waits({ e }: { e: QueueEntry }): JSX.Element {
  const unknown = e.phase === "queued" && ms(e.expected_start) === null && e.expected_because;
  return (
    <>
      <span title={e.reason ?? undefined}>{e.message || capital(reasonWords(e.reason ?? ""))}</span>
      {unknown ? <span class="mlp-dim mlp-unknown">{unknownStart(e.expected_because)}</span> : null}
    </>
  );
}

function expected(e: QueueEntry, now: number): JSX.Element | string {
  if (ms(e.expected_start) !== null) return <span title={e.expected_because}>{starts(e.expected_start, now)}</span>;
  if (e.phase !== "queued") return "–";
  return <span class="mlp-dim" title={e.expected_because ? unknownStart(e.expected_because) : "Not looked at yet; the job's page says more"}>not known</span>;
}

const key = (e: QueueEntry): string => `${e.user}/${e.name}`;

/** For how long it is in the queue now; of one that is suspended, and so not in it, nothing. */
function waited(e: QueueEntry, now: number): string {
  const seconds = waits(e, now);
  return seconds === null ? "–" : duration(seconds);
}

/** What waits, in its order with the reasons, and what runs. */
export function QueueTables({ rows, tenants, line = "" }: {
  rows: QueueEntry[];
  /** They are of several tenants. */
  tenants: boolean;
  /** How they are ordered, in a sentence. */
  line?: string;
}): JSX.Element {
  const now = useNow(1000);
  const waiting = rows.filter((e) => isWaiting(e.phase)).sort((a, b) => (a.position ?? 1e9) - (b.position ?? 1e9));
  const running = rows.filter((e) => !isWaiting(e.phase));
  const job: Column<QueueEntry> = { title: "Job", cell: (e) => <Link to={href("jobs", e.user, e.name)}>{e.name}</Link>, kind: "name" };
  const common: Column<QueueEntry>[] = [
    { title: "User", cell: (e) => e.user },
    ...(tenants ? [{ title: "Tenant", cell: (e: QueueEntry) => <Link to={href("admin", "tenants", e.tenant)}>{e.tenant}</Link> }] : []),
    { title: "State", cell: (e) => <StateBadge phase={e.phase} />, kind: "tight" },
  ];
  const waits: Column<QueueEntry>[] = [
    { title: tenants ? "In its line" : "#", cell: (e) => e.position ?? "–", kind: "num tight" },
    job,
    ...common,
    { title: "Priority", cell: (e) => e.priority, kind: "tight" },
    { title: "Asks for", cell: need, kind: "low" },
    { title: "Why it waits", cell: (e) => <Waits e={e} />, kind: "grow" },
    { title: "Expected", cell: (e) => expected(e, now), kind: "num" },
    { title: "Waiting", cell: (e) => waited(e, now), kind: "num low" },
  ];
  const runs: Column<QueueEntry>[] = [
    job,
    ...common,
    { title: "Uses", cell: need, kind: "grow" },
    { title: "Priority", cell: (e) => e.priority, kind: "low" },
    { title: "Started", cell: (e) => (e.started_at ? ago(e.started_at, now) : "–"), kind: "num" },
  ];
  return (
    <>
      <h3 class="mlp-h-section">Waiting</h3>
      {line && waiting.length ? <p class="mlp-dim mlp-line-words">{line}</p> : null}
      {waiting.length ? <Table caption="Waiting jobs in their order" stack columns={waits} rows={waiting} rowKey={key} /> : <p class="mlp-dim">Nothing waits.</p>}
      <h3 class="mlp-h-section">Running</h3>
      {running.length ? <Table caption="Running jobs" stack columns={runs} rows={running} rowKey={key} /> : <p class="mlp-dim">Nothing runs.</p>}
    </>
  );
}

/** Whose lines there are, and what they go by where that is not priority. */
function lineWords(policy: string, tenants: Tenant[], rows: QueueEntry[]): string {
  if (!LINE_PER_TENANT.includes(policy)) return "All tenants wait in one line.";
  const shown = new Set(rows.map((e) => e.tenant));
  const others = tenants.filter((t) => shown.has(t.name) && t.queue_order !== "priority").map((t) => `${t.name} by ${orderWords(t.queue_order)}`);
  return `Each tenant has a line of its own; whose turn it is follows from the policy. Lines go by ${[orderWords("priority"), ...others].join("; ")}.`;
}

export function QueuePage(): JSX.Element {
  const { client } = useHub();
  const queue = useLoad("queue", () => client.list<QueueEntry>("/queue"), EVERY);
  const scheduling = useLoad("scheduling", () => client.get<Scheduling>(paths.scheduling));
  const owners = useLoad("queue-tenants", () => client.list<Tenant>(paths.tenants), EVERY);
  const live = useQueueHints(client, () => void queue.reload());
  const [tenant, setTenant] = useState("");
  const all = queue.data?.items ?? [];
  const tenants = [...new Set([...all.map((e) => e.tenant), ...(tenant ? [tenant] : [])])].sort();
  const rows = tenant ? all.filter((e) => e.tenant === tenant) : all;
  const waiting = rows.filter((e) => isWaiting(e.phase)).length;
  const policy = scheduling.data ? ` · policy ${policyWords(scheduling.data.policy)}` : "";
  return (
    <>
      <PageHead title="Queue" sub={queue.data ? `${plural(rows.length - waiting, "job")} running, ${waiting} waiting${policy}` : undefined}>
        <span class="mlp-dim mlp-live" data-live={live}>{live ? "Live" : "Reconnecting"}</span>
        <Select label="Tenant" name="tenant" hideLabel value={tenant} onChange={setTenant} options={[["", "All tenants"], ...tenants.map((t) => [t, t] as [string, string])]} />
      </PageHead>
      {queue.error ? <ErrorBox error={queue.error} retry={() => void queue.reload()} /> : null}
      {!queue.data ? (
        queue.error ? null : <Loading what="the queue" lines={6} />
      ) : rows.length === 0 ? (
        <Empty title="Nothing runs and nothing waits" />
      ) : (
        <QueueTables rows={rows} tenants line={scheduling.data ? lineWords(scheduling.data.policy, owners.data?.items ?? [], rows) : ""} />
      )}
    </>
  );
}
