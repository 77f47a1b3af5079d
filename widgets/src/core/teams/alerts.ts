/** Alerts: how a page groups and names them, and what the form of a silence asks for. Pure. */
import { t } from "../format/language";
import type { Alert, AlertBoard, SilenceCreate } from "../service/wire";

export type Group = "firing" | "silenced" | "pending" | "resolved";
/** In the order of the page. */
export const GROUPS: Group[] = ["firing", "silenced", "pending", "resolved"];

export const groupOf = (one: Alert): Group => (one.state !== "resolved" && one.silence !== null ? "silenced" : one.state);

export const grouped = (board: AlertBoard, group: Group): Alert[] => board.alerts.filter((one) => groupOf(one) === group);

export const TONES = { critical: "bad", warning: "wait", info: "idle" } as const;
export const severityWord = (severity: Alert["severity"]): string =>
  ({ critical: t("critical"), warning: t("warning"), info: t("for information") })[severity];

/** The value beside its threshold, as "91% > 80%". */
export const valueWords = (one: Alert): string => `${one.value} ${one.below ? "<" : ">"} ${one.threshold}`;

/** The headline of a rule, or its name where the rule is gone. */
export const titleOf = (board: AlertBoard, rule: string): string => board.rules.find((one) => one.name === rule)?.title ?? rule;

/** The section of the documentation about a rule; `base` is the address of the pages, with a slash at its end. */
export const runbook = (base: string, rule: string): string => `${base}docs/reference/alerts#${rule.toLowerCase()}`;

const HOUR_S = 3600;
export const SILENCE_LASTS = (): [string, string][] => [
  ["", t("Choose an end")], [String(HOUR_S), t("1 hour")], [String(8 * HOUR_S), t("8 hours")], [String(24 * HOUR_S), t("1 day")],
  [String(7 * 24 * HOUR_S), t("1 week")], [String(28 * 24 * HOUR_S), t("4 weeks")],
];

export type SilenceField = "reason" | "tenant";

/** What is typed, as it is asked for; `now` in milliseconds. With a `team` its tenant is not asked for. */
export function readSilence(
  texts: Record<SilenceField, string>, rule: string, lasts: string, team: string | null, now: number,
): { asked: SilenceCreate | null; faults: Partial<Record<SilenceField | "lasts" | "rule", string>> } {
  const faults: Partial<Record<SilenceField | "lasts" | "rule", string>> = {};
  const reason = texts.reason.trim();
  const tenant = texts.tenant.trim();
  if (!reason) faults.reason = t("Enter a reason, which others read");
  if (!lasts) faults.lasts = t("Choose when the silence ends");
  if (team === null && !rule && !tenant) faults.tenant = t("Choose an alert, a team or both");
  if (Object.keys(faults).length) return { asked: null, faults };
  const until = new Date(now + Number(lasts) * 1000).toISOString();
  return { asked: { reason, until, rule, ...(team === null && tenant ? { tenant } : {}) }, faults };
}

export const silenceFieldOf = (msg: string): SilenceField | null => (/reason/.test(msg) ? "reason" : /team|tenant/.test(msg) ? "tenant" : null);
