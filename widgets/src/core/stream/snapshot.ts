/**
 * The picture of a job that a saved notebook keeps: its record, some points of each curve, the last log lines.
 * The kernel makes it (`History.snapshot` of mlp.rendering.history); mlp.rendering.job_picture draws it where no JavaScript runs.
 */
import type { Missing } from "./logs";
import type { JobAttempt, Job, Event as JobEvent, LogLine, Point, Why } from "../service/wire";

export interface Curve {
  x: number[];
  y: (number | null)[];
}

export interface Snapshot {
  job?: Job;
  why?: Why | null;
  events?: JobEvent[];
  attempts?: JobAttempt[];
  curves?: Record<string, Curve>;
  log?: (LogLine & { rank: number })[];
  missing?: Missing[];
  saved_at?: string;
}

/** What is missing of ranks' logs, as far as it has the right shape. */
export function missing(snapshot: Snapshot): Missing[] {
  const found: unknown[] = Array.isArray(snapshot.missing) ? snapshot.missing : [];
  return found.flatMap((one) => {
    const { rank, bytes, lines } = (one ?? {}) as Partial<Missing>;
    return typeof rank === "number" && typeof bytes === "number" ? [{ rank, bytes, lines: typeof lines === "number" ? lines : null }] : [];
  });
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
