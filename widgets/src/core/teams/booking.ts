/** The form of a booked window as data: texts that people typed, what is wrong with them, and the request. Pure. */
import { badName, clock, duration, ms, parseAmount, parseRam } from "../format/format";
import { t } from "../format/language";
import { localText, readLocal } from "../format/localtime";
import { amounts } from "./sharing";
import type { ByDimension } from "./sharing";
import type { Booking, BookingCreate } from "../service/wire";

/** `which` says which of two times is meant where the clocks show one twice. */
export type BookingField = "name" | "start" | "startWhich" | "end" | "endWhich" | "cpu" | "gpu" | "ram";
export type BookingTexts = Record<BookingField, string>;
export type BookingFaults = Partial<Record<BookingField, string>>;

const HOUR = 3_600_000;

/** What the form begins with: a working day from the next full hour on. */
export function newBooking(now: number): BookingTexts {
  const start = Math.ceil(now / HOUR) * HOUR;
  return { name: "", start: localText(start), end: localText(start + 8 * HOUR), startWhich: "", endWhich: "", cpu: "", gpu: "", ram: "" };
}

export function readBooking(texts: BookingTexts, names: string[], now: number): { asked: BookingCreate | null; faults: BookingFaults } {
  const faults: BookingFaults = {};
  const name = texts.name.trim();
  const bad = badName(name) ?? (names.includes(name) ? t("a window {name} already exists", { name }) : null);
  if (bad) faults.name = bad;
  const { at: start, fault: badStart } = readLocal(texts.start, texts.startWhich, true);
  const { at: end, fault: badEnd } = readLocal(texts.end, texts.endWhich, true);
  if (badStart) faults.start = badStart;
  if (end === null) faults.end = badEnd ?? "";
  else if (end <= now) faults.end = t("is over");
  else if (start !== null && end <= start) faults.end = t("is not after the start");
  const amount: ByDimension = {};
  for (const d of ["cpu", "gpu", "ram"] as const) {
    const parsed = d === "ram" ? parseRam(texts[d], t("empty means none")) : parseAmount(texts[d], d, 0, t("empty means none"));
    if (!parsed.ok) faults[d] = parsed.msg;
    else if (parsed.value) amount[d] = parsed.value;
  }
  if (!faults.cpu && !faults.gpu && !faults.ram && !Object.keys(amount).length) faults.cpu = t("enter at least one amount");
  if (Object.keys(faults).length || start === null || end === null) return { asked: null, faults };
  return { asked: { name, start: new Date(start).toISOString(), end: new Date(end).toISOString(), amount }, faults };
}

/** How long the window is that was typed; nothing where it is none. */
export function lengthWords(texts: BookingTexts): string {
  const [start, end] = [readLocal(texts.start, texts.startWhich).at, readLocal(texts.end, texts.endWhich).at];
  return start === null || end === null || end <= start ? "" : duration((end - start) / 1000);
}

/** "open, until 18:00 (3 h 20 min left)", "opens 2026-03-01 08:00 (in 2 d 4 h), for 10 h". */
export function windowWords(window: Booking, now: number): { open: boolean; text: string } {
  const start = ms(window.start) ?? 0;
  const end = ms(window.end) ?? 0;
  const open = start <= now && now < end;
  const left = (until: number): string => duration(Math.floor((until - now) / 60_000) * 60);
  const length = duration((end - start) / 1000);
  if (open) return { open, text: t("until {time}, {span} left of {length}", { time: clock(end, now), span: left(end), length }) };
  return { open, text: t("{start} to {end} ({length}), in {span}", { start: clock(start, now), end: clock(end, now), length, span: left(start) }) };
}

/** What is kept free for a window: all of it, or what can be held of it. */
export function keptWords(window: Booking): string {
  const all = amounts(window.amount);
  return window.short ? t("{some} of {all}", { some: amounts(window.short.left), all }) : all;
}

/** What is to be known of windows, each thing once. */
export function notesOf(windows: Booking[]): string[] {
  return [...new Set(windows.flatMap((w) => w.notes))].map((note) => note.charAt(0).toUpperCase() + note.slice(1));
}

/** Which field a refusal speaks of, when its message begins with one. */
export function bookingFieldOf(msg: string): BookingField | null {
  const found = /^(?:amount\.)?(name|start|end|cpu|gpu|ram)\b/.exec(msg);
  if (found) return found[1] as BookingField;
  return /already has a booked window \S/.test(msg) ? "name" : null;
}
