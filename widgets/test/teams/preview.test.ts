import assert from "node:assert/strict";
import { test } from "node:test";
import { previewLines, toneOf } from "../../src/core/teams/preview";
import { clock } from "../../src/core/format/format";
import type { TenantPreview } from "../../src/core/service/wire";

const NOW = Date.parse("2026-01-01T12:00:00Z");
const answer = (change: Partial<TenantPreview> = {}): TenantPreview => ({
  tenant: "red", over: [], could_start: [], waiting: [], stopped: [], back_inside: null, back_inside_because: "", bookings: [], notes: [], ...change,
});
const over = [{ tenant: "red", dimension: "cpu", inuse: 4, may_hold: 1, above: 3 }];
const notes: TenantPreview["notes"] = [
  { tone: "bad", text: "4 cpu in use, 3 cpu above the new quota" },
  { tone: "idle", text: "2 running jobs continue" },
];
const texts = (p: TenantPreview): string[] => previewLines(p, NOW).map((l) => l.text);

test("what the service says is shown in its order", () => {
  const said = answer({ notes: [{ tone: "good", text: "1 waiting job could start: a" }] });
  assert.deepEqual(previewLines(said, NOW), said.notes);
  assert.equal(toneOf(previewLines(said, NOW)), "good");
});

test("until when it is over is said in local time, beside what is over", () => {
  const at = "2026-01-01T13:30:00Z";
  assert.deepEqual(texts(answer({ over, notes, back_inside: at, back_inside_because: "job x of ann ends by then at the latest" })), [
    "4 cpu in use, 3 cpu above the new quota",
    `Expected to be inside the quota by ${clock(at, NOW)}: job x of ann ends by then at the latest`,
    "2 running jobs continue",
  ]);
});

test("where no time can be told the reason is said", () => {
  const lines = texts(answer({ over, notes, back_inside_because: "no time can be estimated: job z of ann has no time limit" }));
  assert.equal(lines[1], "When it is inside the quota again: no time can be estimated: job z of ann has no time limit");
});

test("nothing is said of a time where only others are over", () => {
  const others = [{ ...over[0]!, tenant: "blue" }];
  assert.deepEqual(texts(answer({ over: others, notes })), notes.map((n) => n.text));
});

test("the time follows the limit that others set, too", () => {
  const shared: TenantPreview["notes"] = [{ tone: "bad", text: "4 cpu in use, 3 cpu more than it could hold then" }, notes[1]!];
  assert.match(texts(answer({ over, notes: shared, back_inside_because: "x" }))[1]!, /inside the quota again: x/);
});

test("the time has the same place in every language", () => {
  const chinese: TenantPreview["notes"] = [
    { tone: "good", text: "1 个等待的作业可以启动：a" },
    { tone: "bad", text: "已用 4 cpu，超出新配额 3 cpu" },
    { tone: "idle", text: "2 个运行中的作业继续" },
  ];
  assert.match(texts(answer({ over, notes: chinese, back_inside_because: "x" }))[2]!, /inside the quota again: x/);
});

test("who waits is said once, by the service", () => {
  const waiting = [{ user: "ann", name: "a", since: "2026-01-01T11:00:00Z", reason: "WaitingForQuota", message: "" }];
  const said: TenantPreview["notes"] = [{ tone: "idle", text: "1 job would still wait for quota: a (for 60 min now)" }];
  assert.deepEqual(texts(answer({ waiting, notes: said })), [said[0]!.text]);
});

test("the worst line gives the box its tone", () => {
  const line = (tone: "good" | "wait" | "bad" | "idle") => ({ tone, text: tone });
  assert.equal(toneOf([line("good"), line("wait")]), "wait");
  assert.equal(toneOf([line("wait"), line("bad")]), "bad");
  assert.equal(toneOf([line("idle")]), "idle");
  assert.equal(toneOf([]), "idle");
});
