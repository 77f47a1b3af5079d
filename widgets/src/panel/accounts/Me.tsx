/** My own page: who I am here, my tenants, my tokens, my jobs, and the command for my own machine. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { useLoad, useNow } from "../../components/basics/hooks";
import { IdleServers } from "../../components/basics/IdleServers";
import { paths } from "../../core/service/api";
import { ago } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { jobLines, tokenLine, type JobLine } from "../../core/accounts/me";
import type { Job, Teams, TokenInfo } from "../../core/service/wire";
import { base, href, hubPage, Link } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { Field, PageHead } from "../../components/basics/form";
import { Notifications } from "./Notifications";

const EVERY = 5000;
const TEAMS_EVERY = 15_000;

export function MePage(): JSX.Element {
  const { client, session } = useHub();
  const led = new Set(session.tenant_admin);
  return (
    <>
      <PageHead title={session.username} sub={session.admin ? t("Platform administrator") : undefined} />
      <IdleServers client={client} user={session.username} />
      <section class="mlp-card" aria-label={t("Teams")}>
        <div class="mlp-card-head">
          <h2>{t("Teams")}</h2>
        </div>
        <ul class="mlp-lines">
          {session.tenants.map((name) => (
            <li key={name}>
              <Link to={href("tenants", name)}>{name}</Link> {led.has(name) ? <Chip kind="run">{t("Team admin")}</Chip> : null}
            </li>
          ))}
        </ul>
        <OtherTeams user={session.username} />
      </section>
      <Recent user={session.username} />
      <Notifications />
      <Tokens user={session.username} />
      <Client />
    </>
  );
}

/** Teams that one is not in, and may ask for a place. */
function OtherTeams({ user }: { user: string }): JSX.Element | null {
  const { client, renew } = useHub();
  const now = useNow(60_000);
  const found = useLoad(`teams ${user}`, () => client.get<Teams>(paths.teams(user)), TEAMS_EVERY);
  // a team that one was taken into is no other team any more, and one that one left is: then those above are others too; they may be
  // already when this page is opened
  const others = found.data?.teams.map((team) => team.tenant).join();
  useEffect(() => {
    if (others !== undefined) void renew();
  }, [others]);
  const [asking, setAsking] = useState<string | null>(null);
  const [note, setNote] = useState("");
  const { run, busy, error, clear } = useRun(async () => {
    setAsking(null);
    setNote("");
    await found.reload();
  });
  if (found.error) return <ErrorBox error={found.error} retry={() => void found.reload()} />;
  if (found.data?.managed_by) return <p class="mlp-dim">{t("The groups of {provider} decide who is in which team.", { provider: found.data.managed_by })}</p>;
  if (!found.data?.teams.length) return null;
  return (
    <>
      <h3>{t("Other teams")}</h3>
      <ul class="mlp-lines">
        {found.data.teams.map((team) => (
          <li key={team.tenant}>
            <b class="mlp-plain">{team.tenant}</b> <span class="mlp-dim">{team.description}</span>{" "}
            {team.asked_at ? (
              <>
                <Chip kind="wait">{t("asked {ago}", { ago: ago(team.asked_at, now) })}</Chip>{" "}
                <button type="button" class="mlp-button mlp-small" disabled={busy} aria-label={t("Take back the request to {tenant}", { tenant: team.tenant })} onClick={() => void run(() => client.delete(paths.team(user, team.tenant)), t("Request to {tenant} taken back", { tenant: team.tenant }))}>{t("Take back")}</button>
              </>
            ) : (
              <button type="button" class="mlp-button mlp-small" aria-label={t("Ask to join {tenant}", { tenant: team.tenant })} onClick={() => {
                clear();
                setAsking(team.tenant);
              }}>{t("Ask to join")}</button>
            )}
          </li>
        ))}
      </ul>
      {error && !asking ? <ErrorBox error={error} /> : null}
      {asking ? (
        <Dialog title={t("Ask to join {tenant}", { tenant: asking })} onClose={() => setAsking(null)}>
          <form class="mlp-form" noValidate onSubmit={(e) => {
            e.preventDefault();
            void run(() => client.post(paths.teams(user), { tenant: asking, note: note.trim() }), t("The admins of {tenant} were asked", { tenant: asking }));
          }}>
            <Field name="note" label={t("A message to its admins")} value={note} onInput={setNote} autofocus hint={t("At most 200 characters; may be left out")} />
            {error ? <ErrorBox error={error} /> : null}
            <div class="mlp-dialog-buttons">
              <button type="button" class="mlp-button" onClick={() => setAsking(null)}>{t("Close")}</button>
              <button type="submit" class="mlp-button mlp-primary" disabled={busy}>{t("Ask to join")}</button>
            </div>
          </form>
        </Dialog>
      ) : null}
    </>
  );
}

function Recent({ user }: { user: string }): JSX.Element {
  const { client } = useHub();
  const now = useNow(10_000);
  const found = useLoad(`recent ${user}`, () => client.list<Job>(`${paths.jobs(user)}?limit=5`), EVERY);
  const columns: Column<JobLine>[] = [
    { title: t("Job"), kind: "name", cell: (j) => <Link to={href("jobs", user, j.reference)}>{j.title}</Link> },
    { title: t("State"), kind: "tight", cell: (j) => j.state },
    { title: t("Progress"), kind: "num", cell: (j) => `${j.progress} %` },
    { title: t("Submitted"), kind: "grow", cell: (j) => ago(j.submitted, now) },
  ];
  const rows = jobLines(found.data?.items ?? []);
  return (
    <section class="mlp-card" aria-label={t("Newest jobs")}>
      <div class="mlp-card-head">
        <h2>{t("Newest jobs")}</h2>
        <span class="mlp-dim">{t("Each has its curves, log and files on its page.")}</span>
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {!found.data ? (
        found.error ? null : <Loading what={t("Loading jobs")} lines={3} />
      ) : rows.length ? (
        <Table stack caption={t("Newest jobs")} columns={columns} rows={rows} rowKey={(j) => j.reference} />
      ) : (
        <Empty title={t("No jobs yet")} />
      )}
    </section>
  );
}

function Tokens({ user }: { user: string }): JSX.Element {
  const { client } = useHub();
  const now = useNow(60_000);
  const found = useLoad(`tokens ${user}`, () => client.all<TokenInfo>(paths.tokens(user)).then((page) => page.items));
  return (
    <section class="mlp-card" aria-label={t("Tokens")}>
      <div class="mlp-card-head">
        <h2>{t("Tokens")}</h2>
        <span class="mlp-dim">{found.data ? n("1 token for programs", "{n} tokens for programs", found.data.length) : ""}</span>
      </div>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {found.data?.length ? (
        <ul class="mlp-lines">
          {found.data.map((token) => (
            <li key={token.id}>{tokenLine(token, now)}</li>
          ))}
        </ul>
      ) : null}
      <a class="mlp-button" href={hubPage("token")}>
        {t("Make and revoke tokens")}
      </a>
    </section>
  );
}

function Client(): JSX.Element {
  const address = `${location.origin}${base}client/mlp.pyz`;
  return (
    <section class="mlp-card" aria-label={t("On your own machine")}>
      <div class="mlp-card-head">
        <h2>{t("On your own machine")}</h2>
        <span class="mlp-dim">{t("The mlp command is one file and needs only Python 3.11. Notebooks already have it.")}</span>
      </div>
      <pre class="mlp-tail" tabIndex={0} aria-label={t("Commands")}>{`curl -o mlp ${address}\nchmod +x mlp\n./mlp login ${location.origin}\n./mlp jobs`}</pre>
    </section>
  );
}
