// The gateway to apps: who may (asking.mjs), how often (rates.mjs), where to (replicas.mjs), and what passes (headers.mjs).
//
// On the hub's own origin, at .../services/mlp/apps/USER/APP/, programs reach an app with a token of the hub or a key of the app.
// Pages of an app are on an origin of its own, where a browser has a cookie for this one app: it gets it from the service for a
// code that is good once, in the browser that asked for it (entering.mjs).

import http from "node:http";

import { isPage } from "../hosts.mjs";
import { hangUp, hasBody, networkOf } from "../limits.mjs";
import { Asking, NOTHING, wrong } from "./asking.mjs";
import { Figures } from "./figures.mjs";
import { Entering } from "./entering.mjs";
import { cookieOf, forApp, forVisitor } from "./headers.mjs";
import { ReplicaAgent } from "./handshake.mjs";
import { pageOf } from "./pages.mjs";
import { appPlaces } from "./places.mjs";
import { Rates } from "./rates.mjs";
import { Replicas, whereIs } from "./replicas.mjs";
import { Telling } from "./telling.mjs";

const HEADER_BYTES = 64 * 1024; // of an app's answer
const AGAIN_MS = 5_000; // what is open is looked at again: who may no more is disconnected
const WAKE_LOOK_MS = 500;
const MOST_WAITING = 100; // requests that wait for one app to wake
const KEY = /^mlpk_[A-Za-z0-9_-]{20,100}$/;
const SAFE = new Set(["GET", "HEAD", "OPTIONS"]);
const UNREACHED = new Set(["ECONNREFUSED", "ENOENT", "EAGAIN", "EACCES", "EHOSTUNREACH", "ENETUNREACH", "ENOTSOCK", "ETIMEDOUT"]);
const MIB = 1 << 20;
const DRAINED = 64 * MIB; // of a body that is refused

export class AppGateway {
  #asking;
  #entering;
  #telling;
  #figures = new Figures();
  #rates;
  #replicas = new Replicas();
  #open = new Set(); // { question, from, end }
  #waiting = new Map(); // app: how many requests wait for it to wake
  #kept = new ReplicaAgent({ keepAlive: true, maxFreeSockets: 32 });
  // what may do something is sent on a connection of its own: one that was kept may be closed at that moment
  #fresh = new ReplicaAgent({ keepAlive: true, maxFreeSockets: 0 });

