import assert from "node:assert/strict";
import { test } from "node:test";
import { paths } from "../../src/core/service/api";
import { commandName, pinned, reference, title } from "../../src/core/jobs/runs";
import { job } from "../helpers";

test("a run is meant exactly by addresses and named shortly in sentences", () => {
  const first = job({ run: 1, phase: "running" });
  const later = job({ run: 2, phase: "finished", name: "Lr-0.1" });
  assert.deepEqual([reference(first), title(first), commandName(first)], ["digits@1", "digits", "digits"]);
  assert.deepEqual([reference(later), title(later), commandName(later)], ["Lr-0.1@2", "Lr-0.1 run 2", "Lr-0.1@2"]);
  assert.equal(commandName(job({ run: 1, phase: "failed" })), "digits@1");
  assert.equal(paths.job("ann", reference(later)), "/users/ann/jobs/Lr-0.1%402");
});

test("a picture that was saved before there were runs has its name alone", () => {
  const old = { name: "digits", phase: "failed" as const };
  assert.deepEqual([reference(old), title(old), commandName(old)], ["digits", "digits", "digits"]);
});

test("a run that the service names in a sentence is found by it", () => {
  assert.deepEqual([pinned("digits"), pinned("digits@3")], ["digits@1", "digits@3"]);
});
