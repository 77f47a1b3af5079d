// What an app is told of a request, and what browsers are told of its answer.
//
// An app is a tenant's program. It never sees what would let it act as its visitor (the hub's cookies, the caller's token or
// key), who its visitor is stands in X-MLP-User by this proxy's word alone, and its answers have no say beyond its own origin.

const HOPS = /^(connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|http2-settings|expect)$/;
// no hop's to take away, whatever `Connection` names: without its length a body would be read as the next request, in whose name it likes
const STAYS = /^(content-length|host|x-forwarded-.*)$/;
const OURS = /^(authorization|x-api-key|x-mlp-.*|forwarded|x-real-ip|x-scheme)$/;
const OUR_COOKIES = /^(__host-|__secure-)?(mlp-|jupyterhub-)/i;
// what an answer may not say: these are of a name or of all that a browser keeps, and so not an app's
const NEVER_SAID = /^(strict-transport-security|clear-site-data|alt-svc|nel|report-to|reporting-endpoints|x-mlp-.*)$/;
// and on the hub's own origin, where an app is an answer to a program and never a page
const NOT_ON_THE_HUB =
  /^(set-cookie2?|refresh|service-worker-allowed|content-security-policy.*|x-content-type-options|cross-origin-.*-policy)$/;

/** The headers of a request as the app gets them. `own`: it came to the app's own origin; `answer`: who may. */
export function forApp(req, { own, prefix, answer, upgrade = false }) {
  const named = new Set((req.headers.connection ?? "").toLowerCase().split(",").map((name) => name.trim()));
  const found = {};
  for (const [name, value] of Object.entries(req.headers)) {
    // a name with `_` is read by many as one with `-`: a second way to say the same
    if (HOPS.test(name) || OURS.test(name) || name.includes("_") || name === "cookie") continue;
    if (named.has(name) && !STAYS.test(name)) continue;
    found[name] = value;
  }
  const cookies = own ? cookiesOf(req.headers.cookie).filter((one) => !OUR_COOKIES.test(one)) : [];
  if (cookies.length) found.cookie = cookies.join("; ");
  if (prefix) found["x-forwarded-prefix"] = prefix;
  // a key speaks for nobody: the app is told its name alone
  if (answer.visitor) found["x-mlp-user"] = encodeURIComponent(answer.visitor);
  else found["x-mlp-key"] = answer.key_name;
  if (req.headers["transfer-encoding"]) found["transfer-encoding"] = "chunked";
  found.connection = upgrade ? "Upgrade" : "keep-alive";
  if (upgrade) found.upgrade = "websocket";
  return found;
}

/** The value of a request's cookie, or nothing. */
export function cookieOf(req, name) {
  const found = cookiesOf(req.headers.cookie).find((one) => one.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}

const cookiesOf = (header) => (header ?? "").split(";").map((one) => one.trim()).filter(Boolean);

/**
 * The headers of an app's answer as its visitor gets them, or undefined where it leads a program, with its token, to
 * other parts of the hub. `prefix` is where the app is on the hub's own origin.
 */
export function forVisitor(headers, { own, prefix, platform, host }) {
  const found = {};
  for (const [name, value] of Object.entries(headers)) {
    if (HOPS.test(name) || NEVER_SAID.test(name) || (!own && NOT_ON_THE_HUB.test(name))) continue;
    found[name] = value;
  }
  if (own) {
    const kept = (headers["set-cookie"] ?? []).filter((one) => !OUR_COOKIES.test(one.trim())).map(withoutDomain);
    delete found["set-cookie"];
    if (kept.length) found["set-cookie"] = kept;
    return found;
  }
  for (const name of ["location", "content-location"]) {
    if (found[name] === undefined) continue;
    found[name] = placed(found[name], prefix, [new URL(platform || "http://hub.invalid").hostname, host]);
    if (found[name] === undefined) return undefined;
  }
  return { ...found, "content-security-policy": "sandbox", "x-content-type-options": "nosniff", "cross-origin-resource-policy": "same-origin" };
}

const withoutDomain = (cookie) => cookie.split(";").filter((part, n) => n === 0 || !/^\s*domain\s*(=|$)/i.test(part)).join(";");

// A client that follows to the same host sends its token there again: so nothing leads to what is not the app's.
function placed(location, prefix, hubs) {
  const home = `http://${hubs[0]}`;
  let to;
  try {
    to = new URL(location, `${home}${prefix}/`);
  } catch {
    return undefined;
  }
  if (!/^https?:$/.test(to.protocol) || /[^\x21-\x7e\x80-\xff]|\\/.test(location)) return undefined;
  // written out, since clients read what is odd here in different ways
  if (/^([a-z][a-z0-9+.-]*:|\/\/)/i.test(location)) return hubs.includes(to.hostname) ? undefined : to.href;
  if (location.startsWith("/")) return (to.pathname.startsWith(`${prefix}/`) ? "" : prefix) + to.pathname + to.search + to.hash;
  // no way up and out, whatever the directory is that it begins from
  return /(^|\/)(\.|%2e){2}(\/|$|[?#])/i.test(location) ? undefined : location;
}
