import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, badName, bytes, cores, duration, metric, parseAmount, parseBytes, parseRam, ram } from "../src/core/format";
import amounts from "./amounts.json";

test("amounts read as people write them, and as Python writes them", () => {
  for (const [value, text] of amounts.ram) assert.equal(ram(value as number), text);
  for (const [value, text] of amounts.bytes) assert.equal(bytes(value as number), text);
  for (const [value, text] of amounts.cpu) assert.equal(cores(value as number), text);
});

test("durations name at most two units", () => {
  assert.deepEqual([0.2, 59, 60, 125, 3660, 90000].map(duration), ["0 s", "59 s", "1 min", "2 min 5 s", "1 h 1 min", "1 d 1 h"]);
});

test("a time is told from both sides of now", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  assert.equal(ago("2026-01-01T11:58:30Z", now), "1 min ago");
  assert.equal(ago("2026-01-01T14:03:00Z", now), "in 2 h 3 min");
  assert.equal(ago("2026-01-01T12:00:01Z", now), "just now");
  assert.equal(ago("2026-01-01T12:00:09Z", now), "just now", "a clock that is a little ahead");
  assert.equal(ago(null, now), "");
  assert.equal(ago("no time", now), "");
});

test("metrics keep four digits and say when they are no numbers", () => {
  assert.deepEqual([0.123456, 12, 1e-7, 123456789.5, 0, Number.NaN, null].map(metric), ["0.1235", "12", "1.00e-7", "1.23e+8", "0", "not a number", "–"]);
});

test("memory and storage are read with their units, empty is no limit", () => {
  assert.deepEqual(parseRam("16 GiB"), { ok: true, value: 16384 });
  assert.deepEqual(parseRam("512"), { ok: true, value: 512 });
  for (const text of ["6 gb", "6G", "6 GiB", "6gib"]) assert.deepEqual(parseRam(text), { ok: true, value: 6144 }, text);
  assert.deepEqual(parseRam(" "), { ok: true, value: null });
  assert.deepEqual(parseBytes("1.5 tb"), { ok: true, value: 1.5e12 });
  for (const bad of ["-1", "lots", "5 parsecs", "1e9", "NaN", "<b>"]) {
    assert.equal(parseRam(bad).ok, false, bad);
    assert.equal(parseBytes(bad).ok, false, bad);
    assert.equal(parseAmount(bad, "cpu").ok, false, bad);
  }
});

test("a bad name is told what is wrong with it", () => {
  for (const good of ["a", "red", "team-7", "a".repeat(50)]) assert.equal(badName(good), null, good);
  assert.match(badName("Red") ?? "", /starts with a letter/);
  assert.match(badName("red-") ?? "", /does not end/);
  assert.match(badName("r_d") ?? "", /holds a-z/);
  assert.match(badName("a".repeat(51)) ?? "", /at most 50/);
});
