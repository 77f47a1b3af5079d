import assert from "node:assert/strict";
import { test } from "node:test";
import { bookingFieldOf, keptWords, newBooking, notesOf, readBooking, windowWords } from "../../src/core/teams/booking";
import { localText } from "../../src/core/format/localtime";

const NOW = new Date(2026, 10, 21, 9, 30).getTime();
const texts = (change: object) => ({ ...newBooking(NOW), name: "demo", cpu: "3", ...change });
const faults = (change: object): object => readBooking(texts(change), ["taken"], NOW).faults;

test("a new window begins with the next full hour", () => {
  const begun = newBooking(NOW);
  assert.deepEqual([begun.start, begun.end], ["2026-11-21T10:00", "2026-11-21T18:00"]);
});

test("what is typed in local time is asked for in UTC", () => {
  const { asked } = readBooking(texts({ ram: "4 GiB", gpu: "0" }), [], NOW);
  assert.equal(asked?.start, new Date(2026, 10, 21, 10).toISOString());
  assert.match(asked?.end ?? "", /Z$/);
  assert.deepEqual(asked?.amount, { cpu: 3, ram: 4096 });
  assert.equal(localText(Date.parse(asked?.start ?? "")), "2026-11-21T10:00");
});

test("what is wrong is said at its field", () => {
  assert.deepEqual(faults({}), {});
  assert.match(JSON.stringify(faults({ name: "Demo!" })), /name/);
  assert.deepEqual(faults({ name: "taken" }), { name: "a window taken already exists" });
  assert.deepEqual(faults({ start: "" }), { start: "a day and a time are needed" });
  assert.deepEqual(faults({ end: "2026-11-21T10:00" }), { end: "is not after the start" });
  assert.deepEqual(faults({ start: "2026-11-20T10:00", end: "2026-11-21T09:00" }), { end: "is over" });
  assert.deepEqual(faults({ cpu: "" }), { cpu: "enter at least one amount" });
  assert.match(JSON.stringify(faults({ cpu: "lots" })), /empty means none/);
  assert.equal(readBooking(texts({ cpu: "0" }), [], NOW).asked, null);
});

test("a window says when it is", () => {
  const made = { tenant: "red", name: "demo", amount: {}, open: false, made_by: "root", made_at: "", short: null, notes: [] };
  const at = (h: number): string => new Date(2026, 10, 21, h).toISOString();
  assert.deepEqual(windowWords({ ...made, start: at(10), end: at(12) }, NOW), { open: false, text: "10:00 to 12:00 (2 h), in 30 min" });
  assert.deepEqual(windowWords({ ...made, start: at(9), end: at(12) }, NOW), { open: true, text: "until 12:00, 2 h 30 min left of 3 h" });
});

test("a refusal goes to the field it speaks of", () => {
  assert.equal(bookingFieldOf("end is 2026-11-21T09:00:00Z, which has passed"), "end");
  assert.equal(bookingFieldOf("amount.cpu is -1; it must be"), "cpu");
  assert.equal(bookingFieldOf("blue already has a booked window demo; use another name, or remove that one"), "name");
  assert.equal(bookingFieldOf("the nodes have 8 cpu"), null);
});

test("a window that no longer fits says what is kept of it, and what is to be known is said once", () => {
  const made = { tenant: "red", name: "demo", amount: { cpu: 8, gpu: 2 }, open: false, start: "", end: "", made_by: "root", made_at: "", short: null, notes: ["a server stays"] };
  const whole = keptWords(made);
  const short = { since: "", left: { cpu: 6, gpu: 2 }, message: "needs 8 cpu, 6 are left" };
  assert.equal(keptWords({ ...made, short }), `${whole.replace("8", "6")} of ${whole}`);
  assert.deepEqual(notesOf([made, { ...made, name: "other" }]), ["A server stays"]);
});
