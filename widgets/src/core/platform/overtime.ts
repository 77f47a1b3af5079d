/** Curves of the page "Over time": which there are of an answer, with their units and words. Pure. */
import { clock, cores, duration, ram, trim } from "../format/format";
import { language, n, t } from "../format/language";
import { reasonWords } from "../format/reasons";
import { STEPS } from "../format/timeaxis";
import type { OverTime } from "../service/wire";

export const SPANS = ["hour", "day", "week", "month"] as const;
export type Span = (typeof SPANS)[number];

const DAY_S = 86_400;
/** The most reasons with their own line; the rest is summed. */
const MOST_REASONS = 6;

export type Values = readonly (number | null)[];

export interface TimeLine {
  label: string;
  values: Values;
  /** Limits are dashed; amounts are filled down to zero. */
  look: "line" | "dashed" | "filled";
  /** A level that changes at once, and not a slope. */
  stepped?: boolean;
  /** Measured now and then: its points are dots, and the line runs on over steps without any. */
  sparse?: boolean;
}

export interface TimeCurves {
  key: string;
  title: string;
  lines: TimeLine[];
  show: (value: number) => string;
  /** Labels of the axis, where they have to be short, and the steps between them. */
  tick?: (value: number) => string;
  ticks?: readonly number[];
}

const enc = encodeURIComponent;

/** Of the cluster, or of one team. */
export const overTimePath = (tenant: string | null, span: Span): string => `${tenant === null ? "" : `/tenants/${enc(tenant)}`}/over-time?span=${span}`;

/** The begin of each step, in seconds since the epoch. */
export const timesOf = (found: OverTime): number[] => found.samples.map((_, at) => Date.parse(found.since) / 1000 + at * found.step);

/** Whether the service ran in each step. */
export const knownOf = (found: OverTime): boolean[] => found.samples.map((count) => count > 0);

/** Whether the service ran at any time of the span. */
export const isKnown = (found: OverTime): boolean => found.samples.some((count) => count > 0);

/** Tuning: steps that an axis has at least, so that a few samples are not as wide as days. */
const FEWEST_STEPS = 12;

/** The first step in which the service ran; 0 where it ran from the begin of the span on. */
export const firstKnown = (found: OverTime): number => Math.max(0, found.samples.findIndex((count) => count > 0));

/** The answer without the steps before the first sample: a new hub has nothing to draw there. */
export function fromFirstKnown(found: OverTime): OverTime {
  const number = found.samples.length;
  const from = Math.max(0, Math.min(firstKnown(found), number - FEWEST_STEPS));
  if (!from) return found;
  // each list of an answer, at any depth, has one value for each step
  const cut = (value: unknown): unknown =>
    Array.isArray(value)
      ? value.length === number && value.every((one) => one === null || typeof one === "number") ? value.slice(from) : value.map(cut)
      : value && typeof value === "object" ? Object.fromEntries(Object.entries(value).map(([key, one]) => [key, cut(one)])) : value;
  return { ...(cut(found) as OverTime), since: new Date(Date.parse(found.since) + from * found.step * 1000).toISOString() };
}

const percent = (part: Values, of: Values): Values => part.map((value, at) => (value === null || !of[at] ? null : (100 * value) / (of[at] ?? 1)));
const sums = (...all: Values[]): Values => (all[0] ?? []).map((_, at) => (all.some((one) => one[at] === null) ? null : all.reduce((sum, one) => sum + (one[at] ?? 0), 0)));
const any = (values: Values): boolean => values.some((value) => (value ?? 0) > 0);

/** Steps of an axis of MiB: whole ones of each unit. */
const SIZES = Array.from({ length: 40 }, (_, at) => 2 ** at);
const NAMES: Record<string, () => string> = { cpu: () => t("CPU"), ram: () => t("Memory"), gpu: () => t("GPU") };
const SHOWS: Record<string, (value: number) => string> = {
  cpu: (value) => n("1 core", "{n} cores", value, { n: cores(value) }),
  gpu: (value) => n("1 GPU", "{n} GPUs", value, { n: cores(value) }),
  ram,
};
const number = (value: number): string => trim(value, 2);
const milliseconds = (value: number): string => t("{ms} ms", { ms: trim(value, 0) });
const share = (value: number): string => t("{n} %", { n: trim(value, 1) });

function amounts(found: OverTime): TimeCurves[] {
  const limit = found.tenant === null ? t("capacity") : t("quota");
  return found.amounts
    .filter((of) => of.dimension !== "gpu" || any(of.held) || any(of.limit))
    .map((of) => ({
      key: of.dimension,
      title: NAMES[of.dimension]?.() ?? of.dimension,
      lines: [
        { label: t("held"), values: of.held, look: "filled" },
        ...(of.held.some((held, at) => held !== of.held_most[at]) ? [{ label: t("held at most"), values: of.held_most, look: "line" } satisfies TimeLine] : []),
        ...(any(of.used) ? [{ label: t("used"), values: of.used, look: "line" } satisfies TimeLine] : []),
        ...(of.limit.some((one) => one !== null) ? [{ label: limit, values: of.limit, look: "dashed", stepped: true } satisfies TimeLine] : []),
      ],
      show: SHOWS[of.dimension] ?? number,
      tick: of.dimension === "ram" ? ram : number,
      ...(of.dimension === "ram" ? { ticks: SIZES } : {}),
    }));
}

