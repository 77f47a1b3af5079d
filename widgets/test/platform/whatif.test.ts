import assert from "node:assert/strict";
import { test } from "node:test";
import { decisionOf, isExplained, lostWork, priorityName, jobName } from "../../src/core/jobs/decisions";
import { askedOf, draftOf, kindsOf, mark, NO_TENANT, rowOf, sharingChanges, startClock, startWords, waitsOf, whyTheSame, whyWords, withClocks, WORK, type SimulatedWork } from "../../src/core/platform/whatif";
import type { Decision, Event as JobEvent, Node, Simulated, SimulatedRun, SimulatedWait, Tenant } from "../../src/core/service/wire";

// only what the form looks at: a new field of tenants is no matter of these tests
const tenant = (name: string, change: Partial<Tenant> = {}): Tenant => ({
  name, cpu: 4, gpu: null, ram: 8192, rom: null, gpu_kinds: {}, weight: 1, cohort: null, parent: null, borrowing_limit: null, lending_limit: null,
  reserved: null, queue_order: "priority", ...change,
} as Partial<Tenant> as Tenant);
const node = (name: string, cpu = 8): Node => ({
  name, up: true, schedulable: true, conditions: [], taints: [], cpu, gpu: 0, gpu_kind: null, ram: 16384, cpu_allocatable: cpu, ram_allocatable: 15360, cpu_inuse: 0, gpu_inuse: 0, ram_inuse: 0, cpu_others: 0, gpu_others: 0, ram_others: 0,
  labels: {}, holders: [],
});
const TENANTS = [tenant("blue"), tenant("red")];
const KINDS = kindsOf([node("a"), node("b"), node("c", 16)]);
const NOW = Date.parse("2026-01-08T00:00:00Z");
const draft = () => draftOf(TENANTS, KINDS);

test("a form that was not touched asks for no change", () => {
  const asked = askedOf(draft(), TENANTS, KINDS, NOW);
  assert.equal(asked.changes, 0);
  assert.deepEqual(asked.faults, {});
  assert.deepEqual(asked.body, { from: "now", changes: { tenants: {}, new_tenants: {}, new_nodes: [], remove_nodes: [] } });
});

test("only what is other is sent, and an emptied field means no limit", () => {
  const d = draft();
  d.tenants["red"] = { ...d.tenants["red"]!, cpu: "", ram: "16 GiB" };
  const { body, changes } = askedOf(d, TENANTS, KINDS, NOW);
  assert.equal(changes, 2);
  assert.deepEqual((body["changes"] as Record<string, unknown>)["tenants"], { red: { cpu: null, ram: 16384 } });
});

test("fewer nodes of a kind take the last ones away, more come like them", () => {
  const d = draft();
  d.kinds[KINDS[0]!.key] = "1";
  d.kinds[KINDS[1]!.key] = "3";
  const changes = askedOf(d, TENANTS, KINDS, NOW).body["changes"] as Record<string, unknown>;
  assert.deepEqual(changes["remove_nodes"], ["b"]);
  assert.deepEqual(changes["new_nodes"], [{ name: "more-2", count: 2, cpu: 16, ram: 15360, gpu: 0 }]);
});

test("a span of the past is told by its begin", () => {
  assert.deepEqual(askedOf({ ...draft(), from: "7" }, TENANTS, KINDS, NOW).body["from"], { history: { since: "2026-01-01T00:00:00.000Z" } });
});

test("what is wrong is told by its field", () => {
  const d = draft();
  d.tenants["red"] = { ...d.tenants["red"]!, cpu: "-1", gpu: "x", ram: "much", weight: "0" };
  d.added = [{ ...NO_TENANT, name: "blue" }];
  d.kinds[KINDS[0]!.key] = "1.5";
  d.nodes = [{ count: "0", cpu: "", ram: "1", gpu: "0.5", gpu_kind: "" }];
  const { faults } = askedOf(d, TENANTS, KINDS, NOW);
  assert.deepEqual(Object.keys(faults).sort(), [
    `kind.${KINDS[0]!.key}`, "new-0.name", "nodes-0.count", "nodes-0.cpu", "nodes-0.gpu", "nodes-0.ram", "red.cpu", "red.gpu", "red.ram", "red.weight",
  ]);
});

