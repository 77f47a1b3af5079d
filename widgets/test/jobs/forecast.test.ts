import assert from "node:assert/strict";
import { test } from "node:test";
import { between, endOf, startOf } from "../../src/core/jobs/forecast";

const NOW = new Date(2026, 0, 5, 12, 0).getTime();
const at = (minutes: number): string => new Date(NOW + minutes * 60_000).toISOString();
const range = (first: number, last: number) => ({ p10: at(first), p50: at((first + last) / 2), p90: at(last) });
const told = { start: null, end: null, runs: 5, because: "it has run longer than its 5 earlier runs" };

test("a range is two times, one where they are the same, and a duration where it is soon", () => {
  assert.equal(between(range(20, 50), NOW), "12:20-12:50");
  assert.equal(between(range(20, 20.4), NOW), "12:20");
  assert.equal(between(range(60 * 13, 60 * 14), NOW), "2026-01-06 01:00-02:00");
  assert.equal(between(range(60 * 11, 60 * 13), NOW), "23:00-2026-01-06 01:00");
  assert.equal(between(range(0.2, 0.8), NOW), "in 30 s");
  assert.equal(between(null, NOW), "");
  assert.equal(between(undefined, NOW), "");
  assert.equal(between({ p10: "x", p50: "x", p90: "x" }, NOW), "");
});

test("a start is the range, else the time by limits; a saved job of an older hub has no forecast", () => {
  const forecast = { ...told, start: range(20, 50) };
  assert.equal(startOf({ expected_start: at(70), forecast }, NOW), "12:20-12:50");
  assert.equal(startOf({ expected_start: at(70) }, NOW), "13:10");
  assert.equal(startOf({ expected_start: null, forecast: null }, NOW), "");
});

test("a running job has its end, or says that it runs longer than before", () => {
  assert.equal(endOf({ expected_start: null, forecast: told }, NOW), "it has run longer than its 5 earlier runs");
  const forecast = { ...told, end: range(5, 9), because: "estimated from its 5 earlier runs" };
  assert.equal(endOf({ expected_start: null, forecast }, NOW), "expected to end 12:05-12:09 (estimated from its 5 earlier runs)");
  assert.equal(endOf({ expected_start: null }, NOW), "");
});
