/** Attempts of a job, from its timeline: where in its log and its curves another one began. Pure. */
import { lower } from "./decimate";
import { ms } from "../format/format";
import type { Track, XMode } from "./series";
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
