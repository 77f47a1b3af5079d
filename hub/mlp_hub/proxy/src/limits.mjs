// How many connections there may be, in all and from one address, and how long a request may take to arrive.
//
// Each connection costs a descriptor here and, while it asks something, one more here and one in the process behind.
// Whoever opens thousands and sends nothing would otherwise take them from everybody.

import fs from "node:fs";
import net from "node:net";

const RESERVE = 512; // descriptors for files, the API and kept connections to what is behind
const HEADERS_MS = 20_000;
const REQUEST_MS = 300_000; // a whole request with its body
const STALL_MS = 60_000; // without one byte of a body that was announced
const CHECK_MS = 5_000;
const LOG_EVERY_MS = 60_000;
const TEXT = "Too many connections are open. Close some, or try again in a moment.\n";
const REFUSAL =
  "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\nRetry-After: 2\r\n" +
  `Connection: close\r\nContent-Length: ${TEXT.length}\r\n\r\n${TEXT}`;

/** Bound a server that does not listen yet. */
export function bound(server, { total, perAddress, log }) {
  const most = Math.max(10, Math.min(total, Math.floor((openFiles() - RESERVE) / 2)));
  if (most < total) log.warn("No more than %d connections at once: the limit of open files allows no more", most);
  countConnections(server, most, perAddress, log);
  server.headersTimeout = HEADERS_MS;
  server.requestTimeout = REQUEST_MS;
  server.connectionsCheckingInterval = CHECK_MS;
  // first of all listeners, so that nothing of the body was read yet
  server.prependListener("request", (req) => {
    if (!("transfer-encoding" in req.headers) && !Number(req.headers["content-length"])) return;
    const { socket } = req;
    socket.setTimeout(STALL_MS); // who lets it pass is disconnected
    req.once("end", () => socket.setTimeout(0));
  });
}

function countConnections(server, total, perAddress, log) {
  const open = new Map();
  let all = 0;
  let logged = -Infinity;
  server.on("connection", (socket) => {
    const from = networkOf(socket.remoteAddress ?? "");
    const mine = open.get(from) ?? 0;
    if (all >= total || mine >= perAddress) {
      if (performance.now() - logged >= LOG_EVERY_MS) {
        logged = performance.now();
        log.warn("%s gets no more connections: it has %d, there are %d in all", from, mine, all);
      }
      socket.on("error", () => {});
      socket.end(REFUSAL);
      socket.destroySoon();
      return;
    }
    all += 1;
    open.set(from, mine + 1);
    socket.once("close", () => {
      all -= 1;
      const left = open.get(from) - 1;
      if (left) open.set(from, left);
      else open.delete(from);
    });
  });
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
