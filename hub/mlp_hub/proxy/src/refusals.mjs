// One log line for each request that the proxy itself refuses, with its id, so that an operator who is given the id finds it.
// The line has neither the query nor the headers, which may have tokens. A flood has few lines, and a count of the others.

const PER_S = 5; // lines a second of all addresses
const BURST = 100; // lines at once
const PATH_MOST = 200; // characters of a path
const ADDRESS_BURST = 20; // lines of one address in a minute
const MINUTE_MS = 60_000;

export class Refusals {
  #level = BURST;
  #at;
  #of = new Map(); // lines of each address within this minute
  #minute;
  #leftOut = 0;

  constructor(log, now = () => performance.now()) {
    this.log = log;
    this.now = now;
    this.#at = this.#minute = now();
  }

  /** Write the line of a request that was refused with this status; `from` is the address that it came from. */
  note(req, status, from) {
    if (!this.#take(from)) {
      this.#leftOut += 1;
      return;
    }
    if (this.#leftOut) this.log.info("%d refused requests before the next line have no line of their own", this.#leftOut);
    this.#leftOut = 0;
    const path = (req.url ?? "").split("?", 1)[0];
    const shown = path.length > PATH_MOST ? `${path.slice(0, PATH_MOST)}...` : path;
    this.log.info("%s %s was refused: %s, to %s [%s]", req.method, shown, status, from, req.id);
  }

  #take(from) {
    const now = this.now();
    this.#level = Math.min(BURST, this.#level + ((now - this.#at) / 1000) * PER_S);
    this.#at = now;
    if (now - this.#minute >= MINUTE_MS) {
      this.#of.clear();
      this.#minute = now;
    }
    const taken = this.#of.get(from) ?? 0;
    if (taken >= ADDRESS_BURST || this.#level < 1) return false;
    this.#of.set(from, taken + 1); // no more entries than lines
    this.#level -= 1;
    return true;
  }
}