test("with whom a tenant shares is sent by kind of limit, and an emptied limit is none", () => {
  const tenants = [tenant("blue", { cohort: "main", lending_limit: { cpu: 1, "gpu:a100": 2 }, borrowing_limit: { cpu: 2 } }), tenant("red")];
  const d = draftOf(tenants, KINDS);
  d.tenants["blue"] = { ...d.tenants["blue"]!, lend_ram: "2 GiB", borrow_cpu: "" };
  d.tenants["red"] = { ...d.tenants["red"]!, cohort: "main", borrow_cpu: "3" };
  d.added = [{ ...NO_TENANT, name: "green", cpu: "2", parent: "red" }];
  const { body, changes, faults } = askedOf(d, tenants, KINDS, NOW);
  assert.deepEqual(faults, {});
  assert.equal(changes, 5);
  const sent = body["changes"] as Record<string, unknown>;
  assert.deepEqual(sent["tenants"], {
    blue: { borrowing_limit: null, lending_limit: { cpu: 1, ram: 2048, "gpu:a100": 2 } },
    red: { cohort: "main", borrowing_limit: { cpu: 3 } },
  });
  assert.deepEqual(sent["new_tenants"], { green: { cpu: 2, gpu: null, ram: null, weight: 1, parent: "red" } });
  assert.equal(sharingChanges(d.tenants["blue"]!, draftOf(tenants, KINDS).tenants["blue"]!), 2);
});

test("a limit that means nothing and a place that cannot be are told by their fields", () => {
  const d = draft();
  d.tenants["red"] = { ...d.tenants["red"]!, parent: "blue", lend_cpu: "5", borrow_gpu: "1" };
  d.tenants["blue"] = { ...d.tenants["blue"]!, parent: "red", borrow_cpu: "x" };
  d.added = [{ ...NO_TENANT, name: "green", cohort: "red", lend_ram: "1 GiB" }, { ...NO_TENANT, name: "teal", borrow_cpu: "1", cpu: "1", parent: "nobody" }];
  assert.deepEqual(askedOf(d, TENANTS, KINDS, NOW).faults, {
    "blue.borrow_cpu": "cpu is a number from 0 up, such as 4 or 0.5; empty means no limit",
    "blue.parent": "red is below blue, so it cannot be above it too",
    "new-0.cohort": "red is a team: give the cohort another name, or make red the parent",
    "new-0.lend_ram": "needs a quota above; 0 means that it owns nothing",
    "new-1.parent": "team nobody does not exist",
    "red.borrow_gpu": "needs a quota above; 0 means that it owns nothing",
    "red.lend_cpu": "is above the quota",
    "red.parent": "blue is below red, so it cannot be above it too",
  });
  const own = draft();
  own.tenants["red"] = { ...own.tenants["red"]!, cohort: "main", borrow_cpu: "1" };
  own.added = [{ ...NO_TENANT, name: "main" }];
  assert.deepEqual(Object.keys(askedOf(own, TENANTS, KINDS, NOW).faults).sort(), ["new-0.name", "red.cohort"]);
});

test("less waiting is better, and a hundredth is no difference", () => {
  assert.equal(mark(100, 50, -1), "better");
  assert.equal(mark(100, 200, -1), "worse");
  assert.equal(mark(100, 100.5, -1), "same");
  assert.equal(mark(1, 2, 0), "same");
  const work = (wait: number): SimulatedWork => ({
    jobs: 1, running: 0, waits_of: 1, waited_again_s: 0, finished: 1, refused: 0, never_started: 0, preemptions: 0, avg_wait_s: wait, p50_wait_s: wait, p99_wait_s: wait, avg_jct_s: 0, ftf_avg: 0, ftf_worst: 0,
  });
  const row = rowOf(WORK[0]!, work(120), work(60));
  assert.deepEqual([row.before, row.after, row.mark, row.by], ["2 min", "1 min", "better", "1 min less"]);
  const refused = rowOf(WORK[0]!, work(120), { ...work(0), refused: 1 });
  assert.deepEqual([refused.mark, refused.by], ["same", "different jobs: not all start in both runs"]);
  assert.equal(rowOf(WORK.at(-1)!, work(120), { ...work(0), refused: 1 }).mark, "worse");
  assert.match(startClock(6 * 86_400, "2026-01-01T12:00:00Z", NOW), /^2026-01-07 |^\d\d:\d\d$/);
  assert.deepEqual([startWords(null), startWords(0.2), startWords(90)], ["not at all", "at once", "after 1 min 30 s"]);
});

