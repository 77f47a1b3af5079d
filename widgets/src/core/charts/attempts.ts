/** Attempts of a job, from its timeline: where in its log and its curves another one began. Pure. */
import { lower } from "./decimate";
import { ms } from "../format/format";
import { Track, type XMode } from "./series";
import type { Event as JobEvent } from "../service/wire";

const BEGINS = new Set(["starting", "running"]);
const ENDS = new Set(["requeued", "suspended", "resized"]);

/** When attempts ended that were not the job's last, in milliseconds; what comes later is of the next one. */
export function attemptEnds(events: JobEvent[]): number[] {
  const ends: number[] = [];
  let runs = false;
  for (const event of events) {
    if (BEGINS.has(event.kind)) runs = true;
    else if (runs && ENDS.has(event.kind)) {
      const at = ms(event.time);
      if (at !== null) ends.push(at);
      runs = false;
    }
  }
  return ends;
}

/**
 * Tracks for an axis of steps: where an attempt resumed at an earlier step, only its own reports of the repeated steps stay.
 * If steps also go back within an attempt, the tracks are returned as they are.
 */
export function latest(tracks: Track[], ends: number[]): Track[] {
  if (!ends.length || tracks.every((t) => t.ascends)) return tracks;
  // the lowest step of each attempt, by any rank
  const lowest = new Array<number>(ends.length + 1).fill(Number.POSITIVE_INFINITY);
  for (const track of tracks) {
    let [attempt, before] = [0, Number.NEGATIVE_INFINITY];
    for (let i = 0; i < track.n; i += 1) {
      const step = track.step[i] as number;
      const of = attempt;
      while (attempt < ends.length && (track.time[i] as number) * 1000 > (ends[attempt] as number)) attempt += 1;
      if (attempt === of && step < before) return tracks;
      before = step;
      lowest[attempt] = Math.min(lowest[attempt] as number, step);
    }
  }
  const bounds = lowest.map((_, attempt) => Math.min(...lowest.slice(attempt + 1), Number.POSITIVE_INFINITY));
  const kept = tracks.map((track) => {
    const made = new Track();
    let attempt = 0;
    for (let i = 0; i < track.n; i += 1) {
      while (attempt < ends.length && (track.time[i] as number) * 1000 > (ends[attempt] as number)) attempt += 1;
      const step = track.step[i] as number;
      if (step < (bounds[attempt] as number)) made.push(step, track.time[i] as number, track.value[i] as number, Number.POSITIVE_INFINITY);
    }
    made.last = track.last;
    return made;
  });
  return kept;
}

/** The x values at which the first point of a new attempt is; none for an attempt that reported nothing. */
export function breaks(tracks: Track[], mode: XMode, ends: number[]): number[] {
  const byIndex = tracks.some((t) => !t.ascends);
  const found: number[] = [];
  for (const end of ends) {
    let first = Number.POSITIVE_INFINITY;
    for (const track of tracks) {
      const i = lower(track.time, track.n, end / 1000);
      if (i > 0 && i < track.n) first = Math.min(first, track.x(mode, byIndex)[i] as number);
    }
    if (Number.isFinite(first) && first !== found.at(-1)) found.push(first);
  }
  return found;
}

/** Puts a mark before the first line of each attempt but the first; `lines` of one rank after the other have several. */
export function withMarks<T extends { time: string; rank: number }>(lines: T[], ends: number[]): (T | { attempt: number; key: string })[] {
  if (!ends.length) return lines;
  // times of lines and these have the same form, so they compare as texts
  const borders = ends.map((end) => new Date(end).toISOString().slice(0, 23));
  const out: (T | { attempt: number; key: string })[] = [];
  let before = 1;
  for (const line of lines) {
    let attempt = 1;
    for (const border of borders) if (line.time > border) attempt += 1;
    if (attempt !== before) out.push({ attempt, key: `attempt-${attempt}-${out.length}` });
    before = attempt;
    out.push(line);
  }
  return out;
}
