/**
 * My jobs as JupyterLab keeps an eye on them while it is open: the newest of them again and again, how many run and wait, and what
 * became of one. Pure but for the client; when to ask is told by its clock.
 */
import { ApiError, paths, type Client } from "../service/api";
import { t } from "../format/language";
import { isFinal } from "./phase";
import { reference, title } from "./runs";
import type { Job, Sweep } from "../service/wire";

export const NEWEST = 100;
/** Sweeps whose trials are counted: few go on at once. */
const NEWEST_SWEEPS = 10;
const EVERY_MS = 4000;
/** None of my jobs is at work or waits. The monitor of one that begins in this page tells of it; one that begins elsewhere is seen so much later. */
const QUIET_MS = 15_000;
/** Nobody looks: only what is told in a notification needs it. */
const UNSEEN_MS = 20_000;
const FAULT_MS = 60_000;
/** An event of the window: a monitor in the page began to show a job or a sweep, or saw a job end. */
export const SHOWN = "mlp-hub:job";
/** Jobs that left the list of the newest before they ended, asked for one by one. */
const ALONE = 10;

export interface Counts {
  running: number;
  waiting: number;
}

/** What is at work and what waits for its turn, trials of sweeps too; what its user suspended is neither. */
export function counts(jobs: readonly Pick<Job, "phase">[], sweeps: readonly Pick<Sweep, "counts">[] = []): Counts {
  const waiting = jobs.filter((job) => job.phase === "queued").length;
  const running = jobs.filter((job) => !isFinal(job.phase) && !["queued", "suspended", "deleting"].includes(job.phase)).length;
  return sweeps.reduce((sum, { counts: of }) => ({ waiting: sum.waiting + of.waiting, running: sum.running + of.running }), { waiting, running });
}

export interface News {
  kind: "success" | "error" | "warning" | "info";
  text: string;
  job: Job;
}

/** What became of a job, as a notification says it; null where that is nothing new. */
function became(before: Job | undefined, job: Job): News | null {
  if (before && before.version >= job.version) return null;
  const name = title(job);
  if (isFinal(job.phase)) {
    if (before && isFinal(before.phase)) return null;
    if (job.phase === "finished") return { kind: "success", text: t("Job {job} has finished", { job: name }), job };
    if (job.phase === "cancelled") return { kind: "info", text: t("Job {job} was cancelled", { job: name }), job };
    const why = job.failure?.message || job.message;
    return { kind: "error", text: why ? t("Job {job} has failed: {why}", { job: name, why }) : t("Job {job} has failed", { job: name }), job };
  }
  const went = (phase: string): boolean => phase === "preempting" || phase === "queued";
  if (before && went(job.phase) && !went(before.phase) && job.started_at !== null && !["suspended", "suspending"].includes(before.phase)) {
    return { kind: "warning", text: t("Job {job} was stopped and continues when there is room again", { job: name }), job };
  }
  return null;
}

/** Trials are many; of them their sweep tells. */
const told = (job: Job): boolean => job.sweep === null;

/** Tells each piece of news once: of jobs that had not ended, or were not there, when it was first told of all. */
export class Watched {
  private known: Map<string, Job> | null = null;
  private since = "";

  /** Jobs that had not ended and are not among these. */
  missing(jobs: readonly Job[]): Job[] {
    const here = new Set(jobs.map((job) => job.uid));
    return [...(this.known?.values() ?? [])].filter((job) => !here.has(job.uid) && !isFinal(job.phase)).slice(0, ALONE);
  }

  forget(job: Job): void {
    this.known?.delete(job.uid);
  }

  learn(jobs: readonly Job[]): News[] {
    const known = this.known;
    if (known === null) {
      this.known = new Map(jobs.map((job) => [job.uid, job]));
      this.since = jobs.reduce((latest, job) => (job.submitted_at > latest ? job.submitted_at : latest), "");
      return [];
    }
    const news: News[] = [];
    for (const job of jobs) {
      const before = known.get(job.uid);
      // an older one that came into the list because others were deleted is no news
      const found = before || job.submitted_at > this.since ? became(before, job) : null;
      if (found && told(job)) news.push(found);
      if (!before || job.version >= before.version) known.set(job.uid, job);
    }
    return news;
  }
}

export interface Seen {
  user: string;
  /** Tenants that I administer: their queues I may see. */
  mine: readonly string[];
  jobs: readonly Job[] | null;
  sweeps: readonly Sweep[];
  error: unknown;
}

export interface Clock {
  /** Calls back later, unless what is returned is called before. */
  later: (fn: () => void, ms: number) => () => void;
  hidden: () => boolean;
}

export class Watch {
  seen: Seen = { user: "", mine: [], jobs: null, sweeps: [], error: null };
  private readonly watched = new Watched();
  private readonly listeners = new Set<() => void>();
  private cancel: (() => void) | null = null;
  private asking: Promise<void> | null = null;
  private next: Promise<void> | null = null;
  private faults = 0;
  private on = false;

  constructor(
    private readonly client: Client,
    private readonly clock: Clock,
    private readonly tell: (news: News) => void,
  ) {}

  subscribe(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  start(): void {
    this.on = true;
    void this.hurry();
  }

  stop(): void {
    this.on = false;
    this.cancel?.();
  }

  /** Ask now, and once more where that is under way: it is looked at again, or something was done, which an answer may not know of. */
  hurry(): Promise<void> {
    if (this.asking) {
      this.next ??= this.asking.then(() => {
        this.next = null;
        return this.hurry();
      });
      return this.next;
    }
    this.cancel?.();
    this.cancel = null;
    this.asking = this.ask().finally(() => {
      this.asking = null;
      if (!this.on) return;
      const usual = this.clock.hidden() ? UNSEEN_MS : this.quiet() ? QUIET_MS : EVERY_MS;
      this.cancel?.();
      this.cancel = this.clock.later(() => void this.hurry(), Math.min(FAULT_MS, usual * 2 ** this.faults));
    });
    return this.asking;
  }

  private quiet(): boolean {
    const { running, waiting } = counts(this.seen.jobs ?? [], this.seen.sweeps);
    return running + waiting === 0 && this.seen.jobs !== null;
  }

  private async ask(): Promise<void> {
    try {
      const session = await this.client.session();
      const [{ items }, sweeps] = await Promise.all([
        this.client.list<Job>(`${paths.jobs(session.username)}?limit=${NEWEST}`),
        this.client.list<Sweep>(`${paths.sweeps(session.username)}?limit=${NEWEST_SWEEPS}`),
      ]);
      const all = [...items, ...(await this.alone(session.username, this.watched.missing(items)))];
      this.faults = 0;
      this.seen = { user: session.username, mine: session.tenant_admin, jobs: items, sweeps: sweeps.items, error: null };
      for (const news of this.watched.learn(all)) this.tell(news);
    } catch (error) {
      this.faults = Math.min(this.faults + 1, 4);
      this.seen = { ...this.seen, error };
    }
    for (const listener of [...this.listeners]) listener();
  }

  private async alone(user: string, missing: readonly Job[]): Promise<Job[]> {
    const found: Job[] = [];
    for (const job of missing) {
      try {
        found.push(await this.client.get<Job>(paths.job(user, reference(job))));
      } catch (error) {
        // deleted meanwhile
        if (error instanceof ApiError && error.kind === "refused") this.watched.forget(job);
        else throw error;
      }
    }
    return found;
  }
}
