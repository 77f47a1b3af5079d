/** My jobs, and the page of one job. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Empty, ErrorBox, HeadingLevel, Loading, ShowMore, StateBadge, Table, type Column } from "../../components/basics/basics";
import { useLoad, useNow, useView } from "../../components/basics/hooks";
import { Monitor } from "../../components/monitor/Monitor";
import { paths } from "../../core/service/api";
import { priorityName } from "../../core/jobs/decisions";
import { duration, sizeWords } from "../../core/format/format";
import { liveJob, type LiveJob } from "../../core/stream/live";
import { keepingWords } from "../../core/jobs/keeping";
import { lineOf } from "../../core/jobs/notes";
import { hasFinished } from "../../core/accounts/firststeps";
import { isFinal, isWaiting, workersWords } from "../../core/jobs/phase";
import { reference, title } from "../../core/jobs/runs";
import { timing } from "../../core/jobs/spans";
import type { Job } from "../../core/service/wire";
import { rich, useLanguage } from "../../components/basics/language";
import { useHub } from "../shared/context";
import { Files } from "../../components/monitor/Files";
import { PageHead, Select } from "../../components/basics/form";
import { RegisterModel } from "../stored/RegisterModel";
import { RunDetails } from "./RunDetails";
import { maySteer, Steer } from "./Steer";
import { FirstSteps, Samples, stepsLeft } from "../accounts/FirstSteps";
import { go, href, Link } from "../shared/address";
import { n, t } from "../../core/format/language";

const EVERY = 4000;
const FILES_EVERY = 20_000;
const PAGE = 100;
const MOST = 1000;

/** Which job it is, as a link to its page. */
export function Named({ job }: { job: Pick<Job, "user" | "name" | "run"> }): JSX.Element {
  return (
    <>
      <Link to={href("jobs", job.user, reference(job))}>{job.name}</Link>
      <span class="mlp-dim mlp-run">{t("run {run}", { run: job.run })}</span>
    </>
  );
}

export function JobsPage(): JSX.Element {
  const { client, session } = useHub();
  const [state, setState] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const query = state ? `&state=${state}` : "";
  const jobs = useLoad(`jobs ${state} ${limit}`, () => client.list<Job>(`${paths.jobs(session.username)}?limit=${limit}${query}`), EVERY);
  const now = useNow(1000);
  const columns: Column<Job>[] = [
    { title: t("Name"), cell: (j) => <Named job={j} />, kind: "name" },
    { title: t("State"), cell: (j) => <StateBadge phase={j.phase} reason={j.reason} />, kind: "tight" },
    { title: t("Note"), hideTitle: true, cell: (j) => <span class="mlp-clip" title={lineOf(j, now)}>{lineOf(j, now)}</span>, kind: "grow" },
    { title: t("Team"), cell: (j) => j.tenant, kind: "low" },
    { title: t("Shape"), cell: (j) => [j.runtime, workersWords(j), sizeWords(j)].join(t(", ")), kind: "low" },
    { title: t("Time"), cell: (j) => timing(j, now), kind: "num" },
  ];
  const items = jobs.data?.items ?? [];
  const busy = items.filter((j) => !isFinal(j.phase)).length;
  const [, drawn] = useState(0);
  // the card has them itself, and who has many jobs knows them
  const samples = jobs.data && !state && !jobs.data.next && !stepsLeft(session.username, hasFinished(items)) ? <Samples /> : null;
  return (
    <>
      <PageHead title={t("Jobs")} sub={jobs.data ? (jobs.data.next ? n("1 job (the newest), {busy} active", "{n} jobs (the newest), {busy} active", items.length, { busy }) : n("1 job, {busy} active", "{n} jobs, {busy} active", items.length, { busy })) : undefined}>
        <Select
          label={t("State")}
          name="state"
          value={state}
          hideLabel
          onChange={setState}
          options={[["", t("All states")], ["creating", t("Waiting or starting")], ["running", t("Running")], ["finished", t("Finished")], ["error", t("Failed or cancelled")]]}
        />
      </PageHead>
      {jobs.error ? <ErrorBox error={jobs.error} retry={() => void jobs.reload()} /> : null}
      {jobs.data && !state ? <FirstSteps finished={hasFinished(items)} gone={() => drawn((times) => times + 1)} /> : null}
      {!jobs.data ? (
        jobs.error ? null : <Loading what={t("Loading jobs")} lines={6} />
      ) : items.length === 0 ? (
        <Empty title={state ? t("No job in this state") : t("No jobs yet")}>
          {state ? null : (
            <p>
              {rich(t("Submit one from a notebook cell: {command}"), { command: <code>%%mlp submit --workers 2 --cpu 0.4 --name digits</code> })}
            </p>
          )}
          {samples}
        </Empty>
      ) : (
        <>
          <Table stack caption={t("My jobs, newest first")} columns={columns} rows={items} rowKey={(j) => j.uid || j.name} />
          {jobs.data.next && limit < MOST ? <ShowMore more={() => setLimit((shown) => Math.min(MOST, shown + PAGE))} /> : null}
          {keepingWords(session.keeping) ? <p class="mlp-dim mlp-kept">{keepingWords(session.keeping)}</p> : null}
          {samples}
          {jobs.data.next && limit >= MOST ? <p class="mlp-dim mlp-more">{t("The {n} newest; choose a state to see older ones.", { n: MOST })}</p> : null}
        </>
      )}
    </>
  );
}

