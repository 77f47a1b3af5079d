/** What-if: from what the form says to the request, and from two runs to better and worse. Pure. */
import { clock, duration, parseAmount, parseRam, secondsText, sizeWords, trim } from "../format/format";
import { n, t } from "../format/language";
import { reasonWords } from "../format/reasons";
import { EMPTY, LIMITS, placeFaults, read, SHARING_FIELDS, textsOf, type FieldName, type Read, type Texts } from "../teams/tenantform";
import type { Node, Simulated, SimulatedMove, SimulatedRun, SimulatedTenant, SimulatedWait, Tenant } from "../service/wire";

/** What became of some jobs in a run: of all, or of a tenant's. */
export type SimulatedWork = Pick<SimulatedRun, keyof SimulatedRun & keyof SimulatedTenant>;

/** The fields of a tenant that have a column of their own; those of sharing are below the row. */
export const AMOUNTS = ["cpu", "gpu", "ram", "weight"] as const;

export interface NewNodes {
  count: string;
  cpu: string;
  ram: string;
  gpu: string;
  gpu_kind: string;
}

/** Equal nodes together. */
export interface Kind {
  key: string;
  cpu: number;
  ram: number;
  gpu: number;
  gpu_kind: string | null;
  names: string[];
}

export interface Draft {
  /** "now", or how many days back. */
  from: string;
  tenants: Record<string, Texts>;
  added: Texts[];
  /** How many nodes of a kind there would be. */
  kinds: Record<string, string>;
  nodes: NewNodes[];
  policy: string;
  preemption: string;
}

export const NO_TENANT: Texts = EMPTY;
export const NO_NODES: NewNodes = { count: "1", cpu: "8", ram: "32 GiB", gpu: "0", gpu_kind: "" };
const MOST_NODES = 10_000;

export function kindsOf(nodes: Node[]): Kind[] {
  const found = new Map<string, Kind>();
  for (const n of nodes) {
    // what others hold there comes and goes: it makes no kind of its own
    const cpu = n.cpu_allocatable + n.cpu_others, all = n.ram_allocatable + n.ram_others;
    const key = `${cpu}/${all}/${n.gpu}/${n.gpu_kind ?? ""}`;
    const kind = found.get(key) ?? { key, cpu, ram: all, gpu: n.gpu, gpu_kind: n.gpu_kind, names: [] };
    kind.names.push(n.name);
    found.set(key, kind);
  }
  return [...found.values()];
}

export const kindWords = (kind: Pick<Kind, "cpu" | "ram" | "gpu" | "gpu_kind">): string => sizeWords(kind);

export function draftOf(tenants: Tenant[], kinds: Kind[]): Draft {
  return {
    from: "now",
    tenants: Object.fromEntries(tenants.map((t) => [t.name, textsOf(t)])),
    added: [],
    kinds: Object.fromEntries(kinds.map((k) => [k.key, String(k.names.length)])),
    nodes: [],
    policy: "",
    preemption: "",
  };
}

export interface Asked {
  body: Record<string, unknown>;
  /** What is wrong, by field: `red.cpu`, `red.lend_cpu`, `new-0.name`, `kind.KEY`, `nodes-0.count`. */
  faults: Record<string, string>;
  /** How many things are other than they are. */
  changes: number;
}

const FIELDS: FieldName[] = [...AMOUNTS, ...SHARING_FIELDS];

const changedFields = (texts: Texts, was: Texts): FieldName[] => FIELDS.filter((f) => texts[f].trim() !== was[f]);

/** How many fields of sharing are other than they are. */
export const sharingChanges = (texts: Texts, was: Texts): number => changedFields(texts, was).filter((f) => SHARING_FIELDS.includes(f)).length;

/** These fields of what was read, as the request has them: limits of one kind go together. */
function settings(found: Read, fields: FieldName[]): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const field of fields) {
    if (field === "weight") out["weight"] = found.weight;
    else if (field === "cohort" || field === "parent" || field === "queue_order") out[field] = found.sharing[field];
    else if (field === "cpu" || field === "gpu" || field === "ram") out[field] = found.amounts[field];
    else {
      const word = Object.keys(LIMITS).find((w) => field.startsWith(`${w}_`)) as keyof typeof LIMITS;
      out[LIMITS[word]] = found.sharing[LIMITS[word]];
    }
  }
  return out;
}

