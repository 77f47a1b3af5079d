import assert from "node:assert/strict";
import { test } from "node:test";
import { countWords } from "../../src/core/jobs/queuecounts";

const rows = (...of: [kind: string, phase: string][]) => of.map(([kind, phase]) => ({ kind, phase })) as Parameters<typeof countWords>[0];

test("jobs, replicas of apps and notebook servers are counted each by its name", () => {
  const all = rows(["job", "running"], ["app", "running"], ["job", "starting"], ["job", "queued"], ["app", "queued"], ["server", "queued"], ["job", "suspended"]);
  assert.deepEqual(countWords(all, 7), [
    "2 jobs running", "1 replica of an app running", "1 job waiting", "1 replica of an app waiting", "1 notebook server waiting", "1 suspended",
  ]);
  assert.deepEqual(countWords([], 0), ["0 jobs running", "0 jobs waiting"]);
});

test("of a long queue the rest is one number", () => {
  assert.deepEqual(countWords(rows(["job", "running"], ["job", "queued"]), 1861), ["1 job running", "1860 waiting or suspended"]);
});
