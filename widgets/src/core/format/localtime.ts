/** Times that people type by the clock of their wall: on the days on which clocks change one is missing, or is there twice. Pure. */
import { t } from "./language";

const DAY = 86_400_000;
const two = (n: number): string => String(n).padStart(2, "0");

/** A time as a date-time field has it: local, to the minute. */
export function localText(time: number): string {
  const d = new Date(time);
  return `${String(d.getFullYear()).padStart(4, "0")}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}`;
}

/** The name of the zone that the browser is in, as Europe/Berlin. */
export const zoneName = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** How far the clocks are ahead at a time, as UTC+02:00. */
export function aheadText(time: number): string {
  const minutes = -new Date(time).getTimezoneOffset();
  return `UTC${minutes < 0 ? "-" : "+"}${two(Math.floor(Math.abs(minutes) / 60))}:${two(Math.abs(minutes) % 60)}`;
}

/** All times at which the clocks show this text: one, none in the hour that is left out, two in the one that comes again. */
export function timesOf(text: string): number[] {
  const asUtc = Date.parse(`${text.slice(0, 16)}Z`);
  if (Number.isNaN(asUtc)) return [];
  // no zone changes its clocks twice within two days
  const found = [-DAY, DAY].map((by) => asUtc + new Date(asUtc + by).getTimezoneOffset() * 60_000);
  return [...new Set(found)].filter((at) => localText(at) === text.slice(0, 16)).sort((a, b) => a - b);
}

/** What was typed as a time; `which` is that of two, "0" or "1". */
export function readLocal(text: string, which = "", choice = false): { at: number | null; fault: string | null } {
  if (!text || Number.isNaN(Date.parse(text))) return { at: null, fault: t("a day and a time are needed") };
  const found = timesOf(text);
  const time = text.slice(11, 16);
  if (!found.length) {
    const would = localText(new Date(text).getTime()).slice(11);
    return { at: null, fault: t("{time} does not exist on that day in {zone}; it would be {would}", { time, zone: zoneName(), would }) };
  }
  if (found.length === 1) return { at: found[0] as number, fault: null };
  const chosen = which === "" ? undefined : found[Number(which)];
  if (chosen !== undefined) return { at: chosen, fault: null };
  const args = { time, zone: zoneName() };
  return { at: null, fault: choice ? t("{time} occurs twice on that day in {zone}; choose one", args) : t("{time} occurs twice on that day in {zone}; take a time before or after", args) };
}

/** The choices where a time comes twice; none where it does not. */
export function choicesOf(text: string): [string, string][] {
  const found = timesOf(text);
  if (found.length < 2) return [];
  return [["", t("Choose")], ...found.map((at, i): [string, string] => [String(i), `${text.slice(11, 16)} ${aheadText(at)}`])];
}
