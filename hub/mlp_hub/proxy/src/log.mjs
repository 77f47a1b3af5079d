// One line a message, to standard output; the supervisor has opened and rotates the file.

import { format } from "node:util";

/** Make a logger with the methods that the proxy calls; the bundle puts it in the place of the proxy's own. */
export function defaultLogger() {
  const line =
    (level) =>
    (...message) =>
      process.stdout.write(`${new Date().toISOString()} ${level} ${format(...message.map((m) => (m instanceof Error ? m.message : m)))}\n`);
  return { debug: () => {}, info: line("info"), warn: line("warning"), error: line("error") };
}
