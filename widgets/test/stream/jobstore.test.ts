import assert from "node:assert/strict";
import { test } from "node:test";
import { Eta } from "../../src/core/stream/eta";
import { JobStore, type Change } from "../../src/core/stream/jobstore";
import { asTerminal, LINES_MAX, LogStore, TEXT_MAX } from "../../src/core/stream/logs";
import type { LogText } from "../../src/core/service/wire";
import { readable } from "../../src/core/stream/snapshot";
import { job, point } from "../helpers";
import terminal from "./terminal.json";

function world() {
  const due: (() => void)[] = [];
  let anew = 0;
  const told: Change[][] = [];
  const store = new JobStore((fn) => due.push(fn), () => 1_000_000, () => (anew += 1));
  store.subscribe((changes) => told.push([...changes].sort()));
  return { store, told, due, frame: () => due.splice(0).forEach((fn) => fn()), anew: () => anew };
}

const line = (n: number) => ({ time: `2026-01-01T10:00:${String(n).padStart(2, "0")}.000000000Z`, stream: "stdout", text: `line ${n}` });

test("a thousand frames are told once a turn", () => {
  const w = world();
  w.store.apply({ type: "job", job: job() }, true);
  for (let i = 1; i <= 1000; i += 1) w.store.apply({ type: "metrics", points: [point(i, { loss: i })] }, false);
  assert.equal(w.due.length, 1);
  w.frame();
  assert.deepEqual(w.told, [["metrics", "view"]]);
  assert.equal(w.store.metrics.points, 1000);
});

test("the past of all ranks reads in the order in which it was written, ranks of one moment by number", () => {
  const w = world();
  const at = (rank: number, ...seconds: number[]) => w.store.apply({ type: "log", rank, lines: seconds.map(line), offset: 0, dropped: 0, dropped_lines: 0 }, true);
  at(1, 1, 5);
  at(0, 1, 4);
  at(2, 1);
  w.store.apply({ type: "synced" }, true);
  assert.deepEqual(w.store.logs.lines.map((l) => `${l.rank}: ${l.text}`), ["0: line 1", "1: line 1", "2: line 1", "0: line 4", "1: line 5"]);
});

test("an older record does not take a newer one's place", () => {
  const w = world();
  w.store.apply({ type: "job", job: job({ version: 5, phase: "running" }) }, false);
  w.store.apply({ type: "job", job: job({ version: 4, phase: "queued" }) }, false);
  assert.equal(w.store.view.job?.phase, "running");
});

test("another job of the same name starts from nothing", () => {
  const w = world();
  w.store.apply({ type: "job", job: job({ uid: "a", version: 9 }) }, false);
  w.store.apply({ type: "metrics", points: [point(1, { loss: 1 })] }, false);
  w.store.apply({ type: "job", job: job({ uid: "b", version: 1, phase: "queued" }) }, false);
  assert.equal(w.anew(), 1);
  assert.deepEqual([w.store.view.job?.uid, w.store.view.metrics, w.store.metrics.points], ["b", [], 0]);
});

test("a saved picture is shown until the service speaks, then gives way", () => {
  const curves = { loss: { x: [1, 2, 3], y: [1, 0.5, 1 / 3] } };
  const saved = { job: job(), curves, log: [{ rank: 1, ...line(1) }], saved_at: "2026-01-01T00:00:00Z" };
  const later = world();
  assert.ok(later.store.restore(saved));
  assert.equal(later.store.view.saved, saved.saved_at);
  assert.deepEqual([...(later.store.metrics.tracks.get("loss")?.get(0)?.value.subarray(0, 3) ?? [])], [1, 0.5, 1 / 3]);
  assert.deepEqual(later.store.logs.lines.map((l) => [l.rank, l.text]), [[1, "line 1"]]);
  later.store.apply({ type: "job", job: job({ version: 2 }) }, true);
  assert.deepEqual([later.store.view.saved, later.store.metrics.points, later.store.logs.lines.length], [null, 0, 0]);
});

test("a snapshot of the wrong shape is not shown", () => {
  for (const bad of [null, 5, "x", [], {}, { job: null }, { job: { name: 1, phase: "x", user: "y" } }]) assert.equal(readable(bad), null);
});

test("a replayed log tail adds only what is new", () => {
  const logs = new LogStore();
  logs.add(0, [line(1), line(2)], true);
  logs.add(0, [line(1), line(2), line(3)], true);
  logs.add(1, [line(1)], true);
  assert.deepEqual(logs.lines.map((l) => `${l.rank} ${l.text}`), ["0 line 1", "0 line 2", "0 line 3", "1 line 1"]);
});

test("equal lines that are printed twice are both shown", () => {
  const logs = new LogStore();
  logs.add(0, [line(1)], false);
  logs.add(0, [line(1)], false);
  assert.equal(logs.lines.length, 2);
});

