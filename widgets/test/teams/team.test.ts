import assert from "node:assert/strict";
import { test } from "node:test";
import { capWords, NOTHING_TYPED, readAsk, readCap } from "../../src/core/teams/team";

test("what is asked for is read with its units, and nothing of it goes without a reason", () => {
  assert.deepEqual(readAsk({ ...NOTHING_TYPED, cpu: "16", ram: "64 GiB", reason: " a paper " }).asked, { cpu: 16, ram: 65536, reason: "a paper" });
  assert.deepEqual(Object.keys(readAsk(NOTHING_TYPED).faults).sort(), ["cpu", "reason"]);
  assert.deepEqual(Object.keys(readAsk({ ...NOTHING_TYPED, cpu: "-4", reason: "x" }).faults), ["cpu"]);
  assert.deepEqual(Object.keys(readAsk({ ...NOTHING_TYPED, rom: "much", reason: "x" }).faults), ["rom"]);
});

test("a cap limits what is typed and nothing else", () => {
  assert.deepEqual(readCap({ cpu: "2.5", gpu: "", jobs: "3" }).asked, { cpu: 2.5, gpu: null, jobs: 3 });
  assert.deepEqual(readCap({ cpu: "", gpu: "", jobs: "" }).asked, { cpu: null, gpu: null, jobs: null });
  assert.deepEqual(Object.keys(readCap({ cpu: "x", gpu: "", jobs: "1.5" }).faults).sort(), ["cpu", "jobs"]);
  assert.equal(capWords({ cpu: null, gpu: null, jobs: null }), "no limit");
});
