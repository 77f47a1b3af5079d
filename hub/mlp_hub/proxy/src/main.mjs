// Entry of the bundled proxy: configurable-http-proxy with what MLP Hub adds to it.
//
// - Routes survive a restart of the proxy (store.mjs), so that its death costs a blink and no hub is asked.
// - Connections and slow requests are bounded (limits.mjs), so that nobody takes the descriptors of all; upgrades end
//   when either side does (upgrades.mjs). Requests to the platform take turns by their addresses (turns.mjs).
// - Requests under a host name that is not ours are refused (hosts.mjs): DNS rebinding. What is the platform's is not
//   on users' names, a user's servers are on theirs only, and browsers are led to the platform's own name. Requests whose
//   address or Host says two things are refused too (requests.mjs).
// - Of X-Forwarded-For and the like only what a named proxy in front added is believed (forwarded.mjs).
// - Each request has an id, which goes to the processes behind and back to the client (request_ids.mjs).
// - With a certificate of the operator's the port speaks TLS (tls.mjs).
// - Apps are reached through a gateway of its own (apps/): who may the service says, pages are on each app's own name.
// - The operator's doctor asks by the public address what a gateway in front makes of requests (probes.mjs).
// - A part that is replaced, as a pod is, costs a wait and no request (patience.mjs); nor does the end of this proxy (leaving.mjs).
// - Where nothing answers, a page says so and tries again (pages.mjs), also where a process of the platform hangs
//   (backends.mjs).
//
// The API listens on a UNIX socket, and at a port where the proxy is a pod. CONFIGPROXY_AUTH_TOKEN must be set; there is no open API.

import { randomUUID } from "node:crypto";
import fs from "node:fs";
import http, { STATUS_CODES } from "node:http";
import net from "node:net";
import { parseArgs } from "node:util";

import { ConfigurableProxy } from "configurable-http-proxy/lib/configproxy.js";

import { AppGateway } from "./apps/gateway.mjs";
import { Backends, placeAt, placeOf } from "./backends.mjs";
import { senders } from "./forwarded.mjs";
import { filesBelow, hostRules, isPage } from "./hosts.mjs";
import { Leaving, routesOf } from "./leaving.mjs";
import { Connections, hangUp, networkOf, TOO_MANY } from "./limits.mjs";
import { defaultLogger } from "./log.mjs";
import { pageFor } from "./pages.mjs";
import { PatientAgent } from "./patience.mjs";
import { Probes } from "./probes.mjs";
import { Refusals } from "./refusals.mjs";
import { identify } from "./request_ids.mjs";
import { faultOf } from "./requests.mjs";
import { FileStore } from "./store.mjs";
import { speakTls } from "./tls.mjs";
import { Turns } from "./turns.mjs";
import { faultOfUpgrade, watch } from "./upgrades.mjs";

const { values: args } = parseArgs({
  options: {
    bind: { type: "string", default: "127.0.0.1" },
    port: { type: "string", default: "8000" },
    "api-socket": { type: "string" },
    "api-ip": { type: "string" },
    "api-port": { type: "string" },
    routes: { type: "string" },
    "default-target": { type: "string" },
    "error-target": { type: "string" },
    connections: { type: "string", default: "5000" },
    "per-address": { type: "string", default: "1000" },
    "per-server": { type: "string", default: "500" },
    "upgrade-s": { type: "string", default: "60" },
    host: { type: "string", multiple: true, default: [] },
    platform: { type: "string", default: "" },
    users: { type: "string", default: "" },
    trusted: { type: "string", multiple: true, default: [] },
    hsts: { type: "string", default: "0" },
    service: { type: "string" },
    "app-body-max": { type: "string", default: "100" },
    "app-answer-s": { type: "string", default: "300" },
    "app-wake-s": { type: "string", default: "60" },
    "app-key-rate": { type: "string", default: "50" },
    "app-visitor-rate": { type: "string", default: "50" },
    "app-tenant-rate": { type: "string", default: "500" },
    base: { type: "string", default: "/" },
    "hold-s": { type: "string", default: "0" },
    "leave-s": { type: "string", default: "0" },
    "routes-from": { type: "string" },
    "tls-cert": { type: "string" },
    "tls-key": { type: "string" },
  },
});

