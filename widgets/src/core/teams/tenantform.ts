/** The tenant form as data: texts that people typed, what is wrong with them, and the request they make. Pure. */
import { DIMENSIONS, placed, quotaOf, ROWS, type Dimension, type Flat } from "../format/dimensions";
import { badName, parseAmount, trim, type Parsed } from "../format/format";
import { t } from "../format/language";
import type { ByDimension, TenantSettings } from "./sharing";
import { ON_NODES, TENANT_FIELDS } from "../format/terms";
import type { Tenant } from "../service/wire";

type Amounts = Pick<TenantSettings, Flat> & { amounts?: Record<string, number> };
/** The limits of sharing, by the word that begins the names of their fields. */
export const LIMITS = { borrow: "borrowing_limit", lend: "lending_limit", reserve: "reserved" } as const;
export type LimitWord = keyof typeof LIMITS;
export type LimitField = `${LimitWord}_${Dimension}`;
interface Plain {
  label: () => string;
  hint: () => string;
  /** What may be chosen, with its words; an empty one is null. Without these it is a text. */
  options?: () => [string, string][];
}
/** Settings that are what was typed or chosen; the form shows them in this order. */
export const PLAIN = {
  description: { label: () => t("Description"), hint: () => t("At most 500 characters") },
  network: {
    label: () => t("Network of its jobs and notebooks"),
    hint: () => t("Outbound: other machines, never this one. The change applies to jobs and notebooks that start after it."),
    options: () => [["", t("As in the hub's settings")], ["none", t("None")], ["outbound", t("Outbound")]],
  },
  isolation: {
    label: () => t("How its files are kept"),
    hint: () => t("Datasets, models and jobs' directories; homes stay where they are. A change moves these files. Until the move is done, nothing of the team starts."),
    options: () => [["shared", t("In the shared tree")], ["encrypted", t("Encrypted, with its own key")], ["dedicated", t("In its own root")]],
  },
  data_root: {
    label: () => t("Own root"),
    hint: () => t("An absolute path for this team alone, such as /srv/tenants/red; only if its files have their own root"),
  },
  leavers: {
    label: () => t("Running jobs of members who leave"),
    hint: () => t("This also applies to people whose account is removed. In both cases waiting jobs are suspended and notebook servers end."),
    options: () => [["finish", t("Continue until they end")], ["stop", t("Are cancelled")]],
  },
  datasets: {
    label: () => t("Datasets that a member's jobs may read"),
    hint: () => t("Read only, and none of another team. The change applies to jobs that start after it."),
    options: () => [["own", t("The member's own datasets")], ["members", t("Datasets of all members")]],
  },
  joining: {
    label: () => t("Requests to join it"),
    hint: () => t("Other people see its name and description only if they may ask. Its admins decide."),
    options: () => [["closed", t("Nobody may ask")], ["asked", t("Anybody may ask")]],
  },
} satisfies Partial<Record<keyof TenantSettings, Plain>>;
export type PlainField = keyof typeof PLAIN;
export const PLAIN_FIELDS = Object.keys(PLAIN) as PlainField[];
export const plain = (field: PlainField): Plain => PLAIN[field];
export type FieldName = "name" | Dimension | "weight" | PlainField | "cohort" | "parent" | "queue_order" | LimitField;
export type Texts = Record<FieldName, string>;
export type Faults = Partial<Record<FieldName, string>>;
export type Sharing = Pick<TenantSettings, "cohort" | "parent" | "borrowing_limit" | "lending_limit" | "reserved" | "queue_order">;

const WORDS = Object.keys(LIMITS) as LimitWord[];
/** Storage is no matter of nodes, and nothing of it can be kept free on them. */
export const fieldsOf = (word: LimitWord): Dimension[] => DIMENSIONS.filter((d) => word !== "reserve" || ON_NODES.includes(d));
export const LIMIT_FIELDS = WORDS.flatMap((w) => fieldsOf(w).map((d) => `${w}_${d}` as LimitField));
/** Fields of the folded part of the form. */
export const SHARING_FIELDS: FieldName[] = ["queue_order", "cohort", "parent", ...LIMIT_FIELDS];

const NO_LIMITS = Object.fromEntries(LIMIT_FIELDS.map((f) => [f, ""])) as Record<LimitField, string>;
export const EMPTY: Texts = {
  name: "", ...byDimension(() => ""), weight: "1", ...plainTexts(unsaid), cohort: "", parent: "", queue_order: "priority", ...NO_LIMITS,
};

export function textsOf(tenant: TenantSettings): Texts {
  const limits = { ...NO_LIMITS };
  for (const word of WORDS) {
    for (const d of fieldsOf(word)) limits[`${word}_${d}`] = text(d, tenant[LIMITS[word]]?.[d] ?? null);
  }
  return {
    name: tenant.name,
    ...byDimension((d) => text(d, quotaOf(tenant, d))),
    weight: trim(tenant.weight, 3),
    ...plainTexts((field) => tenant[field] ?? unsaid(field)),
    cohort: tenant.cohort ?? "",
    parent: tenant.parent ?? "",
    queue_order: tenant.queue_order,
    ...limits,
  };
}

/** What a setting is of which nothing is said. */
function unsaid(field: PlainField): string {
  return field === "leavers" ? "finish" : field === "datasets" ? "own" : field === "isolation" ? "shared" : field === "joining" ? "closed" : "";
}

function plainTexts(of: (field: PlainField) => string): Record<PlainField, string> {
  return Object.fromEntries(PLAIN_FIELDS.map((field) => [field, of(field)])) as Record<PlainField, string>;
}

