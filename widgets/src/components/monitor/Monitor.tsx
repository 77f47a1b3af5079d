/** The job monitor: the same in a notebook cell and on a job's page. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { paths, type Client } from "../../core/service/api";
import { attemptEnds } from "../../core/charts/attempts";
import { ago, clock, duration, ms, sizeWords } from "../../core/format/format";
import type { LiveJob } from "../../core/stream/live";
import { priorityName } from "../../core/jobs/decisions";
import { isFinal, isWaiting, restarts, word, workersWords, type ActionName } from "../../core/jobs/phase";
import { commandName, reference, title } from "../../core/jobs/runs";
import { ran, timing } from "../../core/jobs/spans";
import type { View } from "../../core/stream/jobstore";
import { SHOWN } from "../../core/jobs/watching";
import { costWords } from "../../core/teams/money";
import type { Job, JobCost } from "../../core/service/wire";
import { Actions } from "./Actions";
import { Empty, ErrorBox, Facts, Icon, Loading, StateBadge } from "../basics/basics";
import { Curves } from "../charts/Curves";
import { useLoad, useNow, useView } from "../basics/hooks";
import { rich } from "../basics/language";
import { FoldedFiles } from "./Files";
import { LogTail } from "./LogTail";
import { UnusedGpus } from "./UnusedGpus";
import { FailureBox, Progress, RankGrid, Timeline, WhyBox } from "./parts";
import { t } from "../../core/format/language";

/** How often the files of a job that runs are asked for again, while they are shown. */
const FILES_EVERY = 10_000;
const COST_EVERY = 60_000;

export interface MonitorProps {
  client: Client;
  live: LiveJob;
  user: string;
  name: string;
  /** The page of a job: its timeline is open, its heading is the page's. */
  page: boolean;
  onAction: (action: ActionName, job: Job) => void;
}

export function Monitor({ client, live, user, name, page, onAction }: MonitorProps): JSX.Element {
  const view = useView(live.store);
  const { job } = view;
  const running = job !== null && !isFinal(job.phase) && view.saved === null;
  const now = useNow(1000, running || view.connection === "reconnecting");
  const [rank, setRank] = useState<number | null>(null);
  const [again, setAgain] = useState<Job | null>(null);
  const over = job !== null && isFinal(job.phase);
  useEffect(() => {
    if (over && !page) window.dispatchEvent(new Event(SHOWN));
  }, [over, page]);
  const ends = useMemo(() => attemptEnds(view.events), [view.events]);
  if (!job) return <Absent view={view} live={live} client={client} user={user} name={name} />;
  return (
    <div class="mlp-monitor" data-phase={job.phase} data-connection={view.connection} data-synced={view.synced}>
      <div class="mlp-head">
        <div class="mlp-title">
          {page ? <h1 title={job.name}>{job.name}</h1> : <h2 title={job.name}>{job.name}</h2>}
          {job.run ? <span class="mlp-dim mlp-run">{t("run {run}", { run: job.run })}</span> : null}
          <StateBadge phase={job.phase} reason={job.reason} />
          <Connection view={view} live={live} now={now} />
        </div>
        <Actions
          client={client}
          job={job}
          disabled={view.saved !== null || view.connection === "refused"}
          onDone={(action, answer) => {
            if (action === "resubmit") setAgain(answer);
            else live.store.job(answer);
            onAction(action, answer);
          }}
        />
      </div>
      <p class="mlp-hidden" role="status" aria-live="polite">{t("Job {job}: {state}", { job: title(job), state: word(job.phase, job.reason) })}</p>
      {again && !page ? (
        <p class="mlp-again" role="status">
          {rich(t("Submitted again as run {run}. To see it: {command}", { run: again.run }), { command: <code>{`%mlp watch ${commandName(again)}`}</code> })}
        </p>
      ) : null}
      <JobFacts job={job} now={now} client={page ? client : null} />
      {job.note && !page ? <p class="mlp-own-note"><span class="mlp-dim">{t("Note")}</span> {job.note}</p> : null}
      <StateReason job={job} view={view} />
      <UnusedGpus client={client} job={job} disabled={view.saved !== null || view.connection === "refused"} onKept={(kept) => live.store.job(kept)} />
      <LoginNote view={view} client={client} live={live} />
      <WhyBox job={job} why={view.why} now={now} />
      <FailureBox job={job} onRank={setRank} />
      <Progress job={job} left={view.saved === null ? live.store.timeLeft() : null} />
      {view.metrics.length ? <Curves store={live.store} names={view.metrics} ends={ends} earlier={isWaiting(job.phase)} now={now} /> : view.synced ? <NoCurves job={job} /> : null}
      {job.ranks.length || !isWaiting(job.phase) || live.store.logs.lines.length ? (
        <div class={job.ranks.length ? "mlp-two" : ""}>
          {job.ranks.length ? <RankGrid job={job} selected={rank} onSelect={setRank} /> : null}
          <LogTail job={job} store={live.store} rank={rank} onRank={setRank} settled={isFinal(job.phase)} known={view.synced || view.saved !== null} ends={ends} earlier={isWaiting(job.phase)} />
        </div>
      ) : null}
      {page || isWaiting(job.phase) || view.saved !== null || view.connection === "refused" ? null : (
        <FoldedFiles client={client} of={paths.job(user, reference(job))} every={isFinal(job.phase) ? 0 : FILES_EVERY} />
      )}
      <Timeline
        events={view.events}
        attempts={view.attempts}
        now={now}
        open={page}
        asks={view.saved !== null || view.connection === "refused" ? null : { client, user, name: reference(job) }}
      />
    </div>
  );
}

