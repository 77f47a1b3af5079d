/** Objects of the REST contract as they cross the wire (hub/mlp_api/types.py is the original). */

export type JobState = "creating" | "running" | "finished" | "error" | "deleting";
export type Phase =
  | "queued" | "admitted" | "starting" | "running" | "suspending" | "suspended" | "preempting"
  | "resizing"
  | "finishing" | "finished" | "failed" | "cancelling" | "cancelled" | "deleting";

export interface Session {
  username: string;
  admin: boolean;
  tenants: string[];
  tenant_admin: string[];
  xsrf: string;
  version: string;
  keeping: Keeping;
}

/** How long jobs are kept that have ended; null: without a limit. */
export interface Keeping {
  job_days: number | null;
  jobs: number | null;
  job_mib: number | null;
}

/** Who did what to which object. */
export interface AuditEntry {
  id: number;
  time: string;
  actor: string;
  action: string;
  object: string;
  tenant: string | null;
  detail: Record<string, unknown>;
}

export interface User {
  username: string;
  state: "NotActive" | "Actived";
  tenants: string[];
  admin: boolean;
  default_tenant: string;
  /** Asked for an account and was never let in. */
  new: boolean;
  applied_for: string | null;
}

/** Amounts of a quota; null means: what the nodes have. cpu in cores, gpu in devices, ram in MiB, rom in bytes. */
export interface Amounts {
  cpu: number | null;
  gpu: number | null;
  ram: number | null;
  rom: number | null;
}

export interface TenantSettings extends Amounts {
  name: string;
  gpu_kinds: Record<string, number>;
  weight: number;
  cohort: string | null;
  parent: string | null;
  borrowing_limit: Record<string, number> | null;
  lending_limit: Record<string, number> | null;
  reserved: Record<string, number> | null;
  queue_order: string;
  isolation: string;
  description: string;
}

/** Amounts by dimension (cpu, gpu, gpu:KIND, ram, rom); what is left out is zero, or has no limit. */
export type ByDimension = Record<string, number>;

export interface LoweredGuarantee {
  since: string;
  share: number;
  lending_limit: ByDimension | null;
  reserved: ByDimension | null;
  message: string;
}

/** A window of time for which an amount is kept free. */
export interface Booking extends BookingAsked {
  tenant: string;
  open: boolean;
  made_by: string;
  made_at: string;
  /** It no longer fits: since when, what is kept free all the same, and why; null while all of it is held. */
  short: { since: string; left: ByDimension; message: string } | null;
  /** What else is to be known, in sentences. */
  notes: string[];
}

export interface BookingAsked {
  name: string;
  start: string;
  end: string;
  amount: ByDimension;
}

export interface Tenant extends TenantSettings {
  cpu_inuse: number;
  gpu_inuse: number;
  ram_inuse: number;
  rom_inuse: number;
  /** Held beyond its quota. */
  borrowed: ByDimension;
  /** Of its idle quota, what others hold now. */
  lent: ByDimension;
  /** What it would still lend. */
  lendable: ByDimension;
  /** What it may take now, borrowing included; left out where it has no limit. */
  free: ByDimension;
  /** What of its guarantee holds while it is lowered, because the tenant is idle for long. */
  over: ByDimension;
  lowered: LoweredGuarantee | null;
  members: number;
  running: number;
  waiting: number;
}

export type Tone = "good" | "wait" | "bad" | "idle";

/** What an update of a tenant would mean. */
export interface TenantPreview {
  tenant: string;
  over: { tenant: string; dimension: string; inuse: number; may_hold: number; above: number }[];
  could_start: { user: string; name: string; tenant: string }[];
  waiting: { user: string; name: string; since: string; reason: string; message: string }[];
  stopped: { user: string; name: string; tenant: string; for_user: string; for_name: string; for_tenant: string; shrunk: boolean; message: string }[];
  back_inside: string | null;
  back_inside_because: string;
  bookings: { tenant: string; name: string; start: string; end: string; short: Booking["short"] }[];
  notes: { tone: Tone; text: string }[];
}

export interface Member {
  tenant: string;
  user: string;
  role: string;
  source: string;
}

export interface Holding {
  holder: string;
  user: string;
  applier: string;
  cpu: number;
  gpu: number;
  ram: number;
  rom: number;
  since: string;
}

export interface Usage {
  tenant: Tenant;
  holdings: Holding[];
  history: Record<string, unknown>[];
}

export interface Rank {
  rank: number;
  role: string;
  node: string;
  state: string;
  exit_code: number | null;
  signal: number | null;
  cpu: number | null;
  ram: number | null;
}

export interface Failure {
  cause: string;
  rank: number | null;
  exit_code: number | null;
  signal: number | null;
  message: string;
  tail: string;
}

export interface Job {
  name: string;
  user: string;
  tenant: string;
  runtime: string;
  entry: string | null;
  code: string | null;
  args: string[];
  env: Record<string, string>;
  workers: number | string;
  ps: number;
  cpu: number;
  gpu: number;
  gpu_kind: string | null;
  ram: number;
  priority: string;
  time_limit: number | null;
  retries: number;
  checkpoint_every: number | null;
  topology: string | null;
  uid: string;
  state: JobState;
  phase: Phase;
  reason: string | null;
  message: string;
  progress: number;
  restarts: number;
  position: number | null;
  expected_start: string | null;
  ranks: Rank[];
  failure: Failure | null;
  submitted_at: string;
  queued_at: string | null;
  admitted_at: string | null;
  started_at: string | null;
  finished_at: string | null;
  waiting_since: string | null;
  /** Seconds of all waits, and of all attempts, that are over. */
  waited_s: number;
  ran_s: number;
  /** With what the present attempt began, and when; null before it reported anything. */
  progress_from: number;
  progress_since: string | null;
  version: number;
}

