import assert from "node:assert/strict";
import { test } from "node:test";
import { ago, badName, bytes, clock, coreHours, cores, duration, metric, parseAmount, parseBytes, parseRam, ram, starts, withLocalTimes } from "../../src/core/format/format";
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

test("what starts soon is told by how long it is until then", () => {
  const now = Date.parse("2026-01-01T12:00:00Z");
  const later = "2026-01-01T12:02:00Z";
  assert.deepEqual(["2026-01-01T12:00:26Z", "2026-01-01T12:01:59Z", "2026-01-01T12:00:00Z", "2026-01-01T11:59:10Z", null].map((t) => starts(t, now)), [
    "in 26 s", "in 1 min 59 s", "any moment now", "any moment now", "",
  ]);
  assert.equal(starts(later, now), clock(later, now));
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

test("core-hours of what is over at once have no exponent", () => {
  assert.deepEqual([null, 0, 0.000026, 0.034167, 12.5].map(coreHours), ["–", "0", "0.000026", "0.03417", "12.5"]);
});

test("a bad name is told what is wrong with it", () => {
  for (const good of ["a", "red", "team-7", "a".repeat(50)]) assert.equal(badName(good), null, good);
  const rule = "a name can contain only a-z, 0-9 and dashes, must start with a letter and must not end with a dash";
  for (const [bad, close] of [["Red Team", "red-team"], ["Red", "red"], ["red-", "red"], ["7 Größe", "gro-e"], ["a_b", "a-b"]] as const) {
    assert.equal(badName(bad), `${rule}, such as ${close}`);
  }
  assert.equal(badName("7"), rule);
  assert.equal(badName(""), "a name is needed");
  assert.equal(badName("a".repeat(51)), "a name has at most 50 characters, this one has 51");
});

test("times of the hub read as they are here", () => {
  const now = Date.parse("2026-11-21T08:00:00Z");
  const at = clock("2026-11-22T09:30:00Z", now);
  assert.equal(withLocalTimes("of which at 2026-11-22T09:30:00Z 3 are kept; 2026-11-22 stays", now), `of which at ${at} 3 are kept; 2026-11-22 stays`);
  assert.equal(withLocalTimes("the window demo of red, Sunday 2026-11-22 09:30 UTC, fits no longer", now), `the window demo of red, ${at}, fits no longer`);
});
