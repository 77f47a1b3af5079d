import assert from "node:assert/strict";
import { test } from "node:test";
import { readSecret, secretTexts } from "../../src/core/stored/secrets";

test("a secret is asked for by what was typed, and an empty token is none", () => {
  const read = readSecret({ ...secretTexts(), name: " lab ", access_key_id: "AKIA ", secret_access_key: "s3cret" });
  assert.deepEqual(read, { asked: { keys: { access_key_id: "AKIA", secret_access_key: "s3cret" } }, name: "lab", faults: {} });
  assert.equal(readSecret({ name: "lab", access_key_id: "a", secret_access_key: "b", session_token: "c" }).asked?.keys["session_token"], "c");
});

test("what is missing or too long is said at its field", () => {
  assert.deepEqual(Object.keys(readSecret(secretTexts()).faults), ["name", "access_key_id", "secret_access_key"]);
  const long = readSecret({ ...secretTexts("lab"), access_key_id: "x".repeat(8193), secret_access_key: "b" });
  assert.deepEqual(long.faults, { access_key_id: "8192 characters at most" });
  assert.equal(long.asked, null);
  assert.ok(readSecret({ ...secretTexts("../x"), access_key_id: "a", secret_access_key: "b" }).faults.name);
});
