/** My apps, and the page of one: how it stands, its replicas, why it waits. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, StateBadge, Table, type Column } from "../components/basics";
import { Confirm } from "../components/Dialog";
import { useLoad, useNow } from "../components/hooks";
import { rich } from "../components/language";
import { paths } from "../core/api";
import { clock } from "../core/format";
import { n, t } from "../core/language";
import type { Application, AppReplica } from "../core/wire";
import { AppUsage } from "./AppUsage";
import { base, href, Link, go } from "./address";
import { useHub, useRun } from "./context";
import { PageHead } from "./form";

const EVERY = 4000;
const PAGE = 100;
const MINUTE = 60_000;

/** Where an app answers: the panel's own base has it too. */
const address = (a: Application): string => `${base}apps/${encodeURIComponent(a.user)}/${encodeURIComponent(a.name)}/`;
const what = (a: Application): string => a.model_name || a.command || "";

function State({ of }: { of: Application }): JSX.Element {
  const [kind, text] = {
    starting: ["busy", t("starting")],
    running: ["good", t("running")],
    waiting: ["idle", t("waiting")],
    error: ["bad", t("error")],
    deleting: ["idle", t("being deleted")],
  }[of.phase] as [string, string];
  return <Chip kind={kind}>{text}</Chip>;
}

const answers = (a: Application): string => n("{ready} of 1 replica answers", "{ready} of {n} replicas answer", a.wanted, { ready: a.ready });

export function AppsPage(): JSX.Element {
  const { client, session } = useHub();
  const apps = useLoad("apps", () => client.list<Application>(`${paths.apps(session.username)}?limit=${PAGE}`), EVERY);
  const now = useNow(MINUTE);
  const columns: Column<Application>[] = [
    { title: t("Name"), kind: "name", cell: (a) => <Link to={href("app", a.user, a.name)}>{a.name}</Link> },
    { title: t("State"), kind: "tight", cell: (a) => <State of={a} /> },
    { title: t("Replicas"), kind: "tight", cell: (a) => <span title={answers(a)}>{`${a.ready}/${a.wanted}`}</span> },
    { title: t("Under way"), kind: "low", cell: (a) => (a.under_way === null ? "" : <span title={t("Requests at once, lately")}>{a.under_way}</span>) },
    { title: t("Note"), hideTitle: true, kind: "grow", cell: (a) => <span class="mlp-clip" title={a.message}>{a.message || what(a)}</span> },
    { title: t("Team"), kind: "low", cell: (a) => a.tenant },
    { title: t("Address"), kind: "tight", cell: (a) => <a href={address(a)}>{t("Open")}</a> },
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
          <p>{rich(t("Have a model answer requests: {command}"), { command: <code>%mlp apps deploy digits</code> })}</p>
        </Empty>
      ) : (
        <Table stack caption={t("My apps, newest first")} columns={columns} rows={items} rowKey={(a) => a.uid} />
      )}
    </>
  );
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
    { title: t("Started"), kind: "num", cell: (r) => (r.started_at ? clock(r.started_at, now) : "–") },
  ];
  return <Table stack caption={t("Replicas")} columns={columns} rows={of.running} rowKey={(r) => String(r.replica)} />;
}

export function AppPage({ user, name }: { user: string; name: string }): JSX.Element {
  const { client, session } = useHub();
  const path = paths.app(user, name);
  const app = useLoad(path, () => client.get<Application>(path), EVERY);
  const [asking, setAsking] = useState(false);
  const now = useNow(MINUTE);
  const { run, busy, error, clear } = useRun(async () => {
    setAsking(false);
    go(href("apps"));
  });
  const a = app.data;
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
      <p>
        <State of={a} /> {a.message}
      </p>
      {a.under_way === null && typeof a.replicas === "number" ? null : (
        <p>
          {[
            a.under_way === null ? "" : n("1 request under way", "{n} requests under way", a.under_way),
            typeof a.replicas === "number" ? "" : t("{range} replicas, one for each {n} requests at once", { range: a.replicas, n: a.concurrency }),
          ].filter(Boolean).join(" · ")}
        </p>
      )}
      <p>{rich(t("It answers at {address}"), { address: <a href={address(a)}>{address(a)}</a> })}</p>
      <Replicas of={a} />
      <AppUsage path={path} now={now} />
      {a.tail ? (
        <>
          <p>{t("Last lines of the replica that failed:")}</p>
          <pre class="mlp-tail" tabIndex={0} aria-label={t("Last lines of the replica that failed:")}>{a.tail}</pre>
        </>
      ) : null}
      {asking ? (
        <Confirm
          title={t("Delete app {name}?", { name: a.name })}
          text={<p>{t("Its replicas are ended, and nothing answers at its address any more. The model stays.")}</p>}
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
