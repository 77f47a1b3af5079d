/** Numbers, amounts and times as people read them, and back. Pure. */
import { t } from "./language";

const MIB = 1024 * 1024;
const FACTORS: Record<string, number> = {
  "": 1, b: 1, k: 1e3, kb: 1e3, m: 1e6, mb: 1e6, g: 1e9, gb: 1e9, t: 1e12, tb: 1e12,
  kib: 1024, mib: MIB, gib: 1024 * MIB, tib: 1024 * 1024 * MIB,
};

/** Trim a number to at most `digits` decimals, halves up, without trailing zeros. */
export function trim(value: number, digits = 2): string {
  const scale = 10 ** digits;
  return String(Math.floor(value * scale + 0.5) / scale);
}

export function cores(value: number): string {
  return trim(value, 2);
}

/**
 * An amount in the largest unit of which there is one: three digits that count, the first unit whole.
 * `mlp.rendering.words` does the same in Python, and one table (test/format/amounts.json) tests both.
 */
function sized(value: number, units: string[]): string {
  let at = 0;
  let left = value;
  while (Math.floor(left + 0.5) >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${trim(left, at === 0 || left >= 100 ? 0 : left >= 10 ? 1 : 2)} ${units[at]}`;
}

/** MiB as "512 MiB" or "1.46 GiB". */
export const ram = (mib: number): string => sized(mib, ["MiB", "GiB", "TiB", "PiB"]);

/** "212 / 512 MiB": one unit for both where it is the same. */
export function ramOf(used: number, of: number): string {
  const [a, b] = [ram(used), ram(of)];
  const unit = (text: string): string => text.split(" ")[1] ?? "";
  return `${unit(a) === unit(b) ? a.split(" ")[0] : a} / ${b}`;
}

export const bytes = (n: number): string => sized(n, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]);

/** Seconds as "8 s", "2 min 5 s", "3 h 10 min", "2 d 4 h". */
export function duration(seconds: number): string {
  const s = Math.max(0, Math.round(seconds));
  const [days, hours, minutes] = [Math.floor(s / 86400), Math.floor((s % 86400) / 3600), Math.floor((s % 3600) / 60)];
  const parts = [days && t("{n} d", { n: days }), hours && t("{n} h", { n: hours }), minutes && t("{n} min", { n: minutes }), s % 60 && secondsText(s % 60)];
  const first = parts.findIndex(Boolean);
  return first < 0 ? secondsText(0) : parts.slice(first, first + 2).filter(Boolean).join(" ");
}

export const secondsText = (n: number | string): string => t("{n} s", { n });

/** An RFC 3339 time in milliseconds since the epoch, or null. */
export function ms(time: string | null | undefined): number | null {
  if (!time) return null;
  const value = Date.parse(time);
  return Number.isNaN(value) ? null : value;
}

const two = (n: number): string => String(n).padStart(2, "0");

/** Local time of day; with the date when it is not the day of `now`. */
export function clock(time: string | number | null, now: number, seconds = false): string {
  const at = typeof time === "number" ? time : ms(time);
  if (at === null) return "";
  const d = new Date(at);
  const today = new Date(now);
  const day = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
  const same = d.getFullYear() === today.getFullYear() && d.getMonth() === today.getMonth() && d.getDate() === today.getDate();
  const hour = `${two(d.getHours())}:${two(d.getMinutes())}${seconds ? `:${two(d.getSeconds())}` : ""}`;
  return same ? hour : `${day} ${hour}`;
}

/** Two clocks, and a page that is drawn some seconds late, differ by so much. */
const SLACK_S = 60;

/** How long ago, or how far ahead: "just now", "5 min ago", "in 2 h 3 min"; what is a little ahead is now. */
export function ago(time: string | number | null, now: number): string {
  const at = typeof time === "number" ? time : ms(time);
  if (at === null) return "";
  const s = (now - at) / 1000;
  if (s < 2 && s > -SLACK_S) return t("just now");
  const coarse = Math.abs(s) < 3600 ? (Math.abs(s) < 60 ? Math.abs(s) : Math.floor(Math.abs(s) / 60) * 60) : Math.abs(s);
  return s > 0 ? t("{span} ago", { span: duration(coarse) }) : t("in {span}", { span: duration(coarse) });
}

/** Up to so many seconds from now an expected time is told as how long it is until then: a clock's minutes say too little. */
const SOON_S = 120;

/** When something is expected: "in 26 s" where that is soon, "any moment now" where it is due, else the time of day. */
export function starts(time: string | number | null, now: number): string {
  const at = typeof time === "number" ? time : ms(time);
  if (at === null) return "";
  const left = (at - now) / 1000;
  if (Math.abs(left) >= SOON_S) return clock(at, now);
  return left >= 0.5 ? t("in {span}", { span: duration(left) }) : t("any moment now");
}

/** A metric's value: four significant digits, exponent where it is very big or small. */
export function metric(value: number | null | undefined): string {
  if (value === null || value === undefined) return "–";
  if (!Number.isFinite(value)) return t("not a number");
  if (value === 0) return "0";
  const abs = Math.abs(value);
  if (Number.isInteger(value) && abs < 1e7) return String(value);
  if (abs >= 1e6 || abs < 1e-4) return value.toExponential(2);
  return String(Number(value.toPrecision(4)));
}

/** Of programs that are over at once too: "0.000026". */
export const coreHours = (value: number | null): string => (value && value < 1e-4 ? trim(value, 6) : metric(value));

/** "2 cpu": of two of these the first reads "3 of 8". */
export const cpus = (value: number): string => t("{amount} cpu", { amount: cores(value) });

/** "2 gpu", "2 gpu a100". */
export const gpus = (value: number, kind: string | null = null): string => t("{amount} gpu", { amount: cores(value) }) + (kind ? ` ${kind}` : "");

/** "1 cpu, 1 gpu a100, 4 GiB". */
export const sizeWords = (of: { cpu: number; gpu: number; ram: number; gpu_kind?: string | null }): string =>
  [cpus(of.cpu), ...(of.gpu ? [gpus(of.gpu, of.gpu_kind)] : []), ram(of.ram)].join(t(", "));

export type Parsed = { ok: true; value: number | null } | { ok: false; msg: string };

/** A plain number at least `least`; empty means no limit (null), or what `empty` says. */
export function parseAmount(text: string, what: string, least = 0, empty = t("empty means no limit")): Parsed {
  const typed = text.trim();
  if (typed === "") return { ok: true, value: null };
  const value = /^\d+(\.\d+)?$/.test(typed) ? Number(typed) : Number.NaN;
  if (!Number.isFinite(value) || value < least) {
    return { ok: false, msg: t("{what} is a number from {least} up, such as 4 or 0.5; {empty}", { what, least, empty }) };
  }
  return { ok: true, value };
}

function parseUnit(text: string, binary = false): number | null {
  const found = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  if (!found) return null;
  const unit = (found[2] ?? "").toLowerCase();
  const factor = FACTORS[binary ? unit.replace(/^([kmgt])b?$/, "$1ib") : unit];
  return factor === undefined ? null : Number(found[1]) * factor;
}

/** Memory in MiB from "512", "512 MiB", "16 GiB"; a bare number is MiB, "16 GB" is meant as GiB as in `--ram`; empty is null. */
export function parseRam(text: string, empty = t("empty means no limit")): Parsed {
  const typed = text.trim();
  if (typed === "") return { ok: true, value: null };
  const value = /^\d+(\.\d+)?$/.test(typed) ? Number(typed) * MIB : parseUnit(typed, true);
  if (value === null) return { ok: false, msg: t('"{typed}" is not an amount of memory: write 512 MiB or 16 GiB; {empty}', { typed, empty }) };
  return { ok: true, value: Math.round(value / MIB) };
}

/** Storage in bytes from "100 GiB", "1 TB"; a bare number is bytes; empty is null. */
export function parseBytes(text: string): Parsed {
  const typed = text.trim();
  if (typed === "") return { ok: true, value: null };
  const value = parseUnit(typed);
  if (value === null) return { ok: false, msg: t('"{typed}" is not an amount of storage: write 100 GiB or 1 TB; empty means no limit', { typed }) };
  return { ok: true, value: Math.round(value) };
}

const NAME = /^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$/;

/** Why a name will not do, or null; `what` is whose name it is. */
export function badName(name: string, what = t("a name")): string | null {
  if (name === "") return t("{what} is needed", { what });
  if (NAME.test(name)) return null;
  if (name.length > 50) return t("{what} has at most 50 characters, this one has {n}", { what, n: name.length });
  const close = name.normalize("NFKD").toLowerCase().replace(/[\u0300-\u036f]/g, "").replace(/[^a-z0-9]+/g, "-").replace(/^[-0-9]+|-+$/g, "").slice(0, 50).replace(/-+$/, "");
  const rule = t("{what} can contain only a-z, 0-9 and dashes, must start with a letter and must not end with a dash", { what });
  return NAME.test(close) ? t("{rule}, such as {close}", { rule, close }) : rule;
}

/** A sentence of the hub with the times in it as they are here: "2026-11-21T09:00:00Z", "Saturday 2026-11-21 09:00 UTC". */
export function withLocalTimes(text: string, now: number): string {
  return text
    .replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z/g, (time) => clock(time, now))
    .replace(/\b(?:[A-Z][a-z]+day )?(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC\b/g, (_, day: string, hour: string) => clock(`${day}T${hour}:00Z`, now));
}
