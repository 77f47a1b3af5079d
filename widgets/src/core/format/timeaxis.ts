/** Time since the begin of a run as people read it: one unit along the axis, whole steps of it between the ticks. Pure. */
import { duration, secondsText, trim } from "./format";
import { t } from "./language";

const MIN = 60;
const H = 3600;
const DAY = 86_400;

/** Steps between ticks, in seconds: of ten below a minute, then of clocks and calendars. */
export const STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30,
  MIN, 2 * MIN, 5 * MIN, 10 * MIN, 15 * MIN, 30 * MIN, H, 2 * H, 3 * H, 6 * H, 12 * H,
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((n) => n * DAY),
];

const PARTS = Array.from({ length: 25 }, (_, i) => 10 ** (i - 12)).flatMap((power) => [power, 2 * power, 2.5 * power, 5 * power]);
const WHOLE = PARTS.filter(Number.isInteger);

/** Steps between ticks of an axis without a unit: whole numbers where all values are, as epochs. */
export const stepsOf = (values: ArrayLike<number | null>): number[] => (Array.from(values).every((x) => x === null || Number.isInteger(x)) ? WHOLE : PARTS);

/** Tuning: pixels between the label at the end of an axis and the one before it, so that they do not touch. */
const APART = 46;

/** Places of the labels of an x axis: multiples of a step that is `space` pixels wide, and the end of the axis. */
export function placesOf(min: number, max: number, step: number, space: number): number[] {
  const found: number[] = [];
  for (let i = Math.ceil(min / step - 1e-9); i * step < max; i += 1) {
    // without the last digits of a product, as 3 * 0.1 has them
    const at = Number((i * step).toPrecision(12));
    if (((max - at) / step) * space >= APART) found.push(at);
  }
  return [...found, max];
}

/** Labels of an axis: seconds, minutes, hours or days for all of its ticks, by the largest. */
export function tickWords(ticks: (number | null)[]): string[] {
  const known = ticks.filter((t): t is number => t !== null);
  const most = Math.max(0, ...known.map(Math.abs));
  const step = known.length > 1 ? Math.abs((known[1] as number) - (known[0] as number)) : most;
  const size = most >= 2 * DAY && step >= DAY / 2 ? DAY : most >= 2 * H && step >= H / 2 ? H : most >= 2 * MIN && step >= MIN / 2 ? MIN : 1;
  return ticks.map((at) => {
    if (at === null) return "";
    const n = trim(at / size, size === 1 && step < 1 ? 3 : 1);
    return size === DAY ? t("{n} d", { n }) : size === H ? t("{n} h", { n }) : size === MIN ? t("{n} min", { n }) : secondsText(n);
  });
}

/** One moment, exactly: "4.2 s", "1 h 30 min". */
export function elapsed(seconds: number): string {
  return seconds < MIN && seconds % 1 ? secondsText(trim(seconds, 1)) : duration(seconds);
}
