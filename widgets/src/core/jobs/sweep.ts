/** What a sweep's pictures are made of: the order of its trials, and where their values are on parallel axes. Pure. */
import { coreHours } from "../format/format";
import { n, t } from "../format/language";
import type { Tone } from "./phase";
import { capital, reasonWords } from "../format/reasons";
import type { Sweep, SweepCurve, SweepTrial } from "../service/wire";

type Param = boolean | number | string;
export type SweepState = Sweep["state"];
export type TrialState = SweepTrial["state"];

export interface SweepSnapshot {
  sweep: Sweep;
  curves: SweepCurve[];
}

const STATES: Record<SweepState, { word: () => string; tone: Tone }> = {
  running: { word: () => t("Running"), tone: "run" },
  ending: { word: () => t("Ending"), tone: "busy" },
  finished: { word: () => t("Finished"), tone: "good" },
  failed: { word: () => t("Failed"), tone: "bad" },
  cancelled: { word: () => t("Cancelled"), tone: "idle" },
  deleting: { word: () => t("Deleting"), tone: "idle" },
};
const TRIALS: Record<TrialState, { word: () => string; tone: Tone }> = {
  planned: { word: () => t("Waits"), tone: "wait" },
  running: { word: () => t("Running"), tone: "run" },
  finished: { word: () => t("Finished"), tone: "good" },
  stopped: { word: () => capital(reasonWords("StoppedEarly")), tone: "idle" },
  failed: { word: () => t("Failed"), tone: "bad" },
  cancelled: { word: () => t("Cancelled"), tone: "idle" },
};

export const sweepWord = (state: SweepState): string => STATES[state].word();
export const sweepTone = (state: SweepState): Tone => STATES[state].tone;
export const trialTone = (state: TrialState): Tone => TRIALS[state].tone;
/** A trial whose job waits for room is said to wait, though it goes on. */
export const trialWaits = (trial: SweepTrial): boolean => trial.state === "planned" || (trial.state === "running" && trial.phase === "queued");
export const trialWord = (trial: SweepTrial): string => TRIALS[trialWaits(trial) ? "planned" : trial.state].word();

export const hasEnded = (sweep: Sweep): boolean => ["finished", "failed", "cancelled", "deleting"].includes(sweep.state);
export const sweepReference = (sweep: Sweep): string => `${sweep.name}@${sweep.run}`;

export const ended = (sweep: Sweep): number => {
  const { finished, stopped, failed, cancelled } = sweep.counts;
  return finished + stopped + failed + cancelled;
};

/** "12 of 40 trials have ended, 3 run, 2 wait". */
export function countsWords(sweep: Sweep): string {
  const c = sweep.counts;
  return [
    t("{done} of {n} trials have ended", { done: ended(sweep), n: sweep.budget_trials }),
    ...(c.running ? [n("1 running", "{n} running", c.running)] : []),
    ...(c.waiting ? [n("1 waiting", "{n} waiting", c.waiting)] : []),
    ...(c.stopped ? [n("1 was stopped early", "{n} were stopped early", c.stopped)] : []),
    ...(c.failed ? [n("1 failed", "{n} failed", c.failed)] : []),
  ].join(t(", "));
}

export const spentWords = (sweep: Sweep): string =>
  sweep.budget_core_hours === null
    ? t("{n} core-hours", { n: coreHours(sweep.core_hours) })
    : t("{n} of {most} core-hours", { n: coreHours(sweep.core_hours), most: coreHours(sweep.budget_core_hours) });

const short = (value: Param | undefined): string =>
  value === undefined ? "" : typeof value === "number" ? String(Number(value.toPrecision(4))) : String(value);

export const paramWords = (trial: SweepTrial): string => Object.entries(trial.params).map(([name, value]) => `${name}=${short(value)}`).join(" ");
export const paramText = short;
export const paramNames = (sweep: Sweep): string[] => [...Object.keys(sweep.grid), ...Object.keys(sweep.search)];

