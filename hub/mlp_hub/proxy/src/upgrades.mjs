// WebSockets between their request and its answer, and after their end: what http-proxy-3 leaves open.

import { hangUp, hasBody } from "./limits.mjs";

const LINGER_MS = 5_000; // for the last bytes, once one side has ended

/** Return why an upgrade is refused, or nothing. */
export function faultOfUpgrade(req) {
  if (req.method !== "GET" || req.headers.upgrade?.toLowerCase() !== "websocket") {
    return "A connection is upgraded by GET and to a WebSocket only.";
  }
  if (hasBody(req)) return "A request for a WebSocket has no body, but this one announces one.";
  return undefined;
}

/**
 * Watch a client that asks for a WebSocket; when one side goes, whenever that is, the other goes too. The 101 must come
 * within so many seconds. Returns the function that is told of the request once it is sent on.
 */
export function watch(socket, connections, seconds) {
  let sent;
  const forget = () => {
    clearTimeout(late);
    sent?.removeAllListeners("error").on("error", () => {}); // nobody is left to be told
    sent?.destroy();
  };
  const giveUp = () => {
    forget();
    socket.destroy();
  };
  const late = setTimeout(() => {
    forget();
    hangUp(socket, "504 Gateway Timeout", `No WebSocket was opened within ${seconds} s.\n`);
  }, seconds * 1000);
  // a FIN is seen only where somebody reads; the bytes before it are kept for who is asked
  const peek = () => {
    if (!socket.readableLength) socket.read(0);
  };
  socket.on("readable", peek);
  for (const event of ["end", "close"]) socket.once(event, giveUp);

  const opened = (_, behind) => {
    clearTimeout(late);
    socket.off("readable", peek);
    for (const event of ["end", "close"]) socket.off(event, giveUp);
    connections.answer(socket, true);
    const part = () => setTimeout(() => [socket, behind].forEach((one) => one.destroy()), LINGER_MS).unref();
    for (const one of [socket, behind]) for (const event of ["end", "close"]) one.once(event, part);
  };
  // no WebSocket there: an ordinary answer, which the library copies, however slowly it is taken, if it comes to its end
  const answered = (answer) => {
    clearTimeout(late);
    connections.answer(socket, true);
    answer.once("close", () => socket.destroySoon());
    answer.on("data", () =>
      process.nextTick(() => {
        if (!socket.writableNeedDrain) return;
        answer.pause();
        socket.once("drain", () => answer.resume());
      }),
    );
  };
  return (proxyReq) => {
    sent = proxyReq;
    proxyReq.once("upgrade", opened).once("response", answered);
  };
}
