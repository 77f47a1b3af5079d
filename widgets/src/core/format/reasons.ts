/** Typed reasons in words, and their numbers. Pure. */
import { DIMENSIONS, ROWS } from "./dimensions";
import { duration, trim } from "./format";
import { t } from "./language";
import { REASONS } from "./terms";

/** "waits for quota"; a type that is newer than this page as it is. */
export const reasonWords = (reason: string): string => (Object.hasOwn(REASONS, reason) ? (REASONS[reason]?.() ?? reason) : reason);

let documentation = "";
/** Take the address of the documentation, with a slash at its end; empty where no hub is known. */
export const documentedAt = (address: string): void => {
  documentation = address;
};

/** The row of the documentation about a reason; empty for a type that is newer than this page, and where no hub is known. */
export const reasonPage = (reason: string): string =>
  documentation && Object.hasOwn(REASONS, reason) ? `${documentation}reference/reasons#${reason.toLowerCase()}` : "";

/** Of the numbers of a reason, those in seconds; those in MiB and bytes begin with what they are an amount of. */
const SECONDS = new Set(["opens_in", "window"]);

/** "cpu_inuse" as people read it: "cpu in use". */
export const numberName = (key: string): string => key.replaceAll("_", " ").replace("inuse", "in use").replace(/^rom\b/, "storage");

/** A number of a reason in its unit, which its name tells. */
export function numberText(key: string, value: number): string {
  if (SECONDS.has(key)) return duration(value);
  const of = DIMENSIONS.find((d) => d !== "cpu" && d !== "gpu" && key.startsWith(d));
  return of ? ROWS[of].show(value) : trim(value, 2);
}

export const capital = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`;

/** "No time can be estimated: long of bob has no time limit." */
export function unknownStart(said: string): string {
  const because = said.replace(/[.。]+$/, ""); // a sentence, where it is the verdict itself
  return because.startsWith(t("no time can be estimated")) ? t("{text}.", { text: capital(because) }) : t("No time can be estimated: {because}.", { because });
}
