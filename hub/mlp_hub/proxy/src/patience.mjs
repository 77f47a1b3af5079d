// Patience with parts of the platform that are pods: while one is replaced, nothing listens at its address for seconds.
//
// A request that no connection took yet was read by nobody. So it waits and tries again, whatever its method, and the client
// notices only the time. A connection that was idle is closed here, before the other side may close it: a request on it would be lost.

import http from "node:http";
import net from "node:net";

const AGAIN_MS = 100;
const CONNECT_MS = 2_000; // where packets to an address without a pod are dropped, and not refused
const ALIVE_MS = 5_000; // without a byte, until the system asks whether the other side is there at all: a node may have lost its power
const IDLE_MS = 1_200; // less than a part that ends keeps its connections (EASE_S of mlp_hub.app)
const AWAY = new Set(["ECONNREFUSED", "EHOSTUNREACH", "ENETUNREACH", "EHOSTDOWN", "ETIMEDOUT"]);

export class PatientAgent extends http.Agent {
  #holdMs;

  constructor(holdMs, maxFreeSockets) {
    super({ keepAlive: true, maxFreeSockets, timeout: IDLE_MS });
    this.#holdMs = holdMs;
  }

  createConnection(options, done) {
    const until = performance.now() + this.#holdMs;
    const attempt = () => {
      const socket = net.createConnection({ ...options, timeout: undefined });
      const late = setTimeout(() => socket.destroy(Object.assign(new Error("it takes no connection"), { code: "ETIMEDOUT" })), CONNECT_MS);
      const failed = (error) => {
        clearTimeout(late);
        if (!AWAY.has(error.code) || performance.now() >= until) return done(error);
        setTimeout(attempt, AGAIN_MS);
      };
      socket.once("error", failed);
      socket.once("connect", () => {
        clearTimeout(late);
        socket.off("error", failed);
        socket.setKeepAlive(true, ALIVE_MS);
        done(null, socket);
      });
    };
    attempt();
  }
}
