// Which Host headers are ours. An address is never refused, because only names can be rebound to another
// address by whoever owns them.

import net from "node:net";

/** Return a function that gives the reason to refuse a Host header, or nothing. `*` allows every name. */
export function hostCheck(names) {
  const known = new Set(["localhost", ...names.map((name) => name.toLowerCase())]);
  return (header) => {
    if (known.has("*")) return undefined;
    const name = nameOf(header ?? "");
    if (net.isIP(name) || known.has(name) || name.endsWith(".localhost")) return undefined;
    return `This hub is not known as ${JSON.stringify(name.slice(0, 100))}. The operator can allow it: MLP_ALLOWED_HOSTS=NAME, then up again.`;
  };
}

function nameOf(header) {
  const bracketed = /^\[([^\]]*)\](:\d+)?$/.exec(header);
  return (bracketed ? bracketed[1] : header.replace(/:\d+$/, "")).toLowerCase().replace(/\.$/, "");
}