test("a progress bar that has not ended its line is one line, as a terminal shows it, also when the past is told again", () => {
  const logs = new LogStore();
  const at = (second: number, text: string, partial = true) => ({ time: `2026-01-01T00:00:0${second}Z`, stream: "stderr", text, partial });
  const shown = (): string[] => logs.lines.map((l) => l.text);
  logs.add(0, [{ ...line(1), time: "2026-01-01T00:00:00Z" }, at(1, " 10%|#   |")], true);
  logs.add(0, [at(2, "\r 20%|##"), { ...line(2), time: "2026-01-01T00:00:02Z" }], false);
  assert.deepEqual(shown(), ["line 1", " 20%|##  |", "line 2"]);
  const { id } = logs.lines[1] as { id: number };
  logs.add(0, [at(3, "\r 3")], false);
  logs.add(0, [at(3, "0%|###")], false);
  logs.add(1, [at(4, "\r 90%")], false);
  assert.deepEqual(shown(), ["line 1", " 30%|### |", "line 2", " 90%"]);
  const whole = " 10%|#   |\r 20%|##\r 30%|###";
  logs.add(0, [at(3, whole)], true);
  assert.equal(logs.lines.length, 4, "nothing is new");
  logs.add(0, [at(5, `${whole}\r 40%|####`)], true);
  logs.add(0, [at(6, "\r100%|####|", false), at(7, "over", false)], false);
  assert.deepEqual(shown(), ["line 1", "100%|####|", "line 2", " 90%", "over"]);
  assert.equal(logs.lines[1]?.id, id);
});

/** Output of tqdm, rich and Keras as the stream sends it, with what a terminal emulator makes of it (tests/unit/executors/test_what_a_terminal_shows.py). */
const RECORDED: Record<string, { pieces: LogText[][]; shown: string[] }> = terminal;

for (const [name, { pieces, shown }] of Object.entries(RECORDED)) {
  test(`a log of ${name} ends with what a terminal shows, whichever pieces it comes in`, () => {
    const logs = new LogStore();
    for (const lines of pieces) logs.add(0, lines, false);
    assert.deepEqual(logs.lines.map((l) => l.text.trimEnd()), shown);
  });
}

test("rows of a line that goes on are lines that change, also where another rank wrote between them", () => {
  const logs = new LogStore();
  const at = (second: number, text: string, partial = true): LogText => ({ time: `2026-01-01T00:00:0${second}Z`, stream: "stderr", text, partial });
  logs.add(0, [at(1, "\r\u001b[Jouter 0\u001b[Einner 0")], false);
  logs.add(1, [at(1, "of another", false)], false);
  const ids = logs.lines.slice(0, 2).map((l) => l.id);
  logs.settle();
  logs.add(0, [at(2, "\r\u001b[Jouter 1\u001b[Einner 5\u001b[Eleaf")], false);
  assert.deepEqual(logs.lines.map((l) => l.text).sort(), ["inner 5", "leaf", "of another", "outer 1"]);
  assert.deepEqual(logs.lines.filter((l) => /outer|inner/.test(l.text)).map((l) => l.id), ids);
  logs.add(0, [at(3, "\r\u001b[Jouter 2", false), at(3, "over", false)], false);
  assert.deepEqual(logs.lines.map((l) => l.text), ["outer 2", "of another", "over"]);
});

test("a line that is cut says how much more of it the log has", () => {
  const logs = new LogStore();
  logs.add(0, [{ ...line(1), text: "x".repeat(TEXT_MAX + 2500) }], false);
  assert.ok(logs.lines[0]?.text.endsWith("x [cut: 2500 more characters are in the log]"));
});

test("what is cut of a long line is whole characters", () => {
  const logs = new LogStore();
  logs.add(0, [{ ...line(1), text: `x${"😀".repeat(TEXT_MAX)}` }], false);
  assert.ok(!/[\ud800-\udbff](?![\udc00-\udfff])/.test(logs.lines[0]?.text ?? ""));
});

test("what the platform did not keep of a log is known by rank, from the stream and from a saved notebook", () => {
  const { store } = clocked();
  store.apply({ type: "log", rank: 1, lines: [line(1)], offset: 9, dropped: 32_505_856, dropped_lines: 136_018 }, true);
  assert.deepEqual([...store.logs.missing.values()], [{ rank: 1, bytes: 32_505_856, lines: 136_018 }]);
  const { store: saved } = clocked();
  saved.restore({ job: job(), missing: [{ rank: 0, bytes: 5, lines: null }, { rank: "x" }, null] });
  assert.deepEqual([...saved.logs.missing.values()], [{ rank: 0, bytes: 5, lines: null }]);
});

test("a progress bar of hours stays short", () => {
  const logs = new LogStore();
  for (let i = 0; i < 20_000; i += 1) logs.add(0, [{ ...line(1), text: `\r${i} steps`, partial: true }], false);
  assert.deepEqual(logs.lines.map((l) => l.text), ["19999 steps"]);
});

