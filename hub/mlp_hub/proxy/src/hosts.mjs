// Which Host headers are ours, and what may be asked under which.
//
// An address is never refused, because only names can be rebound to another address by whoever owns them. Where users'
// servers have names of their own (`users`), nothing of the platform is answered on those, and its pages are on its own
// name only: browsers that come by another of its names are led there, programs are answered by all of them.

import net from "node:net";

const HELP = "services/mlp/docs/"; // JupyterLab's Help menu has it, and knows no other host than its own, and no base
const THIS_MACHINE = /^(localhost|127\..*|::1)$/;

/**
 * Make the rules. `names` are the platform's names besides `localhost`, `*` allows every one; `platform` is its origin
 * and `users` the domain of users' names, or both are empty. All paths begin with `base`.
 */
export function hostRules({ names, platform, users, base = "/" }) {
  const own = `${base}user/`; // below which users' servers are
  const known = new Set(["localhost", ...names.map((name) => name.toLowerCase())]);
  const home = platform ? nameOf(new URL(platform).host) : undefined;

  /** Whether a name is one of a user's servers: one label below the domain, and none of the platform's. */
  function isUsers(name) {
    if (!users || name === home || !name.endsWith(`.${users}`)) return false;
    const label = name.slice(0, -users.length - 1);
    return /^[a-z0-9-]+$/.test(label);
  }

  function unknown(name) {
    return `This hub is not known as ${JSON.stringify(name.slice(0, 100))}. The operator can allow it: MLP_ALLOWED_HOSTS=NAME, then up again.`;
  }

  function ofUsers(req) {
    if (req.url === base) return { location: platform + base };
    // also without the dots that a parser may resolve
    if (req.url.startsWith(own) && new URL(req.url, platform).pathname.startsWith(own)) return {};
    return { refusal: `Under this name there are a user's notebook servers only. All else is at ${platform}${base}` };
  }

  // What leads somewhere wherever the hub is: where people begin, and the help.
  function entryOf(req) {
    if (req.url === "/" || `${req.url}/` === base) return base;
    return req.url === `/${HELP}` || req.url === base + HELP ? base + HELP : undefined;
  }

  function elsewhere(req, name) {
    if (!isPage(req)) return {};
    if (THIS_MACHINE.test(home) && !THIS_MACHINE.test(name)) {
      return {
        refusal:
          `Browsers reach this hub at ${platform}${base} and on its own machine only. For others its operator sets by which names ` +
          "they do, MLP_PUBLIC_URL and MLP_USERS_DOMAIN: see docs/how-to/operate.md.",
      };
    }
    return { location: platform + req.url };
  }

  return {
    /** Say what is to be done with a request: a `refusal` in words, a `location` to go to, or nothing. */
    check(req) {
      const name = nameOf(req.headers.host ?? "");
      const entry = entryOf(req);
      // on the platform's own name the help is itself
      if (entry !== undefined && (isUsers(name) || (entry !== req.url && name === home))) return { location: platform + entry };
      if (isUsers(name)) return ofUsers(req);
      if (name !== home && !known.has("*") && !net.isIP(name) && !known.has(name) && (users || !name.endsWith(".localhost"))) {
        return { refusal: unknown(name) };
      }
      return users && name !== home ? elsewhere(req, name) : {};
    },
    /** The name that a request's route begins with. */
    routedHost(req) {
      const name = nameOf(req.headers.host ?? "");
      return isUsers(name) ? name : home;
    },
  };
}

/** Tell of requests whether they are for files of datasets, as the platform serves them; somebody's own path may have such a part. */
export function filesBelow(base = "/") {
  const places = [`${base}data/`, `${base}services/mlp/data/`];
  return (req) => places.some((place) => req.url.startsWith(place));
}

/** Whether a browser asks for a page; what carries a token is a program. */
export function isPage(req) {
  const { accept, authorization } = req.headers;
  return (req.method === "GET" || req.method === "HEAD") && !authorization && /\btext\/html\b/.test(accept ?? "") && req.url.startsWith("/");
}

function nameOf(header) {
  const bracketed = /^\[([^\]]*)\](:\d+)?$/.exec(header);
  return (bracketed ? bracketed[1] : header.replace(/:\d+$/, "")).toLowerCase().replace(/\.$/, "");
}
