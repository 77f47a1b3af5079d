/** Which decision of the scheduler an event of the timeline tells of. Pure. */
import { replicaName } from "./runs";
import { ms, secondsText, trim } from "../format/format";
import { t } from "../format/language";
import type { Decision, Event as JobEvent } from "../service/wire";

/** By the kind of event that is stored with a decision, the decision's kind. */
const EXPLAINED: Record<string, Decision["kind"]> = { admitted: "admitted", preempted: "preempted", resize: "resized" };
/** Event and explanation are stored together; a clock may round. */
const SAME_MS = 2000;
/** With these a job begins to wait: an admission was decided after the last of them. */
const WAITS = new Set(["submitted", "requeued", "resumed", "preempted"]);

export const isExplained = (event: JobEvent): boolean => Object.hasOwn(EXPLAINED, event.kind);

/** The explanation of an event; null when none is kept (any more). An admission may have waited for those that made room. */
export function decisionOf(event: JobEvent, decisions: Decision[], timeline: JobEvent[] = []): Decision | null {
  const at = ms(event.time) ?? 0;
  const waits = timeline.filter((e) => e.seq < event.seq && WAITS.has(e.kind)).at(-1);
  const from = event.kind === "admitted" && waits ? Math.min(ms(waits.time) ?? at, at) : at;
  let best: Decision | null = null;
  let off = Number.POSITIVE_INFINITY;
  for (const d of decisions) {
    const time = ms(d.time) ?? 0;
    if (d.kind === EXPLAINED[event.kind] && time >= from - SAME_MS && time <= at + SAME_MS && Math.abs(time - at) <= off) {
      best = d;
      off = Math.abs(time - at);
    }
  }
  return best;
}

/** "digits of ann", or whose tenant's it is. */
export function jobName(v: { job: string | null; user: string | null; tenant: string | null; replica?: number | null }): string {
  if (v.job !== null && typeof v.replica === "number") return t("{job} of {user}", { job: replicaName(v.job, v.replica), user: v.user ?? "" });
  if (v.job !== null) return t("{job} of {user}", { job: v.job, user: v.user ?? "" });
  return v.tenant !== null ? t("a job of team {tenant}", { tenant: v.tenant }) : t("a job of another team");
}

const PRIORITIES: Record<number, string> = { 200: "high", 100: "normal", 50: "low" };

/** "high"; a priority that has no name as it is. */
export function priorityName(priority: number | string): string {
  const name = typeof priority === "string" ? priority : (PRIORITIES[priority] ?? String(priority));
  return name === "high" ? t("high") : name === "normal" ? t("normal") : name === "low" ? t("low") : name;
}

/** "234.6 core-seconds": the most that stopping it loses. */
export function lostWork(v: Decision["victims"][number]): string {
  const amount = trim(v.lost_work, 1);
  if (v.lost_unit === "gpu-seconds") return t("{amount} gpu-seconds", { amount });
  return v.lost_unit === "core-seconds" ? t("{amount} core-seconds", { amount }) : secondsText(amount);
}
