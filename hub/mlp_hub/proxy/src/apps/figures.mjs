// What was asked of each app, and of all apps of a tenant, since this process began to count it.
//
// The service is told every few seconds and adds up what several processes counted (`run` is one count, so that what is told
// twice counts once); what this process shows is its own part.

import { randomBytes } from "node:crypto";

export const BOUNDS_MS = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000];
const MINUTES = 60; // of which each is known by itself
const KEPT_MS = 3600_000; // without a request, once the service has been told
const LOOK_MS = 60_000;

export class Figures {
  #apps = new Map();
  #tenants = new Map();

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
  open({ uid, tenant }, more, now = Date.now()) {
    for (const it of [this.#of(this.#apps, uid), this.#of(this.#tenants, tenant)]) {
      settle(it, now);
      it.open += more;
    }
  }

  /** What the service has not been told yet, each with what to call once it has been. */
  untold(now = Date.now()) {
    const found = [];
    for (const [kind, map] of [["app", this.#apps], ["tenant", this.#tenants]]) {
      for (const [name, it] of map) {
        settle(it, now);
        const under_way = it.area / Math.max(now - it.from, 1);
        if (!it.open && it.told.last === it.last && it.told.under_way === 0) continue;
        const { last, area } = it;
        const minutes = it.minutes.filter((one) => one.minute >= it.told.minute).map((one) => ({ ...one }));
        const counts = Object.fromEntries(COUNTS.map((count) => [count, it[count]]));
        const what = { kind, name, run: it.run, since: it.since / 1000, last: last / 1000, under_way, ...counts, bounds_ms: BOUNDS_MS, latency: [...it.latency], minutes };
        const done = () => {
          it.told = { last, under_way, minute: Math.floor(last / 60_000) };
          it.area -= area;
          it.from = now;
        };
        found.push({ what, done });
      }
    }
    return found;
  }

  /** What is known of an app, or of a tenant. */
  of(kind, name) {
    const found = (kind === "tenants" ? this.#tenants : this.#apps).get(name) ?? fresh();
    const from = Math.floor(Date.now() / 60_000) - MINUTES;
    const counts = Object.fromEntries([...COUNTS, "open", "run", "latency"].map((count) => [count, found[count]]));
    return { ...counts, since: found.since / 1000, bounds_ms: BOUNDS_MS, last: found.last / 1000, minutes: found.minutes.filter((m) => m.minute > from) };
  }

  #of(map, name) {
    let it = map.get(name);
    if (!it) map.set(name, (it = fresh()));
    return it;
  }

  #forget(now) {
    for (const map of [this.#apps, this.#tenants]) {
      for (const [name, it] of map) if (!it.open && now - it.last > KEPT_MS && it.told.last === it.last) map.delete(name);
    }
  }
}

const COUNTS = ["requests", "errors", "bytes_in", "bytes_out"];
const NEVER_TOLD = { last: 0, under_way: 0, minute: 0 };

function fresh(now = Date.now()) {
  const counts = Object.fromEntries(COUNTS.map((count) => [count, 0]));
  const latency = Array(BOUNDS_MS.length + 1).fill(0);
  // `area` is requests under way times milliseconds, since `from`, up to `at`
  return { ...counts, open: 0, last: 0, latency, minutes: [], run: randomBytes(12).toString("hex"), since: now, area: 0, from: now, at: now, told: NEVER_TOLD };
}

function settle(it, now) {
  it.area += it.open * Math.max(now - it.at, 0);
  it.at = now;
}

function minuteOf(it, now) {
  const minute = Math.floor(now / 60_000);
  let last = it.minutes.at(-1);
  if (last?.minute !== minute) {
    it.minutes.push((last = { minute, requests: 0, errors: 0, bytes_in: 0, bytes_out: 0 }));
    if (it.minutes.length > MINUTES) it.minutes.shift();
  }
  return last;
}