/** The request that the form means. */
export function askedOf(draft: Draft, tenants: Tenant[], kinds: Kind[], now: number): Asked {
  const faults: Record<string, string> = {};
  let count = 0;
  const taken = tenants.map((t) => t.name);
  const after = new Map<string, Pick<Texts, "cohort" | "parent">>([
    ...tenants.map((t) => [t.name, draft.tenants[t.name] ?? textsOf(t)] as const),
    ...draft.added.map((t) => [t.name.trim(), t] as const),
  ]);
  const note = (key: string, name: string, found: Read, fields: readonly FieldName[] = FIELDS): void => {
    const wrong = { ...placeFaults(name, after), ...found.faults };
    for (const field of fields) {
      const said = wrong[field];
      if (said) faults[`${key}.${field}`] = said;
    }
  };
  const changed: Record<string, Record<string, unknown>> = {};
  for (const tenant of tenants) {
    const texts = draft.tenants[tenant.name];
    if (!texts) continue;
    const others = changedFields(texts, textsOf(tenant));
    // of one that stays as it is nothing is wrong, also where it is in the way of others
    if (!others.length) continue;
    const found = read(texts, null, tenant);
    note(tenant.name, tenant.name, found);
    count += others.length;
    changed[tenant.name] = settings(found, others);
  }
  const added: Record<string, Record<string, unknown>> = {};
  draft.added.forEach((t, i) => {
    const texts = { ...t, name: t.name.trim() };
    const found = read(texts, taken);
    note(`new-${i}`, texts.name, found, ["name", ...FIELDS]);
    taken.push(texts.name);
    added[texts.name] = settings(found, [...AMOUNTS, ...changedFields(texts, EMPTY).filter((f) => SHARING_FIELDS.includes(f))]);
    count += 1;
  });
  const nodes = nodeChanges(draft, kinds, faults);
  const policy = {
    ...(draft.policy ? { name: draft.policy } : {}),
    ...(draft.preemption ? { preemption: draft.preemption === "on" } : {}),
  };
  count += nodes.count + Object.keys(policy).length;
  const since = new Date(now - Number(draft.from) * 86_400_000);
  const from = draft.from === "now" ? "now" : { history: { since: since.toISOString() } };
  const changes = {
    tenants: changed, new_tenants: added, new_nodes: nodes.come, remove_nodes: nodes.go,
    ...(Object.keys(policy).length ? { policy } : {}),
  };
  return { body: { from, changes }, faults, changes: count };
}

const whole = (value: string, least: number, most: number): number | null => {
  const n = /^\d{1,6}$/.test(value.trim()) ? Number(value) : Number.NaN;
  return n >= least && n <= most ? n : null;
};

function nodeChanges(draft: Draft, kinds: Kind[], faults: Record<string, string>): { come: Record<string, unknown>[]; go: string[]; count: number } {
  const come: Record<string, unknown>[] = [];
  const go: string[] = [];
  let count = 0;
  kinds.forEach((kind, i) => {
    const there = kind.names.length;
    const wanted = whole(draft.kinds[kind.key] ?? String(there), 0, MOST_NODES);
    if (wanted === null) {
      faults[`kind.${kind.key}`] = t("How many nodes: a whole number up to {most}", { most: MOST_NODES });
      return;
    }
    if (wanted === there) return;
    count += 1;
    if (wanted < there) go.push(...kind.names.slice(wanted));
    else come.push({ name: `more-${i + 1}`, count: wanted - there, cpu: kind.cpu, ram: kind.ram, gpu: kind.gpu, ...(kind.gpu_kind ? { gpu_kind: kind.gpu_kind } : {}) });
  });
  draft.nodes.forEach((n, i) => {
    const many = whole(n.count, 1, MOST_NODES);
    const gpu = whole(n.gpu, 0, 1024);
    const cpu = parseAmount(n.cpu, t("CPU"), 0.1);
    const memory = parseRam(n.ram);
    if (many === null) faults[`nodes-${i}.count`] = t("How many: a whole number from 1 to {most}", { most: MOST_NODES });
    if (gpu === null) faults[`nodes-${i}.gpu`] = t("GPUs of each node: a whole number up to 1024");
    if (!cpu.ok || cpu.value === null) faults[`nodes-${i}.cpu`] = t("Cores of each node: a number from 0.1 up");
    if (!memory.ok || memory.value === null || memory.value < 100) faults[`nodes-${i}.ram`] = t("Memory of each node: 100 MiB or more, such as 32 GiB");
    count += 1;
    come.push({
      name: `new-${i + 1}`, count: many ?? 1, cpu: cpu.ok ? cpu.value : null, ram: memory.ok ? memory.value : null, gpu: gpu ?? 0,
      ...(gpu && n.gpu_kind.trim() ? { gpu_kind: n.gpu_kind.trim() } : {}),
    });
  });
  return { come, go, count };
}

