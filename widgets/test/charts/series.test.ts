import assert from "node:assert/strict";
import { test } from "node:test";
import { mean, perRank, positive } from "../../src/core/charts/decimate";
import { MetricStore, Track, TRACK_MAX } from "../../src/core/charts/series";
import { point } from "../helpers";

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
  const track = filled(300_000, (i) => (i === 777 ? 50 : i === 150_001 ? -50 : Math.sin(1 + i / 500)));
  assert.ok(track.n <= TRACK_MAX);
  assert.equal(track.seen, 300_000);
  assert.deepEqual([track.step[0], track.value[0]], [0, Math.sin(1)]);
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

test("many points become one a pixel, each as it was reported, with the first, the last and a single spike", () => {
  const value = (i: number): number => (i === 31_415 ? 99 : Math.sin(i / 100));
  const track = filled(50_000, value);
  const [xs, ys] = perRank([track], "step", 400);
  assert.ok(xs.length <= 402);
  assert.deepEqual(ys, xs.map(value));
  assert.deepEqual([xs[0], xs.at(-1)], [0, 49_999]);
  assert.equal(ys?.[xs.indexOf(31_415)], 99);
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

test("a mean over many long ranks stays about as narrow as the chart, and each is that of one step", () => {
  const tracks = Array.from({ length: 8 }, (_, r) => filled(20_000, (i) => r + (i === 7_777 ? 100 : i / 1000)));
  const [xs, ys, low, high] = mean(tracks, "step", 300);
  assert.ok(xs.length <= 602);
  xs.forEach((x, i) => {
    assert.ok(Number.isInteger(x));
    assert.ok(Math.abs((ys?.[i] as number) - (3.5 + (x === 7_777 ? 100 : x / 1000))) < 1e-9);
  });
  assert.deepEqual([xs[0], xs.at(-1), xs.includes(7_777)], [0, 19_999, true]);
  assert.deepEqual([low?.[0], high?.[0], Math.max(...(high as number[]))], [0, 7, 107]);
});

test("over time a mean is that of one step too, at the moment when its last rank reported it", () => {
  const tracks = Array.from({ length: 4 }, (_, r) => {
    const track = new Track();
    for (let i = 0; i < 20_000; i += 1) track.push(i, 1000 + i + r / 10, r + (i === 7_777 ? 100 : 0), TRACK_MAX);
    return track;
  });
  const [xs, ys, low, high] = mean(tracks, "time", 300);
  assert.ok(xs.length <= 602);
  xs.forEach((x, i) => assert.ok(Math.abs(x - Math.round(x) - 0.3) < 1e-6 && (ys?.[i] === 1.5 || ys?.[i] === 101.5)));
  assert.deepEqual([xs[0], xs.at(-1), ys?.[xs.indexOf(1000 + 7_777 + 0.3)]], [1000.3, 20_999.3, 101.5]);
  assert.deepEqual([Math.min(...(low as number[])), Math.max(...(high as number[]))], [0, 103]);
});

test("several long ranks are drawn at steps that they share, with the extremes of all", () => {
  const a = filled(20_000, (i) => (i === 4_321 ? 50 : 0));
  const b = filled(20_000, (i) => (i === 12_345 ? -50 : 0));
  const [xs, first, second] = perRank([a, b], "step", 300);
  assert.ok(xs.length <= 302);
  assert.equal(first?.[xs.indexOf(4_321)], 50);
  assert.equal(second?.[xs.indexOf(12_345)], -50);
  assert.ok(!first?.includes(null) && !second?.includes(null));
});
