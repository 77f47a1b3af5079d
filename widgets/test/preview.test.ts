import assert from "node:assert/strict";
import { test } from "node:test";
import { preview, previewWords } from "../src/core/preview";
import { EMPTY, fieldOf, read, textsOf } from "../src/core/tenantform";
import type { Amounts, Tenant } from "../src/core/wire";
import { entry } from "./helpers";

const tenant = {
  name: "red", cpu: 3, gpu: 0, ram: 4096, rom: null, cpu_inuse: 2.2, gpu_inuse: 0, ram_inuse: 2048, rom_inuse: 0,
};
const quota = (change: Partial<Amounts>): Amounts => ({ cpu: 3, gpu: 0, ram: 4096, rom: null, ...change });
const queue = [entry("b", { position: 2 }), entry("a", { position: 1 }), entry("c", { position: 3, cpu: 8 }), entry("x", { tenant: "blue" })];
const words = (amounts: Amounts): string[] => previewWords(preview(tenant, queue, amounts), 1).map((l) => l.text);

test("a larger quota names the waiting jobs that could start, in their order", () => {
  assert.deepEqual(words(quota({ cpu: 6.5 })), [
    "2 waiting jobs could start: a, b",
    "1 waiting job would ask for more than the whole quota: c",
  ]);
  assert.deepEqual(preview(tenant, queue, quota({ cpu: null, ram: null })).couldStart, ["a", "b", "c"]);
});

test("memory counts as cpu does", () => {
  assert.deepEqual(preview(tenant, queue, quota({ cpu: 20, ram: 3072 })).couldStart, ["a"]);
});

test("a quota below what is in use says by how much, and that nothing is stopped", () => {
  assert.deepEqual(words(quota({ cpu: 2 })).slice(0, 2), [
    "2.2 cpu in use, 0.2 cpu above the new quota",
    "1 running job goes on; nothing new starts until enough is given back",
  ]);
});

test("no change for anybody is said, too", () => {
  assert.deepEqual(previewWords(preview(tenant, [], quota({})), 0), [{ tone: "idle", text: "No running or waiting job is touched" }]);
});

test("the form reads what it shows", () => {
  const full = { ...tenant, cpu: 2.5, ram: 3072, rom: 123, weight: 2, description: "d", gpu_kinds: {} } as unknown as Tenant;
  const texts = textsOf(full);
  assert.deepEqual(read(texts, null), { amounts: { cpu: 2.5, gpu: 0, ram: 3072, rom: 123 }, weight: 2, faults: {} });
});

test("the form says what is wrong with each field", () => {
  const { faults } = read({ ...EMPTY, name: "red", cpu: "two", ram: "5 foo", weight: "0" }, ["red"]);
  assert.deepEqual(Object.keys(faults).sort(), ["cpu", "name", "ram", "weight"]);
  assert.match(faults.name ?? "", /exists already/);
});

test("a refusal is shown at the field it names", () => {
  assert.deepEqual(["cpu must be 0 or more", "tenant red exists already", "the quota is more than the parent has"].map(fieldOf), ["cpu", "name", null]);
});
