/** The last lines of all ranks or of one; only the rows in view are in the page, whatever a program prints. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { JobStore } from "../../core/stream/jobstore";
import { bytes } from "../../core/format/format";
import type { Line, Missing } from "../../core/stream/logs";
import { tracebackLines } from "../../core/stream/tracebacks";
import type { Job } from "../../core/service/wire";
import { withMarks } from "../../core/charts/attempts";
import { commandName } from "../../core/jobs/runs";
import { Earlier, Heading } from "../basics/basics";
import { rich } from "../basics/language";
import { n, t } from "../../core/format/language";

const ROW = 18;
const SPARE = 8;

function useLines(store: JobStore, paused: boolean): { lines: Line[]; version: number } {
  const [version, setVersion] = useState(0);
  const held = useRef<Line[]>([]);
  useEffect(() => {
    setVersion(store.logs.version); // lines may have come between the first drawing and now
    return store.subscribe((changes) => {
      if (changes.has("logs")) setVersion(store.logs.version);
    });
  }, [store]);
  const was = useRef(paused);
  if (!paused) held.current = store.logs.lines;
  else if (!was.current) held.current = [...held.current]; // the store goes on adding to its own
  was.current = paused;
  return { lines: held.current, version };
}

function notKept({ rank, bytes: size, lines }: Missing): string {
  const args = { rank, size: bytes(size) };
  if (lines === null) return t("{size} of the log of rank {rank} are missing: a log keeps its first 4 MiB and its last 12 MiB.", args);
  return n(
    "1 line ({size}) of the log of rank {rank} is missing: a log keeps its first 4 MiB and its last 12 MiB.",
    "{n} lines ({size}) of the log of rank {rank} are missing: a log keeps its first 4 MiB and its last 12 MiB.", lines, args,
  );
}

function silence(rank: number | null, settled: boolean): string {
  if (rank === null) return settled ? t("Nothing was printed") : t("Nothing was printed yet");
  return settled ? t("Nothing was printed by rank {rank}", { rank }) : t("Nothing was printed by rank {rank} yet", { rank });
}

export function LogTail({ job, store, rank, onRank, settled, known, ends, earlier }: {
  job: Job;
  store: JobStore;
  rank: number | null;
  onRank: (rank: number | null) => void;
  /** No more lines will come: the box may be as small as what it holds. */
  settled: boolean;
  /** All that was written until now has come: an empty log is one. */
  known: boolean;
  /** When earlier attempts ended, in milliseconds. */
  ends: number[];
  /** The job waits: all that is here is of earlier attempts. */
  earlier: boolean;
}): JSX.Element {
  const [follow, setFollow] = useState(true);
  const [errOnly, setErrOnly] = useState(false);
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(220);
  // once so, always so: what stands below does not move while one scrolls
  const [wide, setWide] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const { lines, version } = useLines(store, !follow);
  const ranks = [...store.logs.ranks].sort((a, b) => a - b);
  const shown = useMemo(
    () => withMarks(rank === null && !errOnly ? lines : lines.filter((l) => (rank === null || l.rank === rank) && (!errOnly || l.err)), ends),
    [lines, lines.length, version, rank, errOnly, ends],
  );
  const errors = useMemo(() => tracebackLines(lines), [lines, lines.length, version]);
  useEffect(() => {
    const el = box.current;
    if (!el) return undefined;
    const observer = new ResizeObserver(() => setHeight(el.clientHeight));
    observer.observe(el);
    return () => observer.disconnect();
  }, []);
  // before the browser paints: a box that is scrolled between two paintings may stay blank until it is touched
  useLayoutEffect(() => {
    const el = box.current;
    if (el && follow) el.scrollTop = el.scrollHeight;
    if (el && el.scrollWidth > el.clientWidth) setWide(true);
  }, [shown, shown.length, follow, version, height]); // the array of all lines is one and the same while it grows
  const scrolled = (): void => {
    const el = box.current;
    if (!el) return;
    setTop(el.scrollTop);
    const atEnd = el.scrollTop + el.clientHeight >= el.scrollHeight - ROW;
    if (!atEnd && follow && el.scrollTop < top - 1) setFollow(false);
  };
  const total = shown.length * ROW;
  const start = follow ? Math.max(0, total - height) : top;
  const first = Math.max(0, Math.floor(start / ROW) - SPARE);
  const last = Math.min(shown.length, Math.ceil((start + height) / ROW) + SPARE);
  const several = ranks.length > 1;
  return (
    <section role="group" class="mlp-section mlp-logs" aria-label={t("Log")}>
      <div class="mlp-section-head">
        <Heading>{t("Log")}</Heading>
        <div class="mlp-tools">
          <label class="mlp-inline">
            <span class="mlp-hidden">{t("Lines of")}</span>
            <select class="mlp-select mlp-small" value={rank === null ? "" : String(rank)} onChange={(e) => onRank(e.currentTarget.value === "" ? null : Number(e.currentTarget.value))}>
              <option value="">{t("All ranks")}</option>
              {(rank !== null && !ranks.includes(rank) ? [...ranks, rank] : ranks).map((r) => (
                <option key={r} value={String(r)}>{t("Rank {rank}", { rank: r })}</option>
              ))}
            </select>
          </label>
          <button type="button" class="mlp-toggle" aria-pressed={errOnly} onClick={() => setErrOnly(!errOnly)}>
            {t("stderr only")}
          </button>
          {settled ? null : (
            <button type="button" class="mlp-toggle" aria-pressed={follow} onClick={() => setFollow(!follow)}>
              {follow ? t("Following") : t("Follow")}
            </button>
          )}
        </div>
      </div>
      {earlier ? <Earlier attempts={ends.length} /> : null}
      <div ref={box} class={settled ? "mlp-log mlp-log-settled" : "mlp-log"} role="log" aria-live="off" aria-label={t("Log lines")} tabIndex={0} onScroll={scrolled}>
        {shown.length === 0 ? (
          <p class="mlp-log-none">{!known ? t("Loading") : errOnly ? t("Nothing on stderr") : silence(rank, settled)}</p>
        ) : (
          // rows keep their place by padding alone: a moved layer of its own is at times not painted by Chromium
          <div class="mlp-log-all" style={{ height: `${total}px`, paddingTop: `${first * ROW}px` }}>
            {shown.slice(first, last).map((line) => "attempt" in line ? (
              <div key={line.key} class="mlp-line mlp-line-attempt">{t("Attempt {n}", { n: line.attempt })}</div>
            ) : (
              <div key={line.id} class={errors.has(line.id) ? "mlp-line mlp-line-err" : "mlp-line"} title={line.err ? `${line.time} stderr` : line.time}>
                {several ? <span class="mlp-line-rank">{line.rank}</span> : null}
                <span class="mlp-line-mark" role={errors.has(line.id) ? "img" : undefined} aria-label={errors.has(line.id) ? t("traceback") : undefined}>{errors.has(line.id) ? "!" : ""}</span>
                <span class="mlp-line-text">{line.text}</span>
              </div>
            ))}
          </div>
        )}
      </div>
      {wide ? (
        <p class="mlp-dim mlp-foot">{rich(t("Long lines continue to the right: scroll there, or print them with {command}"), { command: <code>{`mlp logs ${commandName(job)}`}</code> })}</p>
      ) : null}
      {[...store.logs.missing.values()].filter((one) => rank === null || one.rank === rank).map((one) => (
        <p key={one.rank} class="mlp-dim mlp-foot">{notKept(one)}</p>
      ))}
      {store.logs.dropped > 0 ? (
        <p class="mlp-dim mlp-foot">{n("1 earlier line is not shown here; the log files contain all lines.", "{n} earlier lines are not shown here; the log files contain all lines.", store.logs.dropped)}</p>
      ) : null}
    </section>
  );
}
