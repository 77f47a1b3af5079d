/** How the whole platform stands: who holds what, what waits and why, what is wrong; each with the way to its page. */
import type { ComponentChildren, JSX } from "preact";
import { Bar, BarLegend, Chip, Empty, ErrorBox, Icon, Loading, QuotaBar, Table, type Column } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { DIMENSIONS, inUseOf, ROWS, shownOf } from "../../core/format/dimensions";
import { clock, duration } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { capital, reasonWords } from "../../core/format/reasons";
import { reference, replicaName } from "../../core/jobs/runs";
import { standing } from "../../core/teams/sharing";
import { waits } from "../../core/jobs/spans";
import type { AlertBoard, NodeTrouble, Overview, QueueEntry, QuotaRequest, TeamHolds, WaitingFor } from "../../core/service/wire";
import { Announcing } from "../teams/Announcing";
import { href, Link } from "../shared/address";
import { useHub } from "../shared/context";
import { PageHead } from "../../components/basics/form";
import { conditionMessage, conditionWord } from "./Nodes";

const EVERY = 5000;
const REQUESTS_EVERY = 20_000;

export function OverviewPage(): JSX.Element {
  const { client } = useHub();
  const found = useLoad("overview", () => client.get<Overview>(paths.overview), EVERY);
  const requests = useLoad("overview requests", () => client.list<QuotaRequest>(paths.openRequests), REQUESTS_EVERY);
  const alerts = useLoad("overview alerts", () => client.get<AlertBoard>(paths.alerts), REQUESTS_EVERY);
  const now = useNow(1000);
  const all = found.data;
  return (
    <>
      <PageHead title={t("Overview")} sub={all ? n("1 team", "{n} teams", all.teams_all) : undefined}>
        <Link to={href("admin", "over-time")} cls="mlp-button">{t("Over time")}</Link>
      </PageHead>
      {found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : null}
      {!all && !found.error ? <Loading what={t("Loading the overview")} lines={6} /> : null}
      {all ? (
        <>
          <Figures all={all} asked={requests.data?.items.length ?? 0} alerts={alerts.data} />
          <Wrong all={all} firing={alerts.data?.firing ?? 0} />
          <Waiting all={all} now={now} />
          <Holding all={all} />
          <Calibration of={all.forecasts} now={now} />
        </>
      ) : null}
      <Announcing />
    </>
  );
}

function Figure({ value, label, to, more }: { value: ComponentChildren; label: string; to: string; more?: string }): JSX.Element {
  return (
    <li>
      <Link to={to} cls="mlp-figure">
        <b>{value}</b>
        <span>{label}</span>
        <span class="mlp-dim">{more ?? ""}</span>
      </Link>
    </li>
  );
}

function Figures({ all, asked, alerts }: { all: Overview; asked: number; alerts: AlertBoard | null }): JSX.Element {
  const queue = href("admin", "queue");
  return (
    <ul class="mlp-figures" aria-label={t("Running and waiting work")}>
      <Figure value={all.running} label={n("job runs", "jobs run", all.running)} to={queue} />
      <Figure value={all.waiting} label={n("job waits", "jobs wait", all.waiting)} to={queue} more={all.suspended ? t("{n} suspended", { n: all.suspended }) : ""} />
      <Figure value={all.servers} label={n("notebook server", "notebook servers", all.servers)} to={href("admin", "nodes")} more={all.servers_waiting ? t("{n} waiting", { n: all.servers_waiting }) : ""} />
      <Figure value={all.apps} label={n("app runs", "apps run", all.apps)} to={queue} more={[all.replicas ? n("1 replica", "{n} replicas", all.replicas) : "", all.replicas_waiting ? t("{n} waiting", { n: all.replicas_waiting }) : "", all.apps_failing ? t("{n} in error", { n: all.apps_failing }) : ""].filter(Boolean).join(" · ")} />
      <Figure value={`${all.nodes_open}/${all.nodes}`} label={t("nodes accept work")} to={href("admin", "nodes")} more={all.nodes_up < all.nodes ? t("{n} down", { n: all.nodes - all.nodes_up }) : ""} />
      <Figure
        value={alerts ? alerts.firing : "–"}
        label={n("alert fires", "alerts fire", alerts?.firing ?? 0)}
        to={href("admin", "alerts")}
        more={alerts ? [alerts.pending ? t("{n} pending", { n: alerts.pending }) : "", alerts.silenced ? t("{n} silenced", { n: alerts.silenced }) : ""].filter(Boolean).join(" · ") : ""}
      />
      {asked ? <Figure value={asked} label={n("request to answer", "requests to answer", asked)} to={href("admin", "requests")} /> : null}
    </ul>
  );
}