function text(dimension: Dimension, value: number | null): string {
  return value === null ? "" : ROWS[dimension].typed(value);
}

function byDimension<T>(of: (d: Dimension) => T): Record<Dimension, T> {
  return Object.fromEntries(DIMENSIONS.map((d) => [d, of(d)])) as Record<Dimension, T>;
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
    const bad = badName(texts.name) ?? (names.includes(texts.name) ? t("team {name} already exists", { name: texts.name }) : null);
    if (bad) faults.name = bad;
  }
  const amounts = placed(byDimension((d) => take(d, ROWS[d].parse(texts[d])))) as Amounts;
  const weight = parseAmount(texts.weight, t("the weight"));
  if (!weight.ok || weight.value === null || weight.value <= 0) faults.weight = t("the weight is a number above 0, such as 1");
  if (texts.description.length > 500) faults.description = t("at most 500 characters, this has {n}", { n: texts.description.length });
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
    const bad = sharing[field] === null ? null : badName(sharing[field], field === "cohort" ? t("a cohort's name") : t("a parent's name"));
    if (bad) faults[field] = bad;
  }
  if (sharing.cohort && sharing.parent) faults.parent = t("enter a cohort or a parent, not both: with a parent it shares with its siblings");
  for (const word of WORDS) {
    const name = LIMITS[word];
    // limits of single kinds of gpu have no field here, and stay
    const limits: ByDimension = Object.fromEntries(Object.entries(kept?.[name] ?? {}).filter(([d]) => d.includes(":")));
    for (const d of fieldsOf(word)) {
      const field: LimitField = `${word}_${d}`;
      const parsed = ROWS[d].parse(texts[field]);
      if (!parsed.ok) faults[field] = parsed.msg;
      else if (parsed.value !== null) {
        limits[d] = parsed.value;
        const fault = limitFault(word, parsed.value, quotaOf(amounts, d), Boolean(sharing.cohort ?? sharing.parent));
        if (fault) faults[field] = fault;
      }
    }
    if (Object.keys(limits).length) sharing[name] = limits;
  }
  return sharing;
}

function limitFault(word: LimitWord, value: number, quota: number | null, shares: boolean): string | null {
  if (word !== "reserve" && !shares) return t("needs a cohort or a parent");
  if (word !== "reserve" && quota === null) return t("needs a quota above; 0 means that it owns nothing");
  if (word !== "borrow" && quota !== null && value > quota) return t("is above the quota");
  return null;
}

/** What is wrong with a tenant's place among others, where these are all there would be. */
export function placeFaults(name: string, all: ReadonlyMap<string, Pick<Texts, "cohort" | "parent">>): Faults {
  const faults: Faults = {};
  const own = all.get(name);
  const [cohort, parent] = [own?.cohort.trim() ?? "", own?.parent.trim() ?? ""];
  // one name for a cohort and a tenant would mix up their trees
  if (cohort && all.has(cohort)) faults.cohort = t("{cohort} is a team: give the cohort another name, or make {cohort} the parent", { cohort });
  if (name && [...all.values()].some((own) => own.cohort.trim() === name)) faults.name = t("{name} is the name of a cohort: use another one", { name });
  if (parent && !all.has(parent)) faults.parent = t("team {parent} does not exist", { parent });
  const seen = new Set([name]);
  for (let at = parent; at && all.has(at); at = all.get(at)?.parent.trim() ?? "") {
    if (seen.has(at)) {
      faults.parent = parent === name ? t("a team cannot be its own parent") : t("{parent} is below {name}, so it cannot be above it too", { parent, name });
      break;
    }
    seen.add(at);
  }
  return faults;
}

function plainOf(texts: Texts): Partial<TenantSettings> {
  const own = texts.isolation === "dedicated" ? texts.data_root.trim() : "";
  return { ...Object.fromEntries(PLAIN_FIELDS.map((field) => [field, plain(field).options ? texts[field] || null : texts[field]])), data_root: own };
}

/** The body of a POST: a new tenant; what the form does not show is as the hub has it. */
export function create(texts: Texts, r: Read): Partial<TenantSettings> {
  return { name: texts.name, amounts: {}, ...r.amounts, weight: r.weight, ...r.sharing, ...plainOf(texts) };
}

/** The body of a PUT: all that the tenant is from now on; what the form does not show stays as it is. */
export function update(tenant: Tenant, texts: Texts, r: Read): TenantSettings {
  return { ...unchanged(tenant), ...create(texts, r), name: tenant.name };
}

/** The body of a PUT that changes nothing. */
export const unchanged = (tenant: Tenant): TenantSettings => Object.fromEntries(TENANT_FIELDS.map((name) => [name, tenant[name]])) as unknown as TenantSettings;

/** Which field a refusal speaks of, when its message names one. */
export function fieldOf(msg: string): FieldName | null {
  const limit = new RegExp(`^(borrowing_limit|lending_limit|reserved)\\.(${DIMENSIONS.join("|")})\\b`).exec(msg);
  if (limit) return `${WORDS.find((w) => LIMITS[w] === limit[1]) ?? "borrow"}_${limit[2] as Dimension}`;
  const found = /^(?:field )?[`"$.]*(\w+)/.exec(msg)?.[1] as FieldName | undefined;
  if (found && ["name", ...DIMENSIONS, "weight", ...PLAIN_FIELDS, "cohort"].includes(found)) return found;
  if (/^the parent \S+ does not exist|cannot be the parent of/.test(msg)) return "parent";
  return /\btenant\b.*\b(exists|taken)\b/.test(msg) ? "name" : null;
}