function queue(found: OverTime): TimeCurves {
  const total = (values: Values): number => values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  const sorted = [...found.reasons].sort((a, b) => total(b.waiting) - total(a.waiting));
  const rest = sorted.slice(MOST_REASONS).map((of) => of.waiting);
  const words = (reason: string): string => (reason === "New" ? t("new") : reasonWords(reason));
  return {
    key: "queue",
    title: t("Waiting jobs by reason"),
    lines: [
      { label: t("all"), values: found.waiting, look: "filled" },
      ...sorted.slice(0, MOST_REASONS).map((of): TimeLine => ({ label: words(of.reason), values: of.waiting, look: "line" })),
      ...(rest.length ? [{ label: t("other reasons"), values: sums(...rest), look: "line" } satisfies TimeLine] : []),
    ],
    show: number,
  };
}

/** A wait in seconds: most are shorter than one. */
const wait = (seconds: number): string => (seconds > 0 && seconds < 1 ? milliseconds(1000 * seconds) : duration(seconds));

/** All curves that there is anything to see of; those of apps only where there are requests. */
export function curvesOf(found: OverTime): TimeCurves[] {
  const apps: TimeCurves[] = [
    {
      key: "latency",
      title: t("Answers of apps"),
      lines: [
        { label: t("median"), values: found.latency_p50_ms, look: "line", sparse: true },
        { label: t("99 %"), values: found.latency_p99_ms, look: "line", sparse: true },
      ],
      show: milliseconds,
    },
    { key: "errors", title: t("Failed requests to apps"), lines: [{ label: t("failed"), values: percent(found.errors, found.requests), look: "line", sparse: true }], show: share },
  ];
  return [
    ...amounts(found),
    { key: "running", title: t("Running jobs"), lines: [{ label: t("running"), values: found.running, look: "filled" }], show: number },
    queue(found),
    {
      key: "waits",
      title: t("Waits of admitted jobs"),
      lines: [
        { label: t("median"), values: found.wait_p50_s, look: "line", sparse: true },
        { label: t("90 %"), values: found.wait_p90_s, look: "line", sparse: true },
      ],
      show: wait,
      ticks: STEPS,
    },
    {
      key: "ended",
      title: t("Ended jobs"),
      lines: [
        { label: t("finished"), values: found.finished, look: "filled" },
        { label: t("failed"), values: found.failed, look: "line" },
        { label: t("cancelled"), values: found.cancelled, look: "line" },
      ],
      show: number,
    },
    {
      key: "failures",
      title: t("Failed jobs"),
      lines: [{ label: t("failed"), values: percent(found.failed, sums(found.finished, found.failed)), look: "line", sparse: true }],
      show: share,
    },
    ...(any(found.requests) ? apps : []),
  ];
}

/** A moment of the axis in the reader's zone: the day where one begins, else the time of day. */
export function tickText(at: number, step: number): string {
  const date = new Date(at * 1000);
  const day = step >= DAY_S || (date.getHours() === 0 && date.getMinutes() === 0);
  return day ? date.toLocaleDateString(language(), { month: "short", day: "numeric" }) : clock(at * 1000, at * 1000);
}

/** "14:05 to 14:06", with the day where it is not today. */
export const stepText = (at: number, step: number, now: number): string =>
  t("{from} to {to}", { from: clock(at * 1000, now), to: clock((at + step) * 1000, at * 1000) });

/** The sums of the span, as pairs of a word and a value. */
export function numbersOf(found: OverTime): [string, string][] {
  const { total } = found;
  const known = (seconds: number | null): string => (seconds === null ? "–" : wait(seconds));
  const within = (ms: number | null): string => (ms === null ? "–" : milliseconds(ms));
  const ended = total.finished + total.failed;
  return [
    [t("Admitted jobs"), String(total.admitted)],
    [t("Half waited at most"), known(total.wait_p50_s)],
    [t("90 % waited at most"), known(total.wait_p90_s)],
    [t("Failed jobs"), ended ? t("{n} of {all}, {share}", { n: total.failed, all: ended, share: share((100 * total.failed) / ended) }) : "–"],
    ...(total.requests
      ? ([
          [t("Requests to apps"), String(total.requests)],
          [t("Failed requests"), share((100 * total.errors) / total.requests)],
          [t("Half were answered within"), within(total.latency_p50_ms)],
          [t("99 % were answered within"), within(total.latency_p99_ms)],
        ] satisfies [string, string][])
      : []),
  ];
}
