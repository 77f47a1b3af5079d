/** The tenant form as data: texts that people typed, what is wrong with them, and the request they make. Pure. */
import { badName, bytes, parseAmount, parseBytes, parseRam, ram, trim, type Parsed } from "./format";
import type { Amounts, ByDimension, Tenant, TenantSettings } from "./wire";

export const DIMENSIONS = ["cpu", "gpu", "ram", "rom"] as const;
export type Dimension = (typeof DIMENSIONS)[number];
/** The limits of sharing, by the word that begins the names of their fields. */
export const LIMITS = { borrow: "borrowing_limit", lend: "lending_limit", reserve: "reserved" } as const;
export type LimitWord = keyof typeof LIMITS;
export type LimitField = `${LimitWord}_${Dimension}`;
export type FieldName = "name" | Dimension | "weight" | "description" | "cohort" | "parent" | "queue_order" | LimitField;
export type Texts = Record<FieldName, string>;
export type Faults = Partial<Record<FieldName, string>>;
export type Sharing = Pick<TenantSettings, "cohort" | "parent" | "borrowing_limit" | "lending_limit" | "reserved" | "queue_order">;

const WORDS = Object.keys(LIMITS) as LimitWord[];
/** Storage is no matter of nodes, and nothing of it can be kept free on them. */
export const fieldsOf = (word: LimitWord): Dimension[] => DIMENSIONS.filter((d) => word !== "reserve" || d !== "rom");
export const LIMIT_FIELDS = WORDS.flatMap((w) => fieldsOf(w).map((d) => `${w}_${d}` as LimitField));
/** Fields of the folded part of the form. */
export const SHARING_FIELDS: FieldName[] = ["queue_order", "cohort", "parent", ...LIMIT_FIELDS];

const NO_LIMITS = Object.fromEntries(LIMIT_FIELDS.map((f) => [f, ""])) as Record<LimitField, string>;
export const EMPTY: Texts = {
  name: "", cpu: "", gpu: "", ram: "", rom: "", weight: "1", description: "", cohort: "", parent: "", queue_order: "priority", ...NO_LIMITS,
};

export function textsOf(tenant: TenantSettings): Texts {
  const limits = { ...NO_LIMITS };
  for (const word of WORDS) {
    for (const d of fieldsOf(word)) limits[`${word}_${d}`] = text(d, tenant[LIMITS[word]]?.[d] ?? null);
  }
  return {
    name: tenant.name,
    cpu: text("cpu", tenant.cpu),
    gpu: text("gpu", tenant.gpu),
    ram: text("ram", tenant.ram),
    rom: text("rom", tenant.rom),
    weight: trim(tenant.weight, 3),
    description: tenant.description,
    cohort: tenant.cohort ?? "",
    parent: tenant.parent ?? "",
    queue_order: tenant.queue_order,
    ...limits,
  };
}

function text(dimension: Dimension, value: number | null): string {
  if (value === null) return "";
  if (dimension === "ram") return exact(value, 1024, ram(value), `${value} MiB`);
  if (dimension === "rom") return exact(value, 1024 ** 3, bytes(value), String(value));
  return trim(value, 3);
}

/** The short form only where it says exactly the same. */
function exact(value: number, unit: number, short: string, long: string): string {
  return value % unit === 0 && value < unit * 1024 ? short : long;
}

function parse(dimension: Dimension, typed: string): Parsed {
  if (dimension === "ram") return parseRam(typed);
  return dimension === "rom" ? parseBytes(typed) : parseAmount(typed, dimension);
}

export interface Read {
  amounts: Amounts;
  weight: number;
  sharing: Sharing;
  faults: Faults;
}

/** Read the typed texts; `names`: taken ones, or null when the name is not asked for. `kept`: the tenant as it is. */
export function read(texts: Texts, names: string[] | null, kept: TenantSettings | null = null): Read {
  const faults: Faults = {};
  const take = (field: FieldName, parsed: Parsed): number | null => {
    if (parsed.ok) return parsed.value;
    faults[field] = parsed.msg;
    return null;
  };
  if (names) {
    const bad = badName(texts.name) ?? (names.includes(texts.name) ? `tenant ${texts.name} exists already` : null);
    if (bad) faults.name = bad;
  }
  const amounts: Amounts = {
    cpu: take("cpu", parse("cpu", texts.cpu)),
    gpu: take("gpu", parse("gpu", texts.gpu)),
    ram: take("ram", parse("ram", texts.ram)),
    rom: take("rom", parse("rom", texts.rom)),
  };
  const weight = parseAmount(texts.weight, "the weight");
  if (!weight.ok || weight.value === null || weight.value <= 0) faults.weight = "the weight is a number above 0, such as 1";
  if (texts.description.length > 500) faults.description = `at most 500 characters, this has ${texts.description.length}`;
  return { amounts, weight: weight.ok && weight.value ? weight.value : 1, sharing: readSharing(texts, amounts, kept, faults), faults };
}

