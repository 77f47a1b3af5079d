// Entry of the bundled proxy: configurable-http-proxy with what MLP Hub adds to it.
//
// - Routes survive a restart of the proxy (store.mjs), so that its death costs a blink and no hub is asked.
// - Connections and slow requests are bounded (limits.mjs), so that nobody takes the descriptors of all.
// - Requests under a host name that is not ours are refused (hosts.mjs): DNS rebinding.
// - Where nothing answers, a page says so and tries again (pages.mjs).
//
// The API listens on a UNIX socket only. CONFIGPROXY_AUTH_TOKEN must be set; there is no open API.

import fs from "node:fs";
import net from "node:net";
import { parseArgs } from "node:util";

import { ConfigurableProxy } from "configurable-http-proxy/lib/configproxy.js";

import { hostCheck } from "./hosts.mjs";
import { bound } from "./limits.mjs";
import { defaultLogger } from "./log.mjs";
import { pageFor } from "./pages.mjs";
import { FileStore } from "./store.mjs";

const { values: args } = parseArgs({
  options: {
    bind: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "8000" },
    "api-socket": { type: "string" },
    routes: { type: "string" },
    "default-target": { type: "string" },
    "error-target": { type: "string" },
    connections: { type: "string", default: "5000" },
    "per-address": { type: "string", default: "1000" },
    host: { type: "string", multiple: true, default: [] },
  },
});

const log = defaultLogger();
const token = process.env.CONFIGPROXY_AUTH_TOKEN;
delete process.env.CONFIGPROXY_AUTH_TOKEN;
if (!token || !args["api-socket"]) {
  log.error("CONFIGPROXY_AUTH_TOKEN and --api-socket are required");
  process.exit(2);
}

class HubProxy extends ConfigurableProxy {
  // What a client wishes of its connection is for this proxy alone; the one behind is kept, whatever clients send.
  // Not so of WebSockets: they are asked for in this header.
  constructor(options) {
    super(options);
    const { web } = this.proxy;
    const headers = { connection: "keep-alive" };
    this.proxy.web = (req, res, target, failed) => web.call(this.proxy, req, res, { ...target, headers }, failed);
  }

  // Only requests of the API that change something are worth a line.
  logResponse(req, res) {
    if (req.method !== "GET" || res.statusCode >= 400) super.logResponse(req, res);
  }

  // A socket that is not there yet or any more is as ordinary as a refused connection: one line, no stack.
  handleProxyError(code, kind, req, res, error) {
    super.handleProxyError(code, kind, req, res, error && { code: "ECONNREFUSED", message: error.message });
  }

  _handleProxyErrorDefault(code, kind, req, res) {
    if (res.writableEnded) return;
    if (res.headersSent || !res.writeHead) {
      super._handleProxyErrorDefault(code, kind, req, res);
      return;
    }
    const page = pageFor(code, req.headers.accept);
    res.writeHead(code, { "Content-Type": page.type, "Cache-Control": "no-store", "Retry-After": "2" });
    res.end(page.body);
  }

  // Keep connections to sockets open, as those to ports are. A server that is told "connection: close" and answers
  // at once has closed before node makes its last, empty write of a request with a body. A socket, unlike a port,
  // tells so at once: EPIPE, and the answer would be lost for a 503.
  proxyOptsForTarget(target) {
    const options = super.proxyOptsForTarget(target);
    options.agent ??= this.httpAgent;
    return options;
  }

  handleProxyWeb(req, res) {
    const refusal = refusedHost(req.headers.host);
    if (refusal) {
      res.writeHead(421, { "Content-Type": "text/plain; charset=utf-8", Connection: "close" });
      res.end(refusal + "\n");
      return;
    }
    return super.handleProxyWeb(req, res);
  }

  handleProxyWs(req, socket, head) {
    // A browser that vanishes resets its WebSockets; at any time, also before there is a route or after a refusal.
    socket.on("error", () => socket.destroy());
    if (refusedHost(req.headers.host)) {
      socket.end("HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
      return;
    }
    return super.handleProxyWs(req, socket, head);
  }
}

const refusedHost = hostCheck(args.host);
const proxy = new HubProxy({
  log,
  authToken: token,
  xfwd: true,
  prependPath: true,
  errorTarget: args["error-target"],
});
proxy.errorPath = ""; // ends in _handleProxyErrorDefault
// Without a listener the reset of one WebSocket would be thrown here, and end the proxy for all.
proxy.proxy.on("error", (error, req) => log.info("%s: %s", error.code ?? error.message, req?.url?.split("?")[0]));
bound(proxy.proxyServer, { total: Number(args.connections), perAddress: Number(args["per-address"]), log });
proxy._routes = new FileStore(args.routes, log);
if (args["default-target"]) await proxy.addRoute("/", { target: args["default-target"], data: { hub: true } });

// A socket file is left behind by a kill; the supervisor's lock says that nobody else listens on it.
function freeSocket(path) {
  return new Promise((resolve) => {
    const probe = net.connect(path);
    probe.once("connect", () => {
      log.error("Another proxy listens on %s", path);
      process.exit(3);
    });
    probe.once("error", () => {
      fs.rmSync(path, { force: true });
      resolve();
    });
  });
}

function listen(server, ...where) {
  return new Promise((resolve) => {
    server.once("error", (error) => {
      log.error("Cannot listen on %s: %s", where.join(":"), error.message);
      process.exit(error.code === "EADDRINUSE" ? 98 : 1);
    });
    server.listen(...where, resolve);
  });
}

process.umask(0o077);
await freeSocket(args["api-socket"]);
await listen(proxy.apiServer, args["api-socket"]);
await listen(proxy.proxyServer, Number(args.port), args.bind);
log.info("Proxying %s:%s", args.bind, args.port);

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, () => {
    fs.rmSync(args["api-socket"], { force: true });
    process.exit(0);
  });
}
