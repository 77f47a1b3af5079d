/** Which lines of a log are tracebacks of Python or IPython: only these are shown as errors. Pure. */
import type { Line } from "./logs";

const BEGINS = "Traceback (most recent call last)";
/** Lines between the tracebacks of a chain of exceptions. */
const LINKS = ["During handling of the above exception", "The above exception was the direct cause"];
/** Safety: lines of one traceback, so that an unusual one does not colour the rest of the log. */
const MOST = 400;

interface Open {
  /** What stands before each line, as the rank that mpirun writes. */
  prefix: string;
  /** The exception that ends a traceback of IPython; empty for one of Python, which ends with its first line that is not indented. */
  error: string;
  lines: number;
}

/** The ids of the lines that belong to tracebacks; lines of ranks and of both streams may be mixed. */
export function tracebackLines(lines: Line[]): Set<number> {
  const found = new Set<number>();
  const open = new Map<string, Open>();
  for (const line of lines) {
    const of = `${line.rank}/${line.err}`;
    const at = line.text.indexOf(BEGINS);
    if (at >= 0) {
      found.add(line.id);
      const before = line.text.slice(0, at);
      // IPython writes the exception's name before the words, Python nothing or spaces and a plus sign of a group
      const error = line.text.slice(at + BEGINS.length).startsWith(":") ? "" : /(\S+)\s+$/.exec(before)?.[1] ?? "";
      open.set(of, { prefix: error ? "" : before.replace(/[\s+|]+$/, ""), error, lines: 0 });
      continue;
    }
    const within = open.get(of);
    if (within) {
      found.add(line.id);
      within.lines += 1;
      const text = line.text.slice(within.prefix.length);
      const ends = within.error ? text.startsWith(`${within.error}:`) || text.trim() === within.error : text !== "" && !/^\s/.test(text);
      if (ends || within.lines >= MOST) open.delete(of);
    } else if (LINKS.some((words) => line.text.includes(words))) found.add(line.id);
  }
  return found;
}