test("a flood of lines stays bounded and says what was left out", () => {
  const logs = new LogStore();
  for (let i = 0; i < 30_000; i += 1) logs.add(0, [{ ...line(1), text: `n ${i}` }], false);
  assert.ok(logs.lines.length <= LINES_MAX);
  assert.equal(logs.lines.at(-1)?.text, "n 29999");
  assert.equal(logs.dropped + logs.lines.length, 30_000);
});

test("of a long past that comes rank after rank the oldest lines go", () => {
  const logs = new LogStore();
  const at = (second: number, i: number): string => `2026-01-01T00:00:${second}.${String(i).padStart(6, "0")}Z`;
  for (const [rank, second] of [[0, 30], [1, 40], [2, 10]] as const) {
    logs.add(rank, Array.from({ length: 2000 }, (_, i) => ({ ...line(1), time: at(second, i), text: `of ${rank}` })), true);
  }
  logs.settle();
  assert.deepEqual([logs.lines.length, logs.dropped], [4500, 1500]);
  assert.deepEqual(new Set(logs.lines.slice(0, 500).map((l) => l.rank)), new Set([2]));
  assert.deepEqual([logs.lines.at(-1)?.rank, logs.lines.at(-2001)?.rank], [1, 0]);
});

test("time left follows how progress grew, and says nothing while there is nothing to say", () => {
  const eta = new Eta();
  assert.equal(eta.left(0, null), null);
  eta.note(10, 0);
  assert.equal(eta.left(1000, null), null);
  eta.note(20, 10_000);
  assert.equal(eta.left(10_000, null), 80_000);
  assert.equal(eta.left(15_000, null), 75_000);
  eta.note(5, 20_000); // restarted
  assert.equal(eta.left(20_000, null), null);
  eta.note(100, 30_000);
  assert.equal(eta.left(30_000, null), null);
});

test("of a job that just began nothing is said: what it does first, once, is no measure of the rest", () => {
  const began = { at: 0, progress: 0 };
  const eta = new Eta();
  eta.note(2, 20_000); // after its imports; the rest takes half a minute
  assert.equal(eta.left(20_000, began), null);
  eta.note(4, 20_500);
  assert.equal(eta.left(20_500, began), null);
  eta.note(40, 30_000);
  assert.equal(Math.round((eta.left(30_000, began) ?? 0) / 1000), 16);
  const slow = new Eta(); // of a long one two points are enough, after a while
  slow.note(2, 59_000);
  assert.equal(slow.left(59_000, began), null);
  slow.note(3, 90_000);
  assert.equal(slow.left(90_000, began), 97 * 30_000);
});

test("time left after a restart counts what the present attempt did, not what the ones before it had done", () => {
  const eta = new Eta();
  eta.note(55, 0);
  eta.note(60, 50_000);
  eta.note(60, 500_000, 1); // it waited, and goes on from a checkpoint
  assert.equal(eta.left(500_000, { at: 500_000, progress: 60 }), null);
  eta.note(65, 510_000, 1);
  assert.equal(eta.left(510_000, null), 70_000);
  const seen = new Eta(); // by who opens the page only then
  seen.note(65, 510_000, 1);
  assert.equal(seen.left(510_000, { at: 500_000, progress: 60 }), 70_000);
  assert.equal(seen.left(512_000, { at: 500_000, progress: 60 }), 68_000);
  assert.equal(seen.left(510_000, { at: 500_000, progress: 63 }), null);
});

test("progress that was reported before an attempt said anything is not the attempt's", () => {
  const { store, at } = clocked();
  store.apply({ type: "job", job: job({ progress: 60, restarts: 1, started_at: date(0), progress_since: null }) }, false);
  at(100_000);
  assert.equal(store.timeLeft(), null);
  store.apply({ type: "job", job: job({ progress: 62, restarts: 1, version: 2, started_at: date(0), progress_from: 60, progress_since: date(100) }) }, false);
  at(110_000);
  store.apply({ type: "job", job: job({ progress: 66, restarts: 1, version: 3, started_at: date(0), progress_from: 60, progress_since: date(100) }) }, false);
  assert.equal(Math.round((store.timeLeft() ?? 0) / 1000), 57);
});

const date = (seconds: number): string => new Date(seconds * 1000).toISOString();

function clocked(): { store: JobStore; at: (now: number) => void } {
  let now = 0;
  return { store: new JobStore((fn) => fn(), () => now), at: (time) => { now = time; } };
}

test("a line is what a terminal shows of it: what a progress bar wrote over is gone", () => {
  for (const [written, shown] of [
    ["10%\r50%\r100%", "100%"],
    ["100 steps\r5", "500 steps"],
    ["windows\r", "windows"],
    ["1/3\b\b\b2/3 \u001b[32mloss\u001b[0m\t0.5", "2/3 loss\t0.5"],
    ["\b\bx\u0007", "x"],
  ] as const) assert.equal(asTerminal(written), shown);
});
