/** How long a job waits and runs, over all its attempts. Pure; a saved picture of an older hub may lack what it goes by. */
import { ago, clock, duration, ms } from "../format/format";
import { t } from "../format/language";
import { isWaiting } from "./phase";
import type { Job, QueueEntry } from "../service/wire";

/** Seconds that its attempts ran, the present one included. */
export function ran(job: Job, now: number): number {
  const [started, ended] = [ms(job.started_at), ms(job.finished_at)];
  const last = started === null ? 0 : Math.max(0, (ended ?? now) - started) / 1000;
  return ended === null ? (job.ran_s ?? 0) + last : (job.ran_s ?? last);
}

/** Seconds of the present wait, null where it is not in the queue. */
export function waits(job: Job | QueueEntry, now: number): number | null {
  const since = ms(job.waiting_since);
  return since === null ? null : Math.max(0, now - since) / 1000;
}

/** "waits 15 s, ran 5 min", "running 8 s, 5 min in all", "12:05, ran 2 min". */
export function timing(job: Job, now: number): string {
  const [started, ended] = [ms(job.started_at), ms(job.finished_at)];
  const whole = ran(job, now);
  // before any rank ran it failed, or was cancelled
  if (ended !== null) return whole ? t("{time}, ran {span}", { time: clock(ended, now), span: duration(whole) }) : clock(ended, now);
  const wait = waits(job, now);
  if (isWaiting(job.phase) || started === null) {
    if (!job.ran_s) return t("submitted {ago}", { ago: ago(job.submitted_at, now) });
    const before = duration(job.ran_s);
    return wait === null ? t("ran {span}", { span: before }) : t("waits {wait}, ran {span}", { wait: duration(wait), span: before });
  }
  const running = duration((now - started) / 1000);
  return job.ran_s ? t("running {span}, {whole} in all", { span: running, whole: duration(whole) }) : t("running {span}", { span: running });
}
