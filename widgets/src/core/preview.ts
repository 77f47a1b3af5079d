/** What a new quota would mean for a tenant's running and waiting jobs, computed from the queue. Pure. */
import { bytes, cores, plural, ram } from "./format";
import type { Amounts, QueueEntry, Tenant } from "./wire";

type Dimension = "cpu" | "gpu" | "ram";
const DIMENSIONS: Dimension[] = ["cpu", "gpu", "ram"];
const HOLDING = new Set(["admitted", "starting", "running", "suspending", "preempting", "resizing", "finishing", "cancelling"]);

export interface Preview {
  /** Waiting jobs that would fit into the new quota one after the other, and do not fit into the present one. */
  couldStart: string[];
  /** Waiting jobs that would still not fit. */
  stillWait: string[];
  /** Waiting jobs that ask for more than the new quota as a whole. */
  never: string[];
  /** Dimensions in which more is in use than the new quota holds, as sentences. */
  over: string[];
}

const show: Record<Dimension, (n: number) => string> = {
  cpu: (n) => `${cores(n)} cpu`,
  gpu: (n) => `${cores(n)} gpu`,
  ram: (n) => `${ram(n)} memory`,
};

function fits(job: QueueEntry, free: Record<Dimension, number>): boolean {
  return DIMENSIONS.every((d) => job[d] <= free[d] + 1e-9);
}

function startable(jobs: QueueEntry[], quota: Amounts, inUse: Record<Dimension, number>): Set<QueueEntry> {
  const free = {} as Record<Dimension, number>;
  for (const d of DIMENSIONS) free[d] = (quota[d] ?? Number.POSITIVE_INFINITY) - inUse[d];
  const out = new Set<QueueEntry>();
  for (const job of jobs) {
    if (!fits(job, free)) continue;
    for (const d of DIMENSIONS) free[d] -= job[d];
    out.add(job);
  }
  return out;
}

export function preview(tenant: Pick<Tenant, "name" | "cpu" | "gpu" | "ram" | "rom" | "cpu_inuse" | "gpu_inuse" | "ram_inuse" | "rom_inuse">, queue: QueueEntry[], quota: Amounts): Preview {
  const inUse = { cpu: tenant.cpu_inuse, gpu: tenant.gpu_inuse, ram: tenant.ram_inuse };
  const waiting = queue
    .filter((e) => e.tenant === tenant.name && e.phase === "queued")
    .sort((a, b) => (a.position ?? Number.MAX_SAFE_INTEGER) - (b.position ?? Number.MAX_SAFE_INTEGER));
  const before = startable(waiting, tenant, inUse);
  const after = startable(waiting, quota, inUse);
  const whole = {} as Record<Dimension, number>;
  for (const d of DIMENSIONS) whole[d] = quota[d] ?? Number.POSITIVE_INFINITY;
  const over = DIMENSIONS.filter((d) => inUse[d] > whole[d] + 1e-9).map(
    (d) => `${show[d](inUse[d])} in use, ${show[d](inUse[d] - whole[d])} above the new quota`,
  );
  if (quota.rom !== null && tenant.rom_inuse > quota.rom) {
    over.push(`${bytes(tenant.rom_inuse)} stored, ${bytes(tenant.rom_inuse - quota.rom)} above the new quota`);
  }
  return {
    couldStart: waiting.filter((j) => after.has(j) && !before.has(j)).map((j) => j.name),
    stillWait: waiting.filter((j) => !after.has(j) && fits(j, whole)).map((j) => j.name),
    never: waiting.filter((j) => !fits(j, whole)).map((j) => j.name),
    over,
  };
}

export function countHolding(queue: QueueEntry[], tenant: string): number {
  return queue.filter((e) => e.tenant === tenant && HOLDING.has(e.phase)).length;
}

/** The preview as sentences, most telling first. */
export function previewWords(p: Preview, running: number): { tone: "good" | "bad" | "idle"; text: string }[] {
  const out: { tone: "good" | "bad" | "idle"; text: string }[] = [];
  const named = (names: string[]): string => (names.length > 4 ? `${names.slice(0, 4).join(", ")}, ...` : names.join(", "));
  if (p.couldStart.length) {
    out.push({ tone: "good", text: `${plural(p.couldStart.length, "waiting job")} could start: ${named(p.couldStart)}` });
  }
  for (const text of p.over) out.push({ tone: "bad", text });
  if (p.over.length) {
    const kept = running ? `${plural(running, "running job")} ${running === 1 ? "goes" : "go"} on` : "What runs goes on";
    out.push({ tone: "idle", text: `${kept}; nothing new starts until enough is given back` });
  }
  if (p.stillWait.length) {
    out.push({ tone: "idle", text: `${plural(p.stillWait.length, "job")} would still wait: ${named(p.stillWait)}` });
  }
  if (p.never.length) {
    out.push({ tone: "bad", text: `${plural(p.never.length, "waiting job")} would ask for more than the whole quota: ${named(p.never)}` });
  }
  if (!out.length) out.push({ tone: "idle", text: "No running or waiting job is touched" });
  return out;
}
