import assert from "node:assert/strict";
import { test } from "node:test";
import { mean, perRank, positive } from "../src/core/decimate";
import { MetricStore, Track, TRACK_MAX } from "../src/core/series";
import { point } from "./helpers";

function filled(n: number, y: (i: number) => number): Track {
  const track = new Track();
  for (let i = 0; i < n; i += 1) track.push(i, 1000 + i / 10, y(i), TRACK_MAX);
  return track;
}

test("a point that comes twice is stored once", () => {
  const store = new MetricStore();
  store.add([point(1, { loss: 3 }), point(2, { loss: 2 })]);
  store.add([point(1, { loss: 3 }), point(2, { loss: 2 }), point(3, { loss: 1 })]);
  assert.equal(store.tracks.get("loss")?.get(0)?.n, 3);
  assert.equal(store.lastSeq, 3);
});

test("step, epoch and progress are axes, not curves; loss comes before accuracy and the rest", () => {
  const store = new MetricStore();
  store.add([point(1, { zeta: 1, accuracy: 1, loss: 1, epoch: 4, progress: 10, step: 40 })]);
  assert.deepEqual(store.names(), ["loss", "accuracy", "zeta"]);
  assert.equal(store.tracks.get("loss")?.get(0)?.step[0], 40);
});

test("a track is bounded and keeps its extremes however many points come", () => {
  const track = filled(300_000, (i) => (i === 777 ? 50 : i === 150_001 ? -50 : Math.sin(i / 500)));
  assert.ok(track.n <= TRACK_MAX);
  assert.equal(track.seen, 300_000);
  const values = track.value.subarray(0, track.n);
  assert.equal(Math.max(...values), 50);
  assert.equal(Math.min(...values), -50);
  for (let i = 1; i < track.n; i += 1) assert.ok((track.step[i] as number) > (track.step[i - 1] as number));
});

test("few points are drawn as they are, aligned over ranks", () => {
  const a = filled(3, (i) => i);
  const b = new Track();
  b.push(1, 0, 10, TRACK_MAX);
  assert.deepEqual(perRank([a, b], "step", 300), [[0, 1, 2], [0, 1, 2], [null, 10, null]]);
  assert.deepEqual(mean([a, b], "step", 300), [[0, 1, 2], [0, 5.5, 2], [0, 1, 2], [0, 10, 2]]);
});

test("many points become two a pixel, and a single spike is still seen", () => {
  const track = filled(50_000, (i) => (i === 31_415 ? 99 : 1));
  const [xs, ys] = perRank([track], "step", 400);
  assert.equal(xs.length, 800);
  assert.ok(ys?.includes(99));
  for (let i = 1; i < xs.length; i += 1) assert.ok((xs[i] as number) > (xs[i - 1] as number));
});

test("a zoomed range shows more detail, with one point beyond each edge", () => {
  const track = filled(50_000, (i) => i);
  const [xs] = perRank([track], "step", 400, { min: 99.5, max: 108.5 });
  assert.deepEqual(xs, [99, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109]);
});

test("steps that go backwards are drawn by the number of the report", () => {
  const track = new Track();
  for (const step of [0, 1, 2, 0, 1, 2]) track.push(step, 0, step, TRACK_MAX);
  assert.deepEqual(perRank([track], "step", 300), [[0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2]]);
});

test("what is not a number leaves a gap, and what is not positive has no place on a log axis", () => {
  const store = new MetricStore();
  store.add([point(1, { loss: 1 }), point(2, { loss: null }), point(3, { loss: -2 })]);
  const tracks = [...(store.tracks.get("loss")?.values() ?? [])];
  assert.deepEqual(perRank(tracks, "step", 300)[1], [1, null, -2]);
  assert.deepEqual(positive(perRank(tracks, "step", 300))[1], [1, null, null]);
});

test("a mean over many long ranks stays as narrow as the chart", () => {
  const tracks = Array.from({ length: 8 }, (_, r) => filled(20_000, () => r));
  const [xs, ys, low, high] = mean(tracks, "step", 300);
  assert.equal(xs.length, 300);
  assert.deepEqual([new Set(ys), new Set(low), new Set(high)], [new Set([3.5]), new Set([0]), new Set([7])]);
});
