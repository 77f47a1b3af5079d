/** The table of runs: which columns, what stands in them, and which rows are in view. Pure. */
import { coreHours, cores, duration, metric as show, ram } from "../format/format";
import { t } from "../format/language";
import { word } from "./phase";
import type { ListedRun } from "../service/wire";

export interface RunColumn {
  /** As runs are sorted by it; also what it is kept by. */
  key: string;
  title: () => string;
  text: (run: ListedRun) => string;
  numeric: boolean;
  /** Whether the service sorts by it. */
  sorts: boolean;
}

const AXES = new Set(["step", "epoch", "progress"]);
const plain = (value: unknown): string => (typeof value === "number" ? show(value) : value === undefined || value === null ? "" : String(value));
const shown = (value: number | null | undefined): string => (value === null || value === undefined ? "" : show(value));

const FIXED: RunColumn[] = [
  { key: "state", title: () => t("State"), text: (r) => word(r.phase, r.reason), numeric: false, sorts: true },
  { key: "duration", title: () => t("Duration"), text: (r) => (r.duration_s === null ? "" : duration(r.duration_s)), numeric: true, sorts: true },
  { key: "core_hours", title: () => t("Core-hours"), text: (r) => (r.core_hours === null ? "" : coreHours(r.core_hours)), numeric: true, sorts: true },
  { key: "ram_peak", title: () => t("Peak memory"), text: (r) => (r.ram_peak === null ? "" : ram(r.ram_peak)), numeric: true, sorts: true },
  { key: "cpu_peak", title: () => t("Peak cores"), text: (r) => (r.cpu_peak === null ? "" : cores(r.cpu_peak)), numeric: true, sorts: true },
  { key: "tags", title: () => t("Tags"), text: (r) => r.tags.join(" "), numeric: false, sorts: false },
  { key: "note", title: () => t("Note"), text: (r) => r.note, numeric: false, sorts: true },
  { key: "tenant", title: () => t("Team"), text: (r) => r.tenant, numeric: false, sorts: true },
  { key: "sweep", title: () => t("Sweep"), text: (r) => r.sweep ?? "", numeric: false, sorts: false },
  { key: "commit", title: () => t("Commit"), text: (r) => (r.commit ? `${r.commit.slice(0, 10)}${r.dirty ? "+" : ""}` : ""), numeric: false, sorts: false },
];

/** Whose it is, where a table has those of several people. */
export const OWNER: RunColumn = { key: "user", title: () => t("User"), text: (r) => r.user, numeric: false, sorts: false };

/** All columns that may be chosen, for the parameters and metrics that the found runs have. */
export function columnsFor(params: string[], metrics: string[]): RunColumn[] {
  const quoted = (name: string): string => (/[\s"]/.test(name) ? `"${name}"` : name);
  const of = params.map((name): RunColumn => ({
    key: `param.${quoted(name)}`, title: () => name, text: (r) => plain(r.params[name]), numeric: true, sorts: true,
  }));
  const measured = metrics.filter((m) => !AXES.has(m)).flatMap((name): RunColumn[] => [
    { key: `best.${quoted(name)}`, title: () => t("Best {metric}", { metric: name }), text: (r) => shown(r.metrics[name]?.best), numeric: true, sorts: true },
    { key: `metric.${quoted(name)}`, title: () => t("Last {metric}", { metric: name }), text: (r) => shown(r.metrics[name]?.last), numeric: true, sorts: true },
  ]);
  const [state, ...others] = FIXED as [RunColumn, ...RunColumn[]];
  return [state, ...of, ...measured, ...others];
}

const USUAL = new Set(["state", "duration", "ram_peak", "tags", "note"]);
const PARAMS = 4;
const METRICS = 3;

/** The columns that are shown where nobody chose any. */
export function usual(columns: RunColumn[]): string[] {
  let [params, metrics] = [PARAMS, METRICS];
  return columns
    .filter(({ key }) => (key.startsWith("param.") ? (params -= 1) >= 0 : key.startsWith("best.") ? (metrics -= 1) >= 0 : USUAL.has(key)))
    .map((c) => c.key);
}

/** States and notes have a line of their own on a card, and so has the time of submission; all else shares one with another. */
export const isWide = (column: RunColumn): boolean => column.key === "note" || column.key === "state";
const CARD = { head: 41, line: 24 };

/** How high the card of a run is, in pixels: by its columns and so the same for all, as what is drawn is found by it. */
export function cardHeight(columns: RunColumn[]): number {
  const wide = columns.filter(isWide).length;
  const submitted = 1;
  return CARD.head + CARD.line * (wide + submitted + Math.ceil((columns.length - wide) / 2));
}

/** Which rows are drawn: those in view and some around them. */
export function windowOf(top: number, height: number, row: number, total: number, around = 10): { from: number; to: number } {
  const from = Math.max(0, Math.floor(top / row) - around);
  return { from, to: Math.min(total, Math.ceil((top + height) / row) + around) };
}

/** The other direction, or from the highest down where it was another column. */
export const turned = (sort: string, key: string): string => (sort === `-${key}` ? key : `-${key}`);
