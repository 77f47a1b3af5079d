/**
 * All that is known of one job, fed by its stream. However fast frames come, listeners are told at most once per
 * animation frame; points go straight into typed arrays.
 */
import { Eta } from "./eta";
import { LogStore } from "./logs";
import { isWaiting } from "../jobs/phase";
import { MetricStore } from "../charts/series";
import { missing, points, readable } from "./snapshot";
import type { Connection } from "./stream";
import { ms } from "../format/format";
import type { JobAttempt, Frame, Job, Event as JobEvent, Why } from "../service/wire";

export type Change = "view" | "metrics" | "logs";
export type Listener = (changes: ReadonlySet<Change>) => void;

export interface View {
  job: Job | null;
  why: Why | null;
  events: JobEvent[];
  attempts: JobAttempt[];
  connection: Connection;
  detail: string;
  /** True while only the notebook's saved picture is shown. */
  saved: string | null;
  /** Metric names, in the order of their charts. */
  metrics: string[];
  synced: boolean;
}

/** Calls `fn` soon: at the next animation frame, or within a second where nothing is painted. */
export type Schedule = (fn: () => void) => void;

const EVENTS_MAX = 500;

export class JobStore {
  view: View = {
    job: null, why: null, events: [], attempts: [], connection: "connecting", detail: "", saved: null, metrics: [], synced: false,
  };
  metrics = new MetricStore();
  logs = new LogStore();
  eta = new Eta();
  private readonly listeners = new Set<Listener>();
  private changes = new Set<Change>();
  private scheduled = false;
  private shape = 0;

  constructor(
    private readonly schedule: Schedule,
    private readonly now: () => number = Date.now,
    /** Told when the job of this name is another one than before: the stream must start anew. */
    private readonly anew: () => void = () => undefined,
  ) {}

  subscribe(listener: Listener): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Show a saved picture until the service tells more. */
  restore(value: unknown): boolean {
    const snapshot = readable(value);
    if (!snapshot?.job) return false;
    const log = Array.isArray(snapshot.log) ? snapshot.log : [];
    for (const line of log) this.logs.add(line.rank, [line], false);
    for (const one of missing(snapshot)) this.logs.lose(one);
    this.metrics.add(points(snapshot));
    this.update({
      job: snapshot.job,
      why: snapshot.why ?? null,
      events: Array.isArray(snapshot.events) ? snapshot.events : [],
      attempts: Array.isArray(snapshot.attempts) ? snapshot.attempts : [],
      saved: snapshot.saved_at ?? "",
      metrics: this.metrics.names(),
    });
    this.mark("metrics");
    this.mark("logs");
    return true;
  }

  connection(state: Connection, detail: string): void {
    this.update({ connection: state, detail });
  }

  apply(frame: Frame, replay: boolean): void {
    switch (frame.type) {
      case "job":
        this.job(frame.job);
        break;
      case "metrics":
        if (this.metrics.add(frame.points)) this.mark("metrics");
        if (this.metrics.shape !== this.shape) {
          this.shape = this.metrics.shape;
          this.update({ metrics: this.metrics.names() });
        }
        break;
      case "events":
        this.events(frame.events);
        break;
      case "attempts":
        this.update({ attempts: frame.attempts });
        break;
      case "log":
        if (frame.dropped) this.logs.lose({ rank: frame.rank, bytes: frame.dropped, lines: frame.dropped_lines ?? null });
        this.logs.add(frame.rank, frame.lines, replay);
        this.mark("logs");
        break;
      case "why":
        this.update({ why: frame.why });
        break;
      case "synced":
        this.logs.settle();
        this.mark("logs");
        this.update({ synced: true });
        break;
      case "end":
        this.mark("view");
        break;
    }
  }

  /** A newer record, also from the answer to an action. */
  job(job: Job): void {
    const old = this.view.job;
    if (this.view.saved !== null) this.reset(); // live data takes the picture's place
    else if (old && old.uid !== job.uid) {
      this.reset();
      this.update({ job });
      this.anew();
      return;
    } else if (old && job.version < old.version) return;
    // what was reported before an attempt said anything is of the one before it
    if (job.phase === "running" && job.progress_since) this.eta.note(job.progress, this.now(), job.restarts);
    const why = isWaiting(job.phase) || job.phase === "admitted" ? this.view.why : null;
    this.update({ job, why });
  }

  timeLeft(): number | null {
    const { job } = this.view;
    if (!job || job.phase !== "running") return null;
    const at = ms(job.progress_since);
    return this.eta.left(this.now(), at === null ? null : { at, progress: job.progress_from });
  }

  private reset(): void {
    this.metrics = new MetricStore();
    this.logs = new LogStore();
    this.eta = new Eta();
    this.shape = 0;
    this.update({ why: null, events: [], attempts: [], saved: null, metrics: [], synced: false });
    this.mark("metrics");
    this.mark("logs");
  }

  private events(fresh: JobEvent[]): void {
    const last = this.view.events.at(-1)?.seq ?? -1;
    const more = fresh.filter((e) => e.seq > last);
    if (more.length) this.update({ events: [...this.view.events, ...more].slice(-EVENTS_MAX) });
  }

  private update(change: Partial<View>): void {
    this.view = { ...this.view, ...change };
    this.mark("view");
  }

  private mark(change: Change): void {
    this.changes.add(change);
    if (this.scheduled) return;
    this.scheduled = true;
    this.schedule(() => {
      this.scheduled = false;
      const changes = this.changes;
      this.changes = new Set();
      for (const listener of [...this.listeners]) listener(changes);
    });
  }
}
