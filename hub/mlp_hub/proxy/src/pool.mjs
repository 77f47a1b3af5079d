// So many connections and no more, fairly: where all are taken, who has most gives one to who comes.

/** Connections (`from` an address, `answered` or not), of all addresses `most` and of one `mostOfOne`, unless it is `shared`. */
export class Pool {
  size = 0;
  #groups = new Map(); // address: its connections, each set with the one first that changed least lately

  constructor(most, mostOfOne = most, shared = () => false) {
    this.most = most;
    this.mostOf = (from) => (shared(from) ? Infinity : mostOfOne);
  }

  add(it) {
    let group = this.#groups.get(it.from);
    if (!group) this.#groups.set(it.from, (group = { waiting: new Set(), answered: new Set() }));
    (it.answered ? group.answered : group.waiting).add(it);
    this.size += 1;
  }

  remove(it) {
    const group = this.#groups.get(it.from);
    if (!group || !(group.waiting.delete(it) || group.answered.delete(it))) return;
    this.size -= 1;
    if (!sizeOf(group)) this.#groups.delete(it.from);
  }

  hasRoom(from) {
    return this.size < this.most && sizeOf(this.#groups.get(from)) < this.mostOf(from);
  }

  /**
   * Return which connection is to go for one more from this address; undefined where none should.
   *
   * First of those that wait for their client: nothing was asked yet, not all of it, or a WebSocket that is not open.
   * One that is being answered goes only for an address that has less.
   */
  victim(from) {
    const mine = this.#groups.get(from);
    if (sizeOf(mine) >= this.mostOf(from)) return first(mine.waiting);
    const idle = this.#largest("waiting");
    if (idle.size) return first(idle);
    const busy = this.#largest("answered");
    return busy.size > sizeOf(mine) + 1 ? first(busy) : undefined;
  }

  #largest(kind) {
    let found = new Set();
    for (const group of this.#groups.values()) if (group[kind].size > found.size) found = group[kind];
    return found;
  }
}

const sizeOf = (group) => (group ? group.waiting.size + group.answered.size : 0);
const first = (set) => set.values().next().value;
