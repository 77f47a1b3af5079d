import assert from "node:assert/strict";
import { test } from "node:test";
import { hubPages, serverApi, serverXsrf, withoutSettings } from "../../src/core/service/server";

const page = (config: string | null, cookie = ""): Document =>
  ({ cookie, getElementById: (id: string) => (config !== null && id === "jupyter-config-data" ? { textContent: config } : null) }) as unknown as Document;

test("a widget finds its page's notebook server by what Lab and Notebook write into the page", () => {
  assert.equal(serverApi(page('{"baseUrl": "/user/ann/"}')), "/user/ann/mlp/api/v1");
  assert.equal(serverApi(page('{"baseUrl": "/"}')), "/mlp/api/v1");
});

test("a page that is not Jupyter's is no fault", () => {
  assert.equal(serverApi(page(null)), "/mlp/api/v1");
  assert.equal(serverApi(page("no json")), "/mlp/api/v1");
});

test("the XSRF token is the first cookie of exactly this name: the one of the most specific path", () => {
  assert.equal(serverXsrf(page(null, "other_xsrf=no; _xsrf=2|abc; _xsrf=later")), "2|abc");
  assert.equal(serverXsrf(page(null)), "");
});

test("the hub's pages are where the page says that its hub is, and nowhere without a hub", () => {
  assert.equal(hubPages(page('{"hubPrefix": "/hub/", "hubHost": ""}')), "/services/mlp/");
  assert.equal(hubPages(page('{"hubPrefix": "/base/hub/", "hubHost": "https://hub.example"}')), "https://hub.example/base/services/mlp/");
  assert.equal(hubPages(page('{"baseUrl": "/"}')), "");
});

test("a server that runs without its user's settings says why in its page", () => {
  assert.equal(withoutSettings(page('{"mlpWithoutSettings": "Bad config."}')), "Bad config.");
  assert.equal(withoutSettings(page('{"baseUrl": "/"}')), "");
});
