import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuUsed, ramUsed, reportedWords, usedWords } from "../../src/core/jobs/used";
import type { Rank } from "../../src/core/service/wire";
import told from "./used.json";

test("what ranks used reads as it does in Python", () => {
  for (const { job, sentence, cpu, ram } of told) {
    const ranks = job.ranks as Rank[];
    assert.equal(usedWords({ ...job, ranks }), sentence);
    assert.equal(cpuUsed(ranks[0] as Rank), cpu);
    assert.equal(ramUsed(ranks[0] as Rank), ram);
  }
});

test("use that is known by the job's own report alone is said to be so", () => {
  const ranks = (...reported: boolean[]) => ({ ranks: reported.map((one) => ({ reported: one })) });
  assert.equal(reportedWords(ranks(false, true)), "Use of CPU and memory by the job's own report.");
  assert.equal(reportedWords(ranks(false)), "");
});
