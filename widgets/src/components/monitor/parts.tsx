/** Parts of the job monitor: progress, why it waits, how it failed, ranks, timeline. */
import type { JSX } from "preact";
import { isExplained } from "../../core/jobs/decisions";
import { clock, cores, duration, ms, ram, ramOf, starts } from "../../core/format/format";
import { causeWords, ending, isFinal, isWaiting, rankState, stateWord } from "../../core/jobs/phase";
import { capital, numberName, numberText, reasonPage, reasonWords, unknownStart } from "../../core/format/reasons";
import { eventWord } from "../../core/format/words";
import { commandName, title as jobTitle } from "../../core/jobs/runs";
import { between, endOf } from "../../core/jobs/forecast";
import { cpuUsed, ramUsed, reportedWords, usedWords } from "../../core/jobs/used";
import type { Failure, Job, JobAttempt, Event as JobEvent, Rank, Why } from "../../core/service/wire";
import { Facts } from "../basics/Facts";
import { Bar, Heading, Icon } from "../basics/basics";
import { rich } from "../basics/language";
import { Stages } from "./Stages";
import { Tail } from "../basics/Tail";
import { WhyButton, type Asks } from "./Explained";
import { n, t } from "../../core/format/language";
import { asTerminal } from "../../core/stream/logs";

export function Progress({ job, left }: { job: Job; left: number | null }): JSX.Element | null {
  if (isWaiting(job.phase) && job.progress === 0) return null;
  if (job.phase === "admitted" || (isFinal(job.phase) && job.phase !== "finished" && job.progress === 0)) return null;
  const known = job.progress > 0 || isFinal(job.phase);
  const value = job.phase === "finished" ? 100 : job.progress;
  const text = known ? `${value} %` : t("No progress reported yet");
  const end = job.phase === "running" ? endOf(job, Date.now()) : "";
  return (
    <div class="mlp-progress">
      <div
        class={`mlp-progress-track${known ? "" : " mlp-progress-open"} mlp-progress-${job.phase}`}
        role="progressbar"
        aria-label={t("Progress")}
        aria-valuemin={0}
        aria-valuemax={100}
        {...(known ? { "aria-valuenow": value } : {})}
      >
        <span class="mlp-progress-fill" style={{ width: `${known ? value : 0}%` }} />
      </div>
      <span class="mlp-progress-text">
        {text}
        {left !== null ? <span class="mlp-dim">{" · "}{t("about {span} left", { span: duration(left / 1000) })}</span> : null}
        {left === null && end ? <span class="mlp-dim">{" · "}{end}</span> : null}
      </span>
    </div>
  );
}

/** What became of the last attempt of a job that waits again, and what of its work is kept. */
function Stopped({ stopped, now }: { stopped: NonNullable<Why["stopped"]>; now: number }): JSX.Element {
  return (
    <p class="mlp-stopped">
      <b title={eventWord(stopped.kind)}>{t("Its last attempt ended {time}:", { time: clock(stopped.time, now) })}</b>{" "}
      {t("{what}. {kept}.", { what: stopped.message, kept: capital(stopped.kept) })}
    </p>
  );
}

/** "14:20, in 25 min"; where it is soon "in 26 s" says it all. */
const expectedStart = (start: number, now: number): string => {
  const when = starts(start, now);
  return start > now && when === clock(start, now) ? t("{time}, in {span}", { time: when, span: duration((start - now) / 1000) }) : when;
};

/** A reason in words; it leads to its row in the documentation. */
function ReasonName({ reason }: { reason: string }): JSX.Element {
  const href = reasonPage(reason);
  const words = t("{reason}:", { reason: capital(reasonWords(reason)) });
  return (
    <b title={reason}>
      {href ? (
        <a class="mlp-link" href={href} target="_blank" rel="noopener">
          {words}
        </a>
      ) : (
        words
      )}
    </b>
  );
}

