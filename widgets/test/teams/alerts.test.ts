import assert from "node:assert/strict";
import { test } from "node:test";
import type { Alert, AlertBoard } from "../../src/core/service/wire";
import { grouped, groupOf, readSilence, runbook, silenceFieldOf, valueWords } from "../../src/core/teams/alerts";

const one = (change: Partial<Alert>): Alert => ({ id: 1, state: "firing", silence: null, value: "91%", threshold: "80%", below: false, ...change }) as Alert;
const NOW = Date.parse("2031-01-01T00:00:00Z");

test("an alert that is not over is silenced first of all, and one that is over is over", () => {
  assert.equal(groupOf(one({})), "firing");
  assert.equal(groupOf(one({ silence: 3 })), "silenced");
  assert.equal(groupOf(one({ state: "pending", silence: 3 })), "silenced");
  assert.equal(groupOf(one({ state: "resolved", silence: 3 })), "resolved");
  const board = { alerts: [one({}), one({ id: 2, silence: 3 })] } as AlertBoard;
  assert.deepEqual(grouped(board, "silenced").map((each) => each.id), [2]);
});

test("a value stands on its side of the threshold", () => {
  assert.equal(valueWords(one({})), "91% > 80%");
  assert.equal(valueWords(one({ below: true })), "91% < 80%");
});

test("a rule has its section in the documentation", () => {
  assert.equal(runbook("/services/mlp/", "MLPDiskFull"), "/services/mlp/docs/reference/alerts#mlpdiskfull");
});

test("a silence needs a reason, an end, and something that it silences", () => {
  const { asked, faults } = readSilence({ reason: "  ", tenant: "" }, "", "", null, NOW);
  assert.equal(asked, null);
  assert.deepEqual(Object.keys(faults), ["reason", "lasts", "tenant"]);
  assert.equal(readSilence({ reason: "x", tenant: "" }, "", "3600", "red", NOW).asked?.until, "2031-01-01T01:00:00.000Z");
});

test("a team's form names no team, and the platform's one only where it is typed", () => {
  assert.deepEqual(readSilence({ reason: " x ", tenant: "blue" }, "MLPX", "3600", "red", NOW).asked, { reason: "x", until: "2031-01-01T01:00:00.000Z", rule: "MLPX" });
  assert.equal(readSilence({ reason: "x", tenant: "red" }, "", "3600", null, NOW).asked?.tenant, "red");
  assert.ok(!("tenant" in (readSilence({ reason: "x", tenant: "" }, "MLPX", "3600", null, NOW).asked ?? {})));
});

test("a refusal belongs to the field of which it speaks", () => {
  assert.equal(silenceFieldOf("a silence needs a reason"), "reason");
  assert.equal(silenceFieldOf("tenant gone does not exist"), "tenant");
  assert.equal(silenceFieldOf("too late"), null);
});
