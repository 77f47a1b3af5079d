import assert from "node:assert/strict";
import { test } from "node:test";
import { attemptEnds, breaks, latest, withMarks } from "../../src/core/charts/attempts";
import { perRank } from "../../src/core/charts/decimate";
import { MetricStore } from "../../src/core/charts/series";
import type { Event as JobEvent } from "../../src/core/service/wire";

const at = (s: number): string => new Date(Date.UTC(2026, 0, 1, 10, 0, s)).toISOString();
const events = (...kinds: string[]): JobEvent[] => kinds.map((kind, i) => ({ seq: i + 1, time: at(i), kind, message: "", detail: {}, reason: null }));
const ends = (...kinds: string[]): number[] => attemptEnds(events(...kinds)).map((t) => (t - Date.parse(at(0))) / 1000);

test("an attempt ends where a job that ran waits again or is resized", () => {
  assert.deepEqual(ends("submitted", "waiting", "suspended", "resumed"), []);
  assert.deepEqual(ends("submitted", "starting", "running", "finished"), []);
  assert.deepEqual(ends("starting", "running", "preempted", "preempting", "requeued", "starting", "running", "resized", "running", "suspended", "suspended"), [4, 7, 9]);
});

const store = (points: [rank: number, step: number, time: number][]): MetricStore => {
  const made = new MetricStore();
  made.add(points.map(([rank, step, time], i) => ({ seq: i + 1, time, rank, step, values: { loss: 1 } })));
  return made;
};
const tracks = (s: MetricStore) => [...(s.tracks.get("loss")?.values() ?? [])];

test("a new attempt begins at the first point that any rank reports after the end", () => {
  const s = store([[0, 1, 10], [1, 1, 11], [0, 2, 20], [1, 2, 21], [1, 3, 31], [0, 3, 32], [0, 4, 40]]);
  assert.deepEqual(breaks(tracks(s), "step", [25_000]), [3]);
  assert.deepEqual(breaks(tracks(s), "time", [25_000, 35_000]), [31, 40]);
  assert.deepEqual(breaks(tracks(s), "time", [5_000, 99_000]), [], "nothing before it, or nothing after it");
});

test("where steps begin anew the number of the report counts, and attempts without points make no second line", () => {
  const s = store([[0, 1, 10], [0, 2, 20], [0, 1, 50], [0, 2, 60]]);
  assert.deepEqual(breaks(tracks(s), "step", [25_000, 30_000]), [2]);
});

test("after a resume the axis is the reported step, and a repeated step has the newest report", () => {
  const s = store([[0, 1, 10], [1, 1, 11], [0, 2, 20], [0, 3, 21], [1, 4, 22], [0, 2, 50], [1, 2, 51], [0, 3, 60]]);
  const found = latest(tracks(s), [25_000]);
  assert.deepEqual(found.map((t) => [...t.step.slice(0, t.n)]), [[1, 2, 3], [1, 2]]);
  assert.deepEqual(found.map((t) => [...t.time.slice(0, t.n)]), [[10, 50, 60], [11, 51]]);
  assert.deepEqual(breaks(found, "step", [25_000]), [2]);
  assert.deepEqual(perRank(found, "step", 100)[0], [1, 2, 3]);
});

test("of several attempts the newest report counts, also of one that begins at the first step", () => {
  const s = store([[0, 1, 10], [0, 5, 20], [0, 3, 30], [0, 4, 40], [0, 1, 50]]);
  assert.deepEqual(latest(tracks(s), [25_000, 45_000]).map((t) => [...t.step.slice(0, t.n)]), [[1]]);
});

test("steps that begin anew within an attempt stay numbers of reports", () => {
  const s = store([[0, 1, 10], [0, 2, 20], [0, 1, 21], [0, 2, 22], [0, 1, 50]]);
  assert.equal(latest(tracks(s), [25_000])[0], tracks(s)[0]);
});

test("log lines of another attempt have a mark before them", () => {
  const line = (s: number, rank = 0) => ({ time: `${at(s).slice(0, -1)}123456Z`, rank });
  const lines = [line(1), line(2), line(5), line(1, 1), line(9, 1)];
  assert.equal(withMarks(lines, []), lines);
  const marked = withMarks(lines, [Date.parse(at(3)), Date.parse(at(7))]).map((l) => ("attempt" in l ? l.attempt : l.time.slice(17, 19)));
  assert.deepEqual(marked, ["01", "02", 2, "05", 1, "01", 3, "09"]);
});
