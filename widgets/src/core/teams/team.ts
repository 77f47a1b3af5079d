/** What a team asks for, as data: what was typed, and the words of a request. Pure. */
import { bytes, cores, parseAmount, parseBytes, parseRam, ram, trim, type Parsed } from "../format/format";
import { t } from "../format/language";
import { unchanged } from "./tenantform";
import type { QuotaRequest, Tenant } from "../service/wire";
import type { TenantSettings } from "./sharing";

export const AMOUNTS = ["cpu", "gpu", "ram", "rom"] as const;
export type Amount = (typeof AMOUNTS)[number];
export type AskField = Amount | "reason";
export const NOTHING_TYPED: Record<AskField, string> = { cpu: "", gpu: "", ram: "", rom: "", reason: "" };

const parse = (of: Amount, typed: string): Parsed => (of === "ram" ? parseRam(typed) : of === "rom" ? parseBytes(typed) : parseAmount(typed, of));
const shown = (of: Amount, value: number): string => (of === "ram" ? ram(value) : of === "rom" ? bytes(value) : cores(value));
const LABELS: Record<Amount, () => string> = { cpu: () => t("CPU"), gpu: () => t("GPU"), ram: () => t("Memory"), rom: () => t("Storage") };
export const label = (of: Amount): string => LABELS[of]();

/** What a team has of it now. */
export const has = (tenant: Tenant, of: Amount): string => {
  const value = tenant[of];
  return value === null ? t("no limit") : shown(of, value);
};

/** Of which a team can ask for more: where there is no limit there is nothing to ask for. */
export const askable = (tenant: Tenant): Amount[] => AMOUNTS.filter((of) => tenant[of] !== null);

export function readAsk(texts: Record<AskField, string>): { asked: (Partial<Record<Amount, number>> & { reason: string }) | null; faults: Partial<Record<AskField, string>> } {
  const faults: Partial<Record<AskField, string>> = {};
  const amounts: Partial<Record<Amount, number>> = {};
  for (const of of AMOUNTS) {
    if (!texts[of].trim()) continue;
    const parsed = parse(of, texts[of]);
    if (!parsed.ok) faults[of] = parsed.msg;
    else if (parsed.value !== null) amounts[of] = parsed.value;
  }
  if (!texts.reason.trim()) faults.reason = t("enter the purpose");
  if (!Object.keys(amounts).length && !Object.keys(faults).some((f) => f !== "reason")) faults.cpu = t("enter an amount");
  return { asked: Object.keys(faults).length ? null : { ...amounts, reason: texts.reason.trim() }, faults };
}

/** Which field a refusal speaks of. */
export const askFieldOf = (msg: string): AskField | null => ([...AMOUNTS, "reason"] as AskField[]).find((of) => new RegExp(`\\b(${of}${of === "rom" ? "|storage" : ""})\\b`).test(msg)) ?? null;

/** "CPU 8 cores, memory 16 GiB". */
export const amountWords = (of: QuotaRequest): string =>
  AMOUNTS.flatMap((one) => (of[one] === null ? [] : [t("{field} {value}", { field: label(one), value: shown(one, of[one] as number) })])).join(t(", "));

const STATES: Record<QuotaRequest["state"], () => string> = {
  open: () => t("waits for an answer"), accepted: () => t("accepted"), declined: () => t("declined"), withdrawn: () => t("taken back"),
};
export const stateWords = (of: QuotaRequest): string => STATES[of.state]();
export const tones: Record<QuotaRequest["state"], string> = { open: "wait", accepted: "good", declined: "bad", withdrawn: "idle" };

/** What the tenant would be if that were accepted: what it has more of by now stays. */
export function wouldBe(tenant: Tenant, asked: QuotaRequest): TenantSettings {
  const raised = Object.fromEntries(AMOUNTS.flatMap((of) => {
    const [has, wants] = [tenant[of], asked[of]];
    return has === null || wants === null ? [] : [[of, Math.max(has, wants)]];
  }));
  return { ...unchanged(tenant), ...raised };
}

export type CapField = "cpu" | "gpu" | "jobs";
export const CAPS: CapField[] = ["cpu", "gpu", "jobs"];
const CAP_LABELS: Record<CapField, () => string> = { cpu: () => t("Cores"), gpu: () => t("GPU devices"), jobs: () => t("Jobs at once") };
export const capLabel = (of: CapField): string => CAP_LABELS[of]();

/** What was typed of a cap; an empty field limits nothing. */
export function readCap(texts: Record<CapField, string>): { asked: Record<CapField, number | null> | null; faults: Partial<Record<CapField, string>> } {
  const faults: Partial<Record<CapField, string>> = {};
  const asked: Record<CapField, number | null> = { cpu: null, gpu: null, jobs: null };
  for (const of of CAPS) {
    const typed = texts[of].trim();
    if (!typed) continue;
    const parsed = parseAmount(typed, of === "jobs" ? t("a number of jobs") : of);
    if (!parsed.ok) faults[of] = parsed.msg;
    else if (of === "jobs" && !Number.isInteger(parsed.value)) faults[of] = t("a whole number");
    else asked[of] = parsed.value;
  }
  return { asked: Object.keys(faults).length ? null : asked, faults };
}

/** "4 cores, 2 jobs at once". */
export const capWords = (cap: Record<CapField, number | null>): string =>
  CAPS.flatMap((of) => (cap[of] === null ? [] : [t("{field} {value}", { field: capLabel(of), value: trim(cap[of] as number, 3) })])).join(t(", ")) || t("no limit");
