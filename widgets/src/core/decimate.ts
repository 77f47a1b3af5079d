/**
 * From tracks to the few points that a chart of a given width can show. Pure.
 * Where there are more points than pixels, a curve keeps the lowest and the highest of each bucket.
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

/** One curve per track. */
export function perRank(tracks: Track[], mode: XMode, width: number, range: Range | null = null): Aligned {
  const parts = slices(tracks, mode, range);
  const most = parts.reduce((m, p) => Math.max(m, p.to - p.from), 0);
  return most > width * 2 || parts.length * most > width * 8 ? bucketed(parts, width) : exact(parts);
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
  const most = parts.reduce((m, p) => Math.max(m, p.to - p.from), 0);
  const { min, max } = extent(parts);
  const fine = most <= width * 2 && mode === "step";
  const xs = fine ? union(parts) : [];
  const buckets = fine ? xs.length : Math.max(1, Math.min(Math.floor(width), most));
  const size = (max - min) / buckets || 1;
  const sum = new Float64Array(buckets);
  const count = new Float64Array(buckets);
  const low = new Float64Array(buckets).fill(Number.POSITIVE_INFINITY);
  const high = new Float64Array(buckets).fill(Number.NEGATIVE_INFINITY);
  for (const p of parts) {
    let b = 0;
    for (let i = p.from; i < p.to; i += 1) {
      const x = p.xs[i] as number;
      if (fine) while ((xs[b] as number) < x) b += 1;
      else b = Math.min(buckets - 1, Math.floor((x - min) / size));
      const y = p.ys[i] as number;
      if (!Number.isFinite(y)) continue;
      sum[b] = (sum[b] as number) + y;
      count[b] = (count[b] as number) + 1;
      if (y < (low[b] as number)) low[b] = y;
      if (y > (high[b] as number)) high[b] = y;
    }
  }
  const out: Aligned = [[], [], [], []];
  for (let b = 0; b < buckets; b += 1) {
    if (!count[b] && !fine) continue;
    const some = (count[b] as number) > 0;
    out[0].push(fine ? (xs[b] as number) : b === buckets - 1 ? max : min + b * size);
    (out[1] as Cell[]).push(some ? (sum[b] as number) / (count[b] as number) : null);
    (out[2] as Cell[]).push(some ? (low[b] as number) : null);
    (out[3] as Cell[]).push(some ? (high[b] as number) : null);
  }
  return out;
}

/** For a logarithmic axis: what is not above zero has no place on it. */
export function positive(data: Aligned): Aligned {
  const [xs, ...columns] = data;
  return [xs, ...columns.map((c) => c.map((y) => (y !== null && y > 0 ? y : null)))];
}
