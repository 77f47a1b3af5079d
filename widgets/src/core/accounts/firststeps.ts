/** A newcomer's first steps: which are done, as far as the platform's data or this browser tell. */
import type { Job, Usage } from "../service/wire";

export interface Kept {
  /** Somebody none of whose jobs had finished was here: the steps stay until all are done. */
  begun?: boolean;
  server?: boolean;
  quota?: boolean;
  dismissed?: boolean;
}

export interface Steps {
  server: boolean;
  job: boolean;
  quota: boolean;
}

const key = (user: string): string => `mlp-first-steps-${user}`;

export function kept(user: string): Kept {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(key(user)) ?? "{}");
    return typeof found === "object" && found !== null ? (found as Kept) : {};
  } catch {
    return {};
  }
}

export function remember(user: string, change: Kept): void {
  localStorage.setItem(key(user), JSON.stringify({ ...kept(user), ...change }));
}

/** Whether a notebook server of the user holds something now. */
export const hasServer = (user: string, usage: Usage[]): boolean =>
  usage.some((one) => one.holdings.some((h) => h.applier === "sp" && h.user === user));

/** Whether a job came to a good end: one that was cancelled, failed or still waits shows nobody how it goes. */
export const hasFinished = (jobs: readonly Pick<Job, "phase">[]): boolean => jobs.some((job) => job.phase === "finished");

/** What is done; null where there is nothing to show. Whose job has finished had what the server is for. */
export function steps(found: Kept, finished: boolean, server: boolean): Steps | null {
  const done = { server: finished || server || found.server === true, job: finished, quota: found.quota === true };
  const all = done.server && done.job && done.quota;
  return found.dismissed || all || (finished && !found.begun) ? null : done;
}
