import assert from "node:assert/strict";
import { test } from "node:test";
import { hasFinished, hasServer, steps } from "../../src/core/accounts/firststeps";
import { cardHeight, type RunColumn } from "../../src/core/jobs/runtable";
import type { Usage } from "../../src/core/service/wire";

const held = (applier: string, user: string): Usage => ({ holdings: [{ applier, user }] }) as unknown as Usage;

test("only my own notebook server is a step that is done", () => {
  assert.equal(hasServer("ann", [held("sp", "bob"), held("jm", "ann")]), false);
  assert.equal(hasServer("ann", [held("jm", "ann"), held("sp", "ann")]), true);
});

test("only a job that has finished is the sample run: not one that waits, was cancelled or failed", () => {
  assert.equal(hasFinished([]), false);
  assert.equal(hasFinished([{ phase: "queued" }, { phase: "running" }, { phase: "cancelled" }, { phase: "failed" }]), false);
  assert.equal(hasFinished([{ phase: "cancelled" }, { phase: "finished" }]), true);
});

test("steps are shown to whoever began without a finished job, until all are done or they are dismissed", () => {
  assert.deepEqual(steps({}, false, false), { server: false, job: false, quota: false });
  assert.deepEqual(steps({ server: true }, false, false), { server: true, job: false, quota: false });
  assert.deepEqual(steps({ begun: true }, true, false), { server: true, job: true, quota: false });
  assert.equal(steps({}, true, true), null);
  assert.equal(steps({ begun: true, quota: true }, true, true), null);
  assert.equal(steps({ dismissed: true }, false, false), null);
});

test("the card of a run has a line for each two columns, and one for a note and one for the time", () => {
  const columns = (...keys: string[]): RunColumn[] => keys.map((key) => ({ key }) as RunColumn);
  const line = cardHeight(columns("a", "b", "c")) - cardHeight(columns("a", "b"));
  assert.equal(cardHeight(columns("a", "b", "c", "d")), cardHeight(columns("a", "b", "c")));
  assert.equal(cardHeight(columns("state", "a", "b")), cardHeight(columns("a", "b")) + line);
  assert.equal(cardHeight(columns("a", "b", "note")), cardHeight(columns("a", "b")) + line);
});
