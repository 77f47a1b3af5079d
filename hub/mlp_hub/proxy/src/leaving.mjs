// The end of a proxy that another one replaces, and the start of that one: no request is refused meanwhile.
//
// The next proxy begins with the routes of this one. This one goes on until the cluster sends it nothing more, ends the
// connections of its clients one answer at a time, and leaves changes of routes to the next.

import http from "node:http";

const LAST_MS = 20_000; // for answers that have begun
const LOOK_MS = 100;
const ANSWER_MS = 5_000;

/** Return the routes of the proxy whose API is at `place` (as `placeAt` has it); none where no other proxy runs. */
export function routesOf({ hostname, port }, token, log) {
  return new Promise((resolve) => {
    const none = (why) => {
      log.info("No routes of a proxy before this one: %s", why);
      resolve({});
    };
    const headers = { Authorization: `token ${token}` };
    const asked = http.get({ hostname, port, path: "/api/routes", headers, agent: false, timeout: ANSWER_MS }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.once("error", (error) => none(error.message));
      answer.once("end", () => {
        try {
          if (answer.statusCode !== 200) throw new Error(`it answers ${answer.statusCode}`);
          const routes = JSON.parse(Buffer.concat(parts).toString());
          if (!Object.values(routes).every((route) => typeof route?.target === "string")) throw new Error("they lead nowhere");
          resolve(routes);
        } catch (error) {
          none(error.message);
        }
      });
    });
    asked.once("timeout", () => asked.destroy(new Error("it does not answer")));
    asked.once("error", (error) => none(error.message));
  });
}

export class Leaving {
  begun = false;
  #open = new Set(); // WebSockets
  #answering = 0;

  /** Count what a server is asked, from before it listens. */
  watch(server) {
    server.prependListener("request", (_, res) => {
      this.#answering += 1;
      if (this.begun) res.shouldKeepAlive = false;
      res.once("close", () => (this.#answering -= 1));
    });
    server.prependListener("upgrade", (_, socket) => {
      this.#open.add(socket);
      socket.once("close", () => this.#open.delete(socket));
    });
  }

  /** Take requests for so many more milliseconds, then no more; return once those in progress are answered. */
  async leave(server, moreMs) {
    this.begun = true;
    await new Promise((resolve) => setTimeout(resolve, moreMs));
    server.close();
    for (const socket of this.#open) socket.destroySoon(); // their clients connect again, to the next proxy
    for (const until = performance.now() + LAST_MS; this.#answering && performance.now() < until; ) {
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
      server.closeIdleConnections();
    }
  }
}
