import assert from "node:assert/strict";
import { test } from "node:test";
import { documentedAt, numberName, numberText, reasonPage, reasonWords, unknownStart } from "../../src/core/format/reasons";

test("a type of reason reads as words, and one that is newer than the page as it is", () => {
  assert.deepEqual(["WaitingForQuota", "Newer", "toString"].map(reasonWords), ["waits for quota", "Newer", "toString"]);
});

test("the numbers of a reason have names and units that people read", () => {
  const shown = (key: string, value: number): string => `${numberName(key)}: ${numberText(key, value)}`;
  assert.equal(shown("cpu_inuse", 2.2), "cpu in use: 2.2");
  assert.equal(shown("gpu:a100_limit", 0.125), "gpu:a100 limit: 0.13");
  assert.equal(shown("ram_asked", 2048), "ram asked: 2 GiB");
  assert.equal(shown("rom_free", 3 * 1024 ** 3), "storage free: 3 GiB");
  assert.equal(shown("opens_in", 3725), "opens in: 1 h 2 min");
  assert.equal(shown("window", 7200), "window: 2 h");
  assert.equal(shown("ranks", 4), "ranks: 4");
});

test("why no start can be told is one sentence, however it is said", () => {
  assert.equal(unknownStart("long of bob has no time limit"), "No time can be estimated: long of bob has no time limit.");
  assert.equal(unknownStart("no time can be estimated: a notebook has to stop"), "No time can be estimated: a notebook has to stop.");
});

test("a reason leads to its row of the documentation, where a hub is known", () => {
  assert.equal(reasonPage("WaitingForQuota"), "");
  documentedAt("/services/mlp/docs/");
  assert.equal(reasonPage("WaitingForQuota"), "/services/mlp/docs/reference/reasons#waitingforquota");
  assert.equal(reasonPage("NewerThanThisPage"), "");
  documentedAt("");
});
