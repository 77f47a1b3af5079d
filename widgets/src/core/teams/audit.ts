/** The audit log and the scheduler's decisions: from filters to requests, from entries to words. Pure. */
import { DIMENSIONS, ROWS, type Dimension } from "../format/dimensions";
import { bytes, clock, trim } from "../format/format";
import { n, t } from "../format/language";
import type { AuditEntry, AuditHead } from "../service/wire";
import { fieldWord, valueWord } from "../format/words";

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

/** The address of a file with all changes that pass the filters. */
export function exported(f: Filters, now: number, form: "csv" | "lines"): string {
  const query = new URLSearchParams(request({ ...f, of: "changes" }, now).split("?")[1]);
  query.delete("limit");
  const text = query.toString();
  return `/audit:${form}${text ? `?${text}` : ""}`;
}

const SHORT = 12;

/** What is known of the chain of hashes: its head, when it was written outside, when it was checked. */
export function chainWords(head: AuditHead, now: number): string {
  if (head.link === null || head.hash === null) return t("The log has no chain yet.");
  const written = head.written === null ? t("not copied outside the database yet") : t("link {n} copied outside the database {time}", { n: head.written_link ?? 0, time: clock(head.written, now) });
  const checked = head.checked === null ? t("never checked: run mlp-hub audit --verify") : head.sound ? t("checked {time}: no break", { time: clock(head.checked, now) }) : t("checked {time}: entries were changed or removed; run mlp-hub audit --verify", { time: clock(head.checked, now) });
  return [t("Head of the chain: link {n}, {hash}", { n: head.link, hash: head.hash.slice(0, SHORT) }), written, checked].join(" · ");
}

type Fields = Record<string, unknown>;
const fieldsOf = (value: unknown): Fields | null => (typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : null);
const TIME = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-]\d\d:\d\d)$/;
/** What a missing limit means; whatever else is missing is none. */
const LIMITS = new Set<string>([...DIMENSIONS, "borrowing_limit", "lending_limit"]);

/** A value of an entry: memory and storage in their units, times as they are here, a list as its members. */
function text(key: string, value: unknown, now: number): string {
  if (typeof value === "number") return key === "size" ? bytes(value) : Object.hasOwn(ROWS, key) && key !== "cpu" && key !== "gpu" ? ROWS[key as Dimension].show(value) : trim(value, 3);
  if (typeof value === "string") return TIME.test(value) ? clock(value, now) : valueWord(key, value);
  if (typeof value === "boolean") return value ? t("yes") : t("no");
  if (Array.isArray(value)) return value.map((one) => text("", one, now)).join(t(", "));
  const fields = fieldsOf(value);
  return fields ? Object.entries(fields).map(([k, v]) => t("{field} {value}", { field: fieldWord(k), value: text(k, v, now) })).join(t(", ")) : t("none");
}

const isNothing = (value: unknown): boolean => value === undefined || value === null || value === "";

/** Nothing, or a switch that is off: from one to the other is no change. */
const isOff = (value: unknown): boolean => isNothing(value) || value === false;

/** A field besides what changed; whether the whole is new is one word. */
function otherWords(key: string, value: unknown, now: number): string {
  if (key === "new" && typeof value === "boolean") return value ? t("new") : t("replaced");
  return t("{field} {value}", { field: fieldWord(key), value: text(key, value, now) });
}

/** What became of each field that changed: "cpu 3 -> 0.5", "borrowing limit cpu 1 -> 2"; `of` is the field that these are of. */
export function changeWords(before: Fields, after: Fields, now: number, of = ""): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    const [was, is] = [before[key], after[key]];
    if (JSON.stringify(was) === JSON.stringify(is) || (isOff(was) && isOff(is))) return [];
    const [a, b] = [fieldsOf(was), fieldsOf(is)];
    // of amounts by dimension only those are told that are other; a whole that comes or goes is told as a whole
    if (a && b) return changeWords(a, b, now, key).map((one) => t("{field} {value}", { field: fieldWord(key), value: one }));
    const show = (value: unknown): string => (isNothing(value) ? (LIMITS.has(of || key) ? t("no limit") : t("none")) : text(key, value, now));
    return [t("{field} {was} -> {is}", { field: fieldWord(key), was: show(was), is: show(is) })];
  });
}

/** What an entry says besides who, what and to what: its sentence first, how often it was done last. */
export function detailWords(entry: AuditEntry, now: number): string {
  const { message, before, after, times, last, ...rest } = entry.detail;
  const changed = changeWords(fieldsOf(before) ?? {}, fieldsOf(after) ?? {}, now);
  const others = Object.entries(rest).filter(([, value]) => !isNothing(value)).map(([key, value]) => otherWords(key, value, now));
  const again = isNothing(last) ? [] : [isNothing(times) ? t("last {time}", { time: text("", last, now) }) : n("once, last {time}", "{n} times, last {time}", Number(times), { time: text("", last, now) })];
  return [...(isNothing(message) ? [] : [text("", message, now)]), ...changed, ...others, ...again].join(" · ");
}
