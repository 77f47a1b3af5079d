import assert from "node:assert/strict";
import { test } from "node:test";
import { cpuUsed, memoryWords, ramUsed, reportedWords, usedWords } from "../../src/core/jobs/used";
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

test("auto memory is said to be less or more than before", () => {
  const of = (asked: number, fitting: number): string => memoryWords({ runs: 1, used: 300, asked, ran_out: 0, fitting, text: "the last run" });
  assert.equal(of(8192, 2560), "The last run; --ram auto requests 2.5 GiB, 5.5 GiB less");
  assert.equal(of(512, 640), "The last run; --ram auto requests 640 MiB, 128 MiB more, because it adds a margin");
  assert.equal(of(640, 640), "The last run; --ram auto requests the same amount");
});
