import assert from "node:assert/strict";
import { test } from "node:test";
import { capital, reasonWords, unknownStart } from "../../src/core/format/reasons";
import { elapsed, STEPS, tickWords } from "../../src/core/format/timeaxis";

test("an axis has one unit, fit for how long the run is", () => {
  assert.deepEqual(tickWords([0, 0.5, 1]), ["0 s", "0.5 s", "1 s"]);
  assert.deepEqual(tickWords([0, 30, 60, 90]), ["0 s", "30 s", "60 s", "90 s"]);
  assert.deepEqual(tickWords([0, 600, 1200, null]), ["0 min", "10 min", "20 min", ""]);
  assert.deepEqual(tickWords([0, 21_600, 43_200]), ["0 h", "6 h", "12 h"]);
  assert.deepEqual(tickWords([0, 86_400, 172_800]), ["0 d", "1 d", "2 d"]);
  assert.deepEqual(tickWords([90_000, 90_010]), ["90000 s", "90010 s"], "zoomed in, the ticks must still differ");
  assert.deepEqual(tickWords([]), []);
});

test("steps grow, and a day is made of whole ones", () => {
  assert.deepEqual([...STEPS].sort((a, b) => a - b), STEPS);
  for (const step of STEPS.filter((s) => s >= 60 && s < 86_400)) assert.equal(86_400 % step, 0);
});

test("one moment is told exactly", () => {
  assert.deepEqual([4.25, 42, 59.96, 3725, 90_000].map(elapsed), ["4.3 s", "42 s", "60 s", "1 h 2 min", "1 d 1 h"]);
});

test("reasons are read in words, and why no start is known as one sentence", () => {
  assert.deepEqual(["WaitingForQuota", "Other"].map(reasonWords), ["waits for quota", "Other"]);
  assert.equal(capital(""), "");
  assert.equal(unknownStart("long has no time limit"), "No time can be estimated: long has no time limit.");
  assert.equal(unknownStart("no time can be estimated: x"), "No time can be estimated: x.");
  assert.equal(unknownStart("A sentence of its own."), "No time can be estimated: A sentence of its own.");
});
