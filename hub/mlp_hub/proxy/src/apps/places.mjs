// Which app a request is for, by its Host and its path.

import { isPage } from "../hosts.mjs";

export const LABEL = /^a-[a-z0-9]*--[a-z2-7]{26}$/; // of an app's own host name; no user's looks like it
const DOTS = /(^|\/)(\.|%2e){1,2}(\/|$)/i;

/** Make the rules. `users` is the domain of names of their own, or empty; `base` what all paths begin with. */
export function appPlaces({ users, base }) {
  const below = `${base}services/mlp/apps/`;

  function labelOf(host) {
    const name = (host ?? "").replace(/:\d+$/, "").toLowerCase().replace(/\.$/, "");
    if (!users || !name.endsWith(`.${users}`)) return undefined;
    const label = name.slice(0, -users.length - 1);
    return LABEL.test(label) ? label : undefined;
  }

  /**
   * Return { own, label | user + app, prefix, rest } of a request for an app, with a `fault` where its path is none; or
   * nothing where it is for others: on the hub's own origin a browser's page is never answered with what an app says.
   */
  return function placeOf(req) {
    const label = labelOf(req.headers.host);
    const [path] = req.url.split(/[?#]/, 1);
    if (label !== undefined) {
      return { own: true, label, prefix: "", rest: req.url, fault: faultOf(path) };
    }
    if (!path.startsWith(below)) return undefined;
    const fault = faultOf(path);
    if (isPage(req) && !req.headers["x-api-key"] && !fault) return undefined; // the service leads browsers to the app's own origin
    const found = /^([^/]+)\/([^/]+)(\/.*)?$/s.exec(path.slice(below.length));
    if (!found) return { own: false, prefix: below, rest: "/", fault: fault ?? NO_APP };
    const [, rawUser, rawApp, rest] = found;
    const prefix = below + rawUser + "/" + rawApp;
    const place = { own: false, prefix, rest: (rest ?? "/") + req.url.slice(path.length), fault };
    if (!place.fault) {
      place.user = decoded(rawUser);
      place.app = decoded(rawApp);
      if (place.user === undefined || place.app === undefined) place.fault = FAULT;
    }
    return place;
  };
}

const NO_APP = "An app is at .../services/mlp/apps/USER/APP/.";
const FAULT = "This address has a part that is read in different ways ('..', '.', an encoded '/', or '\\'); write it plainly.";

function faultOf(path) {
  return !path.startsWith("/") || DOTS.test(path) || /%2f|%5c|\\|%00/i.test(path) ? FAULT : undefined;
}

function decoded(part) {
  try {
    const found = decodeURIComponent(part);
    return /[\p{Cc}/\\]/u.test(found) || found.length > 255 ? undefined : found;
  } catch {
    return undefined;
  }
}
