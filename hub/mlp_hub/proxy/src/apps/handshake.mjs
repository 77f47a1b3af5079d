// Connections to replicas: by a UNIX socket, or over TCP, where both sides show first that they know the replica's key.
//
// At the address of a pod that has gone another one may listen: a request must not be its to read. The replica's half is in
// extensions/mlp/serving/knocking.py.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import http from "node:http";
import net from "node:net";

const CONNECT_MS = 3_000; // a pod whose node is gone answers nothing
const DIGITS = 64;
const SAID = 2 * DIGITS + 2;

const proof = (key, who, nonce) => createHmac("sha256", key).update(`${who}:${nonce}`).digest("hex");

/** Connections to replicas as http.Agent keeps them, each for the one replica that it was made to. */
export class ReplicaAgent extends http.Agent {
  getName(options) {
    return `${super.getName(options)}:${options.replicaKey ?? ""}`;
  }

  createConnection(options, done) {
    if (options.socketPath) return net.createConnection(options);
    const socket = net.createConnection(options);
    const { replicaKey: key } = options;
    const nonce = randomBytes(DIGITS / 2).toString("hex");
    let said = "";
    const over = (error) => {
      clearTimeout(late);
      for (const [event, hear] of Object.entries(heard)) socket.off(event, hear);
      if (error) socket.on("error", () => {}).destroy();
      done(error, error ? undefined : socket);
    };
    const fail = (code) => over(Object.assign(new Error("it is not the replica that was meant"), { code }));
    const heard = {
      error: over,
      close: () => fail("ECONNREFUSED"),
      connect: () => void (key ? socket.write(`MLP-APP/1 ${nonce}\n`) : over()),
      ...(key && {
        data: (part) => {
          said += part.toString("latin1");
          if (said.length < SAID) return;
          const [shown, theirs] = [said.slice(0, DIGITS), said.slice(DIGITS + 1, -1)];
          const wanted = proof(key, "replica", nonce);
          if (said.length > SAID || !timingSafeEqual(Buffer.from(shown, "latin1"), Buffer.from(wanted))) return fail("ECONNREFUSED");
          socket.write(`${proof(key, "gateway", theirs)}\n`);
          over();
        },
      }),
    };
    for (const [event, hear] of Object.entries(heard)) socket.on(event, hear);
    const late = setTimeout(() => fail("ETIMEDOUT"), CONNECT_MS);
    return undefined;
  }
}
