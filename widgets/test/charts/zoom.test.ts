import assert from "node:assert/strict";
import { test } from "node:test";
import { nearer } from "../../src/core/charts/decimate";

const ALL = { min: 0, max: 100 };

test("a zoom by keys keeps the point that is read in its place, and ends where all is shown", () => {
  assert.deepEqual(nearer(ALL, ALL, 50, 0.5), { min: 25, max: 75 });
  assert.deepEqual(nearer({ min: 25, max: 75 }, ALL, 35, 0.5), { min: 30, max: 55 });
  assert.deepEqual(nearer(ALL, ALL, 0, 0.5), { min: 0, max: 50 });
  assert.deepEqual(nearer(ALL, ALL, 100, 0.5), { min: 50, max: 100 });
  assert.deepEqual(nearer({ min: 0, max: 20 }, ALL, 20, 2), { min: 0, max: 40 });
  assert.equal(nearer({ min: 30, max: 80 }, ALL, 40, 2), null);
  assert.equal(nearer({ min: 7, max: 7 }, { min: 7, max: 7 }, 7, 0.5), null);
});
