import assert from "node:assert/strict";
import { test } from "node:test";
import { placesOf, stepsOf } from "../../src/core/format/timeaxis";
import { eventWord } from "../../src/core/format/words";

test("an axis of whole values has whole ticks, others have halves of five", () => {
  assert.ok(stepsOf([0, 1, null, 7]).every(Number.isInteger));
  assert.ok(stepsOf([0, 1, 7]).includes(1));
  assert.ok(stepsOf([0.5, 1]).includes(0.25));
});

test("all that ends an attempt has its words", () => {
  assert.deepEqual(["attempt-failed", "ended", "first-line"].map(eventWord), ["attempt failed", "attempt ended", "first output"]);
});

test("the end of an axis has a label, and none stands so near that they touch", () => {
  assert.deepEqual(placesOf(0, 47, 10, 80), [0, 10, 20, 30, 40, 47]);
  assert.deepEqual(placesOf(0, 42, 10, 80), [0, 10, 20, 30, 42]);
  assert.deepEqual(placesOf(3, 40, 10, 80), [10, 20, 30, 40]);
  assert.deepEqual(placesOf(0, 0.3, 0.1, 80), [0, 0.1, 0.2, 0.3]);
});
