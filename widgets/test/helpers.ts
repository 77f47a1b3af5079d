/** Builders for tests. */
import type { Job, Point, QueueEntry } from "../src/core/service/wire";

export function job(change: Partial<Job> = {}): Job {
  return {
    name: "digits", run: 1, user: "ann", tenant: "red", runtime: "mpi", entry: "train.py", code: null, args: [], env: {},
    workers: 2, ps: 0, cpu: 1, gpu: 0, gpu_kind: null, ram: 512, amounts: {}, priority: "normal", time_limit: null, retries: 0,
    checkpoint_every: null, topology: null, tensorboard: "on", data: [], params: {}, sweep: null, trial: null, uid: "u1", state: "running", phase: "running", reason: null, message: "",
    progress: 0, restarts: 0, position: null, expected_start: null, forecast: null, ranks: [], failure: null, detail: {},
    submitted_at: "2026-01-01T10:00:00Z", queued_at: null, admitted_at: null, started_at: null, finished_at: null,
    waiting_since: null, waited_s: 0, ran_s: 0, progress_from: 0, progress_since: null, put_first: false, source: null, workdir: null, env_name: null, env_lock: null, memory: null, idle: null, note: "", version: 1, ...change,
  };
}

export function point(seq: number, values: Record<string, number | null>, change: Partial<Point> = {}): Point {
  return { seq, time: 1000 + seq, rank: 0, step: null, values, ...change };
}

export function entry(name: string, change: Partial<QueueEntry> = {}): QueueEntry {
  return {
    kind: "job", user: "bob", name, run: 1, tenant: "red", phase: "queued", priority: "normal", position: null, reason: null, message: "", detail: {},
    cpu: 2, gpu: 0, ram: 1024, amounts: {}, submitted_at: "2026-01-01T10:00:00Z", waiting_since: "2026-01-01T10:00:00Z",
    waited_s: 0, ran_s: 0, started_at: null, expected_start: null, expected_because: "", forecast: null, put_first: false, facts: [], replica: null, ...change,
  };
}
