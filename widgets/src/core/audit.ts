/** The audit log and the scheduler's decisions: from filters to requests, from entries to words. Pure. */
import type { AuditEntry } from "./wire";

export interface Filters {
  /** Which of the two is shown. */
  of: "changes" | "decisions";
  actor: string;
  action: string;
  object: string;
  kind: string;
  user: string;
  job: string;
  /** Seconds back; "" for all that is kept. */
  back: string;
}

export const NO_FILTERS: Filters = { of: "changes", actor: "", action: "", object: "", kind: "", user: "", job: "", back: "" };

const NAMES = { changes: ["actor", "action", "object"], decisions: ["kind", "user", "job"] } as const;
export const PAGE = 100;

/** Whether anything is left out. */
export const filtered = (f: Filters): boolean => f.back !== "" || NAMES[f.of].some((name) => f[name].trim() !== "");

/** The request for the entries that pass; the page after `cursor`. */
export function request(f: Filters, now: number, cursor: string | null = null): string {
  const query = new URLSearchParams({ limit: String(PAGE) });
  for (const name of NAMES[f.of]) if (f[name].trim()) query.set(name, f[name].trim());
  if (f.back) query.set("since", new Date(now - Number(f.back) * 1000).toISOString());
  if (cursor) query.set("cursor", cursor);
  return `${f.of === "changes" ? "/audit" : "/decisions"}?${query.toString()}`;
}

const text = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));

/** What an entry says besides who, what and to what: its sentence first. */
export function detailWords(entry: AuditEntry): string {
  const { message, ...rest } = entry.detail;
  const others = Object.entries(rest).filter(([, value]) => value !== null && value !== "").map(([key, value]) => `${key} ${text(value)}`);
  return [...(message ? [text(message)] : []), ...others].join(" · ");
}
