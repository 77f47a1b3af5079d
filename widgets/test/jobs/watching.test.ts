import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "../../src/core/service/api";
import { counts, Watch, Watched, type News } from "../../src/core/jobs/watching";
import type { Job } from "../../src/core/service/wire";
import { job } from "../helpers";

let version = 0;
const at = (name: string, phase: Job["phase"], more: Partial<Job> = {}): Job =>
  job({ name, uid: name, phase, version: (version += 1), sweep: null, failure: null, message: "", started_at: "2026-11-24T00:00:01Z", submitted_at: "2026-11-24T00:00:00Z", ...more });
const texts = (news: News[]): string[] => news.map((one) => one.text);

test("what waits and what is at work is counted; what is suspended or has ended is neither", () => {
  const phases: Job["phase"][] = ["queued", "queued", "running", "starting", "preempting", "suspended", "finished", "failed", "deleting"];
  assert.deepEqual(counts(phases.map((phase) => ({ phase }))), { waiting: 2, running: 3 });
  const of = { waiting: 1, running: 2, finished: 5, stopped: 4, failed: 0, cancelled: 0, left: 9 };
  assert.deepEqual(counts([{ phase: "running" }], [{ counts: of }, { counts: of }]), { waiting: 2, running: 5 });
});

test("an end is told once, and not of what had ended before", () => {
  const watched = new Watched();
  assert.deepEqual(watched.learn([at("old", "finished"), at("a", "running"), at("b", "running"), at("c", "queued")]), []);
  const ended = [at("old", "finished"), at("a", "finished"), at("b", "failed", { message: "no room left" }), at("c", "cancelled")];
  assert.deepEqual(texts(watched.learn(ended)), ["Job a has finished", "Job b has failed: no room left", "Job c was cancelled"]);
  assert.deepEqual(watched.learn(ended), []);
});

test("a preempted job is told of once for each time, a suspended one is not", () => {
  const watched = new Watched();
  watched.learn([at("a", "running"), at("s", "suspending")]);
  assert.equal(watched.learn([at("a", "preempting"), at("s", "queued")]).length, 1);
  assert.equal(watched.learn([at("a", "queued")]).length, 0);
  assert.equal(watched.learn([at("a", "running")]).length, 0);
  assert.deepEqual(texts(watched.learn([at("a", "queued")])), ["Job a was stopped and continues when there is room again"]);
});

test("a job that came and ended between two looks is told of, an older one that comes into the list is not", () => {
  const watched = new Watched();
  watched.learn([at("a", "running")]);
  const found = watched.learn([at("quick", "finished", { submitted_at: "2026-11-24T00:00:09Z" }), at("older", "finished", { submitted_at: "2026-11-23T00:00:00Z" })]);
  assert.deepEqual(texts(found), ["Job quick has finished"]);
});

test("trials of a sweep are not told one by one", () => {
  const watched = new Watched();
  watched.learn([at("t", "running", { sweep: "s" })]);
  assert.deepEqual(watched.learn([at("t", "finished", { sweep: "s" })]), []);
});

const answer = (body: unknown): Response => new Response(JSON.stringify(body), { headers: { "Content-Type": "application/json" } });

test("who has it ask while an answer is on its way sees what was done meanwhile", async () => {
  const jobs: Job[] = [];
  const hurried: Promise<void>[] = [];
  const client = new Client("/mlp/api/v1", {
    origin: "http://127.0.0.1/",
    xsrf: () => "x",
    fetch: ((url: string) => {
      if (url.endsWith("/session")) return Promise.resolve(answer({ username: "ann", tenant_admin: [] }));
      if (url.includes("/sweeps?")) return Promise.resolve(answer([]));
      const now = answer(jobs);
      if (jobs.length === 0) {
        jobs.push(at("a", "running"));
        hurried.push(watch.hurry(), watch.hurry());
      }
      return Promise.resolve(now);
    }) as typeof fetch,
  });
  const watch = new Watch(client, { hidden: () => false, later: () => () => undefined }, () => undefined);
  const sizes: number[] = [];
  watch.subscribe(() => sizes.push(watch.seen.jobs?.length ?? -1));
  await watch.hurry();
  await Promise.all(hurried);
  assert.deepEqual(sizes, [0, 1], "once more, however often it was hurried");
});

test("it asks again and again, later and later where nothing answers, and for a job that left the list", async () => {
  let jobs: Job[] = [at("a", "running", { run: 1 })];
  let down = false;
  const asked: string[] = [];
  const client = new Client("/mlp/api/v1", {
    origin: "http://127.0.0.1/",
    xsrf: () => "x",
    fetch: ((url: string) => {
      if (down) return Promise.reject(new TypeError("no network"));
      const path = String(url).replace(/^.*\/v1/, "");
      asked.push(path);
      if (path === "/session") return Promise.resolve(answer({ username: "ann", tenant_admin: ["red"] }));
      if (path.includes("/sweeps?")) return Promise.resolve(answer([]));
      return Promise.resolve(answer(path.includes("?") ? jobs : at("a", "finished", { run: 1 })));
    }) as typeof fetch,
  });
  const waits: number[] = [];
  const told: string[] = [];
  const watch = new Watch(client, { hidden: () => false, later: (_, ms) => (waits.push(ms), () => undefined) }, (news) => told.push(news.text));
  watch.start();
  await watch.hurry();
  assert.deepEqual(watch.seen.mine, ["red"]);
  jobs = [];
  await watch.hurry();
  assert.deepEqual(told, ["Job a has finished"]);
  assert.ok(asked.includes("/users/ann/jobs/a%401"));
  down = true;
  await watch.hurry();
  await watch.hurry();
  assert.ok(watch.seen.error);
  assert.deepEqual(watch.seen.jobs, [], "what was known stays");
  const [first = 0, quiet = 0, third = 0, fourth = 0] = waits.slice(-4);
  assert.ok(quiet > first, "while nothing runs or waits it asks less often");
  assert.ok(third > quiet && fourth > third);
});
