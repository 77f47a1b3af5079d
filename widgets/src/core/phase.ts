/** What a job's phase means to a person: its word, its tone, and what may be done. Pure. */
import type { Job, Phase, Rank } from "./wire";

export type Tone = "wait" | "busy" | "run" | "good" | "bad" | "idle";
export type ActionName = "suspend" | "resume" | "cancel" | "resubmit" | "delete";

const TABLE: Record<Phase, { word: string; tone: Tone; actions: ActionName[] }> = {
  queued: { word: "Queued", tone: "wait", actions: ["suspend", "cancel"] },
  admitted: { word: "Admitted", tone: "busy", actions: ["suspend", "cancel"] },
  starting: { word: "Starting", tone: "busy", actions: ["suspend", "cancel"] },
  running: { word: "Running", tone: "run", actions: ["suspend", "cancel"] },
  suspending: { word: "Suspending", tone: "busy", actions: ["cancel"] },
  suspended: { word: "Suspended", tone: "idle", actions: ["resume", "cancel"] },
  preempting: { word: "Preempting", tone: "busy", actions: ["suspend", "cancel"] },
  resizing: { word: "Resizing", tone: "busy", actions: ["suspend", "cancel"] },
  finishing: { word: "Finishing", tone: "busy", actions: [] },
  finished: { word: "Finished", tone: "good", actions: ["resubmit", "delete"] },
  failed: { word: "Failed", tone: "bad", actions: ["resubmit", "delete"] },
  cancelling: { word: "Cancelling", tone: "busy", actions: [] },
  cancelled: { word: "Cancelled", tone: "idle", actions: ["resubmit", "delete"] },
  deleting: { word: "Deleting", tone: "idle", actions: [] },
};

const UNKNOWN = { word: "Unknown", tone: "idle" as Tone, actions: [] as ActionName[] };

const row = (phase: string): (typeof TABLE)[Phase] => (Object.hasOwn(TABLE, phase) ? TABLE[phase as Phase] : UNKNOWN);

export const word = (phase: string): string => row(phase).word;
export const tone = (phase: string): Tone => row(phase).tone;
export const actions = (phase: string): ActionName[] => row(phase).actions;
export const isFinal = (phase: string): boolean => ["finished", "failed", "cancelled"].includes(phase);
export const isWaiting = (phase: string): boolean => ["queued", "suspended"].includes(phase);

const SIGNALS: Record<number, string> = {
  1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
  11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ",
};

export const signalName = (n: number): string => SIGNALS[n] ?? `signal ${n}`;

const CAUSES: Record<string, string> = {
  "program-error": "The program ended with an error",
  signal: "A rank was killed by a signal",
  "out-of-memory": "Memory ran out",
  "time-limit": "The time limit was reached",
  "node-lost": "The node was lost",
  "start-failed": "The ranks could not be started",
};

export const causeWords = (cause: string): string => CAUSES[cause] ?? cause;

/** How a rank ended: "exit code 1", "SIGKILL", or "". */
export function ending(rank: { exit_code: number | null; signal: number | null }): string {
  if (rank.signal !== null) return signalName(rank.signal);
  return rank.exit_code === null ? "" : `exit code ${rank.exit_code}`;
}

/** How a rank stands; one that another took along says which. The snapshot's words are the same (`mlp.words`). */
export function rankState(job: Pick<Job, "failure">, rank: Rank): string {
  const how = ending(rank);
  if (rank.state === "stopped") {
    const first = job.failure?.rank ?? null;
    if (first !== null && first !== rank.rank) return `stopped because rank ${first} failed`;
    return how ? "stopped" : "never started";
  }
  return rank.state === "failed" && how ? `${rank.state}, ${how}` : rank.state;
}

/** "2 workers", "2 to 4 workers", "2 workers + 1 ps". */
export function workersWords(job: Pick<Job, "workers" | "ps" | "ranks">): string {
  const range = String(job.workers).replace(":", " to ");
  const now = job.ranks.filter((rank) => rank.role !== "ps").length;
  const elastic = range.includes(" ");
  const count = elastic && now ? String(now) : range;
  const workers = `${count} ${count === "1" ? "worker" : "workers"}${elastic && now ? ` (${range})` : ""}`;
  return job.ps ? `${workers} + ${job.ps} ps` : workers;
}
