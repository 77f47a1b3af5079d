// Requests to a process of the platform take turns, one address after the other.
//
// Such a process answers one request after another, so whoever sends it thousands would have all others wait behind
// them. Here it gets a few at a time, and who comes with one waits for a turn and not for the thousands.

const AT_ONCE = 32; // requests of one process that have no answer yet
const TURN_MS = 1_000; // after which a turn is over, though an answer is still awaited

export class Turns {
  #places = new Map(); // where it listens: { taken, lines: Map(address: Set of functions) }

  /** Call `begin` when it is this address's turn. Returns what to call when it has an answer or nobody waits for one. */
  take(place, from, begin) {
    let it = this.#places.get(place);
    if (!it) this.#places.set(place, (it = { taken: 0, lines: new Map() }));
    let late;
    const leave = () => {
      const left = it.lines.get(from);
      if (left?.delete(start)) {
        if (!left.size) it.lines.delete(from);
      } else if (late) {
        clearTimeout(late);
        late = undefined;
        it.taken -= 1;
        this.#next(place, it);
      }
    };
    const start = () => {
      it.taken += 1;
      late = setTimeout(leave, TURN_MS);
      begin();
    };
    const line = it.lines.get(from) ?? new Set();
    it.lines.set(from, line.add(start));
    this.#next(place, it);
    return leave;
  }

  #next(place, it) {
    while (it.taken < AT_ONCE && it.lines.size) {
      const [from, line] = it.lines.entries().next().value;
      const [start] = line;
      line.delete(start);
      it.lines.delete(from);
      if (line.size) it.lines.set(from, line); // behind all others
      start();
    }
    if (!it.taken && !it.lines.size) this.#places.delete(place);
  }
}
