/** What is worth saying of a job in one line: why it failed, its place in the queue, how far it is. */
import { t } from "../format/language";
import { startOf } from "./forecast";
import { isWaiting } from "./phase";
import type { Job } from "../service/wire";

export function noteOf(job: Pick<Job, "phase" | "message" | "position" | "expected_start"> & Partial<Pick<Job, "failure" | "progress" | "forecast">>, now: number): string {
  if (job.failure) return job.failure.message || job.failure.cause;
  if (isWaiting(job.phase)) {
    const place = job.position !== null ? t("position {n}", { n: job.position }) : "";
    const when = startOf(job, now);
    const start = when ? t("expected {time}", { time: when }) : "";
    return [job.message, place, start].filter(Boolean).join(" · ");
  }
  return job.phase === "running" && job.progress ? `${job.progress} %` : job.message;
}

/** The owner's note in one line, then what is worth saying of the job. */
export const lineOf = (job: Parameters<typeof noteOf>[0] & Partial<Pick<Job, "note">>, now: number): string =>
  [job.note?.replace(/\s+/g, " ").trim(), noteOf(job, now)].filter(Boolean).join(" · ");
