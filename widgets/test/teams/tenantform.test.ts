import assert from "node:assert/strict";
import { test } from "node:test";
import { EMPTY, fieldOf, read, textsOf, unchanged, update } from "../../src/core/teams/tenantform";
import { TENANT_FIELDS } from "../../src/core/format/terms";
import type { Tenant } from "../../src/core/service/wire";

const tenant = {
  ...Object.fromEntries(TENANT_FIELDS.map((field) => [field, ""])), // of fields that these tests do not know
  name: "red", cpu: 2.5, gpu: 0, ram: 3072, rom: 123, amounts: {}, gpu_kinds: { a100: 1 }, weight: 2, description: "d",
  cohort: "main", parent: null, isolation: "shared", network: "outbound", job_network: "outbound", leavers: "finish", datasets: "members", joining: "closed",
  borrowing_limit: { cpu: 1, "gpu:a100": 2 }, lending_limit: { ram: 1024 }, reserved: null, queue_order: "priority",
} as unknown as Tenant;

test("the form reads what it shows, and an unchanged form changes nothing", () => {
  const texts = textsOf(tenant);
  assert.deepEqual([texts.borrow_cpu, texts.lend_ram, texts.reserve_cpu, texts.cohort], ["1", "1 GiB", "", "main"]);
  const r = read(texts, null, tenant);
  assert.deepEqual(r.faults, {});
  assert.deepEqual(r.amounts, { cpu: 2.5, gpu: 0, ram: 3072, rom: 123 });
  assert.deepEqual(update(tenant, texts, r), unchanged(tenant));
});

test("the form says what is wrong with each field", () => {
  const { faults } = read({ ...EMPTY, name: "red", cpu: "two", ram: "5 foo", weight: "0" }, ["red"]);
  assert.deepEqual(Object.keys(faults).sort(), ["cpu", "name", "ram", "weight"]);
  assert.match(faults.name ?? "", /^team red already exists$/);
});

test("limits that mean nothing, or promise more than there is, are told at their field", () => {
  const faults = (change: Partial<typeof EMPTY>) => read({ ...EMPTY, cpu: "4", ...change }, null).faults;
  assert.deepEqual(faults({ borrow_cpu: "2" }), { borrow_cpu: "needs a cohort or a parent" });
  assert.deepEqual(faults({ cohort: "main", borrow_gpu: "2" }), { borrow_gpu: "needs a quota above; 0 means that it owns nothing" });
  assert.deepEqual(faults({ cohort: "main", lend_cpu: "5", borrow_cpu: "9" }), { lend_cpu: "is above the quota" });
  assert.deepEqual(faults({ reserve_cpu: "5" }), { reserve_cpu: "is above the quota" });
  assert.deepEqual(faults({ reserve_cpu: "4" }), {});
  assert.deepEqual(Object.keys(faults({ cohort: "main", parent: "org" })), ["parent"]);
  assert.deepEqual(faults({ cohort: "Main" }), { cohort: "a cohort's name can contain only a-z, 0-9 and dashes, must start with a letter and must not end with a dash, such as main" });
});

test("limits that the form does not show stay, those that it empties go", () => {
  const r = read({ ...textsOf(tenant), borrow_cpu: "", lend_ram: "" }, null, tenant);
  assert.deepEqual(r.sharing, { cohort: "main", parent: null, borrowing_limit: { "gpu:a100": 2 }, lending_limit: null, reserved: null, queue_order: "priority" });
});

test("a refusal is shown at the field it names", () => {
  const named: [string, string | null][] = [
    ["cpu must be 0 or more", "cpu"],
    ["tenant red already exists", "name"],
    ["the quota is more than the parent has", null],
    ["lending_limit.ram is 4096 and the quota is 1024 MiB ram", "lend_ram"],
    ["borrowing_limit.cpu has no meaning", "borrow_cpu"],
    ["reserved.rom is 5", "reserve_rom"],
    ["cohort blue is the name of a tenant", "cohort"],
    ["the parent top does not exist; create it first, or use none", "parent"],
    ["low cannot be the parent of top: that would be a circle", "parent"],
  ];
  for (const [msg, field] of named) assert.equal(fieldOf(msg), field, msg);
});
