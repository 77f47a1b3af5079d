/** The last lines of all ranks, bounded; a replay after a reconnect adds nothing twice. Pure. */
import type { LogLine } from "./wire";

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

export class LogStore {
  lines: Line[] = [];
  version = 0;
  /** Lines that came and are no longer kept. */
  dropped = 0;
  readonly ranks = new Set<number>();
  private next = 0;
  private readonly newest = new Map<number, { time: string; texts: Set<string> }>();

  /** All of the past has come, rank after rank: put it into the order in which it was written, ranks of one moment by number. */
  settle(): void {
    this.lines.sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : a.rank - b.rank || a.id - b.id));
    this.version += 1;
  }

  /** `replay`: the stream repeats its tail; what is not newer than what is here is skipped. */
  add(rank: number, lines: LogLine[], replay: boolean): void {
    if (!lines.length) return;
    this.ranks.add(rank);
    const known = this.newest.get(rank);
    let newest = known;
    for (const line of lines) {
      if (replay && known && (line.time < known.time || (line.time === known.time && known.texts.has(line.text)))) continue;
      const text = line.text.length > TEXT_MAX ? `${line.text.slice(0, TEXT_MAX)} [cut]` : line.text;
      this.lines.push({ id: this.next, rank, time: line.time, err: line.stream === "stderr", text });
      this.next += 1;
      if (newest && newest.time === line.time) newest.texts.add(line.text);
      else if (!newest || line.time > newest.time) newest = { time: line.time, texts: new Set([line.text]) };
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