  /**
   * `service` is where the service listens, `token` the platform's own; `platform` the hub's origin, `users` the domain of names
   * of their own or empty, `base` what paths begin with. `secure`: browsers keep `__Host-` cookies here. `limits`: bodyMax
   * (MiB), answerS, wakeS, perKey, perVisitor, perTenant (requests a second). `patient`: as of `Asking`.
   */
  constructor({ service, token, platform, users, base, secure, limits, turns, connections, patient, log }) {
    Object.assign(this, { platform, base, limits, connections, log });
    this.cookie = secure ? "__Host-mlp-app" : "mlp-app";
    this.scheme = platform.startsWith("https:") ? "https" : "http";
    this.placeOf = appPlaces({ users, base });
    this.#asking = new Asking({ service, token, turns, patient, log });
    this.#entering = new Entering({ asking: this.#asking, cookie: this.cookie, secure, home: platform + base });
    this.#telling = new Telling({ asking: this.#asking, figures: this.#figures });
    this.#rates = new Rates(limits);
    setInterval(() => this.#lookAgain(), AGAIN_MS).unref();
  }

  /** What is known of an app or a tenant, for the service. */
  figures(kind, name) {
    return this.#figures.of(kind, name);
  }

  /** Tell the service what it was not told yet: this process ends. */
  async flush() {
    await this.#telling.tell();
  }

  /** Answer a request. */
  async web(req, res, place) {
    const begun = performance.now();
    const tell = (status, text, more = {}) => {
      if (res.headersSent || res.closed) return void res.destroy();
      const { type, body } = pageOf(status, text, place.own ? req.headers.accept : "", more.again);
      const headers = { "content-type": type, "cache-control": "no-store", "x-content-type-options": "nosniff" };
      if (!place.own) headers["content-security-policy"] = "sandbox";
      if (status === 401) headers["www-authenticate"] = 'Bearer realm="MLP Hub"';
      if (more.again) headers["retry-after"] = String(more.again);
      res.writeHead(status, headers).end(req.method === "HEAD" ? undefined : body);
      drain(req); // so that who still sends reads the answer
    };
    if (place.fault) return tell(400, place.fault);
    if (place.own && this.#entering.isWay(req)) return this.#entering.enter(req, res, place, tell);
    const found = await this.#admitted(req, place);
    if (res.closed) return;
    if (found.login) return this.#entering.begin(req, res, place, place.rest);
    if (found.status !== 200) return tell(found.status, found.msg, found);
    const { answer } = found;
    const count = { bytesIn: 0, bytesOut: 0 };
    this.#figures.open(answer, 1);
    res.once("close", () => {
      this.#figures.open(answer, -1);
      const status = res.headersSent ? res.statusCode : 499;
      this.#figures.answered(answer, status, (count.headed ?? performance.now()) - begun, count.bytesIn, count.bytesOut);
    });
    const wait = this.#rates.take(answer);
    if (wait) return tell(429, `This app is asked too often. Try again in ${wait} s.`, { again: wait });
    const most = this.limits.bodyMax * MIB;
    if (Number(req.headers["content-length"] ?? 0) > most) return tell(413, tooLarge(this.limits.bodyMax));
    if (!this.connections.enter(req.socket, `app ${answer.user}/${answer.app}`, res)) {
      return tell(503, "Too many requests of this app are under way. Try again in a moment.", { again: 2 });
    }
    const ready = await this.#awake(found, res);
    if (res.closed) return;
    if (ready.status !== 200) return tell(ready.status, ready.msg, ready);
    const watched = { ...found, end: () => res.destroy() };
    this.#open.add(watched);
    res.once("close", () => this.#open.delete(watched));
    this.#send(req, res, place, ready.answer, count, tell);
  }

  /** Answer a request for a WebSocket. */
  async ws(req, socket, head, place) {
    const refuse = (status, text) => hangUp(socket, `${status} ${http.STATUS_CODES[status] ?? "Refused"}`, `${text}\n`);
    if (place.fault) return refuse(400, place.fault);
    socket.pause();
    const found = await this.#admitted(req, place, { upgrade: true });
    if (socket.destroyed) return;
    if (found.status !== 200) return refuse(found.status ?? 401, found.msg ?? "Log in first.");
    const wait = this.#rates.take(found.answer);
    if (wait) return refuse(429, `This app is asked too often. Try again in ${wait} s.`);
    if (!this.connections.enter(socket, `app ${found.answer.user}/${found.answer.app}`, socket)) {
      return refuse(503, "Too many requests of this app are under way.");
    }
    const ready = await this.#awake(found, socket);
    if (socket.destroyed) return;
    if (ready.status !== 200) return refuse(ready.status, ready.msg);
    this.#upgrade(req, socket, head, place, ready.answer, found, refuse);
  }

  /** Who may: { status: 200, question, from, answer }, a refusal, or { to } where a browser is sent to. */
  async #admitted(req, place, { upgrade = false } = {}) {
    const from = networkOf(req.sender);
    const login = place.own && isPage(req) && !upgrade ? { login: true } : undefined;
    const credential = this.#credentialOf(req, place);
    if (!credential) return login ?? { status: 401, msg: NOTHING };
    if (credential.wrong) return { status: 401, msg: wrong(credential.wrong) };
    if (credential.kind === "cookie" && isForeign(req, `${this.scheme}://${req.headers.host}`, upgrade)) {
      return { status: 403, msg: "Another site may not ask this app in your name." };
    }
    const question = {
      ...(place.own ? { label: place.label } : { user: place.user, app: place.app }),
      ...credential,
      address: req.sender,
    };
    const language = plain(req.headers["accept-language"]);
    const answer = await this.#asking.admit(question, from, { language });
    if (answer.status === 401 && credential.kind === "cookie" && login) return login;
    if (answer.status !== 200) return { status: answer.status, msg: answer.msg, again: [429, 503].includes(answer.status) ? 2 : undefined };
    return { status: 200, question, from, answer, language };
  }

  #credentialOf(req, place) {
    const { authorization, "x-api-key": key } = req.headers;
    if (key !== undefined) return KEY.test(key) ? { kind: "key", secret: key } : { wrong: "key" };
    if (authorization !== undefined) {
      const found = /^(bearer|token) +([\x21-\x7e]{1,1024})$/i.exec(authorization);
      if (!found) return undefined;
      return KEY.test(found[2]) ? { kind: "key", secret: found[2] } : { kind: "token", secret: found[2] };
    }
    const cookie = place.own ? cookieOf(req, this.cookie) : undefined;
    return cookie && /^[A-Za-z0-9_-]{20,100}$/.test(cookie) ? { kind: "cookie", secret: cookie } : undefined;
  }

  /** Wait for an app that sleeps until it answers: a later answer with replicas, or a refusal that says how it stands. */
  async #awake(found, to) {
    let { answer } = found;
    if (answer.replicas.length) return { status: 200, answer };
    if (!answer.wakes) return asItStands(answer);
    const waiting = this.#waiting.get(answer.uid) ?? 0;
    if (waiting >= MOST_WAITING) return { status: 503, msg: "This app is waking up, and many wait for it already.", again: 5 };
    this.#waiting.set(answer.uid, waiting + 1);
    try {
      const until = performance.now() + this.limits.wakeS * 1000;
      while (performance.now() < until && !to.closed && !to.destroyed) {
        await new Promise((resolve) => setTimeout(resolve, WAKE_LOOK_MS));
        const again = await this.#asking.admit(found.question, found.from, { anew: true, language: found.language });
        if (again.status !== 200) return { status: again.status, msg: again.msg };
        answer = again;
        if (answer.replicas.length) return { status: 200, answer };
        if (!answer.wakes) break;
      }
    } finally {
      const left = this.#waiting.get(answer.uid) - 1;
      if (left) this.#waiting.set(answer.uid, left);
      else this.#waiting.delete(answer.uid);
    }
    return asItStands(answer);
  }

