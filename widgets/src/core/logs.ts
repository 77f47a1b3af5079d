/** The last lines of all ranks, bounded; a replay after a reconnect adds nothing twice. Pure. */
import { t } from "./language";
import type { LogText } from "./wire";

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

/** ANSI colours and the like are meant for terminals. */
// eslint-disable-next-line no-control-regex
const STEERING = /\u001b\[[0-9;?]*[A-Za-z]/g;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000a-\u001f\u007f]/g;

/** What a terminal shows of a line: what a progress bar wrote over is gone, and nothing steers. */
export function asTerminal(text: string): string {
  const plain = text.replace(STEERING, "");
  if (!plain.includes("\r") && !plain.includes("\b")) return plain.replace(CONTROL, "");
  const shown: string[] = [];
  let at = 0;
  for (const c of plain) {
    if (c === "\r") at = 0;
    else if (c === "\b") at = Math.max(0, at - 1);
    else shown[at++] = c;
  }
  return shown.join("").replace(CONTROL, "");
}

/** The same as far as a terminal shows it, in short: what was written over is gone. A progress bar goes on for hours. */
function shortened(raw: string): string {
  const at = raw.lastIndexOf("\r");
  return (at < 0 ? raw : asTerminal(raw.slice(0, at)) + raw.slice(at)).slice(-16 * TEXT_MAX);
}

export class LogStore {
  lines: Line[] = [];
  version = 0;
  /** Lines that came and are no longer kept. */
  dropped = 0;
  readonly ranks = new Set<number>();
  private next = 0;
  private readonly newest = new Map<number, { time: string; texts: Set<string> }>();
  /** Lines without an end, by rank and stream, with what was written. */
  private readonly open = new Map<string, { line: Line; raw: string }>();

  /** All of the past has come, rank after rank: put it into the order in which it was written, ranks of one moment by number. */
  settle(): void {
    this.lines.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.rank - b.rank || a.id - b.id));
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
      const text = shown.length > TEXT_MAX ? `${shown.slice(0, TEXT_MAX)} ${t("[cut]")}` : shown;
      const made = { id: begun?.line.id ?? this.next++, rank, time: line.time, err: line.stream === "stderr", text };
      const at = begun ? this.lines.lastIndexOf(begun.line) : -1;
      if (at < 0) this.lines.push(made);
      else this.lines[at] = made;
      if (line.partial) this.open.set(key, { line: made, raw: shortened(raw) });
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
