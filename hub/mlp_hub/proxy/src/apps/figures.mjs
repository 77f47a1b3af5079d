// What was asked of each app, and of all apps of a tenant, since this process began.

export const BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000];
const MINUTES = 60; // of which each is known by itself
const KEPT_MS = 24 * 3600_000; // without a request
const LOOK_MS = 60_000;

export class Figures {
  #apps = new Map();
  #tenants = new Map();
  #since = Date.now();

  constructor() {
    setInterval(() => this.#forget(Date.now()), LOOK_MS).unref();
  }

  /** Note a request that was answered, `ms` after it came; `bytesIn` and `bytesOut` of bodies. */
  answered({ uid, tenant }, status, ms, bytesIn, bytesOut, now = Date.now()) {
    for (const it of [this.#of(this.#apps, uid), this.#of(this.#tenants, tenant)]) {
      const minute = minuteOf(it, now);
      it.requests += 1;
      it.last = now;
      minute.requests += 1;
      if (status >= 500) {
        it.errors += 1;
        minute.errors += 1;
      }
      const at = BOUNDS_MS.findIndex((bound) => ms <= bound);
      it.latency[at < 0 ? BOUNDS_MS.length : at] += 1;
      for (const one of [it, minute]) {
        one.bytes_in += bytesIn;
        one.bytes_out += bytesOut;
      }
    }
  }

  /** Note bytes of a connection that stays open. */
  moved({ uid, tenant }, bytesIn, bytesOut, now = Date.now()) {
    for (const it of [this.#of(this.#apps, uid), this.#of(this.#tenants, tenant)]) {
      it.last = now;
      for (const one of [it, minuteOf(it, now)]) {
        one.bytes_in += bytesIn;
        one.bytes_out += bytesOut;
      }
    }
  }

  /** Note that so many more are under way. */
  open({ uid, tenant }, more) {
    for (const it of [this.#of(this.#apps, uid), this.#of(this.#tenants, tenant)]) it.open += more;
  }

  /** What is known of an app, or of a tenant. */
  of(kind, name) {
    const found = (kind === "tenants" ? this.#tenants : this.#apps).get(name) ?? fresh();
    const from = Math.floor(Date.now() / 60_000) - MINUTES;
    return { since: this.#since / 1000, bounds_ms: BOUNDS_MS, ...found, last: found.last / 1000, minutes: found.minutes.filter((m) => m.minute > from) };
  }

  #of(map, name) {
    let it = map.get(name);
    if (!it) map.set(name, (it = fresh()));
    return it;
  }

  #forget(now) {
    for (const map of [this.#apps, this.#tenants]) {
      for (const [name, it] of map) if (!it.open && now - it.last > KEPT_MS) map.delete(name);
    }
  }
}

const fresh = () => ({ requests: 0, errors: 0, bytes_in: 0, bytes_out: 0, open: 0, last: 0, latency: Array(BOUNDS_MS.length + 1).fill(0), minutes: [] });

function minuteOf(it, now) {
  const minute = Math.floor(now / 60_000);
  let last = it.minutes.at(-1);
  if (last?.minute !== minute) {
    it.minutes.push((last = { minute, requests: 0, errors: 0, bytes_in: 0, bytes_out: 0 }));
    if (it.minutes.length > MINUTES) it.minutes.shift();
  }
  return last;
}
