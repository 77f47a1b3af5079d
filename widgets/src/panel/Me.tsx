/** My own page: who I am here, my tenants, my tokens, my jobs, and the command for my own machine. */
import type { JSX } from "preact";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../components/basics";
import { useLoad, useNow } from "../components/hooks";
import { paths } from "../core/api";
import { ago } from "../core/format";
import { n, t } from "../core/language";
import { jobLines, tokenLine, type JobLine } from "../core/me";
import type { Job, TokenInfo } from "../core/wire";
import { base, href, hubPage, Link } from "./address";
import { useHub } from "./context";
import { PageHead } from "./form";
import { Notifications } from "./Notifications";

const EVERY = 5000;

export function MePage(): JSX.Element {
  const { session } = useHub();
  const led = new Set(session.tenant_admin);
  return (
    <>
      <PageHead title={session.username} sub={session.admin ? t("Administrator of the platform") : undefined} />
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
      </section>
      <Recent user={session.username} />
      <Notifications />
      <Tokens user={session.username} />
      <Client />
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
  const found = useLoad(`tokens ${user}`, () => client.get<TokenInfo[]>(paths.tokens(user)));
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
        <span class="mlp-dim">{t("The command mlp in one file; it needs Python 3.11 and nothing else. Notebooks have it already.")}</span>
      </div>
      <pre class="mlp-tail" tabIndex={0} aria-label={t("Commands")}>{`curl -o mlp ${address}\nchmod +x mlp\n./mlp login ${location.origin}\n./mlp jobs`}</pre>
    </section>
  );
}