export interface Verdict {
  reason: string;
  message: string;
  numbers: Record<string, number>;
}

export interface Why {
  job: string;
  phase: string;
  reasons: Verdict[];
  position: number | null;
  queue_length: number;
  expected_start: string | null;
  expected_because: string;
  /** Absent in pictures saved before there was such a field. */
  how_sure?: "sure" | "likely" | "unknown";
  sure_because?: string;
  would_start_now: string[];
  /** What was not looked at, because too much waits; empty where all was. */
  cut_short?: string;
  /** How the last attempt of a job that waits again was stopped. */
  stopped?: { kind: string; time: string; message: string; kept: string; checkpoint_at: string | null } | null;
}

/** Why the scheduler did something with a job; names of other tenants are null for who may not know them. */
export interface Decision {
  time: string;
  kind: string;
  summary: string;
  waited_for: string | null;
  waited_reason: string | null;
  changed: string[];
  position: number | null;
  policy: string;
  share: number | null;
  nodes: { node: string; ranks: number; chosen: boolean; free_after: string; score: number[] }[];
  only: boolean;
  victims: {
    job: string | null;
    user: string | null;
    tenant: string | null;
    priority: number;
    lost_work: number;
    over_nominal: boolean;
    chosen: boolean;
    why: string;
    /** Workers that it gives up instead of all; 0 where it is stopped or left alone. */
    gives: number;
    /** What `lost_work` is counted in: gpu-seconds or core-seconds; empty in what an older hub wrote down. */
    lost_unit: string;
  }[];
  spared: string[];
}

export interface JobDecision {
  user: string;
  job: string;
  tenant: string;
  decision: Decision;
}

export interface JobEvent {
  seq: number;
  time: string;
  kind: string;
  message: string;
  reason: string | null;
}

export interface LogLine {
  time: string;
  stream: string;
  text: string;
}

export interface Point {
  seq: number;
  time: number;
  rank: number;
  step?: number | null;
  values: Record<string, number | null>;
}

export interface QueueEntry {
  user: string;
  name: string;
  tenant: string;
  phase: Phase;
  priority: string;
  position: number | null;
  reason: string | null;
  message: string;
  cpu: number;
  gpu: number;
  ram: number;
  submitted_at: string;
  waiting_since: string | null;
  waited_s: number;
  ran_s: number;
  started_at: string | null;
  expected_start: string | null;
  /** Which end makes it possible, or why no start can be told; empty where nobody has looked yet. */
  expected_because: string;
}

export interface Node {
  name: string;
  up: boolean;
  cpu: number;
  gpu: number;
  gpu_kind: string | null;
  ram: number;
  cpu_allocatable: number;
  ram_allocatable: number;
  cpu_inuse: number;
  gpu_inuse: number;
  ram_inuse: number;
  labels: Record<string, string>;
  holders: Holding[];
}

/** What became of some jobs in a run; spans in seconds. */
/** The policy in force. */
export interface Scheduling {
  policy: string;
  meaning: string;
  placement: string;
  backfill: boolean;
  preemption: boolean;
  half_life_s: number;
  min_run_s: number;
  restart_cost_s: number;
  aging_s: number;
}

export interface SimulatedWork {
  jobs: number;
  running: number;
  waits_of: number;
  waited_again_s: number;
  finished: number;
  refused: number;
  never_started: number;
  preemptions: number;
  avg_wait_s: number;
  p50_wait_s: number;
  p99_wait_s: number;
  avg_jct_s: number;
  ftf_avg: number;
  ftf_worst: number;
}

export interface SimulatedTenant extends SimulatedWork {
  cpu_h: number;
  gpu_h: number;
  share: number;
  fair_share: number;
}

/** What jobs waited for last before they started; `never` of them in vain. */
export interface SimulatedWait {
  reason: string;
  jobs: number;
  never: number;
  job: string;
  user: string;
  message: string;
}

export interface SimulatedRun extends SimulatedWork {
  makespan_s: number;
  utilization: Record<string, number>;
  lost_work_s: number;
  per_tenant: Record<string, SimulatedTenant>;
  /** Jobs by the reason for which they waited; one with several counts in each. */
  waits: SimulatedWait[];
  gantt: string | null;
}

export interface SimulatedMove {
  job: string;
  user: string;
  tenant: string;
  before_s: number | null;
  after_s: number | null;
  why: string | null;
}

export interface Simulated {
  begin: string | null;
  before: SimulatedRun | null;
  after: SimulatedRun;
  moves: { earlier: number; later: number; unmoved: number; only_before: number; only_after: number; most: SimulatedMove[] } | null;
  recorded: { jobs: number; avg_wait_s: number; p50_wait_s: number; p99_wait_s: number } | null;
  remarks: string[];
}

/** Server frames of the job's stream, one object a message. */
export type Frame =
  | { type: "job"; job: Job }
  | { type: "metrics"; points: Point[] }
  | { type: "events"; events: JobEvent[] }
  | { type: "log"; rank: number; lines: LogLine[]; offset: number }
  | { type: "why"; why: Why | null }
  | { type: "synced" }
  | { type: "end" };