function JobFacts({ job, now, client }: {
  job: Job;
  now: number;
  /** Where its cost is asked for; null where it is not shown. */
  client: Client | null;
}): JSX.Element {
  const path = `${paths.job(job.user, reference(job))}/cost`;
  const found = useLoad(`cost ${path} ${job.phase} ${client !== null}`, async () => (client ? client.get<JobCost>(path) : null), client && !isFinal(job.phase) ? COST_EVERY : 0);
  const cost = found.data ? costWords(found.data) : "";
  const started = ms(job.started_at);
  const ended = ms(job.finished_at);
  const time =
    ended !== null && ran(job, now)
      ? t("ran {span}, ended {time}", { span: duration(ran(job, now)), time: clock(ended, now) })
      : started !== null && !isWaiting(job.phase)
        ? job.ran_s
          ? t("started {ago}, runs {span} in all", { ago: ago(started, now), span: duration(ran(job, now)) })
          : t("started {ago}", { ago: ago(started, now) })
        : timing(job, now);
  const facts = [
    [t("Team"), job.tenant], [t("Runtime"), job.runtime], [t("Workers"), t("{workers}, {size} each", { workers: workersWords(job), size: sizeWords(job) })],
    ...(job.env_name ? [[t("Environment"), job.env_name]] : []),
    ...(job.workdir ? [[t("Start directory"), `~/${job.workdir}`]] : []),
    ...(job.priority !== "normal" ? [[t("Priority"), priorityName(job.priority)]] : []),
    ...(job.time_limit ? [[t("Time limit"), duration(job.time_limit)]] : []),
    ...(restarts(job) ? [[t("Restarts"), String(restarts(job))]] : []),
    [t("Time"), time],
    ...(cost ? [[t("Cost"), cost]] : []),
  ] as [string, string][];
  return <Facts facts={facts} />;
}

/** The state's sentence where no box below says it better. */
function StateReason({ job, view }: { job: Job; view: View }): JSX.Element | null {
  if (!job.message || job.failure || (isWaiting(job.phase) && (view.why?.reasons.length || !view.why))) return null;
  return <p class="mlp-message">{job.message}</p>;
}

function NoCurves({ job }: { job: Job }): JSX.Element | null {
  if (job.phase !== "running") return null;
  return (
    <p class="mlp-dim mlp-hint">
      {rich(t("No metrics yet. Call {call} in the program to see curves here."), { call: <code>mlp.report(loss=..., accuracy=...)</code> })}
    </p>
  );
}

function Connection({ view, live, now }: { view: View; live: LiveJob; now: number }): JSX.Element | null {
  const retry = (
    <button type="button" class="mlp-link" onClick={() => live.stream.retryNow()}>
      {t("Retry now")}
    </button>
  );
  if (view.saved !== null) {
    const said = view.saved ? t("Saved picture of {time}", { time: clock(view.saved, now) }) : t("Saved picture");
    return <span class="mlp-connection">{view.connection === "reconnecting" ? t("{said} · connecting", { said }) : said}</span>;
  }
  if (view.connection === "reconnecting") {
    return (
      <span class="mlp-connection mlp-connection-lost" role="status">
        <Icon name="busy" />
        {t("Reconnecting")} {retry}
      </span>
    );
  }
  if (view.connection === "refused" && view.detail !== "login") return <span class="mlp-connection" title={view.detail}>{t("Not connected")} {retry}</span>;
  return null;
}

/** The login is over: the person has to begin another. */
function LoginNote({ view, client, live }: { view: View; client: Client; live: LiveJob }): JSX.Element | null {
  if (view.connection !== "refused" || view.detail !== "login") return null;
  const again = (text: string): JSX.Element => <button type="button" class="mlp-link" onClick={() => live.stream.retryNow()}>{text}</button>;
  if (client.passed) {
    return (
      <ErrorBox error={rich(t("Your notebook server no longer recognizes this page, so it is not live: load the page again, or {try}"), { try: again(t("try once more")) })} />
    );
  }
  return (
    <ErrorBox
      error={rich(t("You are not logged in to MLP Hub, so this is not live. {login}, then {connect}"), {
        login: <a class="mlp-link" href={client.loginUrl(location.pathname + location.search)} target="_blank" rel="noopener">{t("Log in")}</a>,
        connect: again(t("connect again")),
      })}
    />
  );
}

function Absent({ view, live, client, user, name }: {
  view: View;
  live: LiveJob;
  client: Client;
  user: string;
  name: string;
}): JSX.Element {
  if (view.connection === "refused") {
    if (view.detail === "login") return <LoginNote view={view} client={client} live={live} />;
    return (
      <Empty title={t("No picture of job {job} of {user}", { job: name, user })}>
        <p>{view.detail}</p>
        <button type="button" class="mlp-button mlp-small" onClick={() => live.stream.retryNow()}>{t("Try again")}</button>
      </Empty>
    );
  }
  return (
    <div class="mlp-monitor" data-connection={view.connection}>
      {view.connection === "reconnecting" ? <p class="mlp-dim">{t("MLP Hub cannot be reached; trying again.")}</p> : null}
      <Loading what={t("Loading job {job}", { job: name })} lines={5} />
    </div>
  );
}
