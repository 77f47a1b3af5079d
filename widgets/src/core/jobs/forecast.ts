/** Forecasts by earlier runs, as people read them. Pure. */
import { clock, ms, starts } from "../format/format";
import { t } from "../format/language";
import type { ForecastRange, RunForecast } from "../service/wire";

/** Up to so many milliseconds from now one time is shown, and not a range: a clock's minutes say too little. */
const SOON_MS = 120_000;

/** "14:20-14:50", from p10 to p90; one time where both are the same; empty without a range. */
export function between(range: ForecastRange | null | undefined, now: number): string {
  const low = ms(range?.p10 ?? null);
  const high = ms(range?.p90 ?? null);
  if (!range || low === null || high === null) return "";
  if (high - now < SOON_MS) return starts(range.p50, now);
  const first = clock(low, now);
  const last = clock(high, now);
  if (first === last) return first;
  const sameDay = new Date(low).toDateString() === new Date(high).toDateString();
  return t("{first}-{last}", { first, last: sameDay ? last.slice(-5) : last });
}

type Told = { expected_start: string | null; forecast?: RunForecast | null };

/** When a job is expected to start: the range of its forecast, or the time by limits; empty where neither is known. */
export const startOf = (job: Told, now: number): string => between(job.forecast?.start, now) || starts(job.expected_start, now);

/** When a job that runs ends by its earlier runs, or that it runs longer than these; empty where too little is known. */
export function endOf(job: Told, now: number): string {
  const told = job.forecast;
  if (!told) return "";
  const when = between(told.end, now);
  return when ? t("expected to end {time} ({because})", { time: when, because: told.because }) : told.start ? "" : told.because;
}
