/**
 * One WebSocket per job: replay from the last point seen, live frames, and healing. Everything from outside
 * (sockets, timers, randomness) is injected, so the logic is tested without a browser.
 */
import type { Frame } from "../service/wire";

export type Connection =
  | "connecting" // first try
  | "live"
  | "reconnecting" // was live, or the first try failed; tries again by itself
  | "ended" // the job is over and everything was sent
  | "closed" // told to stop
  | "refused"; // trying again is of no use; `detail` says why

export interface Socket {
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: ((event: { code: number; reason: string }) => void) | null;
  close(code?: number): void;
}

/** What to do after a failed connection: try again, or give up and say why. */
export type Verdict = { retry: true } | { retry: false; detail: string };

export interface StreamDeps {
  open: (since: number) => Socket;
  /** Asked after a connection was lost, before the next try: is there a point in it? */
  check: () => Promise<Verdict>;
  later: (fn: () => void, ms: number) => number;
  forget: (timer: number) => void;
  random: () => number;
}

export interface StreamEvents {
  frame: (frame: Frame, replay: boolean) => void;
  connection: (state: Connection, detail: string) => void;
}

const FIRST_MS = 400;
const LONGEST_MS = 15_000;
/** A connection that lived this long counts as good: the next wait is short again. */
const GOOD_AFTER_MS = 5_000;

/** Wait before try number `attempt` (0, 1, ...): doubles up to 15 s, the upper half of it by chance. */
export function backoff(attempt: number, random: number): number {
  const top = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempt, 10));
  return Math.round(top / 2 + (top / 2) * random);
}

export class JobStream {
  state: Connection = "connecting";
  /** Last metric point seen: where the next connection resumes. */
  since: number;
  private socket: Socket | null = null;
  private timer: number | null = null;
  private good: number | null = null;
  private attempt = 0;
  private replay = true;
  private stopped = false;
  private generation = 0;

  constructor(
    private readonly deps: StreamDeps,
    private readonly events: StreamEvents,
    since = 0,
  ) {
    this.since = since;
  }

  start(): void {
    this.stopped = false;
    this.set("connecting", "");
    void this.tryNow(true);
  }

  stop(): void {
    this.stopped = true;
    this.clear();
    this.set("closed", "");
  }

  /** Go on from another point (0: everything anew), at once. */
  restart(since: number): void {
    this.since = since;
    this.attempt = 0;
    this.clear();
    this.stopped = false;
    this.set("connecting", "");
    void this.tryNow(false);
  }

  /** The person, or the browser's `online` event, asks to try now. */
  retryNow(): void {
    if (this.state !== "reconnecting" && this.state !== "refused") return;
    this.attempt = 0;
    this.clear();
    void this.tryNow(true);
  }

  /** The network came back: a socket from before it went is dead, even if nobody told. */
  refresh(): void {
    if (this.state === "live") {
      this.clear();
      this.set("reconnecting", "");
      void this.tryNow(true);
    } else this.retryNow();
  }

  private async tryNow(ask: boolean): Promise<void> {
    const generation = ++this.generation;
    if (ask) {
      const verdict = await this.deps.check();
      if (generation !== this.generation || this.stopped) return;
      if (!verdict.retry) {
        this.set("refused", verdict.detail);
        return;
      }
    }
    this.connect(generation);
  }

  private connect(generation: number): void {
    this.replay = true;
    let socket: Socket;
    try {
      socket = this.deps.open(this.since);
    } catch {
      this.lost();
      return;
    }
    this.socket = socket;
    const mine = (): boolean => generation === this.generation && this.socket === socket;
    socket.onopen = () => {
      if (!mine()) return;
      this.good = this.deps.later(() => {
        this.attempt = 0;
      }, GOOD_AFTER_MS);
      this.set("live", "");
    };
    socket.onmessage = (event) => {
      if (mine()) this.receive(event.data);
    };
    socket.onclose = () => {
      if (!mine()) return;
      this.socket = null;
      if (this.state !== "ended") this.lost();
    };
  }

  private receive(data: unknown): void {
    let frame: Frame;
    try {
      frame = JSON.parse(String(data)) as Frame;
    } catch {
      return; // not one of ours; the next frame is read as usual
    }
    if (frame.type === "metrics") {
      for (const point of frame.points) if (point.seq > this.since) this.since = point.seq;
    }
    this.events.frame(frame, this.replay);
    if (frame.type === "synced") this.replay = false;
    if (frame.type === "end") {
      this.set("ended", "");
      this.clear();
    }
  }

  private lost(): void {
    if (this.stopped) return;
    this.clear();
    this.set("reconnecting", "");
    const wait = backoff(this.attempt, this.deps.random());
    this.attempt += 1;
    this.timer = this.deps.later(() => {
      this.timer = null;
      void this.tryNow(true);
    }, wait);
  }

  private clear(): void {
    this.generation += 1;
    if (this.timer !== null) this.deps.forget(this.timer);
    if (this.good !== null) this.deps.forget(this.good);
    this.timer = null;
    this.good = null;
    const socket = this.socket;
    this.socket = null;
    if (socket) {
      socket.onopen = null;
      socket.onmessage = null;
      socket.onclose = null;
      socket.close();
    }
  }

  private set(state: Connection, detail: string): void {
    if (this.state === state && detail === "" && state !== "connecting") return;
    this.state = state;
    this.events.connection(state, detail);
  }
}
