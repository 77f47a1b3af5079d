// The way of a browser into an app: from the app's own origin to the hub, where it is known, and back with a code.
//
// The browser keeps a secret at the app's origin (`way`), and the hub hears its digest only, with which the code is bound: a code
// that somebody else got is worth nothing here, so nobody can be made to visit an app under another's name. A browser without
// that secret is told nothing and asks nothing of the service, and what is not the service's own code makes it store nothing.

import { createHash, randomBytes } from "node:crypto";

import { networkOf } from "../limits.mjs";
import { cookieOf } from "./headers.mjs";

const ENTER = "/_mlp/enter"; // on an app's own origin, where a code becomes a cookie
const WAY_S = 3600; // as long as somebody may take to log in
const SECRET = /^[A-Za-z0-9_-]{20,100}$/;

export class Entering {
  /** `asking` asks the service; `cookie` is what a visit is kept under, `home` what the hub's paths begin with. */
  constructor({ asking, cookie, secure, home }) {
    Object.assign(this, { asking, cookie, home });
    this.way = `${cookie}-way`;
    this.end = `; Path=/; HttpOnly; SameSite=Lax${secure || home.startsWith("https:") ? "; Secure" : ""}`;
  }

  /** Whether a request is for the way in, and for none of the app's own pages. */
  isWay(req) {
    return req.url === ENTER || req.url.startsWith(`${ENTER}?`);
  }

  /** Send a browser past the hub, to come back to `next`. */
  begin(req, res, place, next) {
    const known = cookieOf(req, this.way);
    // the same one for all of a browser's windows, which may be on their way at one time
    const secret = known && SECRET.test(known) ? known : randomBytes(32).toString("base64url");
    res.writeHead(302, {
      location: `${this.home}services/mlp/apps/~/${place.label}~${digestOf(secret)}${next}`,
      "set-cookie": `${this.way}=${secret}; Max-Age=${WAY_S}${this.end}`,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "content-length": "0",
    });
    res.end();
  }

  /** Trade a code for a cookie of this app, and go where the browser wanted to; without a code, go and get one. */
  async enter(req, res, place, tell) {
    const query = new URLSearchParams(req.url.slice(ENTER.length + 1));
    const next = pathOf(query.get("next") ?? "/");
    // a page of another app could fetch it, and its visitor would be somebody else here
    if ((req.headers["sec-fetch-dest"] ?? "document") !== "document") return tell(403, "Open the app in a window of its own.");
    if (req.method !== "GET") return tell(400, "This address is not whole.");
    if (!query.has("code")) return this.begin(req, res, place, next);
    const code = query.get("code");
    if (!SECRET.test(code)) return tell(400, "This address is not whole.");
    const secret = cookieOf(req, this.way);
    if (!secret || !SECRET.test(secret)) return tell(403, "This way in was begun in another browser, or long ago. Open the app again.");
    const asked = { label: place.label, code, way: digestOf(secret) };
    const answer = await this.asking.put("/gateway:enter", asked, networkOf(req.sender));
    if (res.closed) return;
    if (answer.status !== 200) return tell(503, "The platform does not answer just now.", { again: 2 });
    if (!answer.cookie) return tell(403, "This way in was used already, is too old, or was begun in another browser. Open the app again.");
    res.writeHead(302, {
      location: next,
      "set-cookie": `${this.cookie}=${answer.cookie}; Max-Age=${answer.lasts_s}${this.end}`,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      "content-length": "0",
    });
    res.end();
  }
}

const digestOf = (secret) => createHash("sha256").update(secret).digest("base64url");

/** Where a browser may be sent on this origin: to a page of the app's, and never round in a circle. */
const pathOf = (next) => (/^\/(?![/\\])[\x21-\x7e]*$/.test(next) && !next.startsWith(ENTER) ? next : "/");
