import assert from "node:assert/strict";
import { test } from "node:test";
import { parts, spanWords, told, whole, widths } from "../../src/core/jobs/stages";
import type { JobAttempt, AttemptStage } from "../../src/core/service/wire";

const at = (s: number): string => new Date(Date.UTC(2026, 0, 1, 10, 0, s)).toISOString();
const now = (s: number): number => Date.parse(at(s));

function attempt(ended: string | null, ...stages: [AttemptStage["stage"], number][]): JobAttempt {
  return {
    attempt: 1,
    stages: stages.map(([stage, s], i) => ({ stage, time: at(s), seconds: i ? s - (stages[i - 1] as [string, number])[1] : null })),
    ended,
    ended_at: null,
  };
}

test("each part is what was waited for until a stage, and all of them are the way to the first line", () => {
  const way = parts(attempt(null, ["queued", 0], ["admitted", 2], ["created", 3], ["bound", 3], ["pulled", 10], ["started", 11], ["first-line", 12]), now(50));
  assert.deepEqual(way.map((p) => [p.stage, p.seconds, p.open]), [
    ["admitted", 2, false], ["created", 1, false], ["bound", 0, false], ["pulled", 7, false], ["started", 1, false], ["first-line", 1, false],
  ]);
  assert.equal(whole(way), 12);
});

test("what is waited for grows while it is, and no longer once the attempt has ended", () => {
  const stages: [AttemptStage["stage"], number][] = [["queued", 0], ["admitted", 2], ["created", 3], ["bound", 4]];
  assert.deepEqual(parts(attempt(null, ...stages), now(40)).at(-1), { stage: "pulled", seconds: 36, open: true });
  assert.equal(parts(attempt("suspended", ...stages), now(40)).at(-1)?.stage, "bound");
  // a program that runs may never write
  assert.equal(parts(attempt(null, ["queued", 0], ["admitted", 2], ["started", 3]), now(40)).at(-1)?.open, false);
  assert.deepEqual(parts(attempt(null, ["queued", 0]), now(9)), [{ stage: "admitted", seconds: 9, open: true }]);
});

test("no part that there is vanishes in the bar, and they fill it", () => {
  const way = parts(attempt(null, ["queued", 0], ["admitted", 600], ["started", 600], ["first-line", 601]), now(700));
  const wide = widths(way);
  assert.ok(wide.every((w) => w > 1));
  assert.ok(Math.abs(wide.reduce((a, b) => a + b, 0) - 100) < 1e-9);
  assert.deepEqual(widths([{ stage: "admitted", seconds: 0, open: false }]), [100]);
});

test("spans are told to a tenth of a second where that says something", () => {
  assert.deepEqual([0, 0.04, 0.42, 3.26, 59, 61, 3700].map(spanWords), ["0 s", "0.04 s", "0.4 s", "3.3 s", "59 s", "1 min 1 s", "1 h 1 min"]);
});

test("the newest attempt comes first, and one that has come to nothing is not told of", () => {
  const [a, b] = [attempt("requeued", ["queued", 0]), { ...attempt(null, ["queued", 5]), attempt: 2 }];
  assert.deepEqual(told([a, b, { ...attempt(null), attempt: 3 }]).map((x) => x.attempt), [2, 1]);
});