test("it is said of which jobs the waits are", () => {
  const of = (running: number, waits_of: number): SimulatedWork => ({
    jobs: 9, running, waits_of, waited_again_s: 0, finished: 9, refused: 0, never_started: 0, preemptions: 0, avg_wait_s: 1, p50_wait_s: 1, p99_wait_s: 1,
    avg_jct_s: 0, ftf_avg: 0, ftf_worst: 0,
  });
  assert.equal(waitsOf(of(0, 9), of(0, 9)), "Waits of the 9 jobs that start");
  assert.equal(waitsOf(of(3, 6), of(3, 6)), "3 jobs were already running and wait no longer. Waits of the 6 other jobs that start");
  assert.equal(waitsOf(of(1, 1), of(1, 1)), "1 job was already running and waits no longer. Waits of the 1 other job that starts");
  assert.equal(waitsOf(of(9, 0), of(9, 0)), "9 were already running, and no other job starts, so no wait is counted");
  assert.equal(waitsOf(of(0, 9), of(0, 8)), "Waits of the 9 (with the changes 8) jobs that start");
});

test("a start that moves has what it waits for, in the run in which it waits longer", () => {
  const move = { job: "a", user: "u", tenant: "t", why: "red may use 2" };
  assert.equal(whyWords({ ...move, before_s: 60, after_s: 0 }), "As it is: red may use 2");
  assert.equal(whyWords({ ...move, before_s: null, after_s: 5 }), "As it is: red may use 2");
  assert.equal(whyWords({ ...move, before_s: 0, after_s: 60 }), "With the changes: red may use 2");
  assert.equal(whyWords({ ...move, before_s: 0, after_s: null }), "With the changes: red may use 2");
  assert.equal(whyWords({ ...move, why: null, before_s: 0, after_s: 3 }), "Not given");
});

test("where nothing is other, what the jobs waited for says why", () => {
  const waited = (reason: string, jobs: number, never = 0): SimulatedWait => ({ reason, jobs, never, job: "a", user: "ann", message: "the numbers" });
  const run = (waits: SimulatedWait[], wait = 5): SimulatedRun => ({
    jobs: 3, running: 0, waits_of: 3, waited_again_s: 0, finished: 3, refused: 0, never_started: 0, preemptions: 0, avg_wait_s: wait, p50_wait_s: wait, p99_wait_s: wait, avg_jct_s: 0, ftf_avg: 0,
    ftf_worst: 1, makespan_s: 9, utilization: { cpu: 0.5 }, lost_work_s: 0, per_tenant: {}, gantt: null, waits,
  });
  const moves = { earlier: 0, later: 0, unmoved: 3, only_before: 0, only_after: 0, most: [] };
  const answer = (before: SimulatedRun, after = before): Simulated => ({ begin: null, before, after, moves, recorded: null, remarks: [], lines: null, lines_left_out: 0 });
  assert.equal(
    whyTheSame(answer(run([waited("WaitingForResources", 2)]))),
    "Nothing changes: no job in this work waits for quota, so other quotas alone change no start time. In both runs jobs wait for: 2 jobs: waits for room on the nodes. a of ann, with the changes: the numbers.",
  );
  assert.equal(
    whyTheSame(answer(run([waited("Odd", 2, 2), waited("WaitingForQuota", 1)]))),
    "Nothing changes: the changes do not affect any start time. In both runs jobs wait for: 2 jobs (never started): Odd; 1 job: waits for quota. a of ann, with the changes: the numbers.",
  );
  assert.equal(
    whyTheSame(answer(run([waited("WaitingForQuota", 4, 1)]), run([waited("WaitingForResources", 3), waited("Reserved", 1, 1)]))),
    "Nothing changes: the changes do not affect any start time, because something else then holds the jobs back. As it is, they wait for: 4 jobs (1 of them never started): waits for quota. " +
      "With the changes: 3 jobs: waits for room on the nodes; 1 job (never started): the free room is reserved. a of ann, with the changes: the numbers.",
  );
  assert.equal(whyTheSame(answer(run([]))), "Nothing changes: as it is, no job has to wait.");
  assert.equal(whyTheSame(answer(run([]), run([], 50))), null);
  assert.equal(whyTheSame({ ...answer(run([])), moves: { ...moves, later: 1 } }), null);
});

