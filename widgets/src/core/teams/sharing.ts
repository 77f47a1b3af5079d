/** Whom a tenant shares with and within what limits, and how much of a dimension is whose. Pure. */
import { inUseOf, quotaOf, ROWS, type Dimension } from "../format/dimensions";
import { bytes, clock, cores, trim } from "../format/format";
import { t } from "../format/language";
import type { Tenant, TenantCreate } from "../service/wire";

/** Amounts by dimension (those of the hub's table, and gpu:KIND); what is left out is zero, or has no limit. */
export type ByDimension = Record<string, number>;
/** All that is configured of a tenant. */
export type TenantSettings = Pick<Tenant, keyof TenantCreate>;

/** "3 cpu, 4 GiB memory". */
export function amounts(limits: ByDimension): string {
  return Object.entries(limits)
    .map(([d, n]) => (d.startsWith("gpu:") ? t("{amount} {kind} gpu", { amount: cores(n), kind: d.slice(4) }) : (Object.hasOwn(ROWS, d) ? ROWS[d as Dimension].named(n) : String(n))))
    .join(t(", "));
}

/** "cohort main", "below org"; empty for who shares with nobody. */
export function place(tenant: Pick<TenantSettings, "cohort" | "parent">): string {
  if (tenant.parent) return t("below {parent}", { parent: tenant.parent });
  return tenant.cohort ? t("cohort {cohort}", { cohort: tenant.cohort }) : "";
}

/** "In cohort main · borrows at most 2 cpu · lends at most 1 cpu"; empty for who shares with nobody. */
export function sharingWords(tenant: TenantSettings): string {
  const where = tenant.parent ? t("Below {parent}", { parent: tenant.parent }) : tenant.cohort ? t("In cohort {cohort}", { cohort: tenant.cohort }) : "";
  const parts = [where];
  if (where) {
    parts.push(tenant.borrowing_limit ? t("borrows at most {amounts}", { amounts: amounts(tenant.borrowing_limit) }) : t("borrows what others leave idle"));
    parts.push(tenant.lending_limit ? t("lends at most {amounts}", { amounts: amounts(tenant.lending_limit) }) : t("lends what it leaves idle"));
  }
  if (tenant.reserved && Object.keys(tenant.reserved).length) parts.push(t("keeps {amounts} reserved", { amounts: amounts(tenant.reserved) }));
  return parts.filter(Boolean).join(" · ");
}

/** Whether its jobs reach other machines, and who can change that; `mlp.rendering.words` says the same. */
export const networkWords = (tenant: Pick<Tenant, "name" | "job_network">): string =>
  tenant.job_network === "outbound"
    ? t("Jobs of team {tenant} may reach other machines.", { tenant: tenant.name })
    : t("Jobs of team {tenant} have no network; an administrator of the hub can allow it.", { tenant: tenant.name });

const KEPT: Record<string, () => string> = {
  shared: () => t("in the shared tree"), encrypted: () => t("encrypted with its own key"), dedicated: () => t("in its own root"),
};
const STEPS: Record<string, () => string> = {
  waiting: () => t("waiting for running work"), copying: () => t("copying"), comparing: () => t("comparing the copy"),
  removing: () => t("removing the old files"), undoing: () => t("undoing"), failed: () => t("not done"),
};

/** How its files are kept; empty where that is as for everybody. */
export const isolationWords = (tenant: Pick<Tenant, "isolation">): string =>
  tenant.isolation === "shared" ? "" : t("Its datasets, models and jobs' directories are kept {how}.", { how: KEPT[tenant.isolation]?.() ?? tenant.isolation });

/** Where its files are on their way to another grade of isolation, or why they did not get there; empty where neither is so. */
export function moveWords(move: Tenant["move"]): string {
  if (!move || move.state === "done") return "";
  const how = { how: KEPT[move.new]?.() ?? move.new, step: STEPS[move.state]?.() ?? move.state, done: bytes(move.done), total: bytes(move.total), why: move.message };
  if (move.state === "copying" || move.state === "comparing") return t("Its files are being moved and will be kept {how}: {step}, {done} of {total}. Nothing of the team starts until the move is done.", how);
  if (move.state === "failed") return t("The move of its files, to be kept {how}, was not done: {why}. The files are in their old place.", how);
  return t("Its files are being moved and will be kept {how}: {step}. {why}", how);
}

/** "Guarantee lowered since 14:20 ...": what an idle tenant lends beyond what it is configured to; empty when all of it holds. */
export function loweredWords(tenant: Tenant, now: number): string {
  if (!tenant.lowered) return "";
  return t("Guarantee lowered to {percent} % since {time}, because the team was idle for a long time. It is restored as soon as one of its jobs waits or one of its notebook servers starts", {
    percent: trim(tenant.lowered.share * 100, 0), time: clock(tenant.lowered.since, now),
  });
}

/** One dimension of a tenant's quota. */
export interface Standing {
  used: number;
  limit: number | null;
  borrowed: number;
  lent: number;
  /** What it may take now; null without a limit. */
  free: number | null;
  /** Above what it may hold: neither its own nor borrowed. */
  over: number;
}

