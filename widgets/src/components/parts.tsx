/** Parts of the job monitor: progress, why it waits, how it failed, ranks, timeline. */
import type { JSX } from "preact";
import { isExplained } from "../core/decisions";
import { clock, cores, duration, ms, plural, ram, ramOf, starts } from "../core/format";
import { causeWords, ending, isFinal, isWaiting, rankState } from "../core/phase";
import { capital, numberName, numberText, reasonWords, unknownStart } from "../core/reasons";
import type { Failure, Job, JobEvent, Rank, Why } from "../core/wire";
import { Bar, Icon } from "./basics";
import { WhyButton, type Asks } from "./Explained";

export function Progress({ job, left }: { job: Job; left: number | null }): JSX.Element | null {
  if (isWaiting(job.phase) && job.progress === 0) return null;
  if (job.phase === "admitted" || (isFinal(job.phase) && job.phase !== "finished" && job.progress === 0)) return null;
  const known = job.progress > 0 || isFinal(job.phase);
  const value = job.phase === "finished" ? 100 : job.progress;
  const text = known ? `${value} %` : "No progress reported yet";
  return (
    <div class="mlp-progress">
      <div
        class={`mlp-progress-track${known ? "" : " mlp-progress-open"} mlp-progress-${job.phase}`}
        role="progressbar"
        aria-label="Progress"
        aria-valuemin={0}
        aria-valuemax={100}
        {...(known ? { "aria-valuenow": value } : {})}
      >
        <span class="mlp-progress-fill" style={{ width: `${known ? value : 0}%` }} />
      </div>
      <span class="mlp-progress-text">
        {text}
        {left !== null ? <span class="mlp-dim"> · about {duration(left / 1000)} left</span> : null}
      </span>
    </div>
  );
}

/** What became of the last attempt of a job that waits again, and what of its work is kept. */
function Stopped({ stopped, now }: { stopped: NonNullable<Why["stopped"]>; now: number }): JSX.Element {
  return (
    <p class="mlp-stopped">
      <b title={stopped.kind}>{`Its last attempt ended ${clock(stopped.time, now)}: `}</b>
      {`${stopped.message}. ${capital(stopped.kept)}.`}
    </p>
  );
}

/** "14:20, in 25 min"; where it is soon "in 26 s" says it all. */
const expectedStart = (start: number, now: number): string => {
  const when = starts(start, now);
  return start > now && when === clock(start, now) ? `${when}, in ${duration((start - now) / 1000)}` : when;
};

