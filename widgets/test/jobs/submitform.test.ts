import assert from "node:assert/strict";
import { test } from "node:test";
import jobnames from "./jobnames.json";
import { nameOf, offerPath, params, read, runnable, seconds, textsOf } from "../../src/core/jobs/submitform";
import { SUBMIT } from "../../src/core/format/terms";

test("a form that nobody touched asks for the defaults of the contract", () => {
  const { body, faults } = read("work/train.py", textsOf("work/train.py"));
  assert.deepEqual(faults, {});
  assert.deepEqual(body, { name: "train", entry: "work/train.py", workers: SUBMIT.workers, cpu: SUBMIT.cpu, gpu: SUBMIT.gpu, ram: SUBMIT.ram });
});

test("what is written is sent", () => {
  const { body } = read("a.py", { ...textsOf("a.py"), name: "lr-0.1", runtime: "mpi", workers: "2:8", cpu: "0.5", gpu: "1", ram: "2 GiB", tenant: "red", time_limit: "1h30m", params: "lr=1e-3, deep=True opt=adam" });
  assert.deepEqual(body, { name: "lr-0.1", entry: "a.py", runtime: "mpi", workers: "2:8", cpu: 0.5, gpu: 1, ram: 2048, tenant: "red", time_limit: 5400, params: { lr: 0.001, deep: true, opt: "adam" } });
});

test("each field that is wrong says what would be right, and nothing is sent", () => {
  const { body, faults } = read("a.py", { ...textsOf("a.py"), name: "-a b", runtime: "", workers: "8:2", cpu: "0", gpu: "x", ram: "much", tenant: "", time_limit: "5", params: "lr" });
  assert.equal(body, null);
  assert.deepEqual(Object.keys(faults).sort(), ["cpu", "gpu", "name", "params", "ram", "time_limit", "workers"]);
  assert.match(faults.time_limit ?? "", /30m/);
});

test("memory may be auto, and the offer is asked by name and shape", () => {
  const { body } = read("a.py", { ...textsOf("a.py"), ram: " Auto ", workers: "2:4", gpu: "1", tenant: "red" });
  assert.equal(body?.ram, "auto");
  assert.equal(body && offerPath(body), "/offer?name=a&workers=2%3A4&gpu=1&tenant=red");
});

test("lengths of time have a unit", () => {
  assert.deepEqual(["90s", "30m", "1h 30m", "1d", "5", "m", "400d", "0s"].map(seconds), [90, 1800, 5400, 86_400, null, null, null, null]);
});

test("a job is called as its file, as Python calls it", () => {
  for (const [path, name] of jobnames as [string, string][]) assert.equal(nameOf(path), name || "job");
});

test("scripts and notebooks are run", () => {
  assert.deepEqual(["a.py", "a.ipynb", "", "py"].map(runnable), [true, true, false, false]);
});

test("a notebook is one worker, whatever a form for scripts held", () => {
  const { body } = read("a.ipynb", { ...textsOf("a.ipynb"), workers: "4", runtime: "mpi" });
  assert.deepEqual(body, { name: "a", entry: "a.ipynb", workers: 1, cpu: SUBMIT.cpu, gpu: SUBMIT.gpu, ram: SUBMIT.ram });
});

test("parameters are names with values", () => {
  assert.deepEqual(["", "a=b=c", "x=-.5 y=", "a.b=1", "1=2", "lr 0.1", "=3"].map(params), [{}, { a: "b=c" }, { x: -0.5, y: "" }, { "a.b": 1 }, null, null, null]);
});
