// One line a message, to standard output; the supervisor has opened and rotates the file. Nothing of it may end the proxy:
// lines that find no room on the disk are counted, and told of once there is room.

import { writeSync } from "node:fs";
import { format } from "node:util";

// What steers a terminal or turns the direction of writing is written as its number: nobody forges lines.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const shown = (text) => text.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
const OUT = 1;
let lost = 0;
let torn = false; // the last line was written in part: what follows begins a line of its own
process.stderr.on("error", () => {}); // what Node itself has to say

function write(line) {
  const bytes = Buffer.from(torn ? `\n${line}\n` : `${line}\n`);
  let written = 0;
  try {
    while (written < bytes.length) written += writeSync(OUT, bytes, written);
    torn = false;
  } catch {
    torn ||= written > 0; // process.stdout would raise where nobody can catch it
  }
  return written === bytes.length;
}

const asJson = process.env.MLP_LOG_FORMAT === "json";

function say(level, text) {
  const line = (of, what) => {
    const time = new Date().toISOString();
    return asJson ? JSON.stringify({ time, level: of, logger: "proxy", message: what }) : `${time} ${of} ${what}`;
  };
  if (lost && write(line("warning", `${lost} lines of this log were lost: there was no room`))) lost = 0;
  if (!write(line(level, text))) lost += 1;
}

/** Make a logger with the methods that the proxy calls; the bundle puts it in the place of the proxy's own. */
export function defaultLogger() {
  const line =
    (level) =>
    (...message) =>
      say(level, shown(format(...message.map((m) => (m instanceof Error ? m.message : m)))));
  return { debug: () => {}, info: line("info"), warn: line("warning"), error: line("error") };
}