export function WhyBox({ job, why, now }: { job: Job; why: Why | null; now: number }): JSX.Element | null {
  if (!isWaiting(job.phase)) return null;
  const position = why?.position ?? job.position;
  const start = ms(why?.expected_start ?? job.expected_start);
  const reasons = why?.reasons ?? [];
  const title = job.phase === "suspended" ? "Suspended" : "Why it waits";
  return (
    <section class="mlp-note mlp-note-wait mlp-why" aria-label="Why it waits">
      <Icon name="wait" />
      <div class="mlp-note-text">
        <p class="mlp-why-head">
          <b>{title}</b>
          {position !== null ? (
            <span>{`Position ${position}${why && why.queue_length ? ` of ${why.queue_length}` : ""}`}</span>
          ) : null}
          {start !== null ? (
            <span>
              Expected start {expectedStart(start, now)}
              {why?.expected_because ? ` (${why.expected_because})` : ""}
            </span>
          ) : null}
          {start !== null && why?.sure_because ? (
            <span class={`mlp-sure mlp-sure-${why.how_sure}`} title={why.sure_because}>
              {why.how_sure === "sure" ? "Sure" : "Likely"}
              <span class="mlp-dim">{`: ${why.sure_because}`}</span>
            </span>
          ) : null}
        </p>
        {why?.stopped ? <Stopped stopped={why.stopped} now={now} /> : null}
        {start === null && why?.expected_because && job.phase !== "suspended" ? <p>{unknownStart(why.expected_because)}</p> : null}
        {reasons.length === 0 && job.message ? <p>{job.message}</p> : null}
        {reasons.map((reason, i) => (
          <div key={i} class="mlp-reason">
            <p>
              <b title={reason.reason}>{`${capital(reasonWords(reason.reason))}: `}</b>
              {reason.message}
            </p>
            {Object.keys(reason.numbers).length ? (
              <dl class="mlp-numbers">
                {Object.entries(reason.numbers).map(([key, value]) => (
                  <div key={key}>
                    <dt>{numberName(key)}</dt>
                    <dd>{numberText(key, value)}</dd>
                  </div>
                ))}
              </dl>
            ) : null}
          </div>
        ))}
        {why?.would_start_now.length ? (
          <p>
            Would start now with{" "}
            {why.would_start_now.map((option, i) => (
              <span key={option}>
                {i ? ", or " : ""}
                <code>{option}</code>
              </span>
            ))}
            {". To have it so: "}
            <code>{`%mlp cancel ${job.name}`}</code>
            {", then "}
            <code>{`%mlp resubmit ${job.name} ${why.would_start_now[0]}`}</code>
            {why.stopped?.checkpoint_at
              ? `. That is a new job, which begins anew: the checkpoint of ${job.name} is not taken along.`
              : null}
          </p>
        ) : null}
        {why?.cut_short ? <p class="mlp-dim">{`${capital(why.cut_short)}.`}</p> : null}
      </div>
    </section>
  );
}

export function FailureBox({ job, onRank }: { job: Job; onRank: (rank: number) => void }): JSX.Element | null {
  const failure: Failure | null = job.failure;
  if (!failure || job.phase === "finished") return null;
  const how = ending(failure);
  return (
    <section class="mlp-note mlp-note-bad mlp-failure" aria-label="What went wrong">
      <Icon name="bad" />
      <div class="mlp-note-text">
        <p>
          <b>{causeWords(failure.cause)}</b>
          {failure.rank !== null ? (
            <>
              {" · first failed: "}
              <button type="button" class="mlp-link" onClick={() => onRank(failure.rank as number)}>{`rank ${failure.rank}`}</button>
            </>
          ) : null}
          {how ? ` · ${how}` : ""}
        </p>
        {failure.message ? <p>{failure.message}</p> : null}
        {failure.tail ? <pre class="mlp-tail" tabIndex={0} aria-label="Last lines of its error output">{failure.tail}</pre> : null}
      </div>
    </section>
  );
}

const RANK_TONE: Record<string, string> = {
  waiting: "wait", pending: "wait", starting: "busy", running: "run", finished: "good", succeeded: "good", exited: "good",
  failed: "bad", killed: "bad", lost: "bad", stopped: "idle",
};

export function rankTone(rank: Rank): string {
  if (rank.state !== "stopped" && (rank.signal !== null || (rank.exit_code !== null && rank.exit_code !== 0))) return "bad";
  return RANK_TONE[rank.state] ?? "idle";
}

/** More ranks than this are shown as small cells. */
const ROWS_MAX = 12;

export function RankGrid({ job, selected, onSelect }: {
  job: Job;
  selected: number | null;
  onSelect: (rank: number | null) => void;
}): JSX.Element {
  const { ranks } = job;
  const failed = ranks.filter((r) => rankTone(r) === "bad").length;
  const pick = (rank: number): void => onSelect(selected === rank ? null : rank);
  return (
    <section class="mlp-section mlp-ranks" aria-label="Ranks">
      <div class="mlp-section-head">
        <h3>Ranks</h3>
        <span class="mlp-dim">{plural(ranks.length, "rank")}{failed ? `, ${failed} failed` : ""}</span>
      </div>
      {ranks.length > ROWS_MAX ? <Cells job={job} selected={selected} pick={pick} /> : <Rows job={job} selected={selected} pick={pick} />}
    </section>
  );
}

