/** One user, for platform administrators: account, teams, holdings with storage, and newest jobs. */
import type { JSX } from "preact";
import { Chip, ErrorBox, Facts, Loading, StateBadge, Table, type Column } from "../../components/basics/basics";
import { PageHead } from "../../components/basics/form";
import { useLoad, useNow } from "../../components/basics/hooks";
import { bytes, clock } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { timing } from "../../core/jobs/spans";
import { lineOf } from "../../core/jobs/notes";
import { paths } from "../../core/service/api";
import type { Job, Usage, User } from "../../core/service/wire";
import { Named } from "../jobs/Jobs";
import { href, Link } from "../shared/address";
import { useHub } from "../shared/context";
import { Holdings } from "../teams/Quota";

const EVERY = 10_000;
const MOST_JOBS = 20;

export function UserPage({ name }: { name: string }): JSX.Element {
  const { client } = useHub();
  const now = useNow(EVERY);
  const state = useLoad(
    `user ${name}`,
    async () => {
      const [user, teams, jobs] = await Promise.all([
        client.get<User>(paths.user(name)),
        client.list<Usage>(paths.quota(name)),
        client.list<Job>(`${paths.jobs(name)}?limit=${MOST_JOBS}`),
      ]);
      return { user, teams: teams.items, jobs: jobs.items };
    },
    EVERY,
  );
  const found = state.data;
  const holdings = (found?.teams ?? []).flatMap((team) => team.holdings).filter((one) => one.user === name);
  const storage = holdings.reduce((sum, one) => sum + (one.rom ?? 0), 0);
  const columns: Column<Job>[] = [
    { title: t("Name"), cell: (j) => <Named job={j} />, kind: "name" },
    { title: t("State"), cell: (j) => <StateBadge phase={j.phase} reason={j.reason} />, kind: "tight" },
    { title: t("Note"), hideTitle: true, cell: (j) => <span class="mlp-clip" title={lineOf(j, now)}>{lineOf(j, now)}</span>, kind: "grow" },
    { title: t("Team"), cell: (j) => j.tenant, kind: "low" },
    { title: t("Time"), cell: (j) => timing(j, now), kind: "num" },
  ];
  return (
    <>
      <p class="mlp-crumbs">
        <Link to={href("admin", "users")}>{t("Users")}</Link>
        <span aria-hidden="true"> / </span>
        {name}
      </p>
      <PageHead title={name} />
      {state.error ? <ErrorBox error={state.error} retry={() => void state.reload()} /> : null}
      {!found && !state.error ? <Loading what={t("Loading users")} lines={4} /> : null}
      {found ? (
        <>
          <section class="mlp-card" aria-label={t("Account")}>
            <div class="mlp-card-head">
              <h2>{t("Account")}</h2>
              {found.user.state === "Actived" ? <Chip kind="good">{t("Active")}</Chip> : <Chip kind="idle">{found.user.new ? t("Waits for approval") : t("Deactivated")}</Chip>}
              {found.user.admin ? <Chip kind="run">{t("Platform administrator")}</Chip> : null}
            </div>
            <Facts facts={[
              [t("Last active"), found.user.last_activity ? clock(found.user.last_activity, now) : t("never")],
              [t("Notebook servers"), String(found.user.servers)],
              [t("Storage"), storage ? bytes(storage) : t("none")],
            ]} />
            <p>{n("Team:", "Teams:", found.user.tenants.length)} {found.user.tenants.map((team, i) => <span key={team}>{i ? t(", ") : ""}<Link to={href("admin", "tenants", team)}>{team}</Link></span>)}</p>
          </section>
          <section class="mlp-card" aria-label={t("In use")}>
            <div class="mlp-card-head"><h2>{t("In use")}</h2></div>
            <Holdings holdings={holdings} linkUser={() => true} />
          </section>
          <section class="mlp-card" aria-label={t("Newest jobs")}>
            <div class="mlp-card-head"><h2>{t("Newest jobs")}</h2></div>
            {found.jobs.length ? <Table stack caption={t("Newest jobs")} columns={columns} rows={found.jobs} rowKey={(j) => j.uid || j.name} /> : <p class="mlp-dim">{t("No jobs yet")}</p>}
          </section>
        </>
      ) : null}
    </>
  );
}
