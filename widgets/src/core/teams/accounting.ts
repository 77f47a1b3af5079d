/** Use and cost of a span of days: what is asked for, and its days as bars. */
import type { UsageLine, UsageLines } from "../service/wire";

const DAY = 86_400_000;
export const HOUR_S = 3600;

/** Whose use: one's own, a team's, or everybody's. */
export type Whose = { user: string } | { tenant: string } | "all";

const enc = encodeURIComponent;

export const accountingPath = (whose: Whose): string =>
  whose === "all" ? "/accounting" : "user" in whose ? `/users/${enc(whose.user)}/accounting` : `/tenants/${enc(whose.tenant)}/accounting`;

/** The span as the service is asked for it; empty: the last 30 days. */
export const spanQuery = (month: string): string => (month ? `month=${enc(month)}` : "");

export const linesPath = (whose: Whose, month: string, by: readonly string[]): string =>
  `${accountingPath(whose)}?${[spanQuery(month), `by=${by.join(",")}`, "limit=1000"].filter(Boolean).join("&")}`;

export const filePath = (whose: Whose, month: string, form: "csv" | "report", by: readonly string[] = []): string => {
  const query = [spanQuery(month), by.length ? `by=${by.join(",")}` : ""].filter(Boolean).join("&");
  return `${accountingPath(whose)}:${form}${query ? `?${query}` : ""}`;
};

/** The name of a downloaded file, as the service gives it too: "usage-red-2031-03.csv". */
export const fileName = (whose: Whose, month: string, ending: "csv" | "md"): string =>
  `${["usage", whose === "all" ? "" : "user" in whose ? whose.user : whose.tenant, month].filter(Boolean).join("-")}.${ending}`;

/** This month and those before, as 2031-03, in UTC. */
export function monthsUntil(now: number, count: number): string[] {
  const at = new Date(now);
  return Array.from({ length: count }, (_, back) => new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() - back, 1)).toISOString().slice(0, 7));
}

/** What the table is split by. */
export const splitsOf = (whose: Whose): string[] => (whose === "all" ? ["tenant", "work", "gpu_kind"] : "user" in whose ? ["tenant", "work", "gpu_kind"] : ["user", "work", "gpu_kind"]);

export type Shown = "core" | "gpu" | "memory" | "storage" | "cost";

/** An amount of a line in hours (storage in GiB-days, cost in money). */
export function amountOf(line: UsageLine, of: Shown): number {
  if (of === "core") return line.core_s / HOUR_S;
  if (of === "gpu") return line.gpu_s / HOUR_S;
  if (of === "memory") return line.memory_gib_s / HOUR_S;
  return of === "storage" ? line.storage_gib_days : Number(line.cost ?? 0);
}

/** The used part of it, where it is measured. */
export const usedOf = (line: UsageLine, of: Shown): number => (of === "core" ? line.core_used_s / HOUR_S : of === "memory" ? line.memory_used_gib_s / HOUR_S : 0);

/** What there is to show: devices and money only where there are any. */
export const shownOf = (found: UsageLines): Shown[] =>
  (["core", "memory", "gpu", "storage", "cost"] as const).filter((of) => (of === "gpu" ? found.total.gpu_s > 0 : of === "cost" ? found.currency !== null : true));

export interface DayBar {
  day: string;
  held: number;
  used: number;
}

/** Each day of the span, also those without any use. */
export function barsOf(found: UsageLines, of: Shown): DayBar[] {
  const lines = new Map(found.lines.map((line) => [line.day, line]));
  const bars: DayBar[] = [];
  for (let at = Date.parse(found.since); at < Date.parse(found.until); at += DAY) {
    const day = new Date(at).toISOString().slice(0, 10);
    const line = lines.get(day);
    bars.push({ day, held: line ? amountOf(line, of) : 0, used: line ? usedOf(line, of) : 0 });
  }
  return bars;
}
