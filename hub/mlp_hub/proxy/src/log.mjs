// One line a message, to standard output; the supervisor has opened and rotates the file.

import { format } from "node:util";

// What steers a terminal or turns the direction of writing is written as its number: nobody forges lines.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;
const shown = (text) => text.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);

/** Make a logger with the methods that the proxy calls; the bundle puts it in the place of the proxy's own. */
export function defaultLogger() {
  const line =
    (level) =>
    (...message) =>
      process.stdout.write(`${new Date().toISOString()} ${level} ${shown(format(...message.map((m) => (m instanceof Error ? m.message : m))))}\n`);
  return { debug: () => {}, info: line("info"), warn: line("warning"), error: line("error") };
}
