// The id of a request: it goes with the request to every process behind, and back to the client in X-Request-ID.
//
// One that a proxy in front gives is kept if it is well-formed; a client's own is not, because it would put words of the
// client into the logs of all processes, and could repeat the id of another's request.

import { randomBytes } from "node:crypto";

const WELL_FORMED = /^[A-Za-z0-9][A-Za-z0-9._-]{7,63}$/; // the same as in hub/mlp_hub/logs/concern.py

/** Set the id of a request, as its `id` and in its header. `trusted`: it comes from a proxy in front that the operator named. */
export function identify(req, trusted) {
  const given = req.headers["x-request-id"];
  req.id = trusted && WELL_FORMED.test(given ?? "") ? given : randomBytes(8).toString("hex");
  req.headers["x-request-id"] = req.id;
}
