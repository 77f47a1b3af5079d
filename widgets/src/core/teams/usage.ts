/** What a team held over time: its hours as bars of a week, and what they add up to. */
import { COUNTED, DIMENSIONS, heldOf, type Dimension } from "../format/dimensions";
import type { Tenant, UsageHour, UsageTotal } from "../service/wire";

export const HOURS = 7 * 24;
const HOUR = 3_600_000;

export type Held = Dimension;

/** Each of the last hours, the oldest first; null where nothing is known. */
export function hoursOf(history: readonly UsageHour[], now: number): (UsageHour | null)[] {
  const last = Math.floor(now / HOUR);
  const hours: (UsageHour | null)[] = Array.from({ length: HOURS }, () => null);
  for (const hour of history) {
    const at = HOURS - 1 - (last - Math.floor(Date.parse(hour.time) / HOUR));
    if (at >= 0 && at < HOURS) hours[at] = hour;
  }
  return hours;
}

/** What of a team has a curve: cores, memory and storage; devices where it has or had any. */
export function heldBy(tenant: Pick<Tenant, "gpu" | "gpu_kinds">, history: readonly UsageHour[]): Held[] {
  const gpus = (tenant.gpu ?? 0) > 0 || Object.keys(tenant.gpu_kinds).length > 0 || history.some((hour) => hour.gpu > 0);
  return DIMENSIONS.filter((d) => (d === "gpu" ? gpus : !COUNTED.includes(d) || history.some((hour) => heldOf(hour, d) > 0)));
}

export interface Sum {
  /** The most at once. */
  most: number;
  /** Amounts times hours, of jobs. */
  hours: number;
}

/** What jobs took is exact, of their runs; samples of an hour tell its shape, and miss what is shorter. */
export function sumOf(history: readonly UsageHour[], of: Held, jobs: UsageTotal): Sum {
  const seen = Math.max(0, ...history.map((hour) => heldOf(hour, of)));
  if (of === "cpu") return { most: Math.max(seen, jobs.cpu_most), hours: jobs.cpu_hours };
  if (of === "gpu") return { most: Math.max(seen, jobs.gpu_most), hours: jobs.gpu_hours };
  return { most: seen, hours: 0 };
}