function readSharing(texts: Texts, amounts: Amounts, kept: TenantSettings | null, faults: Faults): Sharing {
  const sharing: Sharing = {
    cohort: texts.cohort.trim() || null,
    parent: texts.parent.trim() || null,
    borrowing_limit: null,
    lending_limit: null,
    reserved: null,
    queue_order: texts.queue_order,
  };
  for (const field of ["cohort", "parent"] as const) {
    const bad = sharing[field] === null ? null : badName(sharing[field]);
    if (bad) faults[field] = bad.replace("a name", `a ${field}'s name`);
  }
  if (sharing.cohort && sharing.parent) faults.parent = "name a cohort or a parent, not both: with a parent it shares with its siblings";
  for (const word of WORDS) {
    const name = LIMITS[word];
    // limits of single kinds of gpu have no field here, and stay
    const limits: ByDimension = Object.fromEntries(Object.entries(kept?.[name] ?? {}).filter(([d]) => d.includes(":")));
    for (const d of fieldsOf(word)) {
      const field: LimitField = `${word}_${d}`;
      const parsed = parse(d, texts[field]);
      if (!parsed.ok) faults[field] = parsed.msg;
      else if (parsed.value !== null) {
        limits[d] = parsed.value;
        const fault = limitFault(word, parsed.value, amounts[d], Boolean(sharing.cohort ?? sharing.parent));
        if (fault) faults[field] = fault;
      }
    }
    if (Object.keys(limits).length) sharing[name] = limits;
  }
  return sharing;
}

function limitFault(word: LimitWord, value: number, quota: number | null, shares: boolean): string | null {
  if (word !== "reserve" && !shares) return "needs a cohort or a parent";
  if (word !== "reserve" && quota === null) return "needs a quota above; 0 means to own nothing";
  if (word !== "borrow" && quota !== null && value > quota) return "is above the quota";
  return null;
}

/** What is wrong with a tenant's place among others, where these are all there would be. */
export function placeFaults(name: string, all: ReadonlyMap<string, Pick<Texts, "cohort" | "parent">>): Faults {
  const faults: Faults = {};
  const own = all.get(name);
  const [cohort, parent] = [own?.cohort.trim() ?? "", own?.parent.trim() ?? ""];
  // one name for a cohort and a tenant would mix up their trees
  if (cohort && all.has(cohort)) faults.cohort = `${cohort} is a tenant: give the cohort another name, or make ${cohort} the parent`;
  if (name && [...all.values()].some((t) => t.cohort.trim() === name)) faults.name = `${name} is the name of a cohort: use another one`;
  if (parent && !all.has(parent)) faults.parent = `there is no tenant ${parent}`;
  const seen = new Set([name]);
  for (let at = parent; at && all.has(at); at = all.get(at)?.parent.trim() ?? "") {
    if (seen.has(at)) {
      faults.parent = parent === name ? "a tenant cannot be its own parent" : `${parent} is below ${name}, so it cannot be above it too`;
      break;
    }
    seen.add(at);
  }
  return faults;
}

/** The body of a PUT: all that the tenant is from now on; what the form does not show stays as it is. */
export function update(tenant: Tenant, texts: Texts, r: Read): TenantSettings {
  return {
    name: tenant.name,
    ...r.amounts,
    gpu_kinds: tenant.gpu_kinds,
    weight: r.weight,
    ...r.sharing,
    isolation: tenant.isolation,
    description: texts.description,
  };
}

/** The body of a PUT that changes nothing. */
export function unchanged(t: Tenant): TenantSettings {
  const { name, cpu, gpu, ram, rom, gpu_kinds, weight, cohort, parent, borrowing_limit, lending_limit, reserved, queue_order, isolation, description } = t;
  return { name, cpu, gpu, ram, rom, gpu_kinds, weight, cohort, parent, borrowing_limit, lending_limit, reserved, queue_order, isolation, description };
}

/** Which field a refusal speaks of, when its message names one. */
export function fieldOf(msg: string): FieldName | null {
  const limit = /^(borrowing_limit|lending_limit|reserved)\.(cpu|gpu|ram|rom)\b/.exec(msg);
  if (limit) return `${WORDS.find((w) => LIMITS[w] === limit[1]) ?? "borrow"}_${limit[2] as Dimension}`;
  const found = /^(?:field )?[`"$.]*(name|cpu|gpu|ram|rom|weight|description|cohort)\b/.exec(msg);
  if (found) return found[1] as FieldName;
  if (/^the parent \S+ does not exist|cannot be the parent of/.test(msg)) return "parent";
  return /\btenant\b.*\b(exists|taken)\b/.test(msg) ? "name" : null;
}
