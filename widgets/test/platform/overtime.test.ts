import assert from "node:assert/strict";
import { test } from "node:test";
import { curvesOf, firstKnown, fromFirstKnown, isKnown, numbersOf, overTimePath, timesOf } from "../../src/core/platform/overtime";
import type { OverTime } from "../../src/core/service/wire";

const none = [null, null];
const found = (changes: Partial<OverTime> = {}): OverTime => ({
  tenant: "red", span: "hour", since: "2031-03-01T10:00:00Z", until: "2031-03-01T10:02:00Z", step: 60, samples: [2, 0],
  amounts: ["cpu", "ram", "gpu"].map((dimension) => ({ dimension, held: [1, null], held_most: [1, null], used: none, used_most: none, limit: none })),
  waiting: [3, null], running: [1, null], reasons: [], admitted: [0, null], wait_p50_s: none, wait_p90_s: none,
  finished: [3, null], failed: [1, null], cancelled: [0, null], requests: [0, null], errors: [0, null], latency_p50_ms: none, latency_p99_ms: none,
  total: { admitted: 0, wait_p50_s: null, wait_p90_s: null, finished: 3, failed: 1, cancelled: 0, requests: 0, errors: 0, latency_p50_ms: null, latency_p99_ms: null },
  ...changes,
});
const keys = (of: OverTime): string[] => curvesOf(of).map((one) => one.key);
const line = (of: OverTime, key: string): readonly (number | null)[] | undefined => curvesOf(of).find((one) => one.key === key)?.lines[0]?.values;

test("a gap is null and no zero, also in what is computed", () => {
  assert.deepEqual(line(found(), "cpu"), [1, null]);
  assert.deepEqual(line(found(), "failures"), [25, null]);
  assert.deepEqual(line(found({ finished: [0, null], failed: [0, null] }), "failures"), [null, null]);
});

test("devices and apps are shown where there are any", () => {
  assert.ok(keys(found()).includes("gpu"));
  const without = found({ amounts: found().amounts.map((of) => ({ ...of, held: [0, null] })) });
  assert.ok(!keys(without).includes("gpu"));
  assert.ok(!keys(found()).includes("latency"));
  assert.ok(keys(found({ requests: [5, null] })).includes("errors"));
});

test("a limit of nothing is no line, and few reasons have their own", () => {
  assert.deepEqual(curvesOf(found())[0]?.lines.map((one) => one.look), ["filled"]);
  const reasons = Array.from({ length: 9 }, (_, at) => ({ reason: `R${at}`, waiting: [at, null] }));
  const queue = curvesOf(found({ reasons })).find((one) => one.key === "queue");
  assert.equal(queue?.lines.length, 8);
  assert.deepEqual(queue?.lines.at(-1)?.values, [0 + 1 + 2, null]);
});

test("steps begin where the service says, and sums tell what is not known", () => {
  assert.deepEqual(timesOf(found()).map((at) => at - Date.parse("2031-03-01T10:00:00Z") / 1000), [0, 60]);
  assert.equal(isKnown(found()), true);
  assert.equal(isKnown(found({ samples: [0, 0] })), false);
  assert.deepEqual(numbersOf(found()).map(([, value]) => value), ["0", "–", "–", "1 of 4, 25 %"]);
  assert.equal(overTimePath("a/b", "week"), "/tenants/a%2Fb/over-time?span=week");
  assert.equal(overTimePath(null, "hour"), "/over-time?span=hour");
});

test("the axis of a new hub begins shortly before its first sample", () => {
  const steps = 30;
  const list = (from: number): (number | null)[] => Array.from({ length: steps }, (_, at) => (at < from ? null : at));
  const of = (from: number): OverTime => found({
    samples: list(from).map((at) => (at === null ? 0 : 2)), waiting: list(from), reasons: [{ reason: "R", waiting: list(from) }],
    amounts: [{ ...(found().amounts[0] as OverTime["amounts"][number]), held: list(from) }],
  });
  const late = fromFirstKnown(of(20));
  assert.equal(firstKnown(of(20)), 20);
  assert.equal(late.samples.length, 12, "some steps before it, so that a sample is no bar");
  assert.equal(late.since, "2031-03-01T10:18:00.000Z");
  assert.deepEqual([late.waiting[0], late.waiting[2], late.waiting.at(-1)], [null, 20, 29]);
  assert.equal(late.reasons[0]?.waiting.length, 12);
  assert.equal(late.amounts[0]?.held.length, 12);
  assert.equal(timesOf(late).length, 12);
  assert.equal(fromFirstKnown(of(5)).samples.length, 25);
  const whole = of(0);
  assert.equal(fromFirstKnown(whole), whole);
});
