// Tells the service what was asked of apps, every few seconds: it keeps that, and decides by it how many replicas there are.
//
// What could not be told is told again with the next, since each telling has the whole count; a process that is killed loses what
// came since the last one.

const EVERY_MS = 5_000;
const AT_ONCE = 50; // counts in one request: some hundred kilobytes at most
const FROM = "gateway"; // whose turn it takes

export class Telling {
  #busy = false;

  constructor({ asking, figures }) {
    Object.assign(this, { asking, figures });
    setInterval(() => this.tell(), EVERY_MS).unref();
  }

  async tell() {
    if (this.#busy) return;
    this.#busy = true;
    try {
      const untold = this.figures.untold();
      for (let at = 0; at < untold.length; at += AT_ONCE) {
        const some = untold.slice(at, at + AT_ONCE);
        const answer = await this.asking.put("/gateway:used", { counted: some.map(({ what }) => what) }, FROM);
        if (answer.status !== 200) return;
        for (const { done } of some) done();
      }
    } finally {
      this.#busy = false;
    }
  }
}
