/** The last lines of all ranks, bounded; a replay after a reconnect adds nothing twice. Pure. */
import { t } from "../format/language";
import type { LogText } from "../service/wire";

export interface Line {
  /** Grows by one with every line; stable while the line is kept. */
  id: number;
  rank: number;
  time: string;
  err: boolean;
  text: string;
}

export const LINES_MAX = 5000;
/** A longer line is cut: a terminal would wrap it for pages. */
export const TEXT_MAX = 4000;

/** Before what takes the place of all that its line had until then: a terminal's picture of it, which the platform made. */
export const STATE = "\r\u001b[J";
/** Between the rows of a line that goes on. */
const BREAK = "\u001b[E";
/** ANSI colours and the like are meant for terminals. */
// eslint-disable-next-line no-control-regex
const STEERING = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** What a terminal shows of a line: what a progress bar wrote over is gone, nothing steers, and its rows are lines. */
export function asTerminal(text: string): string {
  const plain = text.slice(lastState(text)).replaceAll(STATE, "").replaceAll(BREAK, "\n").replace(STEERING, "");
  if (!plain.includes("\r") && !plain.includes("\b")) return plain.replace(CONTROL, "");
  // only logs that an older version wrote have what was written over
  return plain.split("\n").map(writtenOver).join("\n").replace(CONTROL, "");
}

function lastState(text: string): number {
  return Math.max(0, text.lastIndexOf(STATE));
}

function writtenOver(row: string): string {
  const shown: string[] = [];
  let at = 0;
  for (const c of row) {
    if (c === "\r") at = 0;
    else if (c === "\b") at = Math.max(0, at - 1);
    else shown[at++] = c;
  }
  return shown.join("");
}

/** The same as far as a terminal shows it, in short: what was written over is gone. A progress bar goes on for hours. */
function shortened(raw: string): string {
  if (raw.includes(STATE)) return raw.slice(lastState(raw));
  const at = raw.lastIndexOf("\r");
  return whole((at < 0 ? raw : asTerminal(raw.slice(0, at)) + raw.slice(at)).slice(-16 * TEXT_MAX));
}

/** Without half a character at either end. */
function whole(text: string): string {
  return text.replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "");
}

/** What is not kept of a rank's log; `lines` is null where they were not counted. */
export interface Missing {
  rank: number;
  bytes: number;
  lines: number | null;
}

export class LogStore {
  lines: Line[] = [];
  version = 0;
  /** Lines that came and are no longer kept. */
  dropped = 0;
  readonly ranks = new Set<number>();
  /** What the platform did not keep, by rank. */
  readonly missing = new Map<number, Missing>();
  private next = 0;
  private readonly newest = new Map<number, { time: string; texts: Set<string> }>();
  /** Lines without an end, by rank and stream, with what was written. */
  private readonly open = new Map<string, { rows: Line[]; raw: string }>();

  /** All of the past has come, rank after rank: put it into the order in which it was written, ranks of one moment by number. */
  settle(): void {
    this.lines.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.rank - b.rank || a.id - b.id));
    this.version += 1;
  }

  /** So much of a rank's log is not kept. */
  lose(missing: Missing): void {
    this.missing.set(missing.rank, missing);
    this.version += 1;
  }

  /** `replay`: the stream repeats its tail; what is not newer than what is here is skipped. */
  add(rank: number, lines: LogText[], replay: boolean): void {
    if (!lines.length) return;
    this.ranks.add(rank);
    const known = this.newest.get(rank);
    let newest = known;
    for (const line of lines) {
      const key = `${rank} ${line.stream}`;
      const begun = this.open.get(key);
      // a replay gives a line whole, with what is here already of it
      const raw = begun && !replay ? begun.raw + line.text : line.text;
      const shown = asTerminal(raw);
      if (replay && known && (line.time < known.time || (line.time === known.time && known.texts.has(shown)))) continue;
      const rows = shown.split("\n").map((row, i) => ({
        id: begun?.rows[i]?.id ?? this.next++, rank, time: line.time, err: line.stream === "stderr",
        text: row.length > TEXT_MAX ? `${whole(row.slice(0, TEXT_MAX))} ${t("[cut: {n} more characters are in the log]", { n: row.length - TEXT_MAX })}` : row,
      }));
      const at = begun?.rows[0] ? this.lines.lastIndexOf(begun.rows[0]) : -1;
      if (!begun || at < 0) this.lines.push(...rows);
      else if (begun.rows.every((row, i) => this.lines[at + i] === row)) this.lines.splice(at, begun.rows.length, ...rows);
      else {
        // other ranks' lines came between its rows: they are sorted by time
        const gone = new Set(begun.rows.slice(1));
        this.lines.splice(at, 1, ...rows);
        this.lines = this.lines.filter((one) => !gone.has(one));
      }
      if (line.partial) this.open.set(key, { rows, raw: shortened(raw) });
      else this.open.delete(key);
      if (newest && newest.time === line.time) newest.texts.add(shown);
      else if (!newest || line.time > newest.time) newest = { time: line.time, texts: new Set([shown]) };
    }
    if (newest) this.newest.set(rank, newest);
    // cut in one go, well below the bound, so that a flood does not copy the array for every line
    if (this.lines.length > LINES_MAX) {
      if (replay) this.settle(); // rank after rank: the oldest go, not those of the rank that came first
      const drop = this.lines.length - Math.floor(LINES_MAX * 0.9);
      this.dropped += drop;
      this.lines = this.lines.slice(drop);
    }
    this.version += 1;
  }
}
