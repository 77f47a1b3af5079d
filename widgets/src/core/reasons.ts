/** Typed reasons in words; the hub (`domain/errors.py`) and `mlp.words` have the same table, and a test compares them. Pure. */
import { bytes, duration, ram, trim } from "./format";

const WORDS: Record<string, string> = {
  Invalid: "not allowed",
  NotFound: "not there",
  Conflict: "there already",
  WrongState: "not in this state",
  Forbidden: "no right to it",
  ExceedsMaxQuota: "more than the whole quota",
  WaitingForQuota: "waits for quota",
  NoMatchingFlavor: "no such device here",
  WaitingForResources: "waits for room on the nodes",
  TopologyPlacementFailed: "waits for room in the right place",
  WaitingForPreempted: "waits for others to stop",
  Reserved: "the room is kept for others",
  Suspended: "suspended",
  Gated: "held back",
};

/** "waits for quota"; a type that is newer than this page as it is. */
export const reasonWords = (reason: string): string => (Object.hasOwn(WORDS, reason) ? (WORDS[reason] as string) : reason);

/** Of the numbers of a reason, those in seconds; those in MiB and bytes begin with what they are an amount of. */
const SECONDS = new Set(["opens_in", "window"]);

/** "cpu_inuse" as people read it: "cpu in use". */
export const numberName = (key: string): string => key.replaceAll("_", " ").replace("inuse", "in use");

/** A number of a reason in its unit, which its name tells. */
export function numberText(key: string, value: number): string {
  if (SECONDS.has(key)) return duration(value);
  if (key.startsWith("ram")) return ram(value);
  return key.startsWith("rom") ? bytes(value) : trim(value, 2);
}

export const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** "No time can be told: long of bob has no time limit." */
export function unknownStart(because: string): string {
  const text = because.startsWith("no time can be told") ? because : `no time can be told: ${because}`;
  return `${capital(text)}.`;
}
