/**
 * From tracks to the few points that a chart of a given width can show. Pure.
 * Where there are more points than pixels, a curve keeps its first, its last, and the lowest and the highest of each
 * bucket, at the steps where they were reported. A mean is that of one step, over time at the moment when the last rank
 * reported it. Over time the curves of several ranks have no points in common: there they share the buckets' own times.
 */
import type { Track, XMode } from "./series";

export type Cell = number | null;
/** x values, then one column per curve; null where a curve has no point. */
export type Aligned = [number[], ...Cell[][]];
export interface Range {
  min: number;
  max: number;
}

/** First index whose x is at least `x`. */
export function lower(xs: Float64Array, n: number, x: number): number {
  let lo = 0;
  let hi = n;
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if ((xs[mid] as number) < x) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

interface Slice {
  xs: Float64Array;
  /** When each point was reported, where `xs` does not say it. */
  at?: Float64Array;
  ys: Float64Array;
  from: number;
  to: number;
}

function slices(tracks: Track[], mode: XMode, range: Range | null): Slice[] {
  const byIndex = tracks.some((t) => !t.ascends);
  return tracks.map((t) => {
    const xs = t.x(mode, byIndex);
    if (!range) return { xs, ys: t.value, from: 0, to: t.n };
    // one point more on each side, so that the line runs to the edge
    const from = Math.max(0, lower(xs, t.n, range.min) - 1);
    const to = Math.min(t.n, lower(xs, t.n, range.max) + 1);
    return { xs, ys: t.value, from, to };
  });
}

function extent(parts: Slice[]): Range {
  let min = Number.POSITIVE_INFINITY;
  let max = Number.NEGATIVE_INFINITY;
  for (const p of parts) {
    if (p.to <= p.from) continue;
    min = Math.min(min, p.xs[p.from] as number);
    max = Math.max(max, p.xs[p.to - 1] as number);
  }
  return { min, max };
}

/** The x values of all that tracks have. */
export const whole = (tracks: Track[], mode: XMode): Range => extent(slices(tracks, mode, null));

/** So much of what is shown, within all that there is; the point that is read keeps its place. null: all is shown. */
export function nearer(shown: Range, all: Range, read: number, factor: number): Range | null {
  const before = shown.max - shown.min;
  const span = before * factor;
  if (!(span > 0) || span >= all.max - all.min) return null;
  const min = Math.max(all.min, Math.min(all.max - span, read - (span * (read - shown.min)) / before));
  return { min, max: min + span };
}

/** One curve per track. */
export function perRank(tracks: Track[], mode: XMode, width: number, range: Range | null = null): Aligned {
  const parts = slices(tracks, mode, range);
  const most = parts.reduce((m, p) => Math.max(m, p.to - p.from), 0);
  if (most <= width * 2 && parts.length * most <= width * 8) return exact(parts);
  if (mode === "time" && parts.length > 1) return bucketed(parts, width);
  const steps = merged(parts);
  const xs = spread(steps.x, steps.low, steps.high, width).map((i) => steps.x[i] as number);
  return [xs, ...parts.map((p) => at(p, xs))];
}

/** What the tracks say at each x that one of them has, and when the last of them did. */
interface Steps {
  x: number[];
  time: number[];
  mean: number[];
  low: number[];
  high: number[];
}

function merged(parts: Slice[]): Steps {
  const out: Steps = { x: [], time: [], mean: [], low: [], high: [] };
  const next = parts.map((p) => p.from);
  for (;;) {
    let x = Number.POSITIVE_INFINITY;
    parts.forEach((p, k) => {
      if ((next[k] as number) < p.to) x = Math.min(x, p.xs[next[k] as number] as number);
    });
    if (x === Number.POSITIVE_INFINITY) return out;
    let sum = 0;
    let count = 0;
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    let time = out.time.at(-1) ?? Number.NEGATIVE_INFINITY; // it never goes back
    parts.forEach((p, k) => {
      let i = next[k] as number;
      // of several reports of one step the last one counts
      while (i + 1 < p.to && p.xs[i] === x && p.xs[i + 1] === x) i += 1;
      if (i >= p.to || p.xs[i] !== x) return;
      next[k] = i + 1;
      time = Math.max(time, p.at?.[i] ?? time);
      const y = p.ys[i] as number;
      if (!Number.isFinite(y)) return;
      sum += y;
      count += 1;
      low = Math.min(low, y);
      high = Math.max(high, y);
    });
    out.x.push(x);
    out.time.push(time);
    out.mean.push(count ? sum / count : Number.NaN);
    out.low.push(count ? low : Number.NaN);
    out.high.push(count ? high : Number.NaN);
  }
}

/** Which of these to show, in their order: the first, the last, and where `low` is lowest and `high` highest in each bucket. */
function spread(xs: number[], low: number[], high: number[], width: number): number[] {
  const n = xs.length;
  if (n <= width) return xs.map((_, i) => i);
  const buckets = Math.max(1, Math.floor(width / 2));
  const min = xs[0] as number;
  const size = ((xs[n - 1] as number) - min) / buckets || 1;
  const found = new Set<number>([0]);
  let i = 0;
  for (let b = 0; b < buckets; b += 1) {
    const end = b === buckets - 1 ? Number.POSITIVE_INFINITY : min + (b + 1) * size;
    let lowest = -1;
    let highest = -1;
    for (; i < n && (xs[i] as number) < end; i += 1) {
      if (!Number.isFinite(low[i] as number)) continue;
      if (lowest < 0 || (low[i] as number) < (low[lowest] as number)) lowest = i;
      if (highest < 0 || (high[i] as number) >= (high[highest] as number)) highest = i;
    }
    if (lowest < 0) continue;
    found.add(Math.min(lowest, highest)).add(Math.max(lowest, highest));
  }
  return [...found.add(n - 1)];
}

/** A track's values at these x, null where it has none. */
function at(p: Slice, xs: number[]): Cell[] {
  let i = p.from;
  return xs.map((x) => {
    while (i < p.to && (p.xs[i] as number) < x) i += 1;
    while (i + 1 < p.to && p.xs[i + 1] === x) i += 1;
    const y = i < p.to && p.xs[i] === x ? (p.ys[i] as number) : Number.NaN;
    return Number.isFinite(y) ? y : null;
  });
}

function exact(parts: Slice[]): Aligned {
  const xs = union(parts);
  const at = new Map<number, number>();
  xs.forEach((x, i) => at.set(x, i));
  const columns = parts.map((p) => {
    const column: Cell[] = new Array<Cell>(xs.length).fill(null);
    for (let i = p.from; i < p.to; i += 1) {
      const y = p.ys[i] as number;
      if (Number.isFinite(y)) column[at.get(p.xs[i] as number) as number] = y;
    }
    return column;
  });
  return [xs, ...columns];
}

function union(parts: Slice[]): number[] {
  let total = 0;
  for (const p of parts) total += p.to - p.from;
  const all = new Float64Array(total);
  let k = 0;
  for (const p of parts) {
    all.set(p.xs.subarray(p.from, p.to), k);
    k += p.to - p.from;
  }
  if (parts.length > 1) all.sort();
  const xs: number[] = [];
  for (let i = 0; i < total; i += 1) {
    if (i === 0 || all[i] !== all[i - 1]) xs.push(all[i] as number);
  }
  return xs;
}

function bucketed(parts: Slice[], width: number): Aligned {
  const { min, max } = extent(parts);
  const buckets = Math.max(1, Math.floor(width));
  const size = (max - min) / buckets || 1;
  const xs: number[] = new Array<number>(buckets * 2);
  for (let b = 0; b < buckets; b += 1) {
    xs[2 * b] = min + b * size;
    xs[2 * b + 1] = min + (b + 0.5) * size;
  }
  xs[2 * buckets - 1] = max;
  const columns = parts.map((p) => {
    const column: Cell[] = new Array<Cell>(buckets * 2).fill(null);
    let i = p.from;
    for (let b = 0; b < buckets && i < p.to; b += 1) {
      const end = b === buckets - 1 ? Number.POSITIVE_INFINITY : min + (b + 1) * size;
      let low = -1;
      let high = -1;
      for (; i < p.to && (p.xs[i] as number) < end; i += 1) {
        const y = p.ys[i] as number;
        if (!Number.isFinite(y)) continue;
        if (low < 0 || y < (p.ys[low] as number)) low = i;
        if (high < 0 || y >= (p.ys[high] as number)) high = i;
      }
      if (low < 0) continue;
      column[2 * b] = p.ys[Math.min(low, high)] as number;
      column[2 * b + 1] = p.ys[Math.max(low, high)] as number;
    }
    return column;
  });
  return [xs, ...columns];
}

/** Columns: mean over the tracks, lowest, highest. One track alone keeps its extremes. */
export function mean(tracks: Track[], mode: XMode, width: number, range: Range | null = null): Aligned {
  if (tracks.length <= 1) {
    const one = perRank(tracks, mode, width, range);
    return [one[0], one[1] ?? []];
  }
  const parts = slices(tracks, mode, range);
  if (mode === "step") return meanOfSteps(merged(parts), width * 2);
  const byIndex = tracks.some((t) => !t.ascends);
  const steps = merged(parts.map((p, k) => ({ ...p, xs: (tracks[k] as Track).x("step", byIndex), at: p.xs })));
  return meanOfSteps({ ...steps, x: steps.time }, width * 2);
}

function meanOfSteps(steps: Steps, width: number): Aligned {
  const out: Aligned = [[], [], [], []];
  let from = 0;
  for (const i of spread(steps.x, steps.mean, steps.mean, width)) {
    // the band is as wide as what was left out before this step
    let low = Number.POSITIVE_INFINITY;
    let high = Number.NEGATIVE_INFINITY;
    for (; from <= i; from += 1) {
      if (!Number.isFinite(steps.mean[from] as number)) continue;
      low = Math.min(low, steps.low[from] as number);
      high = Math.max(high, steps.high[from] as number);
    }
    const some = Number.isFinite(steps.mean[i] as number);
    out[0].push(steps.x[i] as number);
    (out[1] as Cell[]).push(some ? (steps.mean[i] as number) : null);
    (out[2] as Cell[]).push(some ? low : null);
    (out[3] as Cell[]).push(some ? high : null);
  }
  return out;
}

/** For a logarithmic axis: what is not above zero has no place on it. */
export function positive(data: Aligned): Aligned {
  const [xs, ...columns] = data;
  return [xs, ...columns.map((c) => c.map((y) => (y !== null && y > 0 ? y : null)))];
}
