// What the service says of who may use which app, and where the app is; remembered for moments.
//
// The service decides. An answer holds for some seconds, so what is withdrawn there ends here no later. While the service
// is away, what it allowed lately goes on, and all else is closed.

import http from "node:http";

import { placeOf } from "../backends.mjs";

const FRESH_MS = 3_000; // an answer is believed without asking again; a replica is ended later than that (DRAINS_S of service/apps)
const REFUSED_MS = 1_000; // and a refusal
const KNOWN_MS = 600_000; // what was allowed goes on for so long while the service is away
const ANSWER_MS = 10_000; // until the service counts as away
const MOST = 20_000; // answers that are kept
const LONGEST = 1 << 18; // bytes of an answer
const API = "/services/mlp/api/v1";

const VERDICTS = { may: 200, unknown: 401, refused: 404, often: 429 };
/** Refusals of who brings nothing, and of a key or a token that nobody knows: the same for each wrong one. */
export const NOTHING = "Send a key of this app or a token of the hub, as 'Authorization: Bearer ...' or 'X-API-Key: ...'.";
const WRONG_KEY = "The key is wrong, or it was revoked. The owner of the app makes one on the app's page in the panel, or with 'mlp apps keys APP create KEY'.";
const WRONG_TOKEN = "The token is wrong, or it has expired. Make one on the page My account of the panel, or send a key of this app.";
const WORDS = {
  404: "There is no such app, or it is not open to you. A key opens only the app that it was made for.",
  429: "Too many tokens that nobody knows come from this address. Try again in a moment.",
};

/** What is said to who brings something that is not known. */
export const wrong = (kind) => ({ key: WRONG_KEY, token: WRONG_TOKEN })[kind] ?? NOTHING;

export class Asking {
  #known = new Map(); // key: { answer, at }, the one that was asked for longest ago first
  #flying = new Map(); // key: promise of an answer
  #agent = new http.Agent({ keepAlive: true, maxFreeSockets: 8 });

  /**
   * `service` is where it listens (as `placeAt` has it), `token` the platform's own, `turns` in which it is asked. `patient` is an
   * agent that waits for a service that is replaced: for questions about what is not known yet.
   */
  constructor({ service, token, turns, patient, log }) {
    Object.assign(this, { service, token, turns, patient, log });
  }

  /**
   * Say whether a credential may use an app: { status: 200, ... }, or a refusal's status and `msg`. With `anew`
   * nothing that is remembered counts. With `again` it is about what was let in and is open still: that is no guess.
   */
  async admit(question, from, { anew = false, again = false, language = "" } = {}) {
    const key = JSON.stringify([question.user, question.app, question.label, question.kind, question.secret]);
    const known = this.#known.get(key);
    const now = performance.now();
    if (known && !anew && now - known.at < (known.answer.status === 200 ? FRESH_MS : REFUSED_MS)) return known.answer;
    const asked = again ? `again ${key}` : key; // what one is answered for guessing is not the other's answer
    let flying = this.#flying.get(asked);
    if (!flying) {
      const agent = known?.answer.status === 200 ? undefined : this.patient;
      const put = this.put("/gateway:admit", again ? { ...question, again } : question, from, language, agent);
      flying = put.finally(() => this.#flying.delete(asked));
      this.#flying.set(asked, flying);
    }
    const said = await flying;
    const status = said.status === 200 ? VERDICTS[said.verdict] : undefined;
    if (status === undefined) {
      if (known?.answer.status === 200 && now - known.at < KNOWN_MS) return known.answer;
      return { status: 503, msg: "The platform does not answer just now. Try again in a moment." };
    }
    const answer = status === 200 ? { ...said, status } : { status, msg: WORDS[status] ?? wrong(question.kind) };
    if (answer.status !== 429) this.#remember(key, answer);
    return answer;
  }

  #remember(key, answer) {
    this.#known.delete(key);
    this.#known.set(key, { answer, at: performance.now() });
    if (this.#known.size > MOST) this.#known.delete(this.#known.keys().next().value);
  }

  /** Ask the service, in turn; the status is 503 where it is away. */
  put(path, question, from, language = "", agent = this.#agent) {
    return new Promise((resolve) => {
      const body = JSON.stringify(question);
      let leave = () => {};
      const done = (status, answer = {}) => {
        leave();
        resolve({ ...answer, status });
      };
      leave = this.turns.take(placeOf(this.service), from, () => {
        const headers = {
          host: "localhost",
          authorization: `Bearer ${this.token}`,
          "content-type": "application/json",
          "accept-language": language || "en",
          "content-length": Buffer.byteLength(body),
        };
        const { socketPath, hostname, port } = this.service;
        const where = socketPath ? { socketPath } : { host: hostname, port };
        const asked = http.request({ ...where, agent, method: "PUT", path: API + path, headers });
        const late = setTimeout(() => asked.destroy(new Error("it does not answer")), ANSWER_MS);
        asked.once("error", () => done(503));
        asked.once("close", () => clearTimeout(late));
        asked.once("response", (answer) => {
          const parts = [];
          let size = 0;
          answer.on("data", (part) => {
            size += part.length;
            if (size > LONGEST) return void asked.destroy();
            parts.push(part);
          });
          answer.once("error", () => done(503));
          answer.once("close", () => answer.complete || done(503));
          answer.once("end", () => {
            try {
              done(answer.statusCode, JSON.parse(Buffer.concat(parts).toString("utf8")));
            } catch {
              done(503);
            }
          });
        });
        asked.end(body);
      });
    });
  }
}
