import assert from "node:assert/strict";
import { test } from "node:test";
import { ran, timing, waits } from "../../src/core/jobs/spans";
import { entry, job } from "../helpers";

const NOW = Date.parse("2026-01-01T10:10:00Z");
const at = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();

test("a job that never ran waits since its submission", () => {
  const fresh = job({ phase: "queued", submitted_at: at(75), waiting_since: at(75) });
  assert.equal(timing(fresh, NOW), "submitted 1 min ago");
  assert.equal(waits(fresh, NOW), 75);
  assert.equal(ran(fresh, NOW), 0);
});

test("one that was stopped for others waits since then, and has run", () => {
  const again = job({ phase: "queued", submitted_at: at(330), waiting_since: at(15), waited_s: 5, ran_s: 310, restarts: 1 });
  assert.equal(timing(again, NOW), "waits 15 s, ran 5 min 10 s");
  assert.equal(waits(again, NOW), 15);
  assert.equal(timing({ ...again, phase: "suspended", waiting_since: null }, NOW), "ran 5 min 10 s");
});

test("a later attempt that runs tells of all of them", () => {
  const running = job({ started_at: at(8), ran_s: 310, restarts: 1 });
  assert.equal(timing(running, NOW), "running 8 s, 5 min 18 s in all");
  assert.equal(timing(job({ started_at: at(8) }), NOW), "running 8 s");
});

test("an ended job ran as long as all its attempts together, also where it was cancelled in the queue", () => {
  const done = job({ phase: "finished", started_at: at(20), finished_at: at(10), ran_s: 320, restarts: 1 });
  assert.match(timing(done, NOW), /, ran 5 min 20 s$/);
  const dropped = job({ phase: "cancelled", finished_at: at(10), ran_s: 310, restarts: 1 });
  assert.match(timing(dropped, NOW), /, ran 5 min 10 s$/);
  assert.doesNotMatch(timing(job({ phase: "cancelled", finished_at: at(10) }), NOW), /ran/);
});

test("a picture that an older hub saved tells what it knows", () => {
  const { ran_s: _, waiting_since: __, ...old } = job({ phase: "finished", started_at: at(20), finished_at: at(10) });
  assert.equal(ran(old as ReturnType<typeof job>, NOW), 10);
});

test("a suspended job is not in the queue", () => {
  assert.equal(waits(entry("a", { waiting_since: null }), NOW), null);
});
