/** Runs side by side: what differs, and curves that are smoothed. Pure. */
import { bytes } from "../format/format";
import { n } from "../format/language";
import { Track } from "./series";
import type { RunData } from "../service/wire";

/** By name the values of all, where not all are the same. */
export function differing(each: Record<string, unknown>[]): [string, unknown[]][] {
  const names = new Set(each.flatMap((one) => Object.keys(one)));
  return [...names]
    .map((name): [string, unknown[]] => [name, each.map((one) => one[name])])
    .filter(([, row]) => row.some((value) => value !== row[0]));
}

/** Packages with their versions, of lines NAME==VERSION. */
export function packages(environment: string | null): Record<string, string> {
  const found: Record<string, string> = {};
  for (const line of (environment ?? "").split("\n")) {
    const at = line.indexOf("==");
    if (at > 0) found[line.slice(0, at)] = line.slice(at + 2);
  }
  return found;
}

/** What of a dataset a run read: by the checksum of its files where that is known, else which one it was and how large. */
export function dataWords(used: RunData): string {
  return used.digest ? n("1 file, checksum {digest}", "{n} files, checksum {digest}", used.files, { digest: used.digest.slice(0, 12) }) : `${used.uid.slice(-6)} (${bytes(used.size)})`;
}

export interface DiffLine {
  kind: " " | "+" | "-";
  text: string;
}

/** Lines of a text that are compared at most: beyond, all of one is told as gone and all of the other as new. */
const MOST_LINES = 2000;
const AROUND = 3;

/** What has to be done to the lines of one text to have the other: the longest common ones stay. */
export function diff(before: string, after: string): DiffLine[] {
  const [a, b] = [before.split("\n"), after.split("\n")];
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head += 1;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail += 1;
  const [x, y] = [a.slice(head, a.length - tail), b.slice(head, b.length - tail)];
  const same = (lines: string[]): DiffLine[] => lines.map((text) => ({ kind: " ", text }));
  return [...same(a.slice(0, head)), ...middle(x, y), ...same(a.slice(a.length - tail))];
}

function middle(x: string[], y: string[]): DiffLine[] {
  if (x.length > MOST_LINES || y.length > MOST_LINES) {
    return [...x.map((text): DiffLine => ({ kind: "-", text })), ...y.map((text): DiffLine => ({ kind: "+", text }))];
  }
  const width = y.length + 1;
  const common = new Uint16Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i -= 1) {
    for (let j = y.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = x[i] === y[j] ? (common[(i + 1) * width + j + 1] as number) + 1
        : Math.max(common[(i + 1) * width + j] as number, common[i * width + j + 1] as number);
    }
  }
  const out: DiffLine[] = [];
  let [i, j] = [0, 0];
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) {
      out.push({ kind: " ", text: x[i] as string });
      i += 1;
      j += 1;
    } else if (j >= y.length || (i < x.length && (common[(i + 1) * width + j] as number) >= (common[i * width + j + 1] as number))) {
      out.push({ kind: "-", text: x[i] as string });
      i += 1;
    } else {
      out.push({ kind: "+", text: y[j] as string });
      j += 1;
    }
  }
  return out;
}

/** Only the lines that changed and some around them; null where lines were left out. */
export function hunks(lines: DiffLine[]): (DiffLine | null)[] {
  const near = lines.map((_, i) => lines.slice(Math.max(0, i - AROUND), i + AROUND + 1).some((l) => l.kind !== " "));
  return lines.flatMap((line, i): (DiffLine | null)[] => (near[i] ? [line] : near[i - 1] || i === 0 ? [null] : []));
}

export interface RunCurve {
  x: number[];
  y: (number | null)[];
}

/** A curve as charts take it. */
export function trackOf(curve: RunCurve): Track {
  const track = new Track();
  curve.x.forEach((x, i) => track.push(x, x, curve.y[i] ?? Number.NaN, Number.POSITIVE_INFINITY));
  return track;
}

/** Smoothed by an exponential mean that begins without a bias; `weight` from 0 (as it is) to below 1. */
export function smoothed(curve: RunCurve, weight: number): RunCurve {
  let [sum, mass] = [0, 0];
  const y = curve.y.map((value) => {
    if (value === null) return null;
    sum = sum * weight + value * (1 - weight);
    mass = mass * weight + (1 - weight);
    return sum / mass;
  });
  return { x: curve.x, y };
}
