/** Accounts of a tenant for programs as data: what is asked for them, what is wrong with it, and how their tokens are told. Pure. */
import { ago, badName, clock } from "../format/format";
import { t } from "../format/language";
import type { ServiceAccount, ServiceCreate, ServiceRotate, ServiceTokenGiven, TokenInfo } from "../service/wire";

/** How the users of such accounts are called; no person is. */
const PREFIX = "svc-";
const NAME_MAX = 28;
const DAY_S = 86_400;
const HOUR_S = 3600;
const DAYS = 90;
const DAYS_MOST = 365;
const GRACE_H = 24;
const GRACE_H_MOST = 720;

export const isProgram = (user: string): boolean => user.startsWith(PREFIX);

export const NEW_FIELDS = ["name", "days"] as const;
export type NewField = (typeof NEW_FIELDS)[number];
export const TURN_FIELDS = ["days", "grace"] as const;
export type TurnField = (typeof TURN_FIELDS)[number];

export const newTexts = (): Record<NewField, string> => ({ name: "", days: String(DAYS) });
export const turnTexts = (): Record<TurnField, string> => ({ days: String(DAYS), grace: String(GRACE_H) });

/** A whole number between two others, or what would be one. */
function whole(text: string, least: number, most: number): { value: number; fault: string | null } {
  const value = /^\d{1,4}$/.test(text.trim()) ? Number(text.trim()) : -1;
  return { value, fault: value < least || value > most ? t("a whole number from {least} to {most}", { least, most }) : null };
}

export function readNew(texts: Record<NewField, string>, names: string[]): { asked: ServiceCreate | null; faults: Partial<Record<NewField, string>> } {
  const name = texts.name.trim();
  const days = whole(texts.days, 1, DAYS_MOST);
  const faults: Partial<Record<NewField, string>> = {};
  const bad =
    badName(name) ??
    (name.length > NAME_MAX ? t("{what} has at most {most} characters, this one has {n}", { what: t("a name"), most: NAME_MAX, n: name.length }) : null) ??
    (names.includes(name) ? t("an account {name} already exists", { name }) : null);
  if (bad) faults.name = bad;
  if (days.fault) faults.days = days.fault;
  return { asked: Object.keys(faults).length ? null : { name, expires_in: days.value * DAY_S }, faults };
}

export function readTurn(texts: Record<TurnField, string>): { asked: ServiceRotate | null; faults: Partial<Record<TurnField, string>> } {
  const days = whole(texts.days, 1, DAYS_MOST);
  const grace = whole(texts.grace, 0, GRACE_H_MOST);
  const faults: Partial<Record<TurnField, string>> = {};
  if (days.fault) faults.days = days.fault;
  if (grace.fault) faults.grace = grace.fault;
  return { asked: Object.keys(faults).length ? null : { expires_in: days.value * DAY_S, grace: grace.value * HOUR_S }, faults };
}

/** Which field a refusal of the service speaks of. */
export const newFieldOf = (msg: string): NewField | null => (/\bname\b|\baccount\b/.test(msg) ? "name" : /expires_in/.test(msg) ? "days" : null);
export const turnFieldOf = (msg: string): TurnField | null => (/expires_in/.test(msg) ? "days" : /grace/.test(msg) ? "grace" : null);

/** When a token was used last and from where, and until when it holds. */
export function tokenWords(of: TokenInfo, now: number): { used: string; ends: string } {
  const when = ago(of.last_used, now);
  const used = !when ? t("never used") : of.last_from ? t("used {when} from {address}", { when, address: of.last_from }) : t("used {when}", { when });
  return { used, ends: of.expires ? t("until {time}", { time: clock(of.expires, now) }) : t("for ever") };
}

/** The tokens of an account, the one that holds longest first. */
export const longestFirst = (of: ServiceAccount): TokenInfo[] =>
  [...of.tokens].sort((a, b) => (Date.parse(b.expires ?? "9999-01-01") || 0) - (Date.parse(a.expires ?? "9999-01-01") || 0));

/** What is said under a token that was just made. */
export function givenWords(of: ServiceTokenGiven, now: number): string[] {
  const until = t("It is valid until {time} and is shown only once.", { time: clock(of.expires, now) });
  return of.old_until ? [until, t("Earlier tokens are valid until {time}.", { time: clock(of.old_until, now) })] : [until];
}
