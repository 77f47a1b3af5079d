/** Announcements: which this browser has put away, and what a form of one asks for. Pure. */
import { t } from "../format/language";
import { readLocal } from "../format/localtime";
import type { Announcement, AnnouncementCreate } from "../service/wire";

export const AWAY = "mlp-announcements-away";
const MOST = 50;

/** The numbers that are kept of those put away; what is no list of numbers is none. */
export function readAway(kept: string | null): number[] {
  try {
    const found: unknown = JSON.parse(kept ?? "[]");
    return Array.isArray(found) ? found.filter((one): one is number => Number.isInteger(one)) : [];
  } catch {
    return [];
  }
}

export const put = (away: number[], id: number): number[] => [...away.filter((one) => one !== id), id].slice(-MOST);

export const left = (found: Announcement[], away: number[]): Announcement[] => found.filter((one) => !away.includes(one.id));

export const LEVELS = (): [Announcement["level"], string][] => [["info", t("For information")], ["warning", t("Warning")], ["critical", t("Urgent")]];
export const levelWord = (level: Announcement["level"]): string => LEVELS().find(([key]) => key === level)?.[1] ?? level;

const HOUR = 3600;
export const LASTS = (): [string, string][] => [
  [String(HOUR), t("1 hour")], [String(8 * HOUR), t("8 hours")], [String(24 * HOUR), t("1 day")], [String(7 * 24 * HOUR), t("1 week")], [String(30 * 24 * HOUR), t("30 days")],
];

export type AnnouncementField = "text" | "begin";

/** What is typed, as it is asked for; `lasts` in seconds from its begin on. */
export function readAnnouncement(
  texts: Record<AnnouncementField, string>, level: string, lasts: string, now: number,
): { asked: AnnouncementCreate | null; faults: Partial<Record<AnnouncementField, string>> } {
  const faults: Partial<Record<AnnouncementField, string>> = {};
  if (!texts.text.trim()) faults.text = t("Enter a text");
  const typed = texts.begin ? readLocal(texts.begin) : { at: now, fault: null };
  const begin = typed.at ?? now;
  if (typed.fault) faults.begin = typed.fault;
  if (Object.keys(faults).length) return { asked: null, faults };
  return {
    asked: {
      text: texts.text.trim(), level: level as Announcement["level"], until: new Date(begin + Number(lasts) * 1000).toISOString(),
      ...(texts.begin ? { begin: new Date(begin).toISOString() } : {}),
    },
    faults,
  };
}

export const announcementFieldOf = (msg: string): AnnouncementField | null => (/begin/.test(msg) ? "begin" : /text|says/.test(msg) ? "text" : null);