function Trouble({ of }: { of: NodeTrouble }): JSX.Element {
  return (
    <li>
      <Link to={href("admin", "nodes")}>{of.name}</Link>{" "}
      {of.conditions.map((one) => (
        <span key={one.kind}>
          <Chip kind={one.kind === "NotReady" ? "bad" : "wait"}>{conditionWord(one.kind)}</Chip> <span class="mlp-dim">{conditionMessage(one)}</span>
        </span>
      ))}
    </li>
  );
}

function Wrong({ all, firing }: { all: Overview; firing: number }): JSX.Element {
  const over = all.teams.filter((team) => Object.keys(team.over).length);
  const nothing = !firing && !all.problems.length && !all.troubles.length && !over.length && !all.apps_failing;
  const more = all.apps_failing - all.app_troubles.length;
  return (
    <section class="mlp-card" aria-label={t("Problems")}>
      <div class="mlp-card-head">
        <h2>{t("Problems")}</h2>
      </div>
      {nothing ? (
        <p class="mlp-dim">
          <Icon name="good" /> {t("The platform knows of no problem.")}
        </p>
      ) : (
        <ul class="mlp-lines">
          {firing ? (
            <li>
              <Link to={href("admin", "alerts")}>
                {firing} {n("alert fires", "alerts fire", firing)}
              </Link>
            </li>
          ) : null}
          {all.problems.map((one) => (
            <li key={one.component + one.reason}>
              <Chip kind="bad">{one.component}</Chip> {capital(one.message)}
            </li>
          ))}
          {all.troubles.map((one) => (
            <Trouble key={one.name} of={one} />
          ))}
          {all.nodes - all.nodes_open > all.troubles.length ? <li class="mlp-dim">{n("1 more node accepts no new work", "{n} more nodes accept no new work", all.nodes - all.nodes_open - all.troubles.length)}</li> : null}
          {all.app_troubles.map((one) => (
            <li key={`app ${one.user}/${one.name}`}>
              <Link to={href("app", one.user, one.name)}>{t("App {name} of {user}", { name: one.name, user: one.user })}</Link>{" "}
              <Chip kind="bad">{t("does not answer")}</Chip> <span class="mlp-dim mlp-wrap">{capital(one.message)}</span>
            </li>
          ))}
          {more > 0 ? <li class="mlp-dim">{n("1 more app does not answer", "{n} more apps do not answer", more)}</li> : null}
          {over.map((team) => (
            <li key={team.name}>
              <Link to={href("admin", "tenants", team.name)}>{team.name}</Link> <Chip kind="bad">{t("beyond its quota")}</Chip>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

function Reason({ of, all }: { of: WaitingFor; all: number }): JSX.Element {
  return (
    <li class="mlp-reason-row">
      <span>{capital(of.reason ? reasonWords(of.reason) : t("not examined yet"))}</span>
      <Bar value={of.count} of={all} calm />
      <b>{of.count}</b>
      <span class="mlp-dim">{capital(of.message)}</span>
    </li>
  );
}

const what = (e: QueueEntry): JSX.Element =>
  e.kind === "server" ? (
    <>{e.name ? t("notebook server {name}", { name: e.name }) : t("Notebook server")}</>
  ) : (
    <Link to={e.kind === "app" ? href("app", e.user, e.name) : href("jobs", e.user, reference(e))}>{e.kind === "app" ? replicaName(e.name, e.replica) : e.name}</Link>
  );

function Waiting({ all, now }: { all: Overview; now: number }): JSX.Element {
  const waiting = all.reasons.reduce((sum, one) => sum + one.count, 0);
  const columns: Column<QueueEntry>[] = [
    { title: t("Waits longest"), kind: "name", cell: what },
    { title: t("User"), cell: (e) => e.user },
    { title: t("Team"), cell: (e) => <Link to={href("admin", "tenants", e.tenant)}>{e.tenant}</Link> },
    { title: t("For"), kind: "num tight", cell: (e) => duration(waits(e, now) ?? 0) },
    { title: t("Why"), kind: "grow", cell: (e) => e.message },
  ];
  return (
    <section class="mlp-card" aria-label={t("Waiting work and reasons")}>
      <div class="mlp-card-head">
        <h2>{t("Waiting work and reasons")}</h2>
        <span class="mlp-head-end">
          <Link to={href("admin", "queue")}>{t("The queue")}</Link>
        </span>
      </div>
      {all.longest.length ? (
        <>
          <ul class="mlp-reasons" aria-label={t("Reasons")}>
            {all.reasons.map((one) => (
              <Reason key={one.reason} of={one} all={waiting} />
            ))}
          </ul>
          <Table stack caption={t("Longest waits")} columns={columns} rows={all.longest} rowKey={(e) => `${e.kind} ${e.user}/${reference(e)}`} />
        </>
      ) : (
        <Empty title={t("Nothing is waiting")} />
      )}
    </section>
  );
}

/** How often the start of a job fell inside the range that was told of it. */
function Calibration({ of, now }: { of: Overview["forecasts"]; now: number }): JSX.Element | null {
  const all = of.before + of.inside + of.after;
  if (!all) return null;
  const share = (n: number): string => `${Math.round((100 * n) / all)} %`;
  return (
    <section class="mlp-card" aria-label={t("Forecasts of starts")}>
      <div class="mlp-card-head">
        <h2>{t("Forecasts of starts")}</h2>
        <span class="mlp-dim">{n("1 start since {time}", "{n} starts since {time}", all, { time: clock(of.since, now) })}</span>
      </div>
      <p>
        {t("{inside} inside the range that was shown, {before} before it, {after} after it. Well calibrated: 80 % inside.", {
          inside: share(of.inside), before: share(of.before), after: share(of.after),
        })}
      </p>
    </section>
  );
}

function Team({ of }: { of: TeamHolds }): JSX.Element {
  return (
    <li>
      <div class="mlp-team-head">
        <Link to={href("admin", "tenants", of.name)}>{of.name}</Link>
        <span class="mlp-dim">{n("1 job running, {waiting} waiting", "{n} jobs running, {waiting} waiting", of.running, { waiting: of.waiting })}</span>
      </div>
      <div class="mlp-quotas">
        {shownOf(of).map((d) => (d === "gpu" && !of.gpu && !of.gpu_inuse ? null : <QuotaBar key={d} name={ROWS[d].label()} of={standing(of, d)} show={ROWS[d].show} />))}
      </div>
    </li>
  );
}

const busy = (of: TeamHolds): boolean => Boolean(of.running || of.waiting || DIMENSIONS.some((d) => inUseOf(of, d)));

function Holding({ all }: { all: Overview }): JSX.Element {
  const teams = all.teams.filter(busy);
  const idle = all.teams_all - teams.length;
  return (
    <section class="mlp-card" aria-label={t("Current use by team")}>
      <div class="mlp-card-head">
        <h2>{t("Current use by team")}</h2>
        <span class="mlp-head-end">
          <Link to={href("admin", "tenants")}>{t("All teams")}</Link> <Link to={href("admin", "usage")}>{t("Usage of all")}</Link>
        </span>
      </div>
      {teams.length ? (
        <ul class="mlp-teams">
          {teams.map((one) => (
            <Team key={one.name} of={one} />
          ))}
        </ul>
      ) : (
        <Empty title={t("Nobody holds anything")} />
      )}
      {teams.length ? <BarLegend bars={teams.flatMap((one) => shownOf(one).map((d) => standing(one, d)))} /> : null}
      {idle && teams.length ? <p class="mlp-dim">{n("1 other team holds less, or nothing.", "{n} other teams hold less, or nothing.", idle)}</p> : null}
    </section>
  );
}
