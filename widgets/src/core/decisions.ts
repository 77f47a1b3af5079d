/** Which decision of the scheduler an event of the timeline tells of. Pure. */
import { ms } from "./format";
import type { Decision, JobEvent } from "./wire";

const EXPLAINED = new Set(["admitted", "preempted", "resized"]);
/** Event and explanation are stored together; a clock may round. */
const SAME_MS = 2000;

export const isExplained = (event: JobEvent): boolean => EXPLAINED.has(event.kind);

/** The explanation of an event; null when none is kept (any more). */
export function decisionOf(event: JobEvent, decisions: Decision[]): Decision | null {
  const at = ms(event.time) ?? 0;
  let best: Decision | null = null;
  let off = SAME_MS;
  for (const d of decisions) {
    const away = Math.abs((ms(d.time) ?? 0) - at);
    if (d.kind === event.kind && away <= off) {
      best = d;
      off = away;
    }
  }
  return best;
}

/** "digits of ann", or whose tenant's it is. */
export function victimName(v: Decision["victims"][number]): string {
  if (v.job !== null) return `${v.job} of ${v.user}`;
  return v.tenant !== null ? `a job of tenant ${v.tenant}` : "a job of another tenant";
}
