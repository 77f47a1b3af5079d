// Who sends a request, and what the processes behind are told of it.
//
// Anybody can write X-Forwarded-For and the like. They are believed of the proxies in front that the operator named, and
// only what those have added: it is counted from the right, up to the first address that is none of theirs. All else of
// the kind is dropped, so that what comes from here is this proxy's own word. Host and scheme are never taken from them:
// the Host header and the platform's own URL say them.

import net from "node:net";

const SAID = /^(x-forwarded-.*|forwarded|x-real-ip|x-scheme)$/;

/** Make the rules. `trusted` are the networks (ADDRESS/BITS) of the proxies in front, `platform` an origin or empty. */
export function senders({ trusted, platform }) {
  const list = new net.BlockList();
  for (const one of trusted) {
    const [address, bits] = one.split("/");
    list.addSubnet(address, Number(bits), net.isIPv6(address) ? "ipv6" : "ipv4");
  }
  const home = platform ? new URL(platform) : undefined;
  const scheme = home?.protocol.slice(0, -1) ?? "http";
  const port = home?.port || (scheme === "https" ? "443" : "80");

  const trusts = (address) => net.isIP(address) !== 0 && list.check(address, net.isIPv6(address) ? "ipv6" : "ipv4");

  function senderOf(req) {
    let found = plain(req.socket.remoteAddress ?? "");
    if (!trusts(found)) return found;
    for (const entry of (req.headers["x-forwarded-for"] ?? "").split(",").reverse()) {
      const address = plain(withoutPort(entry.trim()));
      if (!net.isIP(address)) break;
      found = address;
      if (!trusts(found)) break;
    }
    return found;
  }

  return {
    /** Whether a connection is of a proxy in front, which brings requests of many. */
    trusts: (address) => trusts(plain(address ?? "")),
    /** Note who sends a request as its `sender`, and leave of what its headers say of that only what is true. */
    settle(req) {
      req.sender = senderOf(req);
      for (const name of Object.keys(req.headers)) if (SAID.test(name)) delete req.headers[name];
      req.headers["x-forwarded-for"] = req.sender;
      req.headers["x-forwarded-host"] = req.headers.host ?? "";
      req.headers["x-forwarded-proto"] = scheme;
      req.headers["x-forwarded-port"] = port;
    },
  };
}

function plain(given) {
  const address = given.split("%")[0]; // of one that holds on a link only
  return address.startsWith("::ffff:") && net.isIPv4(address.slice(7)) ? address.slice(7) : address;
}

function withoutPort(entry) {
  const found = /^\[([^\]]*)\](?::\d+)?$/.exec(entry) ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(entry);
  return found ? found[1] : entry;
}
