/** Which decision of the scheduler an event of the timeline tells of. Pure. */
import { ms, trim } from "./format";
import type { Decision, JobEvent } from "./wire";

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
export function victimName(v: Decision["victims"][number]): string {
  if (v.job !== null) return `${v.job} of ${v.user}`;
  return v.tenant !== null ? `a job of tenant ${v.tenant}` : "a job of another tenant";
}

const PRIORITIES: Record<number, string> = { 200: "high", 100: "normal", 50: "low" };

/** "high"; a priority that has no name as its number. */
export const priorityName = (priority: number): string => PRIORITIES[priority] ?? String(priority);

/** "234.6 core-seconds": the most that stopping it loses. */
export const lostWork = (v: Decision["victims"][number]): string => `${trim(v.lost_work, 1)} ${v.lost_unit || "s"}`;