  /** Send a request on to a replica; one that refuses what does nothing by being asked is given one more chance elsewhere. */
  #send(req, res, place, answer, count, tell, before) {
    const address = this.#replicas.choose(answer.replicas, before && answer.replicas.length > 1 ? new Set([before]) : undefined);
    const harmless = SAFE.has(req.method) && !hasBody(req);
    const done = this.#replicas.take(address);
    const sent = http.request({
      ...whereIs(address),
      method: req.method,
      path: place.rest,
      headers: forApp(req, { own: place.own, prefix: place.prefix, answer }),
      agent: harmless && !before ? this.#kept : this.#fresh,
      maxHeaderSize: HEADER_BYTES,
      setHost: false,
    });
    let over = false;
    const fail = (...what) => {
      over = true;
      tell(...what);
      sent.destroy();
    };
    const gone = () => {
      over = true;
      sent.destroy();
    };
    const late = setTimeout(() => fail(504, `This app did not answer within ${this.limits.answerS} s.`), this.limits.answerS * 1000);
    res.once("close", gone);
    sent.once("close", () => {
      clearTimeout(late);
      done();
      res.off("close", gone);
    });
    sent.once("upgrade", (_, socket) => {
      socket.destroy(); // to who asked for none it would be an answer without an end
      fail(502, "This app's answer cannot be passed on.");
    });
    sent.on("error", (error) => {
      if (over) return;
      if (res.headersSent) return gone(), void res.destroy();
      over = true;
      const unreached = UNREACHED.has(error.code);
      if (unreached) this.#replicas.refused(address);
      // one that was kept open may just have ended: the only replica there is gets another connection
      if (harmless && !before && (unreached ? answer.replicas.length > 1 : sent.reusedSocket)) {
        return void this.#send(req, res, place, answer, count, tell, address);
      }
      if (unreached) tell(503, "This app does not answer just now. Try again in a moment.", { again: 2 });
      else if (error.code === "HPE_HEADER_OVERFLOW") tell(502, `This app's answer begins with more than ${HEADER_BYTES} bytes of headers.`);
      else tell(502, "This app ended its connection without an answer that can be read.");
    });
    sent.once("response", (got) => {
      clearTimeout(late);
      if (over) return void got.destroy();
      count.headed = performance.now();
      const headers = this.#forVisitor(got, place, req);
      if (!headers) return fail(502, "This app leads to an address that is not its own.");
      if (!(got.statusCode >= 200 && got.statusCode <= 599)) return fail(502, "This app's answer has no status that can be passed on.");
      try {
        res.writeHead(got.statusCode, headers);
      } catch {
        return fail(502, "This app's answer has headers that cannot be passed on.");
      }
      res.flushHeaders(); // what is streamed may begin much later
      got.on("data", (part) => (count.bytesOut += part.length));
      got.once("close", () => got.complete || res.destroy());
      got.pipe(res);
    });
    if (!hasBody(req)) return void sent.end();
    const most = this.limits.bodyMax * MIB;
    req.on("data", (part) => {
      count.bytesIn += part.length;
      if (count.bytesIn <= most || over) return;
      req.unpipe(sent);
      fail(413, tooLarge(this.limits.bodyMax));
    });
    req.pipe(sent);
  }

  #forVisitor(got, place, req) {
    return forVisitor(got.headers, { own: place.own, prefix: place.prefix, platform: this.platform, host: hostOf(req) });
  }

  #upgrade(req, socket, head, place, answer, found, refuse) {
    const address = this.#replicas.choose(answer.replicas);
    const done = this.#replicas.take(address);
    const headers = forApp(req, { own: place.own, prefix: place.prefix, answer, upgrade: true });
    const sent = http.request({ ...whereIs(address), path: place.rest, headers, agent: this.#fresh, maxHeaderSize: HEADER_BYTES, setHost: false });
    let over = false;
    const fail = (status, text) => {
      if (!over && !socket.destroyed) refuse(status, text);
      over = true;
      sent.destroy();
    };
    const late = setTimeout(() => fail(504, `This app opened no WebSocket within ${this.limits.answerS} s.`), this.limits.answerS * 1000);
    socket.once("close", () => sent.destroy());
    sent.once("close", () => {
      clearTimeout(late);
      done();
    });
    sent.on("error", () => fail(502, "This app does not answer just now."));
    sent.once("response", (got) => {
      fail(got.statusCode >= 400 && got.statusCode <= 599 ? got.statusCode : 502, "This app opens no WebSocket here.");
    });
    sent.once("upgrade", (got, behind, first) => {
      clearTimeout(late);
      over = true;
      const kept = this.#forVisitor(got, place, req) ?? {};
      const lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", "Upgrade: websocket"];
      for (const [name, value] of Object.entries(kept)) for (const one of [value].flat()) lines.push(`${name}: ${one}`);
      socket.write(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
      this.#join(socket, head, behind, first, answer, found);
    });
    sent.end();
  }

  #join(socket, head, behind, first, answer, found) {
    this.connections.answer(socket, true);
    this.#figures.open(answer, 1);
    const watched = { ...found, end: () => socket.destroy() };
    this.#open.add(watched);
    const end = () => {
      if (!this.#open.delete(watched)) return;
      this.#figures.open(answer, -1);
      for (const one of [socket, behind]) one.destroySoon();
    };
    for (const one of [socket, behind]) {
      one.setNoDelay(true);
      one.setTimeout(0);
      one.on("error", end);
      for (const event of ["end", "close"]) one.once(event, end);
    }
    if (first.length) socket.write(first);
    if (head.length) behind.write(head);
    socket.on("data", (part) => this.#figures.moved(answer, part.length, 0));
    behind.on("data", (part) => this.#figures.moved(answer, 0, part.length));
    socket.pipe(behind);
    behind.pipe(socket);
  }

  /** End what is open of those who may no more. The question also tells the service that the app is in use. */
  #lookAgain() {
    for (const it of this.#open) {
      this.#asking.admit(it.question, it.from, { again: true }).then((answer) => {
        if ([401, 404].includes(answer.status) && this.#open.has(it)) it.end();
      });
    }
  }
}

const plain = (header) => String(header ?? "").slice(0, 200).replace(/[^\x20-\x7e]/g, "");
const tooLarge = (most) => `The body of a request to an app has at most ${most} MiB here.`;
const hostOf = (req) => (req.headers.host ?? "").toLowerCase().replace(/:\d+$/, "");

/** Read the rest of a body that nobody wants, up to a bound. */
function drain(req) {
  let left = DRAINED;
  if (!hasBody(req) || req.readableEnded) return;
  req.on("data", (part) => {
    left -= part.length;
    if (left < 0) req.socket.destroy();
  });
  req.resume();
}

function asItStands({ state, reason }) {
  const words = {
    starting: "This app is starting.",
    waiting: "This app waits for its turn.",
    error: "This app has failed and is tried again.",
    deleting: "This app is being deleted.",
  };
  const text = words[state] ?? "This app does not answer just now.";
  return { status: 503, msg: reason ? `${text} ${reason}` : text, again: state === "starting" ? 2 : 10 };
}

/** Whether a request with a cookie was made by another site's page; apps of others are on the same site, and are others too. */
function isForeign(req, own, upgrade) {
  const { origin, "sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": dest } = req.headers;
  if (upgrade || origin !== undefined) return origin !== own;
  if (site === undefined || site === "same-origin" || site === "none") return false;
  return !(SAFE.has(req.method) && mode === "navigate" && dest === "document");
}