const TEXT_TYPE = "text/plain; charset=utf-8";
const FLUSH_MS = 1_000; // for which the service is told at the end what was asked of apps
const run = randomUUID(); // by this a hub elsewhere sees that the proxy started again, and may have lost its routes
const FREE_SOCKETS = 32; // of those kept open to one process, without a request; more are closed

const log = defaultLogger();
const token = process.env.CONFIGPROXY_AUTH_TOKEN;
const gatewayToken = process.env.MLP_GATEWAY_TOKEN;
delete process.env.CONFIGPROXY_AUTH_TOKEN;
delete process.env.MLP_GATEWAY_TOKEN;
if (!token || !args["api-socket"]) {
  log.error("CONFIGPROXY_AUTH_TOKEN and --api-socket are required");
  process.exit(2);
}

class HubProxy extends ConfigurableProxy {
  constructor(options) {
    super(options);
    this.httpAgent.maxFreeSockets = FREE_SOCKETS;
    const { web, ws } = this.proxy;
    this.proxy.web = (req, res, target, failed) => {
      // What a client wishes of its connection is for this proxy alone; the one behind is kept, whatever clients send.
      // Not so of WebSockets: they are asked for in this header.
      const headers = { connection: "keep-alive" };
      delete req.headers.expect; // node has said "100 Continue"
      const agent = this.agentFor(req, target);
      this.ask(req, res, target, failed, () => web.call(this.proxy, req, res, { ...target, headers, agent }, failed));
    };
    this.proxy.ws = (req, socket, head, target, failed) => {
      req.sentOn = watch(socket, connections, Number(args["upgrade-s"]));
      const agent = this.agentFor(req, target);
      this.ask(req, socket, target, failed, () => ws.call(this.proxy, req, socket, head, { ...target, agent }, failed));
    };
    this.proxy.on("proxyReq", (proxyReq, req, res, { target }) => {
      this.waitFor(proxyReq, req, res, target);
      // a 101 to who asked for none would be an answer without an end
      proxyReq.once("upgrade", (_, socket) => {
        socket.destroy();
        res.destroy();
      });
    });
    this.proxy.on("proxyReqWs", (proxyReq, req, socket, { target }) => {
      req.sentOn(proxyReq);
      this.waitFor(proxyReq, req, socket, target);
    });
    this.proxy.on("proxyRes", (answer, _, res) => {
      makeSendable(answer);
      delete answer.headers["strict-transport-security"]; // a name's, and so not a server's, to say
      delete answer.headers["x-request-id"]; // this proxy's, and no server's, to say
      if (leaving.begun) answer.headers.connection = "close";
      // A server that goes in the middle of its answer: its client would wait for the rest.
      answer.once("close", () => answer.complete || res.destroy());
      // Without it the head of an answer waits for its body: a log that is followed may have its first line in an hour.
      if (!("content-length" in answer.headers)) setImmediate(() => res.writableEnded || res.destroyed || res.flushHeaders());
    });
  }

  // A part of the platform may be replaced; a user's server that is away stays away.
  agentFor(req, { agent, target }) {
    const waits = patient && req.serverOf === undefined && !target.socketPath && target.protocol === "http:";
    return waits ? patient : agent;
  }

  // Routes begin with a host name where users' servers have names of their own.
  async routeOf(req) {
    if (!args.users) return super.targetForReq(req);
    const path = decodeURIComponent(new URL(req.url, "http://example.com").pathname);
    const route = await this._routes.getTarget(`/${rules.routedHost(req)}${path}`);
    return route && { prefix: route.prefix, target: route.data.target };
  }

  async targetForReq(req) {
    const match = await this.routeOf(req);
    const route = match && (await this._routes.get(match.prefix));
    req.serverOf = route?.user; // undefined: the platform's own
    return match;
  }

  // One user's server gets so many requests at once; the platform's processes get them in turns, unless they hang.
  // `to` is where the answer goes.
  ask(req, to, { target }, failed, begin) {
    if (to.closed) return; // while its route was looked for: nobody would hear of it again
    if (req.serverOf === undefined) {
      if (backends.hangs(target)) return void failed(new Error("it does not answer"));
      if (to.writeHead) req.pause(); // who passes it on begins to read it
      req.leave = turns.take(placeOf(target), addressOf(req), begin);
      return void to.once("close", req.leave);
    }
    if (connections.enter(req.socket, req.serverOf, to)) return begin();
    if (to.writeHead) to.writeHead(503, { "Content-Type": TEXT_TYPE, "Retry-After": "2" }).end(TOO_MANY);
    else hangUp(to, "503 Service Unavailable", TOO_MANY);
  }

