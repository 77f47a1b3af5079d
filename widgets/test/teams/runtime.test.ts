import assert from "node:assert/strict";
import { test } from "node:test";
import { readRuntime, runtimeFieldOf, runtimeTexts } from "../../src/core/teams/runtime";
import type { RuntimeInfo } from "../../src/core/service/wire";

const THERE: RuntimeInfo = {
  name: "mine", title: "Mine", description: "", ps: true, tenant: "red", state: "approved", image: "registry.example.org/red/mine:1", changed_by: "rita", changed_at: null,
  program: ["{python}", "-c", "a  b", "{entry}"], env: { A: "x=y" }, launcher: null, rank_env: "R", needs: "dask", ends_with: "chief", linger_s: 0, success: [0, 3],
  roles: [{ name: "chief", count: 1, program: ["serve"] }, { name: "worker", count: null, program: null }],
};
const texts = (change: object) => ({ ...runtimeTexts(null), name: "mine", title: "Mine", ...change });
const faults = (change: object): object => readRuntime(texts(change), ["taken"], null).faults;

test("what is there goes through the form unchanged, also what the form has no field for", () => {
  const { asked } = readRuntime(runtimeTexts(THERE), ["mine"], THERE);
  for (const [name, value] of Object.entries(asked ?? {})) assert.deepEqual(value, THERE[name as keyof RuntimeInfo], name);
  assert.deepEqual([asked?.rank_env, asked?.linger_s, asked?.roles?.[0]?.program], ["R", 0, ["serve"]]);
});

test("a new one needs a name and a title only", () => {
  const { asked } = readRuntime(texts({}), [], null);
  assert.deepEqual([asked?.program, asked?.roles, asked?.launcher, asked?.success], [["{program}"], [{ name: "worker", count: null, program: null }], null, [0]]);
});

test("what is wrong is said at its field", () => {
  assert.deepEqual(faults({}), {});
  assert.deepEqual(faults({ name: "taken" }), { name: "a runtime taken already exists" });
  assert.deepEqual(faults({ title: " " }), { title: "a title is needed" });
  assert.deepEqual(Object.keys(faults({ program: "", env: "A", roles: "Chief one", success: "x" })), ["program", "env", "roles", "success"]);
});

test("a refusal is shown at the field that it speaks of", () => {
  assert.equal(runtimeFieldOf("program: {prog} does not exist"), "program");
  assert.equal(runtimeFieldOf("name: plain is a runtime of the platform; use another name"), "name");
  assert.equal(runtimeFieldOf("red has 50 runtimes"), null);
});
