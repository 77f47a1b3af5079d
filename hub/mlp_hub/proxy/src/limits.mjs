// How many connections there may be, and how long a request may take to arrive and its answer to be taken.
//
// Each connection costs a descriptor here and, while it asks something, one more here and one in the process behind.
// Whoever opens thousands would otherwise take them from everybody. So where all are taken the next one is not refused
// but takes the place of another (pool.mjs).

import fs from "node:fs";
import net from "node:net";

import { Pool } from "./pool.mjs";

const RESERVE = 512; // descriptors for files, the API and kept connections to what is behind
const HEADERS_MS = 20_000;
const REQUEST_MS = 300_000; // a whole request with its body
const FILE_MS = 86_400_000; // one that brings a file of a dataset, which may be of any size
const STALL_MS = 60_000; // without one byte of a body that was announced, or of an answer taken
const CHECK_MS = 5_000;
const LOG_EVERY_MS = 60_000;
const VIA = "via "; // before the address of a proxy in front, between two requests that it brings
export const TOO_MANY = "Too many connections are open. Close some, or try again in a moment.\n";

/** Say something in HTTP on a socket that no response belongs to, and be done with it. */
export function hangUp(socket, status, text) {
  const lines = [`HTTP/1.1 ${status}`, "Content-Type: text/plain; charset=utf-8", "Connection: close"];
  if (status.startsWith("5")) lines.push("Retry-After: 2");
  socket.on("error", () => {});
  socket.end(`${lines.join("\r\n")}\r\nContent-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  socket.destroySoon();
}

/** All connections of a server. `total`, `perAddress` and `perServer` bound how many there are of what. */
export class Connections {
  #all;
  #perServer;
  #servers = new Map(); // user: the pool of the connections that ask something of their notebook server
  #held = new Map(); // socket: { socket, from, answered, server, taken, since }
  #logged = -Infinity;
  #log;
  #trusts;
  #bringsFile;

  /**
   * `trusts` tells of an address whether it is of a proxy in front: its connections are counted for whom they bring.
   * `bringsFile` tells of a request whether its body is a file of a dataset.
   */
  constructor({ total, perAddress, perServer, log, trusts = () => false, bringsFile = () => false }) {
    const most = Math.max(10, Math.min(total, Math.floor((openFiles() - RESERVE) / 2)));
    if (most < total) log.warn("No more than %d connections at once: the limit of open files allows no more", most);
    this.#all = new Pool(most, perAddress, (from) => from.startsWith(VIA));
    this.#trusts = trusts;
    this.#bringsFile = bringsFile;
    this.#perServer = perServer;
    this.#log = log;
  }

  /** Bound a server that does not listen yet. */
  bound(server) {
    server.headersTimeout = HEADERS_MS;
    server.requestTimeout = FILE_MS;
    server.connectionsCheckingInterval = CHECK_MS;
    server.on("connection", (socket) => this.#admit(socket));
    // first of all listeners, so that nothing of the body was read yet
    server.prependListener("request", (req, res) => this.#requested(req, res));
    setInterval(() => this.#closeStalled(performance.now()), CHECK_MS).unref();
  }

  /** Count a connection to a user's server until `done` emits "close"; tell whether there was room for it. */
  enter(socket, user, done) {
    const it = this.#held.get(socket);
    if (!it) return false; // it has gone
    it.server?.remove(it);
    it.server = undefined;
    let pool = this.#servers.get(user);
    if (!pool) this.#servers.set(user, (pool = new Pool(this.#perServer)));
    if (!this.#makeRoom(pool, it.from, `the server of ${user}`)) return false;
    it.server = pool;
    pool.add(it);
    done.once("close", () => {
      if (it.server === pool) {
        pool.remove(it);
        it.server = undefined;
      }
      if (!pool.size && this.#servers.get(user) === pool) this.#servers.delete(user);
    });
    return true;
  }

  /** Note whether a connection is being answered or, if not, waits for its client. */
  answer(socket, answered) {
    const it = this.#held.get(socket);
    if (!it) return;
    const pools = [this.#all, it.server].filter(Boolean);
    for (const pool of pools) pool.remove(it);
    it.answered = answered;
    if (!answered && it.via) it.from = it.via; // the next request may be somebody else's
    for (const pool of pools) pool.add(it);
  }

  /** Count a connection of a proxy in front for whom it brings a request of; tell whether there was room for it. */
  bring(socket, from) {
    const it = this.#held.get(socket);
    if (!it?.via || it.from === from) return it !== undefined;
    const pools = [this.#all, it.server].filter(Boolean);
    for (const pool of pools) pool.remove(it);
    const room = this.#makeRoom(this.#all, from, "this hub");
    if (room) it.from = from;
    for (const pool of pools) pool.add(it);
    return room;
  }

  /** Know a connection by the socket that speaks TLS on it from now on; tell whether it is still held. */
  become(socket, secure) {
    const it = this.#held.get(socket);
    if (!it) return false;
    this.#held.delete(socket);
    it.socket = secure;
    this.#held.set(secure, it);
    secure.once("close", () => this.#forget(it));
    return true;
  }

  #admit(socket) {
    const address = socket.remoteAddress ?? "";
    const via = this.#trusts(address) ? VIA + networkOf(address) : undefined;
    const from = via ?? networkOf(address);
    if (!this.#makeRoom(this.#all, from, "this hub")) {
      hangUp(socket, "503 Service Unavailable", TOO_MANY);
      return;
    }
    const it = { socket, from, via, answered: false };
    this.#held.set(socket, it);
    this.#all.add(it);
    socket.once("close", () => this.#forget(it));
  }

  #forget(it) {
    if (!this.#held.delete(it.socket)) return;
    this.#all.remove(it);
    it.server?.remove(it);
  }

  #makeRoom(pool, from, what) {
    if (pool.hasRoom(from)) return true;
    const victim = pool.victim(from);
    if (performance.now() - this.#logged >= LOG_EVERY_MS) {
      this.#logged = performance.now();
      const way = victim ? `one of ${victim.from} makes room` : "it gets no more";
      this.#log.warn("%s asks for one connection too many to %s: %s", from, what, way);
    }
    if (!victim) return false;
    this.#forget(victim);
    victim.socket.destroy();
    return true;
  }

  #requested(req, res) {
    const { socket } = req;
    if (hasBody(req)) {
      socket.setTimeout(STALL_MS); // who lets it pass is disconnected
      const late = this.#bringsFile(req) ? undefined : setTimeout(() => tooLate(res), REQUEST_MS).unref();
      req.once("close", () => clearTimeout(late));
      req.once("end", () => {
        clearTimeout(late);
        socket.setTimeout(0);
        if (!res.closed) this.answer(socket, true);
      });
    } else this.answer(socket, true);
    res.once("close", () => this.answer(socket, false));
  }

  /** End the connections whose clients have taken nothing for long of what there is for them. */
  #closeStalled(now) {
    for (const it of this.#held.values()) {
      const { socket } = it;
      const taken = socket.bytesWritten - socket.writableLength;
      if (!socket.writableLength || taken !== it.taken) {
        it.taken = taken;
        it.since = now;
      } else if (now - it.since >= STALL_MS) socket.destroy();
    }
  }
}

/** End a request that takes too long to come. */
function tooLate(res) {
  const { socket } = res;
  if (!socket || socket.destroyed) return;
  if (res.headersSent) socket.destroy();
  else hangUp(socket, "408 Request Timeout", "The request took too long to come.\n");
}

/** Tell whether a request announces a body. */
export function hasBody(req) {
  return "transfer-encoding" in req.headers || Number(req.headers["content-length"] ?? 0) !== 0;
}

/** The address, or of IPv6 the network that one customer usually has. */
export function networkOf(address) {
  if (address.startsWith("::ffff:") && net.isIPv4(address.slice(7))) return address.slice(7);
  if (!net.isIPv6(address)) return address;
  const [head, tail] = address.split("%")[0].split("::");
  const left = head ? head.split(":") : [];
  const right = tail ? tail.split(":") : [];
  const zeros = Array(Math.max(0, 8 - left.length - right.length)).fill("0");
  return `${[...left, ...(tail === undefined ? [] : zeros), ...right].slice(0, 4).join(":")}::/64`;
}

function openFiles() {
  try {
    const found = /^Max open files\s+(\d+)/m.exec(fs.readFileSync("/proc/self/limits", "utf8"));
    return found ? Number(found[1]) : Infinity;
  } catch {
    return 1024;
  }
}
