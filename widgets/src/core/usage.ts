/** What a team held over time: its hours as bars of a week, and what they add up to. */
import type { Amount } from "./team";
import type { Tenant, UsageHour } from "./wire";

export const HOURS = 7 * 24;
const HOUR = 3_600_000;

export type Held = Amount;

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
  return gpus ? ["cpu", "gpu", "ram", "rom"] : ["cpu", "ram", "rom"];
}

export interface Sum {
  /** The most in one hour. */
  most: number;
  /** Amounts times hours. */
  hours: number;
}

/** Of the hour that goes on only the part that has passed counts. */
export function sumOf(history: readonly UsageHour[], of: Held, now: number): Sum {
  const passed = (hour: UsageHour): number => Math.min(1, Math.max(0, (now - Date.parse(hour.time)) / HOUR));
  return { most: Math.max(0, ...history.map((hour) => hour[of])), hours: history.reduce((sum, hour) => sum + hour[of] * passed(hour), 0) };
}
