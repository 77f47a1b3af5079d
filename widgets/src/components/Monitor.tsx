/** The job monitor: the same in a notebook cell and on a job's page. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Client } from "../core/api";
import { attemptEnds } from "../core/attempts";
import { ago, clock, cores, duration, ms, ram } from "../core/format";
import type { LiveJob } from "../core/live";
import { isFinal, isWaiting, word, workersWords, type ActionName } from "../core/phase";
import { ran, timing } from "../core/spans";
import type { View } from "../core/jobstore";
import type { Job } from "../core/wire";
import { Actions } from "./Actions";
import { Empty, ErrorBox, Icon, Loading, StateBadge } from "./basics";
import { Curves } from "./Curves";
import { useNow, useView } from "./hooks";
import { LogTail } from "./LogTail";
import { FailureBox, Progress, RankGrid, Timeline, WhyBox } from "./parts";

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
  const ends = useMemo(() => attemptEnds(view.events), [view.events]);
  if (!job) return <Absent view={view} live={live} client={client} user={user} name={name} />;
  return (
    <div class="mlp-monitor" data-phase={job.phase} data-connection={view.connection} data-synced={view.synced}>
      <header class="mlp-head">
        <div class="mlp-title">
          {page ? <h1 title={job.name}>{job.name}</h1> : <h2 title={job.name}>{job.name}</h2>}
          <StateBadge phase={job.phase} />
          <Connection view={view} live={live} now={now} />
        </div>
        <Actions
          client={client}
          job={job}
          disabled={view.saved !== null || view.connection === "refused"}
          onDone={(action, answer) => {
            if (action !== "resubmit" || answer.name === job.name) live.store.job(answer);
            onAction(action, answer);
          }}
        />
      </header>
      <p class="mlp-hidden" role="status" aria-live="polite">{`Job ${job.name}: ${word(job.phase)}`}</p>
      <Facts job={job} now={now} />
      <StateReason job={job} view={view} />
      <LoginNote view={view} client={client} live={live} />
      <WhyBox job={job} why={view.why} now={now} />
      <FailureBox job={job} onRank={setRank} />
      <Progress job={job} left={view.saved === null ? live.store.timeLeft() : null} />
      {view.metrics.length ? <Curves store={live.store} names={view.metrics} ends={ends} earlier={isWaiting(job.phase)} now={now} /> : <NoCurves job={job} />}
      {job.ranks.length || !isWaiting(job.phase) || live.store.logs.lines.length ? (
        <div class={job.ranks.length ? "mlp-two" : ""}>
          {job.ranks.length ? <RankGrid job={job} selected={rank} onSelect={setRank} /> : null}
          <LogTail store={live.store} rank={rank} onRank={setRank} settled={isFinal(job.phase)} ends={ends} earlier={isWaiting(job.phase)} />
        </div>
      ) : null}
      <Timeline
        events={view.events}
        now={now}
        open={page}
        asks={view.saved !== null || view.connection === "refused" ? null : { client, user, name }}
      />
    </div>
  );
}

function Facts({ job, now }: { job: Job; now: number }): JSX.Element {
  const started = ms(job.started_at);
  const ended = ms(job.finished_at);
  const each = `${cores(job.cpu)} cpu, ${ram(job.ram)}${job.gpu ? `, ${cores(job.gpu)} gpu${job.gpu_kind ? ` ${job.gpu_kind}` : ""}` : ""} each`;
  const time =
    ended !== null && ran(job, now)
      ? `ran ${duration(ran(job, now))}, ended ${clock(ended, now)}`
      : started !== null && !isWaiting(job.phase)
        ? `started ${ago(started, now)}${job.ran_s ? `, runs ${duration(ran(job, now))} in all` : ""}`
        : timing(job, now);
  const facts = [
    ["Tenant", job.tenant], ["Runtime", job.runtime], ["Workers", `${workersWords(job)}, ${each}`],
    ...(job.priority !== "normal" ? [["Priority", job.priority]] : []),
    ...(job.time_limit ? [["Time limit", duration(job.time_limit)]] : []),
    ...(job.restarts ? [["Restarts", String(job.restarts)]] : []),
    ["Time", time],
  ] as [string, string][];
  return (
    <dl class="mlp-facts">
      {facts.map(([key, value]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
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
      No metrics yet. Call <code>mlp.report(loss=..., accuracy=...)</code> in the program to see curves here.
    </p>
  );
}

function Connection({ view, live, now }: { view: View; live: LiveJob; now: number }): JSX.Element | null {
  const retry = (
    <button type="button" class="mlp-link" onClick={() => live.stream.retryNow()}>
      Retry now
    </button>
  );
  if (view.saved !== null) {
    const when = view.saved ? ` of ${clock(view.saved, now)}` : "";
    return <span class="mlp-connection">{`Saved picture${when}`}{view.connection === "reconnecting" ? <> · connecting</> : null}</span>;
  }
  if (view.connection === "reconnecting") {
    return (
      <span class="mlp-connection mlp-connection-lost" role="status">
        <Icon name="busy" />
        Reconnecting {retry}
      </span>
    );
  }
  if (view.connection === "refused" && view.detail !== "login") return <span class="mlp-connection" title={view.detail}>Not connected {retry}</span>;
  return null;
}

/** No silent login was possible: the person has to do it. */
function LoginNote({ view, client, live }: { view: View; client: Client; live: LiveJob }): JSX.Element | null {
  if (view.connection !== "refused" || view.detail !== "login") return null;
  return (
    <ErrorBox error="You are not logged in to MLP Hub, so this is not live.">
      {" "}
      <a class="mlp-link" href={client.loginUrl(location.pathname + location.search)} target="_blank" rel="noopener">Log in</a>
      {", then "}
      <button type="button" class="mlp-link" onClick={() => live.stream.retryNow()}>connect again</button>
    </ErrorBox>
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
      <Empty title={`No picture of job ${name} of ${user}`}>
        <p>{view.detail}</p>
        <button type="button" class="mlp-button mlp-small" onClick={() => live.stream.retryNow()}>Try again</button>
      </Empty>
    );
  }
  return (
    <div class="mlp-monitor" data-connection={view.connection}>
      {view.connection === "reconnecting" ? <p class="mlp-dim">MLP Hub cannot be reached; trying again.</p> : null}
      <Loading what={`job ${name}`} lines={5} />
    </div>
  );
}