test("a picture of history has the time of day on its axis", () => {
  const begin = "2026-01-07T10:37:00Z";
  const drawn = '<svg><text class="s" x="1" data-t="85500">23 h 45 min</text><text class="t">3 h</text><text data-t="0">0 h</text></svg>';
  assert.equal(withClocks(drawn, begin, NOW), `<svg><text class="s" x="1" data-t="85500">${startClock(85500, begin, NOW)}</text><text class="t">3 h</text><text data-t="0">${startClock(0, begin, NOW)}</text></svg>`);
});

test("an admission that waited for those that made room finds its explanation, and none of an earlier wait", () => {
  const at = (s: number): string => new Date(Date.parse("2026-01-01T10:00:00Z") + s * 1000).toISOString();
  const timeline: JobEvent[] = [[0, "submitted"], [1, "admitted"], [60, "preempted"], [70, "requeued"], [120, "admitted"]]
    .map(([s, kind], i) => ({ seq: i + 1, time: at(s as number), kind: kind as string, message: "", detail: {}, reason: null }));
  const decision = (s: number, summary: string): Decision => ({
    time: at(s), kind: "admitted", summary, detail: {}, waited_for: null, waited_reason: null, changed: [], passed: [], passed_count: 0, position: null, policy: "fair", order: null, share: null, rule: null,
    nodes: [], only: false, victims: [], spared: [],
  });
  const [first, last] = [timeline[1] as JobEvent, timeline[4] as JobEvent];
  const both = [decision(1, "first"), decision(90, "second")];
  assert.equal(decisionOf(first, both, timeline)?.summary, "first");
  assert.equal(decisionOf(last, both, timeline)?.summary, "second");
  assert.equal(decisionOf(last, both.slice(0, 1), timeline), null);
});

test("an event finds its explanation by kind and time, and a stranger has no name", () => {
  const event: JobEvent = { seq: 2, time: "2026-01-01T10:00:05Z", kind: "admitted", message: "", detail: {}, reason: null };
  const decision = (time: string, kind: string, summary: string): Decision => ({
    time, kind, summary, detail: {}, waited_for: null, waited_reason: null, changed: [], passed: [], passed_count: 0, position: null, policy: "fair", order: null, share: null, rule: null, nodes: [], only: false, victims: [], spared: [],
  });
  const all = [decision("2026-01-01T10:00:00Z", "admitted", "old"), decision("2026-01-01T10:00:05Z", "preempted", "other"), decision("2026-01-01T10:00:05.1Z", "admitted", "this")];
  assert.equal(decisionOf(event, all)?.summary, "this");
  assert.equal(decisionOf({ ...event, time: "2026-01-02T10:00:05Z" }, all), null);
  const resize: JobEvent = { ...event, kind: "resize" };
  assert.equal(decisionOf(resize, [decision("2026-01-01T10:00:05Z", "resized", "shrinks")])?.summary, "shrinks");
  assert.deepEqual(["admitted", "resize", "resized", "running"].map((kind) => isExplained({ ...event, kind })), [true, true, false, false]);
  const victim = { user: null, tenant: null, priority: 50, lost_work: 1, over_nominal: false, chosen: true, right: null, why: "", gives: 0, lost_unit: "core-seconds", replica: null };
  assert.equal(jobName({ ...victim, job: null, tenant: null }), "a job of another team");
  assert.equal(jobName({ ...victim, job: null, tenant: "blue" }), "a job of team blue");
  assert.equal(jobName({ ...victim, job: "line", user: "ann", replica: 2 }), "app line, replica 2 of ann");
  assert.equal(lostWork({ ...victim, job: null, tenant: null, lost_work: 234.56 }), "234.6 core-seconds");
  assert.equal(lostWork({ ...victim, job: null, tenant: null, lost_unit: "" }), "1 s");
  assert.deepEqual([200, 100, 50, 70].map(priorityName), ["high", "normal", "low", "70"]);
});
