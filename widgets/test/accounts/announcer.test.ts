import assert from "node:assert/strict";
import { test } from "node:test";
import { AWAY } from "../../src/core/accounts/announcements";
import { Announcer, TOLD, type Herald, type Memory } from "../../src/core/accounts/announcer";
import type { Client } from "../../src/core/service/api";
import type { Announcement } from "../../src/core/service/wire";

const said = (id: number, text: string, more: Partial<Announcement> = {}): Announcement =>
  ({ id, tenant: "", level: "info", text, begin: "", until: "", made_at: "", made_by: "ann", ...more }) as Announcement;

/** An announcer of a Lab tab whose service answers what `found` gives; `kept` is what its browser keeps. */
function lab(found: () => Announcement[], kept: Map<string, string>, more: { hidden?: () => boolean; memory?: Memory } = {}) {
  const told: Herald[] = [];
  const waits: number[] = [];
  const asked = { times: 0 };
  const list = () => {
    asked.times += 1;
    try {
      return Promise.resolve({ items: found(), next: null, total: null });
    } catch (error) {
      return Promise.reject(error);
    }
  };
  const memory = more.memory ?? { read: (key: string) => kept.get(key) ?? null, write: (key: string, value: string) => void kept.set(key, value) };
  const clock = { hidden: more.hidden ?? (() => false), later: (_: () => void, ms: number) => (waits.push(ms), () => undefined) };
  return { told, waits, asked, announcer: new Announcer({ list } as unknown as Client, clock, memory, (news) => told.push(news)) };
}

test("what is announced is told once in a browser, with its level and its team, also by a tab that comes later", async () => {
  const all = [said(1, "Maintenance on Sunday."), said(2, "The disk is full.", { level: "critical", tenant: "red" })];
  const kept = new Map<string, string>();
  const first = lab(() => all, kept);
  await first.announcer.hurry();
  await first.announcer.hurry();
  assert.deepEqual(first.told, [{ kind: "info", text: "Maintenance on Sunday." }, { kind: "error", text: "To team red: The disk is full." }]);
  all.push(said(3, "The hub restarts.", { level: "warning" }));
  const second = lab(() => all, kept);
  await second.announcer.hurry();
  await first.announcer.hurry();
  assert.deepEqual(second.told, [{ kind: "warning", text: "The hub restarts." }]);
  assert.equal(first.told.length, 2);
  assert.equal(kept.get(TOLD), "[1,2,3]");
});

test("what was put away is not told, and a browser that keeps nothing is told once a tab", async () => {
  const away = lab(() => [said(7, "old")], new Map([[AWAY, "[7]"]]));
  await away.announcer.hurry();
  assert.deepEqual(away.told, []);
  const forgets = lab(() => [said(8, "new")], new Map(), { memory: { read: () => null, write: () => undefined } });
  await forgets.announcer.hurry();
  await forgets.announcer.hurry();
  assert.equal(forgets.told.length, 1);
});

test("it asks gently: not while nobody looks, and later and later where nothing answers", async () => {
  let hidden = true;
  let down = false;
  const tab = lab(() => {
    if (down) throw new TypeError("no network");
    return [said(1, "hello")];
  }, new Map(), { hidden: () => hidden });
  await tab.announcer.hurry();
  assert.equal(tab.asked.times, 0);
  hidden = false;
  await tab.announcer.hurry();
  assert.deepEqual(tab.told.map((one) => one.text), ["hello"]);
  down = true;
  for (let i = 0; i < 5; i += 1) await tab.announcer.hurry();
  assert.deepEqual(tab.waits, [60_000, 60_000, 120_000, 240_000, 480_000, 600_000, 600_000]);
  down = false;
  await tab.announcer.hurry();
  assert.equal(tab.waits.at(-1), 60_000);
});
