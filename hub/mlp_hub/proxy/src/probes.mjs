// What the operator's `doctor` asks by the public address, to see what a gateway in front makes of a request.
//
// It names a word over the API first, and asks for that; nobody else learns anything here.

const KEPT_MS = 60_000;
const MOST = 20;

export class Probes {
  #known = new Map(); // word: { release, released }
  #path;

  /** `base`: what the paths begin with that a gateway hands on. */
  constructor(base = "/") {
    this.#path = `${base}_mlp_probe/`;
  }

  /** Answer the API's POST and DELETE of a word: it may be asked for from now on; what was asked may end. */
  command(req, res, authorized) {
    const word = req.url.slice("/probes/".length);
    const fits = authorized && /^[0-9a-f]{32}$/.test(word) && (req.method === "DELETE" || this.#known.size < MOST);
    if (fits && req.method === "POST") {
      const it = {};
      it.released = new Promise((resolve) => (it.release = resolve));
      this.#known.set(word, it);
      setTimeout(() => this.#end(word), KEPT_MS).unref();
    } else if (fits && req.method === "DELETE") this.#end(word);
    res.writeHead(fits ? 204 : 403).end();
  }

  #end(word) {
    this.#known.get(word)?.release();
    this.#known.delete(word);
  }

  #asked(req) {
    return req.url.startsWith(this.#path) ? this.#known.get(req.url.slice(this.#path.length)) : undefined;
  }

  /** Tell in two parts what came of a request, the second when it is released; or nothing where no probe was asked for. */
  page(req, res, told) {
    const it = this.#asked(req);
    if (!it) return false;
    res.writeHead(200, { "Content-Type": "application/json", "Cache-Control": "no-store", Connection: "close" });
    res.write(JSON.stringify(told) + "\n");
    it.released.then(() => res.end("end\n"));
    return true;
  }

  /** Open a WebSocket that was asked for, and end it. */
  socket(req, socket) {
    if (!this.#asked(req)) return false;
    socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    socket.destroySoon();
    return true;
  }
}
