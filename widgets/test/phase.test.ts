import assert from "node:assert/strict";
import { test } from "node:test";
import { workersWords } from "../src/core/phase";
import type { Rank } from "../src/core/wire";

test("an elastic job says how many workers it has now", () => {
  const ranks = (...roles: string[]): Rank[] => roles.map((role, rank) => ({ rank, role }) as Rank);
  assert.equal(workersWords({ workers: "1:3", ps: 0, ranks: ranks("worker", "worker") }), "2 workers (1 to 3)");
  assert.equal(workersWords({ workers: "1:3", ps: 1, ranks: ranks("chief", "ps") }), "1 worker (1 to 3) + 1 ps");
  assert.equal(workersWords({ workers: "1:3", ps: 0, ranks: [] }), "1 to 3 workers");
  assert.equal(workersWords({ workers: 2, ps: 0, ranks: ranks("worker", "worker") }), "2 workers");
  assert.equal(workersWords({ workers: 1, ps: 0, ranks: [] }), "1 worker");
});