  waitFor(proxyReq, req, to, target) {
    if (req.serverOf !== undefined) return;
    const wait = backends.wait(target, () => proxyReq.destroy(new Error("it does not answer")));
    for (const event of ["response", "upgrade"]) proxyReq.once(event, wait.answered);
    for (const one of [proxyReq, to]) one.once("close", wait.left);
    for (const event of ["response", "upgrade", "close"]) proxyReq.once(event, () => req.leave());
  }

  // What the supervisor asks: whether this loop still turns. And the doctor's words (probes.mjs).
  handleApiRequest(req, res) {
    if (req.url.startsWith("/probes/")) {
      probes.command(req, res, req.headers.authorization === `token ${token}`);
      return Promise.resolve();
    }
    const figures = /^\/apps\/(apps|tenants)\/([A-Za-z0-9._-]{1,255})$/.exec(req.url);
    if (apps && figures && req.method === "GET" && req.headers.authorization === `token ${token}`) {
      res.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(apps.figures(figures[1], figures[2])));
      return Promise.resolve();
    }
    if (req.url !== "/health") {
      if (!leaving.begun || req.method === "GET") return super.handleApiRequest(req, res);
      // the hub asks again, and finds the next proxy
      res.writeHead(503, { "Content-Length": 0, Connection: "close" }).end();
      return Promise.resolve();
    }
    res.writeHead(200, { "Content-Length": 0, "X-Proxy-Run": run });
    res.end();
    return Promise.resolve();
  }

  // Another process may listen there by now: who led has been silent for too long. What is kept open leads to the old one.
  renew({ socketPath, host }) {
    const all = [this.httpAgent, patient].flatMap((agent) => Object.entries(agent?.freeSockets ?? {}));
    for (const [name, free] of all) {
      const leadsThere = socketPath ? name.includes(`:${socketPath}`) : name.startsWith(`${host}:`);
      if (leadsThere) for (const socket of [...free]) socket.destroy();
    }
  }

  // Only requests of the API that change something are worth a line.
  logResponse(req, res) {
    if (req.method !== "GET" || res.statusCode >= 400) super.logResponse(req, res);
  }

  // A socket that is not there yet or any more is as ordinary as a refused connection: one line, no stack.
  // The hub is asked, in turn, for a page about a user's server. About itself it could say nothing.
  handleProxyError(code, kind, req, res, error) {
    if (res.closed) return; // nobody is left to be told
    if (code < 500) refusals.note(req, code, addressOf(req)); // the others have a line already
    if (kind === "ws" && !res.writableEnded) hangUp(res, `${code} ${STATUS_CODES[code]}`, pageFor(code, "", req.id).body);
    const hub = this.proxyOptsForTarget(new URL(this.hubPage)).target;
    const tell = (errorTarget) => {
      this.errorTarget = errorTarget;
      this.errorOf = req.id; // the library asks for the page at once, and has no other way to give it a header
      super.handleProxyError(code, kind, req, res, error && { code: "ECONNREFUSED", message: `${error.message} [${req.id}]` });
      this.errorOf = undefined;
    };
    if (kind === "ws" || req.serverOf === undefined || backends.hangs(hub)) return tell();
    const leave = turns.take(placeOf(hub), addressOf(req), () => tell(this.hubPage));
    const wait = backends.wait(hub, () => this._handleProxyErrorDefault(code, kind, req, res));
    for (const one of [leave, wait.answered]) res.once("close", one);
  }

  _handleProxyErrorDefault(code, kind, req, res) {
    if (res.writableEnded) return;
    if (res.headersSent || !res.writeHead) {
      super._handleProxyErrorDefault(code, kind, req, res);
      return;
    }
    const page = pageFor(code, req.headers.accept, req.id);
    res.writeHead(code, { "Content-Type": page.type, "Cache-Control": "no-store", "Retry-After": "2" });
    res.end(page.body);
  }

  // Keep connections to sockets open, as those to ports are. A server that is told "connection: close" and answers
  // at once has closed before node makes its last, empty write of a request with a body. A socket, unlike a port,
  // tells so at once: EPIPE, and the answer would be lost for a 503.
  proxyOptsForTarget(target) {
    const options = super.proxyOptsForTarget(target);
    options.agent ??= this.httpAgent;
    if (this.errorOf) options.target.headers = { "X-Request-ID": this.errorOf };
    return options;
  }

  handleProxyWeb(req, res) {
    sendersOf.settle(req);
    identify(req, sendersOf.trusts(req.socket.remoteAddress));
    res.setHeader("X-Request-ID", req.id);
    const from = req.socket.remoteAddress ?? "";
    if (secured && !isPlain(req.socket)) res.setHeader("Strict-Transport-Security", `max-age=${args.hsts}`);
    if (!connections.bring(req.socket, addressOf(req))) {
      res.writeHead(503, { "Content-Type": TEXT_TYPE, "Retry-After": "2", Connection: "close" }).end(TOO_MANY);
      return;
    }
    if (probes.page(req, res, { host: req.headers.host ?? "", from, sender: req.sender })) return;
    const fault = faultOf(req);
    const app = fault ? undefined : apps?.placeOf(req);
    const { refusal, location } = fault ? { refusal: fault } : app?.own ? {} : rules.check(req);
    if (refusal) {
      refusals.note(req, fault ? 400 : 421, addressOf(req));
      res.writeHead(fault ? 400 : 421, { "Content-Type": TEXT_TYPE, Connection: "close" });
      res.end(refusal + "\n");
      return;
    }
    if (isPlain(req.socket)) return tellOfTls(req, res);
    if (location) {
      res.writeHead(302, { Location: location, "Cache-Control": "no-store", "Content-Length": "0" });
      res.end();
      return;
    }
    if (app) {
      return apps.web(req, res, app).catch((error) => {
        log.error("A request to an app: %s", error.stack ?? error);
        res.destroy();
      });
    }
    return super.handleProxyWeb(req, res);
  }

  handleProxyWs(req, socket, head) {
    // A browser that vanishes resets its WebSockets; at any time, also before there is a route or after a refusal.
    socket.on("error", () => socket.destroy());
    sendersOf.settle(req);
    identify(req, sendersOf.trusts(socket.remoteAddress));
    if (!connections.bring(socket, addressOf(req))) {
      hangUp(socket, "503 Service Unavailable", TOO_MANY);
      return;
    }
    const fault = faultOf(req) ?? faultOfUpgrade(req);
    if (!fault && probes.socket(req, socket)) return;
    const app = fault ? undefined : apps?.placeOf(req);
    const elsewhere = fault || app?.own ? undefined : rules.check(req).refusal;
    if (elsewhere) {
      refusals.note(req, 421, addressOf(req));
      hangUp(socket, "421 Misdirected Request", elsewhere + "\n");
      return;
    }
    if (fault || isPlain(socket)) {
      refusals.note(req, 400, addressOf(req));
      hangUp(socket, "400 Bad Request", (fault ?? SPEAKS_TLS) + "\n");
      return;
    }
    if (app) {
      return apps.ws(req, socket, head, app).catch((error) => {
        log.error("A WebSocket to an app: %s", error.stack ?? error);
        socket.destroy();
      });
    }
    return super.handleProxyWs(req, socket, head);
  }
}

