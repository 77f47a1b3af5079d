/** Money in words: what a job costs, budgets, and columns whose written parts add up. */
import { t } from "../format/language";
import { trim } from "../format/format";
import type { BudgetState, JobCost, OfferedCost } from "../service/wire";

/** An amount with two decimals, or with as many as its first two digits need. */
export function money(amount: string | number): string {
  const value = Number(amount);
  for (let decimals = 2; decimals < 6; decimals += 1) if (!value || Math.abs(value) * 10 ** decimals >= 10) return value.toFixed(decimals);
  return value.toFixed(6);
}

/** Values of a column and their total: with two decimals or, where these do not add up, with three, and then their rests go to the largest rests. */
export function column(values: readonly number[], total: number): { parts: string[]; total: string } {
  const add = (scale: number): number => values.reduce((sum, value) => sum + Math.round(value * scale), 0);
  if (add(100) === Math.round(total * 100)) return { parts: values.map((value) => value.toFixed(2)), total: total.toFixed(2) };
  // a rest of the numbers' own imprecision is none
  const floors = values.map((value) => Math.floor(value * 1000 + 1e-6));
  const left = Math.round(total * 1000) - floors.reduce((sum, part) => sum + part, 0);
  if (left >= 0 && left <= values.length) {
    const order = values.map((value, at) => ({ at, rest: value * 1000 - (floors[at] ?? 0) })).sort((a, b) => b.rest - a.rest || a.at - b.at);
    for (const { at } of order.slice(0, left)) floors[at] = (floors[at] ?? 0) + 1;
    return { parts: floors.map((part) => (part / 1000).toFixed(3)), total: total.toFixed(3) };
  }
  return { parts: values.map((value) => value.toFixed(3)), total: total.toFixed(3) };
}

/** "about 0.42 EUR an hour; at most 1.26 EUR to its time limit". */
export function offeredWords(cost: OfferedCost): string {
  const currency = cost.currency;
  const [least, most] = [money(cost.per_hour), money(cost.per_hour_most)];
  const hour = least === most ? t("about {amount} {currency} an hour", { amount: most, currency }) : t("about {least} to {most} {currency} an hour", { least, most, currency });
  return cost.at_most === null ? hour : t("{hour}; at most {most} {currency} to its time limit", { hour, most: money(cost.at_most), currency });
}

/** What a run has cost; empty where that is not known. */
export function costWords(cost: JobCost): string {
  if (cost.cost === null || cost.currency === null) return "";
  const said = { amount: money(cost.cost), currency: cost.currency };
  if (cost.final) return t("{amount} {currency} in all", said);
  return cost.per_hour === null ? t("{amount} {currency} so far", said) : t("{amount} {currency} so far; {hour} {currency} an hour", { ...said, hour: money(cost.per_hour) });
}

export interface BudgetBar {
  /** Parts of the bar from 0 to 1: what is spent, and what is expected to be by the end. */
  spent: number;
  expected: number;
  tone: "ok" | "wait" | "bad";
  text: string;
  more: string;
}

/** A budget as a bar; null outside of its period and without prices in its currency. */
export function budgetBar(budget: BudgetState): BudgetBar | null {
  if (budget.spent === null || budget.percent === null || budget.until === null) return null;
  const [spent, amount, currency] = [Number(budget.spent), Number(budget.amount), budget.currency];
  const expected = budget.forecast === null ? spent : Math.max(Number(budget.forecast), spent);
  const top = Math.max(amount, spent);
  const more = budget.stopped
    ? t("New work is refused until {day}", { day: budget.until })
    : budget.forecast === null
      ? t("until {day}", { day: budget.until })
      : t("at this rate {amount} {currency} by {day}", { amount: money(budget.forecast), currency, day: budget.until });
  return {
    spent: spent / top,
    expected: Math.min(expected / top, 1),
    tone: spent >= amount ? "bad" : budget.reached.length ? "wait" : "ok",
    text: t("{spent} of {amount} {currency} ({percent} %)", { spent: money(spent), amount: trim(amount, 2), currency, percent: trim(budget.percent, 1) }),
    more,
  };
}
