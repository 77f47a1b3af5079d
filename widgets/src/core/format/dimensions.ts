/** What quotas count: how each dimension is called, shown and typed. Cores, devices, memory and storage are fields of objects; all others are in `amounts`. Pure. */
import { bytes, cores, cpus, gpus, parseAmount, parseBytes, parseRam, ram, trim, type Parsed } from "./format";
import { t } from "./language";
import { DIMENSIONS } from "./terms";

export { DIMENSIONS };
export type Dimension = (typeof DIMENSIONS)[number];
const FLAT = ["cpu", "gpu", "ram", "rom"] as const;
export type Flat = (typeof FLAT)[number];

interface Row {
  label: () => string;
  hint: () => string;
  show: (amount: number) => string;
  /** "4 GiB memory" */
  named: (amount: number) => string;
  /** What was typed; `empty`: what an empty text means, if not that there is no limit. */
  parse: (typed: string, empty?: string) => Parsed;
  /** As it is typed; a short form only where it says exactly the same. */
  typed: (amount: number) => string;
  /** What the limits of sharing are called. */
  borrow: () => string;
  lend: () => string;
  reserve: () => string;
  /** What the form of a job says of it, for those that are only counted. */
  ofRank?: () => string;
}

const exact = (value: number, unit: number, short: string, long: string): string => (value % unit === 0 && value < unit * 1024 ? short : long);
const memory = {
  show: ram,
  parse: (typed: string, empty?: string) => parseRam(typed, empty),
  typed: (n: number) => exact(n, 1024, ram(n), `${n} MiB`),
};

export const ROWS: Record<Dimension, Row> = {
  cpu: {
    label: () => t("CPU"), hint: () => t("Cores"), show: cores, named: cpus, parse: (typed) => parseAmount(typed, "cpu"), typed: (n) => trim(n, 3),
    borrow: () => t("Borrow CPU"), lend: () => t("Lend CPU"), reserve: () => t("Reserve CPU"),
  },
  gpu: {
    label: () => t("GPU"), hint: () => t("Devices"), show: cores, named: (n) => gpus(n), parse: (typed) => parseAmount(typed, "gpu"), typed: (n) => trim(n, 3),
    borrow: () => t("Borrow GPU"), lend: () => t("Lend GPU"), reserve: () => t("Reserve GPU"),
  },
  ram: {
    ...memory, label: () => t("Memory"), hint: () => t("Such as 16 GiB; a bare number is MiB"), named: (n) => t("{amount} memory", { amount: ram(n) }),
    borrow: () => t("Borrow memory"), lend: () => t("Lend memory"), reserve: () => t("Reserve memory"),
  },
  rom: {
    label: () => t("Storage"), hint: () => t("Such as 100 GiB"), show: bytes, named: (n) => t("{amount} storage", { amount: bytes(n) }), parse: parseBytes,
    typed: (n) => exact(n, 1024 ** 3, bytes(n), String(n)),
    borrow: () => t("Borrow storage"), lend: () => t("Lend storage"), reserve: () => "",
  },
  shm: {
    ...memory, label: () => t("Shared memory"), hint: () => t("/dev/shm of jobs, a part of their memory, such as 16 GiB"), named: (n) => t("{amount} shared memory", { amount: ram(n) }),
    borrow: () => t("Borrow shared memory"), lend: () => t("Lend shared memory"), reserve: () => "",
    ofRank: () => t("/dev/shm of each, a part of its memory; empty means half of it"),
  },
};

const isFlat = (d: Dimension): d is Flat => (FLAT as readonly string[]).includes(d);
export const COUNTED: Dimension[] = DIMENSIONS.filter((d) => !isFlat(d));

type Quota = Record<Flat, number | null> & { amounts?: Record<string, number> };
/** A quota of one dimension; null: no limit. */
export const quotaOf = (of: Quota, d: Dimension): number | null => (isFlat(d) ? of[d] : (of.amounts?.[d] ?? null));
/** An amount of one dimension that is held. */
export const heldOf = (of: Record<Flat, number> & { amounts?: Record<string, number> }, d: Dimension): number => (isFlat(d) ? of[d] : (of.amounts?.[d] ?? 0));
type Used = Record<`${Flat}_inuse`, number> & { amounts_inuse?: Record<string, number> };
export const inUseOf = (of: Used, d: Dimension): number => (isFlat(d) ? of[`${d}_inuse`] : (of.amounts_inuse?.[d] ?? 0));
/** Dimensions to show of a team: those that are fields, and each other one that it has a limit or a use of. */
export const shownOf = (of: Quota & Used): Dimension[] => DIMENSIONS.filter((d) => isFlat(d) || quotaOf(of, d) !== null || inUseOf(of, d) > 0);
/** Amounts by dimension, each where the wire has it. */
export function placed(by: Partial<Record<Dimension, number | null>>): Partial<Record<Flat, number | null>> & { amounts?: Record<string, number> } {
  const amounts: Record<string, number> = {};
  for (const d of COUNTED) if (by[d] != null) amounts[d] = by[d] as number;
  const flat = Object.fromEntries(FLAT.flatMap((d) => (d in by ? [[d, by[d]]] : [])));
  return { ...flat, ...(Object.keys(amounts).length ? { amounts } : {}) };
}
