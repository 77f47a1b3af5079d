/** Running and waiting work of all tenants, live: the service hints that something changed, the page asks anew. */
import type { JSX } from "preact";
import { between } from "../../core/jobs/forecast";
import { useEffect, useRef, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, ShowMore, StateBadge, Table, type Column } from "../../components/basics/basics";
import { Facts } from "../../components/basics/Facts";
import { useId, useLoad, useNow } from "../../components/basics/hooks";
import { paths, words, type Client } from "../../core/service/api";
import { ago, duration, ms, sizeWords, starts } from "../../core/format/format";
import { priorityName } from "../../core/jobs/decisions";
import { backoff } from "../../core/stream/stream";
import { countWords } from "../../core/jobs/queuecounts";
import { isWaiting } from "../../core/jobs/phase";
import { orderWords, policyWords } from "../../core/format/policy";
import { capital, reasonWords, unknownStart } from "../../core/format/reasons";
import { LINE_PER_TENANT } from "../../core/format/terms";
import { reference, replicaName } from "../../core/jobs/runs";
import { waits } from "../../core/jobs/spans";
import type { Fact, QueueEntry, Scheduling, Tenant, Why } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { PageHead, Select } from "../../components/basics/form";
import { Named } from "./Jobs";
import { maySteer, Steer } from "./Steer";
import { href, Link } from "../shared/address";
import { t } from "../../core/format/language";

/** Also without a hint the page asks now and then: a hint may have been lost. */
const EVERY = 15_000;
/** Many hints in a row are answered by one request. */
const GATHER = 150;
/** So many that wait, and as many that run, are shown at first, and so many more each time. */
const PAGE = 100;

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
        hint(); // what happened since the page asked, or while the connection was away
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

/** Why it waits, and where its start is not known why that is so; the facts behind it on demand. */
function Waits({ e }: { e: QueueEntry }): JSX.Element {
  const why = e.message || capital(reasonWords(e.reason ?? ""));
  const unknown = e.phase === "queued" && ms(e.expected_start) === null && !e.forecast?.start && e.expected_because;
  return (
    <>
      <span class="mlp-clip mlp-waits" title={why}>{why}</span>
      {e.put_first && e.phase === "queued" ? <span class="mlp-dim mlp-unknown">{t("Put first by an admin of {tenant}", { tenant: e.tenant })}</span> : null}
      {unknown ? <span class="mlp-dim mlp-unknown">{unknownStart(e.expected_because)}</span> : null}
      {e.phase === "queued" ? <Behind e={e} /> : null}
    </>
  );
}

type Answer = { facts: Fact[] } | { error: unknown } | "asking" | null;

/** The small table behind a reason, asked for when somebody wants it: a long queue has very many. */
function Behind({ e }: { e: QueueEntry }): JSX.Element {
  const { client } = useHub();
  const [answer, setAnswer] = useState<Answer>(null);
  const id = useId("facts");
  const ask = (): void => {
    if (answer) return setAnswer(null);
    if (isServer(e)) return setAnswer({ facts: e.facts }); // it has no page of its own that would tell them
    setAnswer("asking");
    client.get<Why>(paths.why(e.user, reference(e))).then(
      (why) => setAnswer({ facts: why.reasons.flatMap((reason) => reason.facts) }),
      (error: unknown) => setAnswer({ error }),
    );
  };
  return (
    <>
      {" "}
      <button type="button" class="mlp-link" aria-expanded={answer !== null} aria-controls={id} aria-label={t("Numbers for {job}", { job: isServer(e) ? serverName(e) : e.name })} onClick={ask}>
        {t("numbers")}
      </button>
      <div id={id} class="mlp-behind">
        {answer === "asking" ? <span class="mlp-dim" role="status">{t("Asking …")}</span> : null}
        {answer && answer !== "asking" && "error" in answer ? <span class="mlp-decision-bad" role="alert">{words(answer.error)}</span> : null}
        {answer && answer !== "asking" && "facts" in answer ? answer.facts.length ? <Facts facts={answer.facts} /> : <span class="mlp-dim">{t("There are none.")}</span> : null}
      </div>
    </>
  );
}

