process.env.TZ = "Europe/Berlin";
import assert from "node:assert/strict";
import { test } from "node:test";
import { readAnnouncement } from "../../src/core/accounts/announcements";
import { lengthWords, newBooking, readBooking } from "../../src/core/teams/booking";
import { pageOf } from "../../src/core/stored/data";
import { aheadText, choicesOf, readLocal, timesOf } from "../../src/core/format/localtime";

const NOW = Date.UTC(2027, 0, 1);
const texts = (start: string, end: string, more: object = {}) => ({ ...newBooking(NOW), name: "demo", cpu: "3", start, end, ...more });
const booked = (start: string, end: string, more: object = {}) => readBooking(texts(start, end, more), [], NOW);

test("the hour that clocks leave out is refused with what it would be", () => {
  assert.equal(booked("2027-03-28T02:30", "2027-03-28T04:30").faults.start, "02:30 does not exist on that day in Europe/Berlin; it would be 03:30");
  assert.equal(booked("2027-03-28T01:30", "2027-03-28T02:30").faults.end, "02:30 does not exist on that day in Europe/Berlin; it would be 03:30");
  assert.equal(readAnnouncement({ text: "x", begin: "2027-03-28T02:30" }, "info", "3600", NOW).faults.begin, "02:30 does not exist on that day in Europe/Berlin; it would be 03:30");
});

test("of the hour that comes again is asked which one is meant", () => {
  const asked = booked("2027-10-31T02:00", "2027-10-31T03:00");
  assert.equal(asked.faults.start, "02:00 occurs twice on that day in Europe/Berlin; choose one");
  assert.deepEqual(choicesOf("2027-10-31T02:00").slice(1), [["0", "02:00 UTC+02:00"], ["1", "02:00 UTC+01:00"]]);
  const second = { startWhich: "1" };
  assert.equal(booked("2027-10-31T02:00", "2027-10-31T03:00", second).asked?.start, "2027-10-31T01:00:00.000Z");
  assert.equal(lengthWords(texts("2027-10-31T02:00", "2027-10-31T03:00", second)), "1 h");
  assert.equal(lengthWords(texts("2027-10-31T02:00", "2027-10-31T03:00", { startWhich: "0" })), "2 h");
  assert.match(readLocal("2027-10-31T02:30").fault ?? "", /take a time before or after/);
});

test("any other time is one, whatever the zone", () => {
  for (const zone of ["Europe/Berlin", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns", "UTC", "Pacific/Apia"]) {
    process.env.TZ = zone;
    let odd = 0;
    for (let at = Date.UTC(2027, 0, 1); at < Date.UTC(2028, 0, 1); at += 1_800_000) {
      const d = new Date(at);
      const p = (n: number): string => String(n).padStart(2, "0");
      const text = `${d.getFullYear()}-${p(d.getMonth() + 1)}-${p(d.getDate())}T${p(d.getHours())}:${p(d.getMinutes())}`;
      const found = timesOf(text);
      assert.ok(found.includes(at), `${zone} ${text}`);
      if (found.length !== 1) odd += 1;
    }
    assert.ok(odd <= 4, `${zone}: ${odd}`);
  }
  process.env.TZ = "Europe/Berlin";
  assert.equal(aheadText(Date.UTC(2027, 6, 1)), "UTC+02:00");
});

test("a page of files is read, and what is none is empty", () => {
  assert.deepEqual(pageOf({ entries: [{ name: "a", directory: true, size: 0, modified: "Thu, 01 Jan 2026 10:00:00 GMT" }], next: "1b" }), { entries: [{ name: "a", directory: true, size: 0, modified: "2026-01-01T10:00:00.000Z" }], next: "1b" });
  assert.deepEqual(pageOf("<html>"), { entries: [], next: null });
  assert.deepEqual(pageOf(null), { entries: [], next: null });
});