export type Mark = "better" | "worse" | "same";

export interface Row {
  /** Nothing is said of it where there is nothing. */
  silent: boolean;
  title: string;
  hint: string;
  before: string;
  after: string;
  mark: Mark;
  /** How much it changes, in words; empty where it does not. */
  by: string;
}

interface Figure {
  title: () => string;
  hint: () => string;
  of: (run: SimulatedWork) => number;
  show: (value: number) => string;
  /** Nothing is said of it where there is nothing. */
  rare?: boolean;
  /** Whether less is better, more is better, or neither. */
  wish: -1 | 0 | 1;
}

export const seconds = (value: number): string => (value < 10 && value % 1 ? secondsText(trim(value, 1)) : duration(value));
const percent = (value: number): string => `${trim(value * 100, 1)} %`;
const plain = (value: number): string => trim(value, 2);

const NEVER: Figure = { title: () => t("Never started"), hint: () => t("Jobs that got no place, including refused jobs"), of: (r) => r.never_started + r.refused, show: String, wish: -1 };
export const WORK: Figure[] = [
  { title: () => t("Average wait"), hint: () => t("Total time of a job in the queue; jobs already running do not count"), of: (r) => r.avg_wait_s, show: seconds, wish: -1 },
  { title: () => t("Median wait"), hint: () => t("Half of the jobs wait no longer than this"), of: (r) => r.p50_wait_s, show: seconds, wish: -1 },
  { title: () => t("99 % wait at most"), hint: () => t("Only 1 % of the jobs wait longer than this"), of: (r) => r.p99_wait_s, show: seconds, wish: -1 },
  { title: () => t("Worst unfairness"), hint: () => t("Time taken, divided by the time that the job alone would take on the team's fair share; above 1 is worse than alone"), of: (r) => r.ftf_worst, show: plain, wish: -1 },
  { title: () => t("Preemptions"), hint: () => t("How often running jobs were stopped for others"), of: (r) => r.preemptions, show: String, wish: -1 },
  NEVER,
];

const whole_ = (run: SimulatedWork): SimulatedRun => run as SimulatedRun;
const AGAIN: Figure = {
  title: () => t("Waits after a stop"), hint: () => t("Total time that jobs waited to continue after they were stopped for others or lost their nodes"),
  of: (r) => r.waited_again_s, show: seconds, wish: -1, rare: true,
};
export const WHOLE: Figure[] = [
  ...WORK,
  AGAIN,
  { title: () => t("All done after"), hint: () => t("From the first submission to the last end"), of: (r) => whole_(r).makespan_s, show: seconds, wish: -1 },
  { title: () => t("CPU in use"), hint: () => t("Share of all cores, until the last job ends"), of: (r) => whole_(r).utilization["cpu"] ?? 0, show: percent, wish: 0 },
  { title: () => t("GPU in use"), hint: () => t("Share of all GPUs, until the last job ends"), of: (r) => whole_(r).utilization["gpu"] ?? 0, show: percent, wish: 0, rare: true },
];

/** Less than a hundredth of difference is none. */
export function mark(before: number, after: number, wish: number): Mark {
  const difference = after - before;
  if (!wish || Math.abs(difference) <= 0.01 * Math.max(Math.abs(before), Math.abs(after))) return "same";
  return difference * wish > 0 ? "better" : "worse";
}

export function rowOf(figure: Figure, before: SimulatedWork, after: SimulatedWork): Row {
  const [a, b] = [figure.of(before), figure.of(after)];
  // with other jobs in it a figure is not better or worse, it is another figure: who never starts does not wait
  const others = figure !== NEVER && NEVER.of(before) !== NEVER.of(after);
  const found = others ? "same" : mark(a, b, figure.wish);
  const differs = mark(a, b, -1) !== "same";
  const amount = figure.show(Math.abs(b - a));
  const change = b < a ? t("{amount} less", { amount }) : t("{amount} more", { amount });
  const by = found !== "same" ? change : others && figure.wish && differs ? t("different jobs: not all start in both runs") : "";
  return { silent: figure.rare === true && !a && !b, title: figure.title(), hint: figure.hint(), before: figure.show(a), after: figure.show(b), mark: found, by };
}

