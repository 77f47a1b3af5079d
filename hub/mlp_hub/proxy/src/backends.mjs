// Which of the platform's own processes have stopped answering.
//
// A process that hangs still takes connections, so that its requests would wait for ever. One that has been silent for
// some seconds is asked a question of our own: a long answer is no fault, no answer to anything is. Then all that wait
// for it are told so, and later ones at once, until it answers again. Users' servers are not judged: they may be slow.
// Where another process takes over a socket's name, nothing that was known of the one before holds any more, and no request is
// sent on a connection to it. These processes are a few, so that none is forgotten while nobody asks it anything.

import fs from "node:fs";
import http from "node:http";

const SILENT_MS = 5_000; // while something waits, until it is asked
const PROBE_MS = 5_000; // until it must have answered
const LOOK_MS = 1_000;

export class Backends {
  // where it listens: { target, waiting, asked, probing, hung, inode }; `asked` is when what it has not answered yet began
  #known = new Map();
  #log;
  #answers;

  /** `answers` is called with a target that answers at a new connection, while something waits for it at an older one. */
  constructor(log, answers) {
    this.#log = log;
    this.#answers = answers;
    setInterval(() => this.#look(performance.now()), LOOK_MS).unref();
  }

  /** Tell whether a target (the options of a request, or a URL) is known to hang; to be asked before a request takes a connection. */
  hangs(target) {
    const it = this.#known.get(placeOf(target));
    if (it && takenOver(it)) this.#begin(it);
    return it?.hung ?? false;
  }

  /** Wait for a target: `giveUp` is called if it hangs. Returns what to call when it answers and when nobody waits. */
  wait(target, giveUp) {
    const place = placeOf(target);
    let it = this.#known.get(place);
    if (!it) this.#known.set(place, (it = { target, waiting: new Set(), inode: inodeOf(target) }));
    it.waiting.add(giveUp);
    it.asked ??= performance.now();
    return {
      answered() {
        it.asked = it.waiting.delete(giveUp) && it.waiting.size ? performance.now() : undefined;
      },
      left: () => it.waiting.delete(giveUp),
    };
  }

  #look(now) {
    for (const [place, it] of this.#known) {
      if (!it.hung && !it.waiting.size && it.asked === undefined) continue;
      if (takenOver(it)) this.#begin(it);
      if (!it.probing && (it.hung || now - it.asked >= SILENT_MS)) this.#probe(place, it);
    }
  }

  /** Forget all of the process that had the name before. Who waits for that one waits a little longer: it may be ending in peace. */
  #begin(it) {
    it.inode = inodeOf(it.target);
    const probe = it.probing;
    it.probing = it.asked = undefined;
    it.hung = false;
    probe?.destroy();
    this.#answers(it.target);
    const waiting = [...it.waiting];
    setTimeout(() => {
      for (const giveUp of waiting) if (it.waiting.delete(giveUp)) giveUp();
    }, SILENT_MS).unref();
  }

  #probe(place, it) {
    const done = (hung, why) => {
      if (it.probing !== probe) return; // it was given up; another may be under way
      it.probing = undefined;
      it.asked = it.waiting.size && !hung ? performance.now() : undefined;
      if (hung !== (it.hung ?? false)) this.#log.warn("%s %s", decodeURIComponent(place), why);
      it.hung = hung;
      if (!hung) return void this.#answers(it.target);
      const waiting = [...it.waiting];
      it.waiting.clear();
      for (const giveUp of waiting) giveUp();
    };
    const { socketPath, hostname, port } = it.target;
    const where = socketPath ? { socketPath } : { host: hostname, port: port || 80 };
    const probe = http.get({ ...where, path: "/", agent: false }, (answer) => {
      answer.resume();
      done(false, "answers again");
    });
    it.probing = probe;
    const late = setTimeout(() => {
      done(true, "does not answer");
      probe.destroy();
    }, PROBE_MS);
    // who is not there is told so by the system, unlike who takes no more connections
    probe.once("error", (error) => done(error.code === "EAGAIN", error.code === "EAGAIN" ? "takes no connections" : "is not there"));
    probe.once("close", () => clearTimeout(late));
  }
}

/** Return which file a socket's name leads to; undefined for a port, and while there is none. */
const inodeOf = ({ socketPath }) => socketPath && fs.statSync(socketPath, { throwIfNoEntry: false })?.ino;

/** Tell whether another process has the socket's name by now. */
function takenOver(it) {
  const inode = inodeOf(it.target);
  return inode !== undefined && inode !== it.inode;
}

/** Return where an address of the platform (`http+unix://...` or `http://HOST:PORT`) leads, as options of a request. */
export function placeAt(address) {
  const unix = /^http\+unix:\/\/([^/]*)$/.exec(address);
  if (unix) return { socketPath: decodeURIComponent(unix[1]) };
  const { host, hostname, port } = new URL(address);
  return { hostname: hostname.replace(/^\[(.*)\]$/, "$1"), port: port || "80", host };
}

/** Return where a target listens. */
export function placeOf(target) {
  return target.socketPath ?? target.host;
}
