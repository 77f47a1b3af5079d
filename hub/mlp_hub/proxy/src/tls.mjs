// TLS by the operator's certificate, on the port that would otherwise speak plain HTTP.
//
// The HTTP server stays as it is, with its limits; what comes to it is sorted by the first byte. A TLS handshake begins with
// one that no request does, so who comes by plain HTTP is understood too, and can be told. A certificate that is renewed is
// taken for new connections from then on; while its files do not fit together the old one stays.

import fs from "node:fs";
import tls from "node:tls";

const HANDSHAKE = 0x16;
const HANDSHAKE_MS = 20_000;
const LOOK_MS = 1_000;

/**
 * Have a server, which has no listeners but its own yet, speak TLS; `connections` holds its sockets. Throws where the files
 * cannot be used.
 */
export function speakTls(server, { cert, key, connections, log }) {
  let context = contextOf(cert, key);
  let seen = stampOf(cert, key);
  let told = false;
  setInterval(() => {
    const now = stampOf(cert, key);
    if (now === seen) return;
    try {
      context = contextOf(cert, key);
      seen = now;
      told = false;
      log.info("The certificate was read anew: %s", cert);
    } catch (error) {
      // perhaps one of two files is written still: it is tried again until it fits
      if (!told) log.error("The certificate has changed and cannot be used, the old one is kept: %s", error.message);
      told = true;
    }
  }, LOOK_MS).unref();

  const [serve] = server.listeners("connection");
  server.removeAllListeners("connection");
  server.on("connection", (raw) => {
    const late = setTimeout(() => raw.destroy(), HANDSHAKE_MS);
    raw.on("error", () => raw.destroy());
    raw.once("close", () => clearTimeout(late));
    raw.once("readable", () => {
      const first = raw.read(1);
      if (!first) return void raw.destroy();
      raw.unshift(first);
      if (first[0] !== HANDSHAKE) {
        clearTimeout(late);
        return serve.call(server, raw);
      }
      const secure = new tls.TLSSocket(raw, { isServer: true, secureContext: context, ALPNProtocols: ["http/1.1"] });
      secure.on("error", () => secure.destroy());
      secure.once("secure", () => {
        clearTimeout(late);
        if (connections.become(raw, secure)) serve.call(server, secure);
        else secure.destroy();
      });
    });
  });
}

function contextOf(cert, key) {
  return tls.createSecureContext({ cert: fs.readFileSync(cert), key: fs.readFileSync(key), minVersion: "TLSv1.2" });
}

function stampOf(...files) {
  return files
    .map((file) => {
      const found = fs.statSync(file, { throwIfNoEntry: false });
      return found ? `${found.ino} ${found.size} ${found.mtimeMs}` : "";
    })
    .join();
}