/** The best first; those without a value by number. */
export function inOrder(sweep: Sweep): SweepTrial[] {
  const sign = sweep.goal === "max" ? -1 : 1;
  const rank = (x: SweepTrial): number => (x.value === null || x.state === "failed" ? Number.POSITIVE_INFINITY : sign * x.value);
  return [...sweep.trials].sort((a, b) => (rank(a) === rank(b) ? a.number - b.number : rank(a) - rank(b)));
}

export interface Axis {
  name: string;
  low: string;
  high: string;
  /** Where each trial's value is, from 0 to 1; null where it has none. */
  at: (number | null)[];
}

/** Most axes that are drawn: more would be too near each other to be read. */
const AXES = 8;

/** An axis for each parameter, and one for what is measured; none where there is nothing to compare. */
export function axes(sweep: Sweep, trials: SweepTrial[]): Axis[] {
  if (trials.length < 2 || !sweep.metric) return [];
  const params = paramNames(sweep).slice(0, AXES).map((name) => axis(name, trials.map((x) => x.params[name]), (sweep.search[name] ?? "").startsWith("log")));
  return params.length ? [...params, axis(sweep.metric, trials.map((x) => x.value ?? undefined), false)] : [];
}

function axis(name: string, values: (Param | undefined)[], log: boolean): Axis {
  const given = values.filter((v): v is Param => v !== undefined);
  if (given.length && given.every((v) => typeof v === "number")) {
    const placed = values.map((v) => (typeof v === "number" ? (log && v > 0 ? Math.log(v) : v) : null));
    const known = placed.filter((v): v is number => v !== null);
    const [low, high] = [Math.min(...known), Math.max(...known)];
    const numbers = given as number[];
    return {
      name, low: short(Math.min(...numbers)), high: short(Math.max(...numbers)),
      at: placed.map((v) => (v === null ? null : high > low ? (v - low) / (high - low) : 0.5)),
    };
  }
  const words = [...new Set(given.map(String))].sort();
  const most = Math.max(words.length - 1, 1);
  return { name, low: words[0] ?? "", high: words.at(-1) ?? "", at: values.map((v) => (v === undefined ? null : words.indexOf(String(v)) / most)) };
}

/** The range of some numbers with a little air, also where all are the same. */
export function spanOf(values: number[]): [number, number] {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const air = (high - low) * 0.05 || Math.abs(low) * 0.1 || 1;
  return [low - air, high + air];
}

/** Round numbers between two bounds. */
export function roundTicks(low: number, high: number, count = 3): number[] {
  const power = 10 ** Math.floor(Math.log10((high - low) / count));
  const step = [1, 2, 5, 10].map((f) => f * power).find((s) => s >= ((high - low) / count) * 0.999) ?? power;
  const first = Math.ceil(low / step - 1e-9);
  return Array.from({ length: Math.max(0, Math.floor(high / step + 1e-9) - first + 1) }, (_, i) => (first + i) * step);
}

/** A snapshot that came with a notebook is anybody's text: take only what has the right shape. */
export function readableSweep(value: unknown): SweepSnapshot | null {
  const { sweep, curves } = (typeof value === "object" && value !== null ? value : {}) as Partial<SweepSnapshot>;
  if (typeof sweep !== "object" || sweep === null) return null;
  const { name, user, state, trials, counts } = sweep as Partial<Sweep>;
  if (typeof name !== "string" || typeof user !== "string" || typeof state !== "string" || !Object.hasOwn(STATES, state)) return null;
  if (!Array.isArray(trials) || typeof counts !== "object" || counts === null) return null;
  const kept = trials.filter((x) => typeof x === "object" && x !== null && Object.hasOwn(TRIALS, x.state) && typeof x.params === "object" && x.params !== null);
  return { sweep: { ...sweep, trials: kept, grid: sweep.grid ?? {}, search: sweep.search ?? {} }, curves: Array.isArray(curves) ? curves.filter((c) => Array.isArray(c?.points)) : [] };
}
