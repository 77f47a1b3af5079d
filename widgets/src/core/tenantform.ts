/** The tenant form as data: texts that people typed, what is wrong with them, and the request they make. Pure. */
import { badName, bytes, parseAmount, parseBytes, parseRam, ram, trim, type Parsed } from "./format";
import type { Amounts, Tenant, TenantSettings } from "./wire";

export type FieldName = "name" | "cpu" | "gpu" | "ram" | "rom" | "weight" | "description";
export type Texts = Record<FieldName, string>;
export type Faults = Partial<Record<FieldName, string>>;

export const EMPTY: Texts = { name: "", cpu: "", gpu: "", ram: "", rom: "", weight: "1", description: "" };

export function textsOf(tenant: TenantSettings): Texts {
  return {
    name: tenant.name,
    cpu: tenant.cpu === null ? "" : trim(tenant.cpu, 3),
    gpu: tenant.gpu === null ? "" : trim(tenant.gpu, 3),
    ram: tenant.ram === null ? "" : exact(tenant.ram, 1024, ram(tenant.ram), `${tenant.ram} MiB`),
    rom: tenant.rom === null ? "" : exact(tenant.rom, 1024 ** 3, bytes(tenant.rom), String(tenant.rom)),
    weight: trim(tenant.weight, 3),
    description: tenant.description,
  };
}

/** The short form only where it says exactly the same. */
function exact(value: number, unit: number, short: string, long: string): string {
  return value % unit === 0 && value < unit * 1024 ? short : long;
}

export interface Read {
  amounts: Amounts;
  weight: number;
  faults: Faults;
}

/** Read the typed texts; `names`: taken ones, or null when the name is not asked for. */
export function read(texts: Texts, names: string[] | null): Read {
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
    cpu: take("cpu", parseAmount(texts.cpu, "cpu")),
    gpu: take("gpu", parseAmount(texts.gpu, "gpu")),
    ram: take("ram", parseRam(texts.ram)),
    rom: take("rom", parseBytes(texts.rom)),
  };
  const weight = parseAmount(texts.weight, "the weight");
  if (!weight.ok || weight.value === null || weight.value <= 0) faults.weight = "the weight is a number above 0, such as 1";
  if (texts.description.length > 500) faults.description = `at most 500 characters, this has ${texts.description.length}`;
  return { amounts, weight: weight.ok && weight.value ? weight.value : 1, faults };
}

/** The body of a PUT: all that the tenant is from now on; what the form does not show stays as it is. */
export function update(tenant: Tenant, texts: Texts, r: Read): TenantSettings {
  return {
    name: tenant.name,
    ...r.amounts,
    gpu_kinds: tenant.gpu_kinds,
    weight: r.weight,
    cohort: tenant.cohort,
    parent: tenant.parent,
    borrowing_limit: tenant.borrowing_limit,
    lending_limit: tenant.lending_limit,
    reserved: tenant.reserved,
    isolation: tenant.isolation,
    description: texts.description,
  };
}

/** Which field a refusal speaks of, when its message names one. */
export function fieldOf(msg: string): FieldName | null {
  const found = /^(?:field )?[`"$.]*(name|cpu|gpu|ram|rom|weight|description)\b/.exec(msg);
  if (found) return found[1] as FieldName;
  return /\btenant\b.*\b(exists|taken)\b/.test(msg) ? "name" : null;
}
