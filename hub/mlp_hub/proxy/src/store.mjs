// Routes in memory, and in a file so that they are there again after a restart.

import fs from "node:fs";

import { MemoryStore } from "configurable-http-proxy/lib/store.js";
import { stringToPath } from "configurable-http-proxy/lib/trie.js";

export class FileStore extends MemoryStore {
  constructor(path, log) {
    super();
    this.path = path;
    this.log = log;
    if (path) this.load();
  }

  load() {
    // what a power cut left of it may be anything; the hub tells all routes again
    try {
      this.take(JSON.parse(fs.readFileSync(this.path, "utf8")));
    } catch (error) {
      if (error.code !== "ENOENT") this.log.warn("Routes in %s are not readable: %s", this.path, error.message);
      return;
    }
  }

  /** Add these routes, by path; throws at one that leads nowhere. */
  take(routes) {
    for (const [path, route] of Object.entries(routes)) {
      if (typeof route?.target !== "string") throw new Error(`the route ${path} leads nowhere`);
      super.add(path, { ...route, last_activity: new Date(route.last_activity ?? Date.now()) });
    }
    this.log.info("Found %d routes again", Object.keys(routes).length);
  }

  // As the base class, which takes "constructor" and the like for branches of its tree.
  getTarget(path) {
    let node = this.urls;
    let found;
    for (const part of ["", ...stringToPath(path)]) {
      if (part) node = Object.hasOwn(node.branches, part) ? node.branches[part] : undefined;
      if (!node) break;
      if (node.data !== undefined) found = node;
    }
    return Promise.resolve(found);
  }

  // Written before the change is answered: what the hub was told holds, whatever happens to this process.
  // Activity alone is not worth a write: the hub keeps it.
  add(path, data) {
    return super.add(path, data).then(() => this.flush());
  }

  remove(path) {
    return super.remove(path).then((route) => {
      this.flush();
      return route;
    });
  }

  flush() {
    if (!this.path) return;
    try {
      fs.writeFileSync(`${this.path}.new`, JSON.stringify(this.routes), { mode: 0o600 });
      fs.renameSync(`${this.path}.new`, this.path);
    } catch (error) {
      this.log.error("Routes cannot be kept in %s: %s", this.path, error.message);
    }
  }
}
