// How often an app may be asked: by one key, by one visitor of a tenant's apps, and all apps of one tenant together.
//
// A key or a visitor that is refused takes nothing of the tenant's, so whoever asks without end is alone in hearing of it.

const MOST = 20_000; // buckets; the one unused longest is forgotten first

export class Rates {
  #buckets = new Map(); // name: [level, when]

  /** `perKey`, `perVisitor` and `perTenant` are requests a second; so many seconds' worth may come at once. */
  constructor({ perKey, perVisitor, perTenant, burst = 2 }) {
    Object.assign(this, { perKey, perVisitor, perTenant, burst });
  }

  /** Take one for a request; 0 where there was room, else the seconds until there will be. */
  take({ key, visitor, tenant }, now = performance.now()) {
    const wanted = [["tenant " + tenant, this.perTenant]];
    if (key) wanted.push(["key " + key, this.perKey]);
    else if (visitor) wanted.push([JSON.stringify(["visitor", visitor, tenant]), this.perVisitor]);
    const seen = wanted.map(([name, rate]) => {
      const most = Math.max(1, rate * this.burst);
      const [level, then] = this.#buckets.get(name) ?? [most, now];
      return { name, rate, level: Math.min(most, level + ((now - then) / 1000) * rate) };
    });
    const wait = Math.max(...seen.map(({ level, rate }) => (level >= 1 ? 0 : Math.ceil((1 - level) / rate))));
    for (const { name, level } of seen) {
      this.#buckets.delete(name);
      this.#buckets.set(name, [wait ? level : level - 1, now]);
    }
    while (this.#buckets.size > MOST) this.#buckets.delete(this.#buckets.keys().next().value);
    return wait;
  }
}
