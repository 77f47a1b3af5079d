import assert from "node:assert/strict";
import { test } from "node:test";
import { cores } from "../../src/core/format/format";
import { alone, beyondWords, legend, place, segments, sharingWords, standing, standingWords } from "../../src/core/teams/sharing";
import type { Tenant } from "../../src/core/service/wire";

const tenant = (change: object = {}): Tenant =>
  ({
    name: "red", cpu: 4, gpu: null, ram: 1024, rom: null, cpu_inuse: 3, gpu_inuse: 0, ram_inuse: 0, rom_inuse: 0, cohort: null, parent: null,
    borrowing_limit: null, lending_limit: null, reserved: null, queue_order: "priority", borrowed: {}, lent: {}, lendable: {}, free: { cpu: 1 }, over: {}, lowered: null, ...change,
  }) as unknown as Tenant;
const said = (change: object): string => standingWords(standing(tenant(change), "cpu"), cores).join(" · ");

test("what is borrowed, lent and free is said, zeroes are not", () => {
  assert.equal(said({}), "1 free");
  assert.equal(said({ cpu_inuse: 6, borrowed: { cpu: 2 }, free: { cpu: 1 } }), "2 borrowed · 1 more to borrow");
  assert.equal(said({ cpu_inuse: 1, lent: { cpu: 2 }, free: { cpu: 1 } }), "2 lent · 1 free");
  assert.equal(said({ cpu_inuse: 5, free: { cpu: 0 }, over: { cpu: 1 } }), "1 beyond quota");
  assert.equal(said({ cpu_inuse: 7, free: { cpu: 0 }, borrowed: { cpu: 3 }, over: { cpu: 1 } }), "1 beyond quota · 2 borrowed");
  assert.deepEqual(standingWords(standing(tenant(), "gpu"), cores), []);
  // it adds up: 0 of 3 and 6 to take are 3 of its own and 3 of others
  assert.equal(said({ cpu: 3, cpu_inuse: 0, free: { cpu: 6 } }), "3 free · 3 more to borrow");
  assert.equal(said({ cpu: 3, cpu_inuse: 0, free: { cpu: 6 }, lent: { cpu: 1 } }), "1 lent · 2 free · 4 more to borrow");
  assert.equal(said({ cpu: 3, cpu_inuse: 1, free: { cpu: 0.5 } }), "1.5 kept or held by others · 0.5 free");
});

test("what is beyond the quota says what becomes of it", () => {
  assert.equal(beyondWords(tenant()), "");
  assert.equal(
    beyondWords(tenant({ cpu: 2, over: { cpu: 1 } })),
    "1 cpu in use beyond the quota. Running work continues, as nothing is stopped for that alone. Nothing new starts until enough is given back",
  );
  assert.match(beyondWords(tenant({ cohort: "main", over: { cpu: 1 } })), /As soon as another team of cohort main needs its own quota, it is taken back from the cheapest of the team's jobs/);
  assert.equal(
    beyondWords(tenant({ cohort: "main", borrowed: { cpu: 2, ram: 1024 } })),
    "2 cpu, 1 GiB memory of the use is borrowed. It stays until the team's jobs end. As soon as another team of cohort main needs its own quota, " +
      "it is taken back from the cheapest of these jobs",
  );
});

test("a service that says nothing of what is free is understood", () => {
  assert.equal(standing(tenant({ free: {} }), "cpu").free, 1);
});

test("a bar beyond the quota is as long as what is used, what is lent lies at its far end", () => {
  const parts = (change: object) => segments(standing(tenant(change), "cpu"));
  assert.deepEqual(parts({}), { own: 75, borrowed: 0, over: 0, lent: 0 });
  assert.deepEqual(parts({ cpu_inuse: 5, borrowed: { cpu: 1 } }), { own: 80, borrowed: 20, over: 0, lent: 0 });
  assert.deepEqual(parts({ cpu_inuse: 1, lent: { cpu: 2 } }), { own: 25, borrowed: 0, over: 0, lent: 50 });
  assert.deepEqual(parts({ cpu: 0, cpu_inuse: 2, borrowed: { cpu: 2 } }), { own: 0, borrowed: 100, over: 0, lent: 0 });
  assert.deepEqual(parts({ cpu_inuse: 8, borrowed: { cpu: 4 }, over: { cpu: 2 } }), { own: 50, borrowed: 25, over: 25, lent: 0 });
  assert.deepEqual(parts({ cpu_inuse: 5, over: { cpu: 1 } }), { own: 80, borrowed: 0, over: 20, lent: 0 });
  assert.deepEqual(segments(alone(0, 0)), { own: 0, borrowed: 0, over: 0, lent: 0 });
});

test("the colours of bars are explained where they show more than plain use, each once", () => {
  const of = (...changes: object[]): string[] => legend(changes.map((c) => standing(tenant(c), "cpu"))).map(([part]) => part);
  assert.deepEqual(of({}, {}), []);
  assert.deepEqual(of({ cpu: null, borrowed: { cpu: 1 } }), []);
  assert.deepEqual(of({}, { cpu_inuse: 5, borrowed: { cpu: 1 } }, { cpu_inuse: 6, borrowed: { cpu: 2 } }), ["own", "borrowed"]);
  assert.deepEqual(of({ cpu_inuse: 0, lent: { cpu: 2 } }), ["lent"]);
  assert.deepEqual(of({ cpu_inuse: 5, over: { cpu: 1 } }), ["own", "over"]);
});

test("whom a tenant shares with is one line", () => {
  assert.equal(sharingWords(tenant()), "");
  assert.equal(sharingWords(tenant({ cohort: "main" })), "In cohort main · borrows what others leave idle · lends what it leaves idle");
  assert.equal(
    sharingWords(tenant({ parent: "org", borrowing_limit: { cpu: 2, ram: 2048 }, lending_limit: { cpu: 0, "gpu:a100": 1 } })),
    "Below org · borrows at most 2 cpu, 2 GiB memory · lends at most 0 cpu, 1 a100 gpu",
  );
  assert.equal(sharingWords(tenant({ reserved: { cpu: 1 } })), "keeps 1 cpu reserved");
  assert.deepEqual([place(tenant()), place(tenant({ cohort: "main" })), place(tenant({ parent: "org" }))], ["", "cohort main", "below org"]);
});
