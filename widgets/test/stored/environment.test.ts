import assert from "node:assert/strict";
import { test } from "node:test";
import { environmentFieldOf, hasTorch, readEnvironment } from "../../src/core/stored/environment";

const TYPED = { name: " vision ", requirements: "numpy\n", image: " registry.example.org/ml/train:1 " };

test("an environment is asked for by its packages, or by its image where jobs run in containers", () => {
  assert.deepEqual(readEnvironment(TYPED, []), { asked: { name: "vision", requirements: "numpy\n" }, faults: {} });
  assert.deepEqual(readEnvironment(TYPED, [], true), { asked: { name: "vision", image: "registry.example.org/ml/train:1" }, faults: {} });
});

test("what is missing or no image is said at its field, and names that differ in case only are one", () => {
  assert.deepEqual(Object.keys(readEnvironment({ name: "", requirements: " ", image: "" }, []).faults), ["name", "requirements"]);
  for (const image of ["", "a b", "--privileged", "a\nb", "pythön", "a".repeat(501)]) {
    const { asked, faults } = readEnvironment({ ...TYPED, image }, ["VISION"], true);
    assert.deepEqual([asked, Object.keys(faults)], [null, ["name", "image"]], image);
  }
});

test("a refusal goes to the field that it speaks of", () => {
  assert.equal(environmentFieldOf("image 'x y' is not the name of an image"), "image");
  assert.equal(environmentFieldOf("image: this hub starts no containers"), "image");
  assert.equal(environmentFieldOf("line 1 of the requirements is -e ."), "requirements");
  assert.equal(environmentFieldOf("environment vision already exists"), "name");
});

test("an environment has PyTorch where its packages say so, or while that of the offer is made", () => {
  const packages = { numpy: "2.4.1" };
  assert.equal(hasTorch({ name: "vision", packages }), false);
  assert.equal(hasTorch({ name: "vision", packages: { ...packages, torch: "2.9.0" } }), true);
  assert.equal(hasTorch({ name: "PyTorch", packages: {} }), true);
});