export function WhyBox({ job, why, now }: { job: Job; why: Why | null; now: number }): JSX.Element | null {
  if (!isWaiting(job.phase)) return null;
  const position = why?.position ?? job.position;
  const start = ms(why?.expected_start ?? job.expected_start);
  const told = why?.forecast ?? job.forecast ?? null;
  const range = job.phase === "suspended" ? "" : between(told?.start, now);
  const end = job.phase === "suspended" ? "" : between(told?.end, now);
  const reasons = why?.reasons ?? [];
  const title = job.phase === "suspended" ? t("Suspended") : t("Why it waits");
  return (
    <section role="group" class="mlp-note mlp-note-wait mlp-why" aria-label={t("Why it waits")}>
      <Icon name="wait" />
      <div class="mlp-note-text">
        <p class="mlp-why-head">
          <b>{title}</b>
          {position !== null ? (
            <span>{why?.queue_length ? t("Position {n} of {all}", { n: position, all: why.queue_length }) : t("Position {n}", { n: position })}</span>
          ) : null}
          {told && range ? (
            <span title={told.because}>
              {end
                ? t("Expected start {time}, end {end} ({because})", { time: range, end, because: told.because })
                : t("Expected start {time} ({because})", { time: range, because: told.because })}
            </span>
          ) : null}
          {start !== null && range ? (
            <span class="mlp-dim" title={why?.expected_because}>{t("by time limits {time} at the latest", { time: expectedStart(start, now) })}</span>
          ) : null}
          {start !== null && !range ? (
            <span>
              {why?.expected_because
                ? t("Expected start {time} ({because})", { time: expectedStart(start, now), because: why.expected_because })
                : t("Expected start {time}", { time: expectedStart(start, now) })}
            </span>
          ) : null}
          {start !== null && !range && why?.sure_because ? (
            <span class={`mlp-sure mlp-sure-${why.how_sure}`} title={why.sure_because}>
              {rich(why.how_sure === "sure" ? t("Sure{because}") : t("Likely{because}"), { because: <span class="mlp-dim">{t(": {because}", { because: why.sure_because })}</span> })}
            </span>
          ) : null}
        </p>
        {why?.stopped ? <Stopped stopped={why.stopped} now={now} /> : null}
        {start === null && !range && why?.expected_because && job.phase !== "suspended" ? <p>{unknownStart(why.expected_because)}</p> : null}
        {reasons.length === 0 && job.message ? <p>{job.message}</p> : null}
        {reasons.map((reason, i) => (
          <div key={i} class="mlp-reason">
            <p>
              <ReasonName reason={reason.reason} />{" "}
              {reason.message}
            </p>
            {reason.facts?.length ? (
              <Facts facts={reason.facts} />
            ) : Object.keys(reason.numbers).length ? (
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
            {rich(t("Could start now with {options}. To do that: {cancel}, then {resubmit}"), {
              options: why.would_start_now.map((option, i) => (
                <span key={option}>
                  {i ? t(", or ") : ""}
                  <code>{option}</code>
                </span>
              )),
              cancel: <code>{`%mlp cancel ${commandName(job)}`}</code>,
              resubmit: <code>{`%mlp resubmit ${commandName(job)} ${why.would_start_now[0]}`}</code>,
            })}
            {why.stopped?.checkpoint_at ? t(". That is a new job. It starts from the beginning and does not use the checkpoint of {job}.", { job: jobTitle(job) }) : null}
          </p>
        ) : null}
        {why?.cut_short ? <p class="mlp-dim">{t("{text}.", { text: capital(why.cut_short) })}</p> : null}
      </div>
    </section>
  );
}

export function FailureBox({ job, onRank }: { job: Job; onRank: (rank: number) => void }): JSX.Element | null {
  const failure: Failure | null = job.failure;
  if (!failure || job.phase === "finished") return null;
  const how = ending(failure);
  return (
    <section role="group" class="mlp-note mlp-note-bad mlp-failure" aria-label={t("Cause of the failure")}>
      <Icon name="bad" />
      <div class="mlp-note-text">
        <p>
          <b>{causeWords(failure.cause)}</b>
          {failure.rank !== null ? (
            <>
              {" · "}
              {rich(t("first failed: {rank}"), {
                rank: <button type="button" class="mlp-link" onClick={() => onRank(failure.rank as number)}>{t("rank {rank}", { rank: failure.rank })}</button>,
              })}
            </>
          ) : null}
          {how ? ` · ${how}` : ""}
        </p>
        {failure.message ? <p>{failure.message}</p> : null}
        {failure.remedy ? <p class="mlp-remedy"><b>{t("{text}.", { text: capital(failure.remedy) })}</b></p> : null}
        {failure.tail ? <Tail text={asTerminal(failure.tail)} label={t("Last lines of its error output")} /> : null}
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
  const used = usedWords(job);
  const reported = reportedWords(job);
  return (
    <section role="group" class="mlp-section mlp-ranks" aria-label={t("Ranks")}>
      <div class="mlp-section-head">
        <Heading>{t("Ranks")}</Heading>
        <span class="mlp-dim">{failed ? n("1 rank, {failed} failed", "{n} ranks, {failed} failed", ranks.length, { failed }) : n("1 rank", "{n} ranks", ranks.length)}</span>
      </div>
      {ranks.length > ROWS_MAX ? <Cells job={job} selected={selected} pick={pick} /> : <Rows job={job} selected={selected} pick={pick} />}
      {used ? <p class="mlp-dim mlp-foot mlp-used">{t("{text}.", { text: used })}</p> : null}
      {reported ? <p class="mlp-dim mlp-foot">{reported}</p> : null}
    </section>
  );
}

function Rows({ job, selected, pick }: { job: Job; selected: number | null; pick: (rank: number) => void }): JSX.Element {
  // the heads say it once where it holds for all rows: a word in each cell makes the table too wide for a notebook
  const ended = job.ranks.every((r) => (r.cpu ?? null) === null && (r.ram ?? null) === null && (r.cpu_mean ?? r.ram_peak ?? null) !== null);
  return (
    <div class="mlp-table-box">
      <table class="mlp-table mlp-rank-table">
        <caption class="mlp-hidden">{t("Ranks of the job; a rank's button shows only its log lines")}</caption>
        <thead>
          <tr>
            <th scope="col">{t("Rank")}</th>
            <th scope="col">{t("State")}</th>
            <th scope="col" class="mlp-col-grow">{t("Node")}</th>
            <th scope="col" class="mlp-col-num">{ended ? t("Mean CPU") : t("CPU")}</th>
            <th scope="col" class="mlp-col-num">{ended ? t("Peak memory") : t("Memory")}</th>
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
              <td class="mlp-rank-state">
                <span class={`mlp-dot mlp-tone-${rankTone(r)}`} />
                {rankState(job, r)}
              </td>
              <td class="mlp-col-grow">{r.node}</td>
              <td class="mlp-col-num">
                <Cpu rank={r} of={job.cpu} said={ended} />
              </td>
              <td class="mlp-col-num">
                <Memory rank={r} of={job.ram} said={ended} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Of a rank that runs what it uses now, of one that has ended its mean, which the column's head may have said. */
function Cpu({ rank, of, said }: { rank: Rank; of: number; said: boolean }): JSX.Element {
  const now = rank.cpu ?? null;
  const value = now ?? rank.cpu_mean ?? null;
  if (value === null) return <>–</>;
  return <Use text={now === null && !said ? t("mean {used}", { used: `${cores(value)} / ${cores(of)}` }) : `${cores(value)} / ${cores(of)}`} title={cpuUsed(rank)} value={value} of={of} calm />;
}

/** Of a rank that runs what it holds now, of one that has ended the most. */
function Memory({ rank, of, said }: { rank: Rank; of: number; said: boolean }): JSX.Element {
  const now = rank.ram ?? null;
  const value = now ?? rank.ram_peak ?? null;
  if (value === null) return <>–</>;
  return <Use text={now === null && !said ? t("peak {used}", { used: ramOf(value, of) }) : ramOf(value, of)} title={ramUsed(rank)} value={value} of={of} />;
}

function Use({ text, title, value, of, calm = false }: { text: string; title: string; value: number; of: number; calm?: boolean }): JSX.Element {
  return (
    <span class="mlp-use" title={title || undefined}>
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
          const said = { rank: r.rank, state: stateWord(r.state), node: r.node };
          const label = r.node ? t("Rank {rank}: {state} on {node}", said) : t("Rank {rank}: {state}", said);
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
          ? t("Rank {rank}: {state}, node {node}, cpu {cpu}, memory {memory}", {
              rank: chosen.rank, state: rankState(job, chosen), node: chosen.node || "–",
              cpu: chosen.cpu === null ? cpuUsed(chosen) || "–" : cores(chosen.cpu), memory: chosen.ram === null ? ramUsed(chosen) || "–" : ram(chosen.ram),
            })
          : t("Choose a rank to see it and its log lines")}
      </p>
    </>
  );
}

export function Timeline({ events, attempts, now, open, asks }: {
  events: JobEvent[];
  attempts: JobAttempt[];
  now: number;
  open: boolean;
  /** Who can be asked why; null in a saved picture. */
  asks: Asks | null;
}): JSX.Element | null {
  if (!events.length) return null;
  return (
    <details class="mlp-section mlp-timeline" open={open}>
      <summary>
        <Heading>{t("Timeline")}</Heading>
        <span class="mlp-dim">{n("1 event", "{n} events", events.length)}</span>
      </summary>
      <Stages attempts={attempts} now={now} />
      <ol>
        {events.map((event) => (
          <li key={event.seq}>
            <time dateTime={event.time}>{clock(event.time, now, true)}</time>
            <span class="mlp-event-kind">{eventWord(event.kind)}</span>
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
