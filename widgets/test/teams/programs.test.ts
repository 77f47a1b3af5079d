import assert from "node:assert/strict";
import { test } from "node:test";
import { givenWords, isProgram, longestFirst, newFieldOf, newTexts, readNew, readTurn, tokenWords, turnTexts } from "../../src/core/teams/programs";
import type { ServiceAccount, TokenInfo } from "../../src/core/service/wire";

const NOW = new Date(2026, 10, 21, 9, 30).getTime();
const at = (seconds: number): string => new Date(NOW + seconds * 1000).toISOString();
const token = (change: Partial<TokenInfo>): TokenInfo => ({
  id: "a1", note: "", scopes: [], created: at(-900), expires: at(600), last_used: at(-300), last_from: "10.0.0.1", current: false, ends_soon: false, ...change,
});

test("an account is asked for by its name and days", () => {
  assert.deepEqual(readNew({ ...newTexts(), name: " nightly " }, []), { asked: { name: "nightly", expires_in: 90 * 86_400 }, faults: {} });
  const wrong = readNew({ name: "nightly", days: "0" }, ["nightly"]);
  assert.deepEqual(wrong, { asked: null, faults: { name: "an account nightly already exists", days: "a whole number from 1 to 365" } });
  assert.equal(readNew({ name: "a".repeat(29), days: "1" }, []).faults.name, "a name has at most 28 characters, this one has 29");
  for (const days of ["", "x", "1.5", "366", "-1", "99999"]) assert.ok(readNew({ name: "a", days }, []).faults.days, days);
});

test("another token leaves those before it some hours, or none", () => {
  assert.deepEqual(readTurn(turnTexts()).asked, { expires_in: 90 * 86_400, grace: 86_400 });
  assert.equal(readTurn({ days: "1", grace: "0" }).asked?.grace, 0);
  assert.ok(readTurn({ days: "1", grace: "721" }).faults.grace);
});

test("a token says when and from where it was used, and until when it holds", () => {
  assert.deepEqual(tokenWords(token({}), NOW), { used: "used 5 min ago from 10.0.0.1", ends: "until 09:40" });
  assert.deepEqual(tokenWords(token({ last_used: null, last_from: "", expires: null }), NOW), { used: "never used", ends: "for ever" });
  assert.equal(tokenWords(token({ last_from: "" }), NOW).used, "used 5 min ago");
});

test("the token that holds longest comes first", () => {
  const tokens = [token({ id: "soon", expires: at(5) }), token({ id: "ever", expires: null }), token({ id: "later", expires: at(500) })];
  const account: ServiceAccount = { name: "nightly", user: "svc-nightly", made_by: "ann", made_at: at(-9), tokens };
  assert.deepEqual(longestFirst(account).map((one) => one.id), ["ever", "later", "soon"]);
});

test("what was given is told with its end, and with that of the old ones", () => {
  const given = { user: "svc-nightly", token: "x", expires: at(600), old_until: null };
  assert.deepEqual(givenWords(given, NOW), ["It is valid until 09:40 and is shown only once."]);
  assert.equal(givenWords({ ...given, old_until: at(60) }, NOW)[1], "Earlier tokens are valid until 09:31.");
});

test("a refusal is shown at the field that it speaks of", () => {
  assert.equal(newFieldOf("the name nightly is taken; choose another one"), "name");
  assert.equal(newFieldOf("an account nightly of red already exists"), "name");
  assert.equal(newFieldOf("expires_in: too much"), "days");
  assert.equal(newFieldOf("the hub does not answer"), null);
  assert.ok(isProgram("svc-nightly") && !isProgram("ann"));
});