function Rows({ job, selected, pick }: { job: Job; selected: number | null; pick: (rank: number) => void }): JSX.Element {
  return (
    <div class="mlp-table-box">
      <table class="mlp-table mlp-rank-table">
        <caption class="mlp-hidden">Ranks of the job; a rank's button shows its log lines only</caption>
        <thead>
          <tr>
            <th scope="col">Rank</th>
            <th scope="col">State</th>
            <th scope="col" class="mlp-col-grow">Node</th>
            <th scope="col" class="mlp-col-num">CPU</th>
            <th scope="col" class="mlp-col-num">Memory</th>
          </tr>
        </thead>
        <tbody>
          {job.ranks.map((r) => (
            <tr key={r.rank} class={selected === r.rank ? "mlp-selected" : ""}>
              <td>
                <button type="button" class="mlp-link" aria-pressed={selected === r.rank} onClick={() => pick(r.rank)}>
                  {r.rank}
                </button>
                {r.role && r.role !== "worker" ? <span class="mlp-dim"> {r.role}</span> : null}
              </td>
              <td>
                <span class={`mlp-dot mlp-tone-${rankTone(r)}`} />
                {rankState(job, r)}
              </td>
              <td class="mlp-col-grow">{r.node}</td>
              <td class="mlp-col-num">
                {r.cpu === null ? "–" : <Use text={`${cores(r.cpu)} / ${cores(job.cpu)}`} value={r.cpu} of={job.cpu} calm />}
              </td>
              <td class="mlp-col-num">
                {r.ram === null ? "–" : <Use text={ramOf(r.ram, job.ram)} value={r.ram} of={job.ram} />}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Use({ text, value, of, calm = false }: { text: string; value: number; of: number; calm?: boolean }): JSX.Element {
  return (
    <span class="mlp-use">
      {text}
      <Bar value={Math.min(value, of)} of={of} calm={calm} />
    </span>
  );
}

function Cells({ job, selected, pick }: { job: Job; selected: number | null; pick: (rank: number) => void }): JSX.Element {
  const { ranks } = job;
  const chosen = ranks.find((r) => r.rank === selected);
  return (
    <>
      <div class="mlp-cells">
        {ranks.map((r) => {
          const label = `Rank ${r.rank}: ${r.state}${r.node ? ` on ${r.node}` : ""}`;
          return (
            <button
              key={r.rank}
              type="button"
              class={`mlp-cell mlp-tone-${rankTone(r)}`}
              aria-pressed={selected === r.rank}
              aria-label={label}
              title={label}
              onClick={() => pick(r.rank)}
            >
              {r.rank}
            </button>
          );
        })}
      </div>
      <p class="mlp-dim mlp-foot">
        {chosen
          ? `Rank ${chosen.rank}: ${rankState(job, chosen)}, node ${chosen.node || "–"}, cpu ${chosen.cpu === null ? "–" : cores(chosen.cpu)}, memory ${chosen.ram === null ? "–" : ram(chosen.ram)}`
          : "Choose a rank to see it and its log lines"}
      </p>
    </>
  );
}

export function Timeline({ events, now, open, asks }: {
  events: JobEvent[];
  now: number;
  open: boolean;
  /** Who can be asked why; null in a saved picture. */
  asks: Asks | null;
}): JSX.Element | null {
  if (!events.length) return null;
  return (
    <details class="mlp-section mlp-timeline" open={open}>
      <summary>
        <h3>Timeline</h3>
        <span class="mlp-dim">{plural(events.length, "event")}</span>
      </summary>
      <ol>
        {events.map((event) => (
          <li key={event.seq}>
            <time dateTime={event.time}>{clock(event.time, now, true)}</time>
            <span class="mlp-event-kind">{event.kind}</span>
            <span class="mlp-event-text">
              {event.message}
              {asks && isExplained(event) ? <WhyButton event={event} timeline={events} asks={asks} /> : null}
            </span>
          </li>
        ))}
      </ol>
    </details>
  );
}
