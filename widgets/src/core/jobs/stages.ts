/** Where the time of an attempt went before its first line of output. Pure. */
import { duration, ms, secondsText, trim } from "../format/format";
import { t } from "../format/language";
import type { JobAttempt, AttemptStage } from "../service/wire";

type StageName = AttemptStage["stage"];

/** A part of the way: what was waited for, and how long; `open` while it is. */
export interface Part {
  /** The stage that ends it; of an open one the stage that is waited for. */
  stage: StageName;
  seconds: number;
  open: boolean;
}

const LABELS: Record<StageName, () => string> = {
  queued: () => t("Submitted"),
  admitted: () => t("In the queue"),
  created: () => t("Making its pods"),
  bound: () => t("Finding their nodes"),
  pulled: () => t("Images and containers"),
  started: () => t("Starting its program"),
  "first-line": () => t("Waiting for output"),
};
/** What is waited for until a stage. */
export const partWord = (stage: StageName): string => (Object.hasOwn(LABELS, stage) ? LABELS[stage]() : stage);

/** What comes next, as far as that is known: a program that runs may never write. */
const NEXT: Partial<Record<StageName, StageName>> = { queued: "admitted", admitted: "started", created: "bound", bound: "pulled", pulled: "started" };

export function parts(attempt: JobAttempt, now: number): Part[] {
  const found: Part[] = attempt.stages.filter((s) => s.seconds !== null).map((s) => ({ stage: s.stage, seconds: s.seconds as number, open: false }));
  const last = attempt.stages.at(-1);
  const next = last && attempt.ended === null ? NEXT[last.stage] : undefined;
  const since = last ? ms(last.time) : null;
  if (next && since !== null) found.push({ stage: next, seconds: Math.max(0, (now - since) / 1000), open: true });
  return found;
}

/** All of them together, in seconds. */
export const whole = (of: Part[]): number => of.reduce((sum, part) => sum + part.seconds, 0);

/** Each part's width in percent: none that there is vanishes, whatever the others are. */
export function widths(of: Part[], least = 1.5): number[] {
  const all = whole(of);
  if (!all) return of.map(() => 100 / of.length);
  const raw = of.map((part) => Math.max(least, (100 * part.seconds) / all));
  const sum = raw.reduce((a, b) => a + b, 0);
  return raw.map((width) => (100 * width) / sum);
}

/** "0.4 s", "2 min 5 s". */
export const spanWords = (seconds: number): string => (seconds < 59.95 ? secondsText(trim(seconds, seconds < 0.095 ? 2 : 1)) : duration(seconds));

/** Attempts that there is something to tell of, the newest first. */
export const told = (attempts: JobAttempt[]): JobAttempt[] => attempts.filter((a) => a.stages.length).reverse();