function expected(e: QueueEntry, now: number): JSX.Element | string {
  if (e.phase === "queued" && e.forecast?.start) return <span title={e.forecast.because}>{between(e.forecast.start, now)}</span>;
  if (ms(e.expected_start) !== null) return <span title={e.expected_because}>{starts(e.expected_start, now)}</span>;
  if (e.phase !== "queued") return "–";
  return <span class="mlp-dim" title={e.expected_because ? unknownStart(e.expected_because) : isServer(e) ? t("Not examined yet") : t("Not examined yet; the job's page has more")}>{t("not known")}</span>;
}

const key = (e: QueueEntry): string => `${e.kind} ${e.user}/${reference(e)}`;

/** A notebook server that waits for its room; one that runs is not in the queue. */
const isServer = (e: QueueEntry): boolean => e.kind === "server";

const serverName = (e: QueueEntry): string => (e.name ? t("notebook server {name} of {user}", { name: e.name, user: e.user }) : t("notebook server of {user}", { user: e.user }));

/** For how long it is in the queue now; of one that is suspended, and so not in it, nothing. */
function waited(e: QueueEntry, now: number): string {
  const seconds = waits(e, now);
  return seconds === null ? "–" : duration(seconds);
}

function Server({ e }: { e: QueueEntry }): JSX.Element {
  return (
    <>
      <span>{t("Notebook server")}</span>
      {e.name ? <span class="mlp-dim mlp-run">{e.name}</span> : null}
    </>
  );
}

/** A replica of an app, which is asked for among apps. */
function App({ e }: { e: QueueEntry }): JSX.Element {
  return (
    <>
      <Link to={href("app", e.user, e.name)}>{replicaName(e.name, e.replica)}</Link>
    </>
  );
}

/** What waits, in its order with the reasons, and what runs. */
export function QueueTables({ rows, total, tenants, line = "", done, more }: {
  rows: QueueEntry[];
  /** How many there are in all, those included that were not asked for. */
  total?: number;
  /** They are of several tenants. */
  tenants: boolean;
  /** How they are ordered, in a sentence. */
  line?: string;
  /** What to do after a job was changed. */
  done: () => Promise<void>;
  /** Asks for more of those that wait. */
  more?: (shown: number) => void;
}): JSX.Element {
  const [shown, setShown] = useState(PAGE);
  const now = useNow(1000);
  const { session } = useHub();
  const Head = tenants ? "h2" : "h3"; // of one tenant they stand below a heading on its page
  const waiting = rows.filter((e) => isWaiting(e.phase)).sort((a, b) => (a.position ?? 1e9) - (b.position ?? 1e9));
  const running = rows.filter((e) => !isWaiting(e.phase));
  const job: Column<QueueEntry> = { title: t("Job"), cell: (e) => (isServer(e) ? <Server e={e} /> : e.kind === "app" ? <App e={e} /> : <Named job={e} />), kind: "name" };
  const common: Column<QueueEntry>[] = [
    { title: t("User"), cell: (e) => e.user },
    ...(tenants ? [{ title: t("Team"), cell: (e: QueueEntry) => <Link to={href("admin", "tenants", e.tenant)}>{e.tenant}</Link> }] : []),
    { title: t("State"), cell: (e) => <StateBadge phase={e.phase} />, kind: "tight" },
  ];
  const steer: Column<QueueEntry>[] = rows.some((e) => e.kind === "job" && maySteer(session, e))
    ? [{ title: t("Actions"), hideTitle: true, kind: "num", cell: (e) => (e.kind === "job" ? <Steer job={e} done={done} /> : null) }]
    : [];
  const waits: Column<QueueEntry>[] = [
    { title: tenants ? t("In its queue") : "#", cell: (e) => e.position ?? "–", kind: "num tight" },
    job,
    ...common,
    { title: t("Priority"), cell: (e) => priorityName(e.priority), kind: "tight" },
    { title: t("Asks for"), cell: sizeWords, kind: "tight low" },
    { title: t("Why it waits"), cell: (e) => <Waits e={e} />, kind: "grow" },
    { title: t("Expected"), cell: (e) => expected(e, now), kind: "num" },
    { title: t("Waiting"), cell: (e) => waited(e, now), kind: "num low" },
    ...steer,
  ];
  const runs: Column<QueueEntry>[] = [
    job,
    ...common,
    { title: t("Uses"), cell: sizeWords, kind: "grow" },
    { title: t("Priority"), cell: (e) => priorityName(e.priority), kind: "low" },
    { title: t("Started"), cell: (e) => (e.started_at ? ago(e.started_at, now) : "–"), kind: "num" },
    ...steer,
  ];
  return (
    <>
      <Head class="mlp-h-section">{t("Waiting")}</Head>
      {line && waiting.length ? <p class="mlp-dim mlp-line-words">{line}</p> : null}
      {waiting.length ? <Table caption={t("Waiting jobs in their order")} stack columns={waits} rows={waiting.slice(0, shown)} rowKey={key} /> : <p class="mlp-dim">{t("Nothing is waiting.")}</p>}
      <Head class="mlp-h-section">{t("Running")}</Head>
      {running.length ? <Table caption={t("Running jobs")} stack columns={runs} rows={running.slice(0, shown)} rowKey={key} /> : <p class="mlp-dim">{t("Nothing runs.")}</p>}
      {Math.max(waiting.length, (total ?? rows.length) - running.length, running.length) > shown ? (
        <ShowMore
          more={() => {
            setShown(shown + PAGE);
            more?.(shown + PAGE);
          }}
        />
      ) : null}
    </>
  );
}

