/**
 * Metric points in typed arrays, one track per metric and rank, bounded: a full track keeps of every four of its
 * older points the lowest and the highest, so extremes stay visible however long the job runs.
 */
import type { Point } from "../service/wire";

/** What the x axis shows. */
export type XMode = "step" | "time";

const START = 256;
/** Most points of one track, and of all tracks together. */
export const TRACK_MAX = 65_536;
export const TOTAL_MAX = 1_500_000;
const AXES = new Set(["step", "epoch", "progress"]);

export class Track {
  n = 0;
  /** Reports ever seen, also those that were merged away. */
  seen = 0;
  /** False once a step went backwards: then the number of the report is the x value. */
  ascends = true;
  last: number | null = null;
  step = new Float64Array(START);
  index = new Float64Array(START);
  time = new Float64Array(START);
  value = new Float64Array(START);

  push(step: number | null, time: number, value: number, max: number): void {
    if (this.n >= max) this.compact();
    else if (this.n >= this.value.length) this.grow();
    const i = this.n;
    const x = step ?? this.seen;
    if (i > 0 && x < (this.step[i - 1] as number)) this.ascends = false;
    this.step[i] = x;
    this.index[i] = this.seen;
    // clocks of ranks may step back a little; a curve must not
    this.time[i] = i > 0 ? Math.max(time, this.time[i - 1] as number) : time;
    this.value[i] = value;
    this.last = value;
    this.n += 1;
    this.seen += 1;
  }

  x(mode: XMode, byIndex: boolean): Float64Array {
    if (mode === "time") return this.time;
    return byIndex ? this.index : this.step;
  }

  private grow(): void {
    const bigger = (old: Float64Array): Float64Array<ArrayBuffer> => {
      const next = new Float64Array(old.length * 2);
      next.set(old);
      return next;
    };
    this.step = bigger(this.step);
    this.index = bigger(this.index);
    this.time = bigger(this.time);
    this.value = bigger(this.value);
  }

  /** Thin the older half: the very first stays, of each four after it the lowest and the highest, in their order. */
  private compact(): void {
    const half = ((this.n >> 3) << 2) + 1;
    let to = 1;
    const move = (from: number): void => {
      this.step[to] = this.step[from] as number;
      this.index[to] = this.index[from] as number;
      this.time[to] = this.time[from] as number;
      this.value[to] = this.value[from] as number;
      to += 1;
    };
    for (let i = 1; i < half; i += 4) {
      let low = i;
      let high = i;
      for (let k = i + 1; k < i + 4; k += 1) {
        if ((this.value[k] as number) < (this.value[low] as number)) low = k;
        if ((this.value[k] as number) >= (this.value[high] as number)) high = k;
      }
      if (low === high) high = low === i ? i + 3 : i;
      move(Math.min(low, high));
      move(Math.max(low, high));
    }
    for (let i = half; i < this.n; i += 1) move(i);
    this.n = to;
  }
}

/** All tracks of a job. */
export class MetricStore {
  readonly tracks = new Map<string, Map<number, Track>>();
  /** Changes with every point; cheap to compare. */
  version = 0;
  /** Changes when a metric or a rank appears. */
  shape = 0;
  lastSeq = 0;
  /** Report time of the newest point, in seconds since the epoch. */
  lastTime = 0;
  points = 0;
  private count = 0;

  names(): string[] {
    const known = ["loss", "accuracy"];
    const rank = (name: string): number => {
      const at = known.findIndex((k) => name === k || name.endsWith(`_${k}`));
      return at < 0 ? known.length : at;
    };
    return [...this.tracks.keys()].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  }

  /** Add points; those already seen (a replay) are skipped. */
  add(points: Point[]): number {
    let added = 0;
    const max = Math.max(1024, Math.min(TRACK_MAX, Math.floor(TOTAL_MAX / Math.max(1, this.count))));
    for (const point of points) {
      if (point.seq <= this.lastSeq) continue;
      this.lastSeq = point.seq;
      this.lastTime = point.time;
      const epoch = point.values["epoch"];
      const step = point.step ?? point.values["step"] ?? (typeof epoch === "number" ? epoch : null);
      for (const name in point.values) {
        if (AXES.has(name)) continue;
        const value = point.values[name];
        this.track(name, point.rank).push(
          typeof step === "number" ? step : null,
          point.time,
          typeof value === "number" ? value : Number.NaN,
          max,
        );
      }
      added += 1;
    }
    if (added) this.version += 1;
    this.points += added;
    return added;
  }

  private track(name: string, rank: number): Track {
    let ranks = this.tracks.get(name);
    if (!ranks) {
      ranks = new Map();
      this.tracks.set(name, ranks);
      this.shape += 1;
    }
    let track = ranks.get(rank);
    if (!track) {
      track = new Track();
      ranks.set(rank, track);
      this.count += 1;
      this.shape += 1;
    }
    return track;
  }
}
