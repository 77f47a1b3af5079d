import assert from "node:assert/strict";
import { test } from "node:test";
import { askedBy, curlOf, pythonOf } from "../../src/core/apps/appexamples";
import { modelName, nameFault, replicasOf } from "../../src/core/apps/appform";
import { nameFor } from "../../src/core/stored/data";

const url = "https://hub.example.org/services/mlp/apps/ann/line/";

test("a command is asked at its address, a model by the protocol", () => {
  assert.equal(curlOf({ url, model: "" }), `curl -H "Authorization: Bearer KEY" "${url}"`);
  assert.equal(curlOf({ url, model: "net" }), `curl -H "Authorization: Bearer KEY" "${url}v2/models/net"`);
  assert.match(pythonOf({ url, model: "net" }), /v2\/models\/net\/infer/);
  assert.doesNotMatch(pythonOf({ url, model: "" }), /v2/);
  assert.equal(askedBy("net@3"), "net");
});

test("what is typed to deploy is read as it is sent", () => {
  assert.deepEqual(["2", "0:2", "3:3", " 1 "].map(replicasOf), [2, "0:2", 3, 1]);
  assert.deepEqual(["", "0", "2:1", "101", "x", "1:"].map(replicasOf), [null, null, null, null, null, null]);
  assert.equal(nameFault("net-1"), null);
  assert.ok(nameFault("Net"));
});

test("a model's name is made of a job's", () => {
  assert.equal(modelName("Big_run@2"), "big-run");
  assert.equal(modelName("lr-0.001"), "lr-0-001");
  assert.equal(modelName("_1"), "");
});

test("a dataset is called as the file without its ending, or as the directory", () => {
  const named = (path: string): string => nameFor([{ path, file: new File([], "x") }]);
  assert.deepEqual(["pets.csv", "pets.tar.gz", "Pets 2024.v2.csv", "photos.d/a.png", ".hidden", "README"].map(named), ["pets", "pets", "pets-2024.v2", "photos.d", "hidden", "readme"]);
});
