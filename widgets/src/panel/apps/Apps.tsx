/** My apps with those of others that I may open, and the page of one: how it stands, how it is asked, its replicas, why it waits. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, StateBadge, Table, type Column } from "../../components/basics/basics";
import { Confirm } from "../../components/basics/Dialog";
import { useLoad, useNow } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { Tail } from "../../components/basics/Tail";
import { ApiError, paths } from "../../core/service/api";
import { capital } from "../../core/format/reasons";
import { clock } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { asTerminal } from "../../core/stream/logs";
import { startOf } from "../../core/jobs/forecast";
import type { Application, AppReplica, SharedApp } from "../../core/service/wire";
import { AppLog } from "./AppLog";
import { AppUsage } from "./AppUsage";
import { AccessCard, accessWords, addressOf, AppKeys, Asking, servesModel } from "./AppWays";
import { href, Link, go } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { PageHead } from "../../components/basics/form";

const EVERY = 4000;
const OTHERS_EVERY = 20_000;
const PAGE = 100;
const MINUTE = 60_000;

const what = (a: Application): string => a.model_name || a.command || "";

function State({ of }: { of: Pick<Application, "phase"> }): JSX.Element {
  const [kind, text] = {
    starting: ["busy", t("starting")],
    running: ["good", t("running")],
    waiting: ["idle", t("waiting")],
    error: ["bad", t("error")],
    deleting: ["idle", t("being deleted")],
  }[of.phase] as [string, string];
  return <Chip kind={kind}>{text}</Chip>;
}

/** The page of what a command serves; a model has none, and is asked as its page here shows. */
function Way({ of }: { of: Application | SharedApp }): JSX.Element {
  if (servesModel(of)) return <Link to={href("app", of.user, of.name)} label={t("How to ask {name}", { name: of.name })}>{t("How to ask")}</Link>;
  return <a class="mlp-link" href={addressOf(of)} aria-label={t("Open {name}", { name: of.name })}>{t("Open")}</a>;
}

const answers = (a: Pick<Application, "wanted" | "ready">): string => n("{ready} of 1 replica answers", "{ready} of {n} replicas answer", a.wanted, { ready: a.ready });

export function AppsPage(): JSX.Element {
  const { client, session } = useHub();
  const apps = useLoad("apps", () => client.list<Application>(`${paths.apps(session.username)}?limit=${PAGE}`), EVERY);
  const now = useNow(MINUTE);
  const columns: Column<Application>[] = [
    { title: t("Name"), kind: "name", cell: (a) => <Link to={href("app", a.user, a.name)}>{a.name}</Link> },
    { title: t("State"), kind: "tight", cell: (a) => <State of={a} /> },
    { title: t("Replicas"), kind: "tight", cell: (a) => <span title={answers(a)}>{`${a.ready}/${a.wanted}`}</span> },
    { title: t("In progress"), kind: "low", cell: (a) => (a.under_way === null ? "" : <span title={t("Requests at once, lately")}>{a.under_way}</span>) },
    { title: t("Note"), hideTitle: true, kind: "grow", cell: (a) => <span class="mlp-clip" title={a.message}>{a.message || what(a)}</span> },
    { title: t("Team"), kind: "low", cell: (a) => a.tenant },
    { title: t("Address"), kind: "tight", cell: (a) => <Way of={a} /> },
    { title: t("Deployed"), kind: "num", cell: (a) => clock(a.created_at, now) },
  ];
  const items = apps.data?.items ?? [];
  return (
    <>
      <PageHead title={t("Apps")} sub={apps.data ? n("1 app", "{n} apps", items.length) : undefined} />
      {apps.error ? <ErrorBox error={apps.error} retry={() => void apps.reload()} /> : null}
      {!apps.data ? (
        apps.error ? null : <Loading what={t("Loading apps")} lines={6} />
      ) : items.length === 0 ? (
        <Empty title={t("No apps yet")}>
          <p>{rich(t("Let a model answer requests: {command}"), { command: <code>%mlp apps deploy digits</code> })}</p>
        </Empty>
      ) : (
        <Table stack caption={t("My apps, newest first")} columns={columns} rows={items} rowKey={(a) => a.uid} />
      )}
      <OfOthers />
    </>
  );
}

/** Apps of others that I may open, where there are any. */
function OfOthers(): JSX.Element | null {
  const { client, session } = useHub();
  const others = useLoad("apps of others", () => client.list<SharedApp>(`${paths.apps(session.username)}:shared?limit=${PAGE}`), OTHERS_EVERY);
  const now = useNow(MINUTE);
  const items = others.data?.items ?? [];
  if (others.error) return <ErrorBox error={others.error} retry={() => void others.reload()} />;
  if (!items.length) return null;
  const columns: Column<SharedApp>[] = [
    { title: t("Name"), kind: "name", cell: (a) => <Link to={href("app", a.user, a.name)}>{a.name}</Link> },
    { title: t("User"), kind: "tight", cell: (a) => a.user },
    { title: t("State"), kind: "tight", cell: (a) => <State of={a} /> },
    { title: t("Note"), hideTitle: true, kind: "grow", cell: (a) => <span class="mlp-clip" title={a.message}>{a.message || a.model_name}</span> },
    { title: t("Team"), kind: "low", cell: (a) => a.tenant },
    { title: t("Address"), kind: "tight", cell: (a) => <Way of={a} /> },
    { title: t("Deployed"), kind: "num", cell: (a) => clock(a.created_at, now) },
  ];
  return (
    <>
      <h2 class="mlp-h-section">{t("Apps of others that you may open")}</h2>
      <Table stack caption={t("Apps of others, newest first")} columns={columns} rows={items} rowKey={(a) => a.uid} />
      {others.data?.next ? <p class="mlp-dim mlp-more">{n("The newest one is shown.", "The {n} newest are shown.", items.length)}</p> : null}
    </>
  );
}

