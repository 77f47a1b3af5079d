import assert from "node:assert/strict";
import { test } from "node:test";
import { word, workersWords } from "../../src/core/jobs/phase";
import { trialWord } from "../../src/core/jobs/sweep";
import type { Rank, SweepTrial } from "../../src/core/service/wire";

test("an elastic job says how many workers it has now", () => {
  const ranks = (...roles: string[]): Rank[] => roles.map((role, rank) => ({ rank, role }) as Rank);
  assert.equal(workersWords({ workers: "1:3", ps: 0, ranks: ranks("worker", "worker") }), "2 workers (1 to 3)");
  assert.equal(workersWords({ workers: "1:3", ps: 1, ranks: ranks("chief", "ps") }), "1 worker (1 to 3) + 1 ps");
  assert.equal(workersWords({ workers: "1:3", ps: 0, ranks: [] }), "1 to 3 workers");
  assert.equal(workersWords({ workers: 2, ps: 0, ranks: ranks("worker", "worker") }), "2 workers");
  assert.equal(workersWords({ workers: 1, ps: 0, ranks: [] }), "1 worker");
});

test("a trial that its sweep stopped early nobody cancelled", () => {
  assert.equal(word("cancelled", "StoppedEarly"), "Stopped early");
  assert.equal(trialWord({ state: "stopped", phase: "cancelled" } as SweepTrial), "Stopped early");
  assert.equal(word("cancelled", null), "Cancelled");
  assert.equal(word("cancelling", "StoppedEarly"), "Cancelling");
  assert.equal(word("failed", "time-limit"), "Failed");
});