// Who asks for a page by plain HTTP is led to it; nobody else is, lest a program goes on sending tokens that all can read.
function tellOfTls(req, res) {
  if (isPage(req)) {
    res.writeHead(301, { Location: `https://${req.headers.host}${req.url}`, "Content-Length": "0", Connection: "close" }).end();
  } else {
    refusals.note(req, 400, addressOf(req));
    res.writeHead(400, { "Content-Type": TEXT_TYPE, Connection: "close" }).end(SPEAKS_TLS + "\n");
  }
}

// Node throws at what a server may say and a proxy must not send on; here that would end the proxy for all.
function makeSendable(answer) {
  if (!(answer.statusCode >= 200 && answer.statusCode <= 599)) answer.statusCode = 502;
  answer.statusMessage = "";
  delete answer.headers.trailer;
}

// `localhost` is every program's on its machine, and the promise would be for all of them
const secured = /^https:/.test(args.platform) && !/^https:\/\/([^/]*\.)?localhost(:|$)/.test(args.platform) && Number(args.hsts) > 0;
const sendersOf = senders({ trusted: args.trusted, platform: args.platform });
const SPEAKS_TLS = `This port speaks TLS: begin the address with https, as ${args.platform}${args.base}`;
const isPlain = (socket) => args["tls-cert"] !== undefined && !socket.encrypted;
const addressOf = (req) => networkOf(req.sender);
const rules = hostRules({ names: args.host, platform: args.platform, users: args.users, base: args.base });
const isFile = filesBelow(args.base);
const backends = new Backends(log, (target) => proxy.renew(target));
const turns = new Turns();
const refusals = new Refusals(log);
const probes = new Probes(args.base);
const leaving = new Leaving();
const holdMs = Number(args["hold-s"]) * 1000;
const patient = holdMs ? new PatientAgent(holdMs, FREE_SOCKETS) : undefined;
const connections = new Connections({
  total: Number(args.connections),
  perAddress: Number(args["per-address"]),
  perServer: Number(args["per-server"]),
  log,
  trusts: sendersOf.trusts,
  bringsFile: (req) => isFile(req) && apps?.placeOf(req) === undefined,
});
const platformHost = args.platform ? new URL(args.platform).hostname : "";
const apps =
  args.service && gatewayToken
    ? new AppGateway({
        service: placeAt(args.service),
        token: gatewayToken,
        platform: args.platform,
        users: args.users,
        base: args.base,
        secure: args.users !== "" && (args.platform.startsWith("https:") || /(^|\.)localhost$/.test(platformHost)),
        limits: {
          bodyMax: Number(args["app-body-max"]),
          answerS: Number(args["app-answer-s"]),
          wakeS: Number(args["app-wake-s"]),
          perKey: Number(args["app-key-rate"]),
          perVisitor: Number(args["app-visitor-rate"]),
          perTenant: Number(args["app-tenant-rate"]),
        },
        turns,
        connections,
        patient: /^http:/.test(args.service) ? patient : undefined,
        log,
      })
    : undefined;