/** When a replica that waits is expected to start: a range where earlier runs tell it. */
function Expected({ of, now }: { of: AppReplica; now: number }): JSX.Element {
  const when = of.phase === "queued" ? startOf(of, now) : "";
  return when ? <span title={of.forecast?.because}>{t("expected {time}", { time: when })}</span> : <>–</>;
}

function Replicas({ of }: { of: Application }): JSX.Element | null {
  const now = useNow(MINUTE);
  if (!of.running.length) return null;
  const columns: Column<AppReplica>[] = [
    { title: t("Replica"), kind: "num tight", cell: (r) => r.replica },
    { title: t("State"), kind: "tight", cell: (r) => <StateBadge phase={r.phase} /> },
    { title: t("Answers"), kind: "tight", cell: (r) => (r.ready ? t("yes") : t("not yet")) },
    { title: t("Why it waits"), kind: "grow", cell: (r) => (r.phase === "queued" ? <span class="mlp-clip" title={r.message}>{r.message}</span> : null) },
    { title: t("Node"), kind: "low", cell: (r) => r.node ?? "–" },
    { title: t("Started"), kind: "num", cell: (r) => (r.started_at ? clock(r.started_at, now) : <Expected of={r} now={now} />) },
  ];
  return <Table stack caption={t("Replicas")} columns={columns} rows={of.running} rowKey={(r) => String(r.replica)} />;
}

/** What is known of an app: all of it to its owner and who leads its team, the little that is shared to who may open it. */
type Known = { all: Application; shared: null } | { all: null; shared: SharedApp };

const isNotThere = (error: unknown): boolean => error instanceof ApiError && error.reason === "NotFound";

export function AppPage({ user, name }: { user: string; name: string }): JSX.Element {
  const { client, session } = useHub();
  const path = paths.app(user, name);
  const visits = useRef(false);
  const shared = async (): Promise<Known> => ({ all: null, shared: await client.get<SharedApp>(`${path}:shared`) });
  const load = async (): Promise<Known> => {
    if (visits.current) return shared();
    try {
      return { all: await client.get<Application>(path), shared: null };
    } catch (error) {
      if (user === session.username || !isNotThere(error)) throw error;
      const found = await shared();
      visits.current = true;
      return found;
    }
  };
  const app = useLoad(path, load, EVERY);
  const [asking, setAsking] = useState(false);
  const now = useNow(MINUTE);
  const { run, busy, error, clear } = useRun(async () => {
    setAsking(false);
    go(href("apps"));
  });
  const a = app.data?.all;
  if (app.data?.shared) return <Visited of={app.data.shared} error={app.error} />;
  if (!a) return app.error ? <ErrorBox error={app.error} retry={() => void app.reload()} /> : <Loading what={t("Loading the app")} lines={6} />;
  return (
    <>
      <PageHead title={a.name} sub={[what(a), a.tenant, answers(a)].filter(Boolean).join(" · ")}>
        {user === session.username && a.phase !== "deleting" ? (
          <button type="button" class="mlp-button mlp-quiet-danger" onClick={() => setAsking(true)}>
            {t("Delete")}
          </button>
        ) : null}
      </PageHead>
      {app.error ? <ErrorBox error={app.error} /> : null}
      <p class="mlp-standing">
        <State of={a} /> {capital(a.message)}
      </p>
      {a.under_way === null && typeof a.replicas === "number" ? null : (
        <p class="mlp-standing">
          {[
            a.under_way === null ? "" : n("1 request in progress", "{n} requests in progress", a.under_way),
            typeof a.replicas === "number" ? "" : t("{range} replicas, one per {n} requests at once", { range: a.replicas, n: a.concurrency }),
          ].filter(Boolean).join(" · ")}
        </p>
      )}
      {a.tail ? (
        <section class="mlp-card" aria-label={t("Last lines of the replica that failed")}>
          <div class="mlp-card-head">
            <h2>{t("Last lines of the replica that failed")}</h2>
          </div>
          <Tail cls="mlp-lines-box" text={asTerminal(a.tail)} label={t("Last lines of the replica that failed")} />
        </section>
      ) : null}
      <Asking of={a} />
      <Replicas of={a} />
      <AppLog of={a} path={path} />
      <AppKeys of={a} />
      <AccessCard of={a} changed={app.reload} />
      <AppUsage path={path} now={now} />
      {asking ? (
        <Confirm
          title={t("Delete app {name}?", { name: a.name })}
          text={<p>{t("Its replicas end, and its address no longer answers. The model stays.")}</p>}
          yes={t("Delete")}
          busy={busy}
          error={error ? <ErrorBox error={error} /> : null}
          onYes={() => void run(() => client.delete(path), t("App {name} is being deleted", { name: a.name }))}
          onNo={() => {
            setAsking(false);
            clear();
          }}
        />
      ) : null}
    </>
  );
}

/** An app of somebody else's, to look at and to ask. */
function Visited({ of, error }: { of: SharedApp; error: unknown }): JSX.Element {
  return (
    <>
      <PageHead title={of.name} sub={[t("an app of {user}", { user: of.user }), of.model_name, of.tenant, answers(of)].filter(Boolean).join(" · ")} />
      {error ? <ErrorBox error={error} /> : null}
      <p class="mlp-standing">
        <State of={of} /> {capital(of.message)}
      </p>
      <Asking of={of} />
      <p class="mlp-dim">{t("It may be opened by {who}.", { who: accessWords(of.access) })}</p>
    </>
  );
}