/** Links to all runs of a name, where it has several and whoever looks may see them. */
function Runs({ user, name, shown }: { user: string; name: string; shown: string }): JSX.Element | null {
  const { client } = useHub();
  const runs = useLoad(`runs ${user} ${name}`, () => client.list<Job>(`${paths.jobs(user)}?name=${encodeURIComponent(name)}&limit=${PAGE}`), EVERY);
  const items = runs.data?.items ?? [];
  if (items.length < 2) return null;
  return (
    <span class="mlp-runs" role="group" aria-label={t("Runs of {name}", { name })}>
      {items.map((j, i) => (
        <Link key={j.uid} to={href("jobs", j.user, reference(j))} current={reference(j) === shown || (i === 0 && shown === name)}>{t("run {run}", { run: j.run })}</Link>
      ))}
    </span>
  );
}

/** What may be changed of the job of this page. */
function SteerHere({ live }: { live: LiveJob }): JSX.Element | null {
  const { session } = useHub();
  const { job } = useView(live.store);
  if (!job || !maySteer(session, job)) return null;
  return (
    <section class="mlp-card" aria-label={t("Changes")}>
      <div class="mlp-card-head">
        <h2>{t("Changes")}</h2>
        <span class="mlp-dim">{t("Priority {priority}, time limit {limit}", { priority: priorityName(job.priority), limit: job.time_limit === null ? t("none") : duration(job.time_limit) })}</span>
        <span class="mlp-head-end"><Steer job={job} done={() => Promise.resolve()} /></span>
      </div>
      {job.put_first && isWaiting(job.phase) ? <p class="mlp-dim">{t("Put first by an admin of {tenant}", { tenant: job.tenant })}</p> : null}
    </section>
  );
}

/** Only of a job that is there: one that is not, or not for whom asks, is told of once, by its monitor. */
function RunsHere({ live, user, name }: { live: LiveJob; user: string; name: string }): JSX.Element | null {
  return useView(live.store).job ? <Runs user={user} name={name.split("@")[0] ?? name} shown={name} /> : null;
}

/** Of a trial the way back to its sweep. */
function SweepHere({ live }: { live: LiveJob }): JSX.Element | null {
  const { job } = useView(live.store);
  if (!job?.sweep) return null;
  return (
    <>
      <Link to={href("sweeps", job.user, job.sweep)}>{t("sweep {name}", { name: job.sweep })}</Link>
      <span aria-hidden="true"> / </span>
    </>
  );
}

function Below({ live, user, name }: { live: LiveJob; user: string; name: string }): JSX.Element | null {
  const { client } = useHub();
  const { job } = useView(live.store);
  if (!job) return null;
  // before its first attempt it has no directory
  const begun = !isWaiting(job.phase) || job.restarts > 0 || job.started_at !== null;
  return (
    <>
      <SteerHere live={live} />
      <RegisterModel live={live} user={user} name={name} />
      <RunDetails user={user} name={name} />
      {begun ? <Files client={client} of={paths.job(user, name)} every={FILES_EVERY} /> : null}
    </>
  );
}

export function JobPage({ user, name }: { user: string; name: string }): JSX.Element {
  const { client, session, say } = useHub();
  const spoken = useLanguage(); // another language: the stream tells all anew
  const live = useMemo(() => liveJob(client, user, name), [client, user, name, spoken]);
  useEffect(() => {
    live.start();
    return () => live.stop();
  }, [live]);
  const [own = name, run] = name.split("@");
  const said = run === undefined ? own : t("{name} run {run}", { name: own, run });
  return (
    <>
      <p class="mlp-crumbs">
        {user === session.username ? <Link to={href()}>{t("Jobs")}</Link> : session.admin ? <Link to={href("admin", "queue")}>{t("Queue")}</Link> : <span>{user}</span>}
        <span aria-hidden="true"> / </span>
        <SweepHere live={live} />
        {user === session.username ? said : t("{job} of {user}", { job: said, user })}
        <RunsHere live={live} user={user} name={name} />
      </p>
      <div class="mlp-monitor-box">
        <HeadingLevel.Provider value="h2">
          <Monitor
            client={client}
            live={live}
            user={user}
            name={name}
            page
            onAction={(action, job) => {
              if (action === "delete") {
                say(t("Job {job} is being deleted", { job: title(job) }));
                go(href());
              } else if (action === "resubmit") {
                say(t("Submitted again as {job}", { job: title(job) }));
                go(href("jobs", job.user, reference(job)));
              }
            }}
          />
        </HeadingLevel.Provider>
      </div>
      <Below live={live} user={user} name={name} />
    </>
  );
}
