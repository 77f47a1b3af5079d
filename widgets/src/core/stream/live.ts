/** Brings a job's store and its stream together in a browser. */
import { ApiError, paths, type Client } from "../service/api";
import { t } from "../format/language";
import { JobStore } from "./jobstore";
import { JobStream, type Socket, type Verdict } from "./stream";
import type { Job } from "../service/wire";

/** At the next animation frame; a page that is not painted is served by a timer. */
export function soon(fn: () => void): void {
  if (document.hidden) {
    setTimeout(fn, 500);
    return;
  }
  let done = false;
  const once = (): void => {
    if (done) return;
    done = true;
    clearTimeout(timer);
    fn();
  };
  // a page that gets hidden before the frame comes must not wait for it
  const timer = setTimeout(once, 1000);
  requestAnimationFrame(once);
}

export interface LiveJob {
  store: JobStore;
  stream: JobStream;
  start(): void;
  stop(): void;
}

async function check(client: Client, user: string, name: string, store: JobStore): Promise<Verdict> {
  try {
    await client.session();
    const job = await client.get<Job>(paths.job(user, name));
    store.job(job);
    return { retry: true };
  } catch (error) {
    if (!(error instanceof ApiError)) return { retry: true }; // an answer cut short: try again
    if (error.kind === "auth") return { retry: false, detail: "login" };
    if (error.kind === "refused") return { retry: false, detail: error.message };
    if (error.kind === "foreign") return { retry: false, detail: t("MLP Hub does not answer at this address") };
    return { retry: true }; // a fault or no network passes by itself
  }
}

export function liveJob(client: Client, user: string, name: string, snapshot: unknown = null): LiveJob {
  let stream: JobStream;
  const store = new JobStore(soon, Date.now, () => stream.restart(0));
  if (snapshot) store.restore(snapshot);
  stream = new JobStream(
    {
      open: (since) => new WebSocket(client.socketUrl(paths.jobStream(user, name, since))) as unknown as Socket,
      check: () => check(client, user, name, store),
      later: (fn, ms) => window.setTimeout(fn, ms),
      forget: (timer) => window.clearTimeout(timer),
      random: Math.random,
    },
    {
      frame: (frame, replay) => store.apply(frame, replay),
      connection: (state, detail) => store.connection(state, detail),
    },
  );
  const online = (): void => stream.refresh();
  const seen = (): void => {
    if (!document.hidden) stream.retryNow();
  };
  return {
    store,
    stream,
    start: () => {
      window.addEventListener("online", online);
      document.addEventListener("visibilitychange", seen);
      stream.start();
    },
    stop: () => {
      window.removeEventListener("online", online);
      document.removeEventListener("visibilitychange", seen);
      stream.stop();
    },
  };
}