/** Why nothing is other than before, from what the jobs waited for; null where something is. */
export function whyTheSame(answer: Simulated): string | null {
  const { before, after, moves } = answer;
  if (!before || !moves) return null;
  const moved = moves.earlier + moves.later + moves.only_before + moves.only_after;
  if (moved || WHOLE.some((f) => mark(f.of(before), f.of(after), -1) !== "same")) return null;
  if (!before.waits.length) return t("Nothing changes: as it is, no job has to wait.");
  const [was, is] = [waitWords(before.waits), waitWords(after.waits)];
  const shown = after.waits[0];
  const one = shown ? t("{job} of {user}, with the changes: {why}.", { job: shown.job, user: shown.user, why: shown.message }) : "";
  const whole = (said: string): string => [said, one].filter(Boolean).join(" ");
  if (was !== is) {
    return whole(t("Nothing changes: the changes do not affect any start time, because something else then holds the jobs back. As it is, they wait for: {was}. With the changes: {is}.", { was, is }));
  }
  return whole(
    before.waits.some((w) => w.reason === "WaitingForQuota")
      ? t("Nothing changes: the changes do not affect any start time. In both runs jobs wait for: {was}.", { was })
      : t("Nothing changes: no job in this work waits for quota, so other quotas alone change no start time. In both runs jobs wait for: {was}.", { was }),
  );
}

/** "2 jobs: waits for quota; 1 job, which never starts: the free room is reserved". */
function waitWords(waits: SimulatedWait[]): string {
  return waits
    .map((w) => {
      const reason = reasonWords(w.reason);
      if (!w.never) return n("1 job: {reason}", "{n} jobs: {reason}", w.jobs, { reason });
      if (w.never === w.jobs) return n("1 job (never started): {reason}", "{n} jobs (never started): {reason}", w.jobs, { reason });
      return n("1 job ({never} of them never started): {reason}", "{n} jobs ({never} of them never started): {reason}", w.jobs, { reason, never: w.never });
    })
    .join(t("; "));
}

/** Of which jobs the waits are: "3 ran already and wait no more; the waits are of the 5 others that start". */
export function waitsOf(before: SimulatedWork, after: SimulatedWork): string {
  const count = before.waits_of;
  const { running } = before;
  if (!count && !after.waits_of) return running ? t("{n} were already running, and no other job starts, so no wait is counted", { n: running }) : t("None starts");
  const starts = count === after.waits_of ? String(count) : t("{n} (with the changes {after})", { n: count, after: after.waits_of });
  const many = count === 1 && after.waits_of === 1 ? 1 : 2;
  if (!running) return n("Waits of the {starts} job that starts", "Waits of the {starts} jobs that start", many, { starts });
  const ran = n("1 job was already running and waits no longer", "{n} jobs were already running and wait no longer", running);
  return n("{ran}. Waits of the {starts} other job that starts", "{ran}. Waits of the {starts} other jobs that start", many, { ran, starts });
}

/** A start in words: "at once", "after 5 min", "not at all". */
export function startWords(at: number | null): string {
  if (at === null) return t("not at all");
  return at < 1 ? t("at once") : t("after {span}", { span: seconds(at) });
}

/** What a job whose start moves waits for, in the run in which it starts later or never: "As it is: red may use ...". */
export function whyWords(m: SimulatedMove): string {
  if (!m.why) return t("Not given");
  const sooner = m.before_s === null || (m.after_s !== null && m.after_s < m.before_s);
  return sooner ? t("As it is: {why}", { why: m.why }) : t("With the changes: {why}", { why: m.why });
}

/** A start in recorded history as the time of day that it would have been; "after 6 d 23 h" would read as a wait. */
export function startClock(at: number | null, begin: string, now: number): string {
  return at === null ? t("not at all") : clock(Date.parse(begin) + at * 1000, now);
}

/** A picture of recorded history with the time of day on its axis, as everything else says it. */
export function withClocks(svg: string, begin: string, now: number): string {
  return svg.replace(/( data-t="(-?[\d.e+]+)">)[^<]*</g, (_, tag: string, at: string) => `${tag}${startClock(Number(at), begin, now)}<`);
}
