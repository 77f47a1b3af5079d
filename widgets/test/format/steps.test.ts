import assert from "node:assert/strict";
import { test } from "node:test";
import { stepsOf } from "../../src/core/format/timeaxis";
import { eventWord } from "../../src/core/format/words";

test("an axis of whole values has whole ticks, others have halves of five", () => {
  assert.ok(stepsOf([0, 1, null, 7]).every(Number.isInteger));
  assert.ok(stepsOf([0, 1, 7]).includes(1));
  assert.ok(stepsOf([0.5, 1]).includes(0.25));
});

test("all that ends an attempt has its words", () => {
  assert.deepEqual(["attempt-failed", "ended", "first-line"].map(eventWord), ["attempt failed", "attempt ended", "first line"]);
});
