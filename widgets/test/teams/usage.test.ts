import assert from "node:assert/strict";
import { test } from "node:test";
import { fileName } from "../../src/core/teams/accounting";
import { heldBy, HOURS, hoursOf, sumOf } from "../../src/core/teams/usage";
import type { UsageHour } from "../../src/core/service/wire";

const NOW = Date.parse("2026-11-28T05:40:00Z");
const hour = (time: string, more: Partial<UsageHour> = {}): UsageHour => ({ time, cpu: 2, gpu: 0, ram: 1024, rom: 0, amounts: {}, running: 1, waiting: 0, ...more });

test("each hour of a week has its place, and those of which nothing is known are empty", () => {
  const history = [hour("2026-11-20T05:00:00Z"), hour("2026-11-27T23:00:00Z"), hour("2026-11-28T05:00:00Z", { cpu: 0.5 })];
  const hours = hoursOf(history, NOW);
  assert.equal(hours.length, HOURS);
  assert.equal(hours.at(-1), history[2]);
  assert.equal(hours.at(-7), history[1]);
  assert.equal(hours.filter(Boolean).length, 2, "older than a week is not shown");
});

test("core-hours are those of the runs, and the most at once is that of either", () => {
  const history = [hour("2026-11-28T03:00:00Z"), hour("2026-11-28T04:00:00Z", { cpu: 0.5 })];
  const jobs = { cpu_hours: 0.04, gpu_hours: 1.5, cpu_most: 3, gpu_most: 1 };
  assert.deepEqual(sumOf(history, "cpu", jobs), { most: 3, hours: 0.04 });
  assert.deepEqual(sumOf(history, "gpu", jobs), { most: 1, hours: 1.5 });
  assert.deepEqual(sumOf(history, "ram", jobs), { most: 1024, hours: 0 });
  assert.deepEqual(sumOf([], "cpu", { cpu_hours: 0, gpu_hours: 0, cpu_most: 0, gpu_most: 0 }), { most: 0, hours: 0 });
});

test("devices have a curve where a team has or had any", () => {
  const none = { gpu: 0, gpu_kinds: {} };
  assert.deepEqual(heldBy(none, [hour("2026-11-28T05:00:00Z")]), ["cpu", "ram", "rom"]);
  assert.deepEqual(heldBy(none, [hour("2026-11-28T05:00:00Z", { gpu: 1 })]), ["cpu", "gpu", "ram", "rom"]);
  assert.deepEqual(heldBy({ gpu: null, gpu_kinds: { a100: 2 } }, []), ["cpu", "gpu", "ram", "rom"]);
});

test("a file of usage is named by whose it is and by its month", () => {
  assert.equal(fileName({ tenant: "red" }, "2031-03", "md"), "usage-red-2031-03.md");
  assert.equal(fileName({ user: "ann" }, "", "csv"), "usage-ann.csv");
  assert.equal(fileName("all", "2031-03", "csv"), "usage-2031-03.csv");
});
