/**
 * The picture of a job that a saved notebook keeps: its record, some points of each curve, the last log lines.
 * The same shape is read by mlp.picture (Python), which draws it where no JavaScript runs.
 */
import { mean } from "./decimate";
import type { LogStore } from "./logs";
import type { MetricStore } from "./series";
import type { Job, JobEvent, LogLine, Point, Why } from "./wire";

export const CURVE_POINTS = 120;
export const LOG_LINES = 40;
export const EVENTS = 40;

export interface Curve {
  x: number[];
  y: (number | null)[];
}

export interface Snapshot {
  job?: Job;
  why?: Why | null;
  events?: JobEvent[];
  curves?: Record<string, Curve>;
  log?: (LogLine & { rank: number })[];
  saved_at?: string;
}

export function take(job: Job, why: Why | null, events: JobEvent[], metrics: MetricStore, logs: LogStore, now: Date): Snapshot {
  const curves: Record<string, Curve> = {};
  for (const name of metrics.names()) {
    const tracks = [...(metrics.tracks.get(name) ?? new Map()).values()];
    const [x, y] = mean(tracks, "step", CURVE_POINTS / 2);
    curves[name] = { x, y: y ?? [] };
  }
  return {
    job,
    why,
    events: events.slice(-EVENTS),
    curves,
    log: logs.lines.slice(-LOG_LINES).map((l) => ({ rank: l.rank, time: l.time, stream: l.err ? "stderr" : "stdout", text: l.text })),
    saved_at: now.toISOString(),
  };
}

/** The points of a snapshot's curves, as rank 0 reported them; their numbers are below any real one. */
export function points(snapshot: Snapshot): Point[] {
  const out: Point[] = [];
  for (const [name, curve] of Object.entries(snapshot.curves ?? {})) {
    curve.x.forEach((step, i) => {
      const value = curve.y[i];
      if (typeof value === "number") out.push({ seq: 0, time: 0, rank: 0, step, values: { [name]: value } });
    });
  }
  return out.map((point, i) => ({ ...point, seq: i + 1 }));
}

/** A snapshot that came with a notebook is anybody's text: take only what has the right shape. */
export function readable(value: unknown): Snapshot | null {
  if (typeof value !== "object" || value === null) return null;
  const snapshot = value as Snapshot;
  const job = snapshot.job as Partial<Job> | undefined;
  if (!job || typeof job.name !== "string" || typeof job.phase !== "string" || typeof job.user !== "string") return null;
  return { ...snapshot, job: { ...job, ranks: Array.isArray(job.ranks) ? job.ranks : [] } as Job };
}
