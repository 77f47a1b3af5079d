import assert from "node:assert/strict";
import { test } from "node:test";
import { backoff, JobStream, type Connection, type Socket, type Verdict } from "../../src/core/stream/stream";
import type { Frame } from "../../src/core/service/wire";
import { job, point } from "../helpers";

class FakeSocket implements Socket {
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: ((event: { code: number; reason: string }) => void) | null = null;
  closed = false;
  constructor(readonly since: number) {}
  close(): void {
    this.closed = true;
  }
  say(frame: Frame): void {
    this.onmessage?.({ data: JSON.stringify(frame) });
  }
  drop(): void {
    this.onclose?.({ code: 1006, reason: "" });
  }
}

function world(verdict: () => Verdict = () => ({ retry: true })) {
  const sockets: FakeSocket[] = [];
  const timers = new Map<number, { fn: () => void; ms: number }>();
  const states: Connection[] = [];
  const frames: [string, boolean][] = [];
  let ids = 0;
  const stream = new JobStream(
    {
      open: (since) => {
        const socket = new FakeSocket(since);
        sockets.push(socket);
        return socket;
      },
      check: async () => verdict(),
      later: (fn, ms) => {
        timers.set((ids += 1), { fn, ms });
        return ids;
      },
      forget: (id) => timers.delete(id),
      random: () => 0.5,
    },
    { frame: (f, replay) => frames.push([f.type, replay]), connection: (s) => states.push(s) },
  );
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 10; i += 1) await Promise.resolve();
  };
  /** Let the waiting reconnect happen. */
  const pass = async (): Promise<number> => {
    const [id, timer] = [...timers].at(-1) as [number, { fn: () => void; ms: number }];
    timers.delete(id);
    timer.fn();
    await settle();
    return timer.ms;
  };
  return { stream, sockets, timers, states, frames, settle, pass, last: () => sockets.at(-1) as FakeSocket };
}

test("a lost connection resumes from the last point seen and says so", async () => {
  const w = world();
  w.stream.start();
  await w.settle();
  assert.equal(w.last().since, 0);
  w.last().onopen?.();
  w.last().say({ type: "metrics", points: [point(1, { loss: 1 }), point(7, { loss: 1 })] });
  w.last().say({ type: "synced" });
  w.last().say({ type: "job", job: job() });
  w.last().drop();
  await w.pass();
  assert.equal(w.last().since, 7);
  w.last().onopen?.();
  assert.deepEqual(w.states, ["connecting", "live", "reconnecting", "live"]);
  assert.deepEqual(w.frames, [["metrics", true], ["synced", true], ["job", false]]);
});

test("waits grow to 15 s and never less than half of that, and a good connection makes them short again", async () => {
  assert.deepEqual([0, 1, 2, 9, 40].map((n) => backoff(n, 1)), [400, 800, 1600, 15_000, 15_000]);
  assert.equal(backoff(40, 0), 7500);
  const w = world();
  w.stream.start();
  await w.settle();
  const waits: number[] = [];
  for (let i = 0; i < 3; i += 1) {
    w.last().drop();
    waits.push(await w.pass());
  }
  assert.deepEqual(waits, [300, 600, 1200]);
  w.last().onopen?.();
  await w.pass(); // the timer that calls the connection good
  w.last().drop();
  assert.equal(await w.pass(), 300);
});

test("after the end nothing is connected again", async () => {
  const w = world();
  w.stream.start();
  await w.settle();
  w.last().onopen?.();
  w.last().say({ type: "end" });
  assert.equal(w.stream.state, "ended");
  assert.ok(w.last().closed);
  w.last().drop();
  assert.equal(w.sockets.length, 1);
  assert.equal(w.timers.size, 0);
});

test("what cannot be healed by trying is not tried, until somebody asks", async () => {
  let verdict: Verdict = { retry: false, detail: "there is no job digits" };
  const w = world(() => verdict);
  w.stream.start();
  await w.settle();
  assert.equal(w.stream.state, "refused");
  assert.equal(w.sockets.length, 0);
  verdict = { retry: true };
  w.stream.retryNow();
  await w.settle();
  assert.equal(w.sockets.length, 1);
});

test("messages of a socket that was given up are not heard", async () => {
  const w = world();
  w.stream.start();
  await w.settle();
  const old = w.last();
  old.onopen?.();
  w.stream.refresh();
  await w.settle();
  old.say({ type: "job", job: job() });
  old.drop();
  assert.equal(w.frames.length, 0);
  assert.equal(w.sockets.length, 2);
});

test("a stream that was stopped stays so, also while it asks", async () => {
  const w = world();
  w.stream.start();
  w.stream.stop();
  await w.settle();
  assert.equal(w.sockets.length, 0);
  assert.equal(w.stream.state, "closed");
});

test("a message that is not ours does not end the stream", async () => {
  const w = world();
  w.stream.start();
  await w.settle();
  w.last().onopen?.();
  w.last().onmessage?.({ data: "<html>" });
  w.last().say({ type: "synced" });
  assert.deepEqual(w.frames, [["synced", true]]);
});
