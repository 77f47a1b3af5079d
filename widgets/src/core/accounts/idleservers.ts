/** Idle notebook servers in words, and a team's policy for them as its form says it. Pure. */
import { duration } from "../format/format";
import { n, t } from "../format/language";
import type { IdleServerPolicySet, ServerCountdown, TenantIdlePolicy } from "../service/wire";

export function idleWords(one: ServerCountdown): string {
  const told = { server: one.server, time: duration(one.idle_s), left: duration(one.left_s ?? 0) };
  return one.server ? t("Your notebook server {server} has not been used for {time}. It will be stopped in {left}.", told) : t("Your notebook server has not been used for {time}. It will be stopped in {left}.", told);
}

/** Hours for which one click keeps a server. */
export const KEEP_HOURS = 4;

/** What a click that keeps a server says. */
export const keepWords = (): string => n("Keep it 1 hour", "Keep it {n} hours", KEEP_HOURS);

export interface PolicyTexts {
  after: string;
  grace: string;
}

export const policyTexts = (now: TenantIdlePolicy): PolicyTexts => ({ after: now.after_minutes ? String(Number((now.after_minutes / 60).toFixed(3))) : "", grace: String(now.grace_minutes) });

/** Hours as typed, empty for never, and minutes of the countdown; or what is wrong with either. */
export function readPolicy(texts: PolicyTexts): { body: IdleServerPolicySet | null; faults: Partial<PolicyTexts> } {
  const faults: Partial<PolicyTexts> = {};
  const hours = texts.after.trim() === "" ? 0 : Number(texts.after.replace(",", "."));
  const minutes = Number(texts.grace);
  const after = Math.round(hours * 60);
  if (!Number.isFinite(hours) || hours < 0 || after > 43_200 || (hours > 0 && after < 1)) faults.after = t("a number of hours up to 720; empty means never");
  if (texts.grace.trim() === "" || !Number.isInteger(minutes) || minutes < 5 || minutes > 1440) faults.grace = t("a whole number of minutes from 5 to 1440");
  return Object.keys(faults).length ? { body: null, faults } : { body: { after_minutes: after, grace_minutes: minutes }, faults };
}
