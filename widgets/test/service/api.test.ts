import assert from "node:assert/strict";
import { test } from "node:test";
import { ApiError, Client, paths, sentence } from "../../src/core/service/api";

type Answer = { status?: number; body?: unknown; type?: string; headers?: Record<string, string> };

function world(answers: Record<string, Answer[]>, xsrf?: () => string) {
  const asked: { key: string; headers: Record<string, string>; body: unknown }[] = [];
  const client = new Client("/services/mlp/api/v1/", {
    origin: "http://hub.example/user/ann/lab",
    ...(xsrf ? { xsrf } : {}),
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
  return { client, asked };
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

test("who is not logged in is told where to log in, and nothing is done behind their back", async () => {
  const w = world({ "GET /session": [{ status: 401, body: {} }] });
  const e = await failure(w.client.session());
  assert.deepEqual([e.kind, e.way], ["auth", { href: "/services/mlp/login?next=%2Fservices%2Fmlp%2F", text: "Log in" }]);
  assert.equal(w.client.loginUrl("/services/mlp/jobs?x=1"), "/services/mlp/login?next=%2Fservices%2Fmlp%2Fjobs%3Fx%3D1");
  assert.equal(w.asked.length, 1);
});

test("what asks for the password again says where it is entered", async () => {
  const w = world({ "GET /session": [{ body: SESSION }], "DELETE /users/bob": [{ status: 403, body: { msg: "...", reason: "LoginTooOld" } }] });
  const e = await failure(w.client.delete("/users/bob"));
  assert.deepEqual([e.kind, e.way], ["refused", { href: "/hub/confirm", text: "Enter your password" }]);
});

test("through a notebook server every request carries that server's token, and its refusal is a login that is over", async () => {
  let token = "one";
  const w = world(
    { "GET /session": [{ body: SESSION }], "PUT /users/ann/jobs/x:cancel": [{ body: {} }], "GET /users/ann/jobs/x": [{ status: 403, body: { message: "Forbidden", reason: null } }] },
    () => token,
  );
  await w.client.session();
  token = "two";
  await w.client.put(paths.jobAction("ann", "x", "cancel"));
  assert.deepEqual(w.asked.map((a) => a.headers["X-XSRFToken"]), ["one", "two"]);
  assert.equal((await failure(w.client.get(paths.job("ann", "x")))).kind, "auth");
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
  assert.equal(new Client("/hub-b/services/mlp/api/v1", { origin: "https://h:8443/lab", fetch }).socketUrl(paths.jobStream("ann", "d", 7)), "wss://h:8443/hub-b/services/mlp/api/v1/users/ann/jobs/d:stream?since=7&zone=UTC&language=en");
});

test("an error has the id of its request, from the header or the body, and takes no other text for one", async () => {
  const refused = { msg: "no", reason: "Invalid", detail: { id: "no", args: {} } };
  const cases: [Answer, string][] = [
    [{ status: 403, body: refused, headers: { "X-Request-ID": "abcdefgh" } }, "abcdefgh"],
    [{ status: 403, body: { ...refused, request_id: "of-the-body" } }, "of-the-body"],
    [{ status: 503, body: "<html>", type: "text/html", headers: { "X-Request-ID": "abcdefgh" } }, "abcdefgh"],
    [{ status: 403, body: { ...refused, request_id: "<b>".repeat(10_000) } }, ""],
    [{ status: 403, body: { ...refused, request_id: { a: 1 } } }, ""],
    [{ status: 403, body: null }, ""],
    [{ status: 403, body: refused }, ""],
  ];
  for (const [answer, id] of cases) {
    const w = world({ "GET /nodes": [answer] });
    assert.equal((await failure(w.client.get("/nodes"))).request, id);
  }
});

test("an error is a sentence with a capital on a page, and a name at its begin is not changed", async () => {
  const cases: [object, string][] = [
    [{ msg: "job x does not exist", detail: { id: "{kind} {name} does not exist", args: {} } }, "job x does not exist"],
    [{ msg: "the body is too large", detail: { id: "the body is too large", args: {} } }, "The body is too large"],
    [{ msg: "red may use 64 GiB" }, "red may use 64 GiB"],
  ];
  for (const [body, shown] of cases) {
    const w = world({ "GET /nodes": [{ status: 403, body: { reason: "Invalid", ...body } }] });
    const error = await failure(w.client.get("/nodes"));
    assert.equal(sentence(error), shown);
    assert.equal(sentence(new Error("as it is")), "as it is");
  }
});