/** Whose lines there are, and what they go by where that is not priority. */
function lineWords(policy: string, tenants: Tenant[], rows: QueueEntry[]): string {
  if (!LINE_PER_TENANT.includes(policy)) return t("The jobs of all teams wait in one queue.");
  const shown = new Set(rows.map((e) => e.tenant));
  const others = tenants.filter((one) => shown.has(one.name) && one.queue_order !== "priority").map((one) => t("{tenant}: {order}", { tenant: one.name, order: orderWords(one.queue_order) }));
  return t("Each team has its own queue, and the policy decides which team is next. Order of the queues: {orders}.", { orders: [orderWords("priority"), ...others].join(t("; ")) });
}

export function QueuePage(): JSX.Element {
  const { client } = useHub();
  const [tenant, setTenant] = useState("");
  const limit = useRef(PAGE);
  const queue = useLoad(`queue ${tenant}`, () => client.list<QueueEntry>(`/queue?limit=${limit.current}${tenant ? `&tenant=${encodeURIComponent(tenant)}` : ""}`), EVERY);
  const scheduling = useLoad("scheduling", () => client.get<Scheduling>(paths.scheduling));
  const owners = useLoad("queue-tenants", () => client.all<Tenant>(paths.tenants), EVERY);
  const live = useQueueHints(client, () => void queue.reload());
  const rows = queue.data?.items ?? [];
  const total = queue.data?.total ?? rows.length;
  const busy = (owners.data?.items ?? []).filter((one) => one.running || one.waiting || one.cpu_inuse || one.gpu_inuse).map((one) => one.name);
  const tenants = [...new Set([...rows.map((e) => e.tenant), ...busy, ...(tenant ? [tenant] : [])])].sort();
  const policy = scheduling.data ? t("policy {name}", { name: policyWords(scheduling.data.policy) }) : "";
  return (
    <>
      <PageHead title={t("Queue")} sub={queue.data ? [countWords(rows, total).join(t(", ")), policy].filter(Boolean).join(" · ") : undefined}>
        <span class="mlp-dim mlp-live" data-live={live}>{live ? t("Live") : t("Reconnecting")}</span>
        <Select label={t("Team")} name="tenant" hideLabel value={tenant} onChange={setTenant} options={[["", t("All teams")], ...tenants.map((name) => [name, name] as [string, string])]} />
      </PageHead>
      {queue.error ? <ErrorBox error={queue.error} retry={() => void queue.reload()} /> : null}
      {!queue.data ? (
        queue.error ? null : <Loading what={t("Loading the queue")} lines={6} />
      ) : rows.length === 0 ? (
        <Empty title={t("Nothing is running or waiting")} />
      ) : (
        <QueueTables
          rows={rows}
          total={total}
          tenants
          done={queue.reload}
          more={(most) => {
            limit.current = most;
            void queue.reload();
          }}
          line={scheduling.data ? lineWords(scheduling.data.policy, owners.data?.items ?? [], rows) : ""} />
      )}
    </>
  );
}
