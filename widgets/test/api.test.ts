import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, Client, paths } from "../src/core/api";

type Answer = { status?: number; body?: unknown; type?: string; headers?: Record<string, string> };

function world(answers: Record<string, Answer[]>, login = true) {
  const asked: { key: string; headers: Record<string, string>; body: unknown }[] = [];
  let logins = 0;
  const client = new Client("/services/mlp/api/v1/", {
    origin: "http://hub.example/user/ann/lab",
    login: async () => {
      logins += 1;
      return login;
    },
    fetch: async (url, init) => {
      const key = `${init?.method} ${new URL(String(url)).pathname.replace("/services/mlp/api/v1", "")}`;
      asked.push({ key, headers: init?.headers as Record<string, string>, body: init?.body });
      const answer = (answers[key]?.length ?? 0) > 1 ? answers[key]?.shift() : answers[key]?.[0];
      if (!answer) throw new TypeError("no network");
      return new Response(answer.type ? String(answer.body) : JSON.stringify(answer.body), {
        status: answer.status ?? 200,
        headers: { "Content-Type": answer.type ?? "application/json", ...answer.headers },
      });
    },
  });
  return { client, asked, logins: () => logins };
}

const SESSION = { username: "ann", admin: false, tenants: [], tenant_admin: [], xsrf: "token", version: "1" };

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  try {
    await promise;
  } catch (e) {
    assert.ok(e instanceof ApiError);
    return e;
  }
  return assert.fail("no error");
}

test("requests without a login share one silent login and go again", async () => {
  const w = world({ "GET /session": [{ status: 401 }, { body: SESSION }], "GET /nodes": [{ status: 401, body: {} }, { body: [] }] });
  const [session] = await Promise.all([w.client.session(), w.client.session()]);
  assert.equal(session.username, "ann");
  assert.deepEqual((await w.client.list("/nodes")).items, []);
  assert.equal(w.logins(), 2);
});

test("where no silent login is possible the person has to", async () => {
  const w = world({ "GET /session": [{ status: 401, body: {} }] }, false);
  assert.equal((await failure(w.client.session())).kind, "auth");
  assert.equal(w.client.loginUrl("/user/ann/lab?x=1"), "/services/mlp/login?next=%2Fuser%2Fann%2Flab%3Fx%3D1");
});

test("what changes something carries the token of the session; a stale one is renewed once", async () => {
  const w = world({
    "GET /session": [{ body: SESSION }, { body: { ...SESSION, xsrf: "newer" } }],
    "PUT /tenants/red": [{ status: 403, body: { msg: "XSRF cookie does not match", reason: "Forbidden" } }, { body: { name: "red" } }],
  });
  await w.client.put(paths.tenant("red"), { name: "red" });
  assert.deepEqual(w.asked.filter((a) => a.key.startsWith("PUT")).map((a) => a.headers["X-XSRFToken"]), ["token", "newer"]);
});

test("a refusal has the service's own words", async () => {
  const w = world({ "GET /session": [{ body: SESSION }], "POST /tenants": [{ status: 403, body: { msg: "tenant red exists", reason: "Conflict" } }] });
  const e = await failure(w.client.post("/tenants", { name: "red" }));
  assert.deepEqual([e.kind, e.message, e.reason], ["refused", "tenant red exists", "Conflict"]);
});

test("another server's pages are not taken for ours, and no network is told from a fault", async () => {
  const w = world({ "GET /session": [{ body: "<html>", type: "text/html" }], "GET /nodes": [{ status: 503, body: { msg: "the database is busy" } }], "GET /queue": [{ status: 404, body: "x", type: "text/html" }] });
  assert.equal((await failure(w.client.session())).kind, "foreign");
  assert.deepEqual([(await failure(w.client.get("/nodes"))).kind, (await failure(w.client.get("/nodes"))).message], ["fault", "the database is busy"]);
  assert.equal((await failure(w.client.get("/queue"))).kind, "foreign");
  assert.equal((await failure(w.client.get("/nowhere"))).kind, "network");
});

test("names stay inside their path segment", () => {
  assert.equal(paths.job("a/b", "x:y?z"), "/users/a%2Fb/jobs/x%3Ay%3Fz");
  assert.equal(new Client("/hub-b/services/mlp/api/v1", { origin: "https://h:8443/lab", login: async () => false, fetch }).socketUrl(paths.jobStream("ann", "d", 7)), "wss://h:8443/hub-b/services/mlp/api/v1/users/ann/jobs/d:stream?since=7");
});