/** Something that shares with nobody, as a node does. */
export function alone(used: number, limit: number | null): Standing {
  const left = limit === null ? null : limit - used;
  return { used, limit, borrowed: 0, lent: 0, free: left === null ? null : Math.max(0, left), over: left === null ? 0 : Math.max(0, -left) };
}

/** What a standing is made of. */
export type Holds = Pick<Tenant, "cpu" | "gpu" | "ram" | "rom" | "cpu_inuse" | "gpu_inuse" | "ram_inuse" | "rom_inuse" | "borrowed" | "lent" | "free" | "over"> & Partial<Pick<Tenant, "amounts" | "amounts_inuse">>;

export function standing(tenant: Holds, dimension: Dimension): Standing {
  const used = inUseOf(tenant, dimension);
  const limit = quotaOf(tenant, dimension);
  const borrowed = tenant.borrowed[dimension] ?? 0;
  const free = tenant.free[dimension] ?? (limit === null ? null : Math.max(0, limit - used));
  const over = tenant.over[dimension] ?? 0;
  return { used, limit, borrowed, lent: tenant.lent[dimension] ?? 0, free, over };
}

/** What is left of what it may hold: of its own, to borrow, and of its own neither used nor lent and yet not to be had. */
export function left(s: Standing): { own: number; borrow: number; held: number } {
  if (s.free === null || s.limit === null) return { own: s.free ?? 0, borrow: 0, held: 0 };
  const idle = Math.max(0, s.limit - s.used - s.lent);
  const own = Math.min(s.free, idle);
  return { own, borrow: s.free - own, held: idle - own };
}

/** "2 borrowed · 1 more to borrow", "1 lent · 3 free · 2 more to borrow", "0.5 beyond quota": with what is used it adds up to the quota. */
export function standingWords(s: Standing, show: (n: number) => string): string[] {
  const parts: string[] = [];
  const borrowed = s.borrowed - s.over;
  if (s.over > 1e-9) parts.push(t("{amount} beyond quota", { amount: show(s.over) }));
  if (borrowed > 1e-9) parts.push(t("{amount} borrowed", { amount: show(borrowed) }));
  if (s.lent) parts.push(t("{amount} lent", { amount: show(s.lent) }));
  if (s.free !== null && s.over <= 1e-9) {
    const { own, borrow, held } = left(s);
    if (held > 1e-9) parts.push(t("{amount} kept or held by others", { amount: show(held) }));
    if (own > 1e-9 || borrow <= 1e-9) parts.push(t("{amount} free", { amount: show(own) }));
    if (borrow > 1e-9) parts.push(t("{amount} more to borrow", { amount: show(borrow) }));
  }
  return parts;
}

/** What becomes of that which a tenant holds beyond its quota, and of what it borrowed; empty where it is inside its own. */
export function beyondWords(tenant: Tenant): string {
  const who = tenant.parent ? t("a team that shares {parent} with it", { parent: tenant.parent }) : tenant.cohort ? t("another team of cohort {cohort}", { cohort: tenant.cohort }) : "";
  const over = Object.keys(tenant.over);
  if (over.length && over.every((dimension) => dimension === "rom")) {
    return t("{amounts} in use beyond the quota. Running work continues. A user who holds more than an equal part of the quota cannot submit new work until there is room", { amounts: amounts(tenant.over) });
  }
  if (over.length) {
    const said = { amounts: amounts(tenant.over), who };
    return who
      ? t("{amounts} in use beyond the quota. Running work continues, as nothing is stopped for that alone. As soon as {who} needs its own quota, it is taken back from the cheapest of the team's jobs. Nothing new starts until enough is given back", said)
      : t("{amounts} in use beyond the quota. Running work continues, as nothing is stopped for that alone. Nothing new starts until enough is given back", said);
  }
  if (!who || !Object.keys(tenant.borrowed).length) return "";
  return t("{amounts} of the use is borrowed. It stays until the team's jobs end. As soon as {who} needs its own quota, it is taken back from the cheapest of these jobs", { amounts: amounts(tenant.borrowed), who });
}

/** The parts of a bar in percent of its length: its own use, what is borrowed, what is beyond that, what is lent (at the far end). */
export function segments(s: Standing): Record<Part, number> {
  const whole = Math.max(s.limit ?? 0, s.used);
  if (whole <= 0) return { own: 0, borrowed: 0, over: 0, lent: 0 };
  const part = (n: number): number => Math.min(100, (Math.max(0, n) / whole) * 100);
  return { own: part(s.used - Math.max(s.borrowed, s.over)), borrowed: part(s.borrowed - s.over), over: part(s.over), lent: part(s.lent) };
}

export type Part = "own" | "borrowed" | "over" | "lent";
const partWords = (): [Part, string][] => [
  ["own", t("own use")],
  ["borrowed", t("borrowed: others take it back when they need it")],
  ["over", t("beyond its limit")],
  ["lent", t("lent: others use it now and give it back when it is needed")],
];

/** What the colours of some bars mean; nothing where all show plain use. */
export function legend(bars: Standing[]): [Part, string][] {
  const words = partWords();
  const shown = new Set(bars.filter((s) => s.limit !== null).flatMap((s) => words.filter(([part]) => segments(s)[part] > 0).map(([part]) => part)));
  return shown.size > 1 || (shown.size === 1 && !shown.has("own")) ? words.filter(([part]) => shown.has(part)) : [];
}
