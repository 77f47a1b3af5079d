import assert from "node:assert/strict";
import { test } from "node:test";
import { countsDown, heldWords, nextWords, unusedGpus } from "../../src/core/jobs/idle";
import type { IdleHolding, Job } from "../../src/core/service/wire";
import { job } from "../helpers";

const idle = { idle_s: 7200, left_s: null, kept_s: 0, ends: "suspend" as const, claims: false };
const of = (more: object, phase: Job["phase"] = "running") => job({ name: "digits", run: 1, phase, idle: { ...idle, ...more } });

test("a job that does not use its GPUs says for how long, what comes, and what keeps it", () => {
  assert.equal(unusedGpus(of({})), "Its GPUs were not used for 2 h.");
  assert.match(unusedGpus(of({ left_s: 600 })), /^Its GPUs were not used for 2 h, and it is suspended in 10 min\. To keep it: mlp keep digits$/);
  assert.match(unusedGpus(of({ left_s: 600, ends: "cancel" })), /it is cancelled in 10 min/);
  assert.equal(unusedGpus(of({ kept_s: 3600 })), "It is kept for 1 h, whether it uses its GPUs or not.");
  assert.deepEqual([countsDown(of({ left_s: 0 })), countsDown(of({}))], [true, false]);
});

test("a report of work that nobody measures is said, unless its countdown is more urgent", () => {
  assert.equal(unusedGpus(of({ idle_s: 0, claims: true })), "It reports that it works, but the cluster measures no work of it.");
  assert.match(unusedGpus(of({ left_s: 600, claims: true })), /it is suspended in 10 min/);
});

test("a job that works, or does not run, says nothing of it", () => {
  assert.equal(unusedGpus(job({ phase: "running", idle: null })), "");
  assert.equal(unusedGpus(of({ left_s: 600 }, "suspended")), "");
  assert.equal(countsDown(of({ left_s: 600 }, "finished")), false);
});

test("the list of a team says what is held and what comes", () => {
  const one: IdleHolding = { kind: "job", user: "ann", name: "digits", run: 1, idle_s: 7200, idle_since: "2026-09-24T08:00:00Z", cpu: 2, gpu: 0.5, ram: 4096, left_s: null, kept_s: 0, ends: null, claims: false };
  assert.equal(heldWords(one), "0.5 GPUs, 2 CPU, 4 GiB");
  assert.equal(heldWords({ ...one, gpu: 0 }), "2 CPU, 4 GiB");
  assert.match(nextWords(one), /no policy/);
  assert.equal(nextWords({ ...one, ends: "suspend", left_s: 60 }), "suspended in 1 min");
  assert.equal(nextWords({ ...one, ends: "cancel", left_s: 600 }), "cancelled in 10 min");
  assert.equal(nextWords({ ...one, kind: "server", ends: "stop", left_s: 600 }), "stopped in 10 min");
  assert.match(nextWords({ ...one, ends: "suspend", kept_s: 7200 }), /kept for 2 h/);
  assert.match(nextWords({ ...one, ends: "suspend" }), /a countdown/);
  assert.match(nextWords({ ...one, ends: "suspend", claims: true }), /reports work that the cluster does not measure/);
});
