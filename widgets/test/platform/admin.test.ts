import assert from "node:assert/strict";
import { test } from "node:test";
import { searchOf } from "../../src/core/platform/allruns";
import { announcementFieldOf, left, put, readAnnouncement, readAway } from "../../src/core/accounts/announcements";
import { LOT, decoded, lots, MOST_BYTES, passwords } from "../../src/core/platform/people";
import type { Announcement, ImportedPerson } from "../../src/core/service/wire";

const NOW = Date.parse("2031-03-01T08:00:00Z");
const person = (name: string, more: Partial<ImportedPerson> = {}): ImportedPerson => ({ line: 1, name, team: "red", admin: false, state: "new", note: "", password: null, ...more });
const bytes = (text: string): ArrayBuffer => new TextEncoder().encode(text).buffer as ArrayBuffer;

test("what was put away is not shown, and what is kept of that is bounded and believed only as numbers", () => {
  assert.deepEqual(readAway('[1, "2", null, 3]'), [1, 3]);
  for (const bad of [null, "", "{", '{"a": 1}', "7"]) assert.deepEqual(readAway(bad), []);
  assert.deepEqual(left([{ id: 1 }, { id: 2 }] as Announcement[], [1]).map((one) => one.id), [2]);
  const many = Array.from({ length: 60 }, (_, i) => i).reduce(put, [] as number[]);
  assert.equal(many.length, 50);
  assert.deepEqual(put([1, 2], 1), [2, 1]);
});

test("an announcement says something, and ends so long after its begin", () => {
  assert.equal(readAnnouncement({ text: " ", begin: "" }, "info", "3600", NOW).asked, null);
  assert.equal(readAnnouncement({ text: "x", begin: "never" }, "info", "3600", NOW).asked, null);
  assert.deepEqual(readAnnouncement({ text: " hello ", begin: "" }, "critical", "3600", NOW).asked, { text: "hello", level: "critical", until: "2031-03-01T09:00:00.000Z" });
  const later = readAnnouncement({ text: "x", begin: "2031-03-02T08:00:00Z" }, "info", "3600", NOW).asked;
  assert.deepEqual([later?.begin, later?.until], ["2031-03-02T08:00:00.000Z", "2031-03-02T09:00:00.000Z"]);
  assert.equal(announcementFieldOf("it must be later than now, and than begin"), "begin");
});

test("a file of people is read as UTF-8 or UTF-16 and as nothing else", () => {
  assert.equal(decoded(bytes("\ufeffzoë,red")), "zoë,red");
  assert.equal(decoded(new Uint8Array([0xff, 0xfe, 0x61, 0]).buffer), "a");
  assert.throws(() => decoded(new Uint8Array([0x6a, 0xf6, 0x72]).buffer), /UTF-8/);
  assert.throws(() => decoded(new ArrayBuffer(MOST_BYTES + 1)), /too large/);
});

test("those for whom something is done go in lots, and those made have their passwords in a file", () => {
  const people = [...Array.from({ length: LOT + 1 }, (_, i) => person(`p${i}`)), person("=cmd", { state: "refused" }), person("ann", { state: "joins", admin: true })];
  const sent = lots(people);
  assert.equal(sent.length, 2);
  assert.equal(sent[1], `name,team,platform_admin\np${LOT},red,no\nann,red,yes`);
  assert.equal(passwords([person("zoe", { state: "made", password: "abc" }), person("bob")]), "name,password\r\nzoe,abc");
});

test("filters are terms of a search", () => {
  assert.equal(searchOf("", "", "", ""), "");
  assert.equal(searchOf(" lr<0.1 ", "error", "red", ' an"n '), "lr<0.1 state=error tenant=red user=ann");
  assert.equal(searchOf("", "", "my team", ""), 'tenant="my team"');
});
