import assert from "node:assert/strict";
import { test } from "node:test";
import { idleWords, policyTexts, readPolicy } from "../../src/core/accounts/idleservers";

test("a countdown says how long the server is not used and how much is left", () => {
  const one = { server: "", tenant: "red", idle_s: 7200, left_s: 600, kept_s: 0 };
  assert.equal(idleWords(one), "Your notebook server has not been used for 2 h. It will be stopped in 10 min.");
  assert.match(idleWords({ ...one, server: "big" }), /server big has not been used/);
});

test("a policy is typed in hours and minutes; empty means never", () => {
  assert.deepEqual(readPolicy({ after: "", grace: "60" }).body, { after_minutes: 0, grace_minutes: 60 });
  assert.deepEqual(readPolicy({ after: "1.5", grace: "5" }).body, { after_minutes: 90, grace_minutes: 5 });
  assert.deepEqual(policyTexts({ after_minutes: 90, grace_minutes: 5 }), { after: "1.5", grace: "5" });
  assert.deepEqual(policyTexts({ after_minutes: 1, grace_minutes: 5 }), { after: "0.017", grace: "5" });
  assert.deepEqual(readPolicy({ after: "0.017", grace: "5" }).body, { after_minutes: 1, grace_minutes: 5 });
  assert.deepEqual(policyTexts({ after_minutes: 0, grace_minutes: 60 }), { after: "", grace: "60" });
});

test("wrong values of a policy say what would be right", () => {
  for (const after of ["-1", "x", "721", "0.001"]) assert.ok(readPolicy({ after, grace: "60" }).faults.after, after);
  for (const grace of ["", "4", "1441", "7.5", "x"]) assert.ok(readPolicy({ after: "2", grace }).faults.grace, grace);
});
