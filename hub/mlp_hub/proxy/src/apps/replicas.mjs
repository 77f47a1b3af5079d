// Which of an app's replicas a request goes to: the one with the fewest under way, those that refused lately last.

const OUT_MS = 2_000;

export class Replicas {
  #busy = new Map(); // address: requests under way
  #out = new Map(); // address: until when it is asked only where no other is

  /** Choose one besides those that were tried; undefined where there is none. */
  choose(addresses, tried = new Set(), now = performance.now()) {
    const cost = (address) => (this.#busy.get(address) ?? 0) + ((this.#out.get(address) ?? 0) > now ? 1e6 : 0);
    let best, least, alike;
    for (const address of addresses) {
      if (tried.has(address)) continue;
      const its = cost(address);
      if (best === undefined || its < least) [best, least, alike] = [address, its, 1];
      else if (its === least && Math.random() * ++alike < 1) best = address; // each of those alike as often
    }
    return best;
  }

  /** Count a request to one; returns what to call at its end. */
  take(address) {
    this.#busy.set(address, (this.#busy.get(address) ?? 0) + 1);
    let taken = true;
    return () => {
      if (!taken) return;
      taken = false;
      const left = this.#busy.get(address) - 1;
      if (left) this.#busy.set(address, left);
      else this.#busy.delete(address);
    };
  }

  /** Note that one refused. */
  refused(address, now = performance.now()) {
    this.#out.set(address, now + OUT_MS);
    for (const [one, until] of this.#out) if (until <= now) this.#out.delete(one);
  }
}

/** Where a replica listens, as node's client takes it. */
export function whereIs(address) {
  if (address.startsWith("/")) return { socketPath: address };
  const from = address.lastIndexOf("@") + 1;
  const at = address.lastIndexOf(":");
  const found = { host: address.slice(from, at).replace(/^\[|\]$/g, ""), port: Number(address.slice(at + 1)) };
  return from ? { ...found, replicaKey: address.slice(0, from - 1) } : found;
}
