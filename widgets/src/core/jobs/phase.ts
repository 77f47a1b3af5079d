/** What a job's phase means to a person: its word, its tone, and what may be done. Pure. */
import { n, t } from "../format/language";
import { capital, reasonWords } from "../format/reasons";
import type { Job, Rank } from "../service/wire";

type Phase = Job["phase"];
export type Tone = "wait" | "busy" | "run" | "good" | "bad" | "idle";
export type ActionName = "suspend" | "resume" | "cancel" | "resubmit" | "delete";

const TABLE: Record<Phase, { word: () => string; tone: Tone; actions: ActionName[] }> = {
  queued: { word: () => t("Queued"), tone: "wait", actions: ["suspend", "cancel"] },
  admitted: { word: () => t("Admitted"), tone: "busy", actions: ["suspend", "cancel"] },
  starting: { word: () => t("Starting"), tone: "busy", actions: ["suspend", "cancel"] },
  running: { word: () => t("Running"), tone: "run", actions: ["suspend", "cancel"] },
  suspending: { word: () => t("Suspending"), tone: "busy", actions: ["cancel"] },
  suspended: { word: () => t("Suspended"), tone: "idle", actions: ["resume", "cancel"] },
  preempting: { word: () => t("Preempting"), tone: "busy", actions: ["suspend", "cancel"] },
  resizing: { word: () => t("Resizing"), tone: "busy", actions: ["suspend", "cancel"] },
  finishing: { word: () => t("Finishing"), tone: "busy", actions: [] },
  finished: { word: () => t("Finished"), tone: "good", actions: ["resubmit", "delete"] },
  failed: { word: () => t("Failed"), tone: "bad", actions: ["resubmit", "delete"] },
  cancelling: { word: () => t("Cancelling"), tone: "busy", actions: [] },
  cancelled: { word: () => t("Cancelled"), tone: "idle", actions: ["resubmit", "delete"] },
  deleting: { word: () => t("Deleting"), tone: "idle", actions: [] },
};

const UNKNOWN = { word: () => t("Unknown"), tone: "idle" as Tone, actions: [] as ActionName[] };

const row = (phase: string): (typeof TABLE)[Phase] => (Object.hasOwn(TABLE, phase) ? TABLE[phase as Phase] : UNKNOWN);

/** A trial that its sweep stopped early nobody cancelled. */
export const word = (phase: string, reason?: string | null): string => (phase === "cancelled" && reason === "StoppedEarly" ? capital(reasonWords(reason)) : row(phase).word());
export const tone = (phase: string): Tone => row(phase).tone;
export const actions = (phase: string): ActionName[] => row(phase).actions;
export const isFinal = (phase: string): boolean => ["finished", "failed", "cancelled"].includes(phase);
/** Whether something of it may still be changed. */
export const isOpen = (phase: string): boolean => !isFinal(phase) && !["finishing", "cancelling", "deleting"].includes(phase);
export const isWaiting = (phase: string): boolean => ["queued", "suspended"].includes(phase);

const SIGNALS: Record<number, string> = {
  1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL",
  11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ",
};

export const signalName = (n: number): string => SIGNALS[n] ?? t("signal {n}", { n });

const CAUSES: Record<string, () => string> = {
  "program-error": () => t("The program ended with an error"),
  signal: () => t("A rank was killed by a signal"),
  "out-of-memory": () => t("Memory ran out"),
  disk: () => t("Wrote too much to the disk"),
  "time-limit": () => t("The time limit was reached"),
  "node-lost": () => t("The node was lost"),
  "start-failed": () => t("The ranks could not be started"),
};

export const causeWords = (cause: string): string => CAUSES[cause]?.() ?? cause;

/** How a rank ended: "exit code 1", "SIGKILL", or "". */
export function ending(rank: { exit_code: number | null; signal: number | null }): string {
  if (rank.signal !== null) return signalName(rank.signal);
  return rank.exit_code === null ? "" : t("exit code {n}", { n: rank.exit_code });
}

const RANK_STATES: Record<string, () => string> = {
  waiting: () => t("waiting"), pending: () => t("pending"), starting: () => t("starting"), running: () => t("running"), finished: () => t("finished"),
  succeeded: () => t("finished"), exited: () => t("exited"), failed: () => t("failed"), killed: () => t("killed"), lost: () => t("lost"),
};
export const stateWord = (state: string): string => (Object.hasOwn(RANK_STATES, state) ? RANK_STATES[state]?.() : undefined) ?? state;

/** How a rank stands; one that another took along says which. The snapshot's words are the same (`mlp.rendering.words`). */
export function rankState(job: Pick<Job, "failure">, rank: Rank): string {
  const how = ending(rank);
  if (rank.state === "stopped") {
    const first = job.failure?.rank ?? null;
    if (first !== null && first !== rank.rank) return t("stopped because rank {rank} failed", { rank: first });
    return how ? t("stopped") : t("never started");
  }
  return rank.state === "failed" && how ? t("failed, {how}", { how }) : stateWord(rank.state);
}

/** How many attempts began after another; the one that a job waits for has not. */
export const restarts = (job: Pick<Job, "restarts" | "started_at">): number => (job.started_at === null ? Math.max(job.restarts - 1, 0) : job.restarts);

/** "2 workers", "2 to 4 workers", "2 workers + 1 ps". */
export function workersWords(job: Pick<Job, "workers" | "ps" | "ranks">): string {
  const [low = "", high = ""] = String(job.workers).split(":");
  const now = job.ranks.filter((rank) => rank.role !== "ps").length;
  const workers = !high
    ? n("1 worker", "{n} workers", Number(low))
    : now
      ? n("1 worker ({low} to {high})", "{n} workers ({low} to {high})", now, { low, high })
      : t("{low} to {high} workers", { low, high });
  return job.ps ? t("{workers} + {ps} ps", { workers, ps: job.ps }) : workers;
}
