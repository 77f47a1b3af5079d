/** GPUs that a job holds and does not use, and what a team holds idle, in words. Pure. */
import { cores, duration, ram } from "../format/format";
import { n, t } from "../format/language";
import { commandName } from "./runs";
import type { IdleHolding, Job } from "../service/wire";

/** Hours for which one click keeps a job. */
export const KEEP_HOURS = 4;

/** What a running job is told of its GPUs; empty where nothing is known of that. */
export function unusedGpus(job: Job): string {
  const { idle } = job;
  if (!idle || job.phase !== "running") return "";
  const time = duration(idle.idle_s);
  if (idle.left_s !== null) {
    const told = { time, left: duration(idle.left_s), command: `mlp keep ${commandName(job)}` };
    return idle.ends === "cancel"
      ? t("Its GPUs were not used for {time}, and it is cancelled in {left}. To keep it: {command}", told)
      : t("Its GPUs were not used for {time}, and it is suspended in {left}. To keep it: {command}", told);
  }
  if (idle.claims) return t("It reports that it works, but the cluster measures no work of it.");
  if (idle.kept_s) return t("It is kept for {left}, whether it uses its GPUs or not.", { left: duration(idle.kept_s) });
  return idle.idle_s ? t("Its GPUs were not used for {time}.", { time }) : "";
}

/** Whether a click could still help. */
export const countsDown = (job: Job): boolean => job.phase === "running" && (job.idle?.left_s ?? null) !== null;

/** What it holds, such as 2 GPUs, 4 CPU, 16 GiB. */
export function heldWords(one: IdleHolding): string {
  const gpus = one.gpu ? [n("1 GPU", "{n} GPUs", one.gpu, { n: cores(one.gpu) })] : [];
  return [...gpus, t("{amount} CPU", { amount: cores(one.cpu) }), ram(one.ram)].join(", ");
}

/** What comes next, by the team's policy. */
export function nextWords(one: IdleHolding): string {
  if (one.left_s !== null) {
    const left = duration(one.left_s);
    if (one.ends === "stop") return t("stopped in {left}", { left });
    return one.ends === "cancel" ? t("cancelled in {left}", { left }) : t("suspended in {left}", { left });
  }
  if (one.claims) return t("nothing: it reports work that the cluster does not measure");
  if (one.kept_s) return t("kept for {left}", { left: duration(one.kept_s) });
  return one.ends === null ? t("nothing: the team has no policy for it") : t("a countdown, once it is idle for long enough");
}