const proxy = new HubProxy({
  log,
  authToken: token,
  // a proxy in front keeps its connections for a minute; one that ends here first would be a request lost there
  keepAliveTimeout: args.trusted.length ? 75_000 : undefined,
  prependPath: true,
});
proxy.hubPage = args["error-target"] + "/";
proxy.errorPath = ""; // ends in _handleProxyErrorDefault
// Without a listener the reset of one WebSocket would be thrown here, and end the proxy for all.
proxy.proxy.on("error", (error, req) => log.info("%s: %s", error.code ?? error.message, req?.url?.split("?")[0]));
if (args["tls-cert"]) {
  try {
    speakTls(proxy.proxyServer, { cert: args["tls-cert"], key: args["tls-key"] ?? args["tls-cert"], connections, log });
  } catch (error) {
    log.error("The certificate cannot be used: %s", error.message);
    process.exit(2);
  }
}
connections.bound(proxy.proxyServer);
leaving.watch(proxy.proxyServer);
proxy._routes = new FileStore(args.routes, log);
if (args["routes-from"]) proxy._routes.take(await routesOf(placeAt(args["routes-from"]), token, log));
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
if (args["api-port"]) {
  const beside = http.createServer();
  for (const listener of proxy.apiServer.listeners("request")) beside.on("request", listener);
  await listen(beside, Number(args["api-port"]), args["api-ip"]);
}
await listen(proxy.proxyServer, Number(args.port), args.bind);
log.info("Proxying %s:%s", args.bind, args.port);

for (const signal of ["SIGTERM", "SIGINT"]) {
  process.on(signal, async () => {
    fs.rmSync(args["api-socket"], { force: true });
    const moreMs = Number(args["leave-s"]) * 1000;
    if (moreMs) await leaving.leave(proxy.proxyServer, moreMs);
    const late = new Promise((resolve) => setTimeout(resolve, FLUSH_MS));
    await Promise.race([apps?.flush(), late]);
    process.exit(0);
  });
}
