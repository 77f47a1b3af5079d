/** What a team asks for, as data: what was typed, and the words of a request. Pure. */
import { DIMENSIONS, placed, quotaOf, ROWS, type Dimension } from "../format/dimensions";
import { parseAmount, trim } from "../format/format";
import { t } from "../format/language";
import { unchanged } from "./tenantform";
import type { QuotaRequest, Tenant } from "../service/wire";
import type { TenantSettings } from "./sharing";

export const AMOUNTS = DIMENSIONS;
export type Amount = Dimension;
export type AskField = Amount | "reason";
export const NOTHING_TYPED: Record<AskField, string> = { ...(Object.fromEntries(AMOUNTS.map((of) => [of, ""])) as Record<Amount, string>), reason: "" };

const shown = (of: Amount, value: number): string => ROWS[of].show(value);
export const label = (of: Amount): string => ROWS[of].label();

/** What a team has of it now. */
export const has = (tenant: Tenant, of: Amount): string => {
  const value = quotaOf(tenant, of);
  return value === null ? t("no limit") : shown(of, value);
};

/** Of which a team can ask for more: where there is no limit there is nothing to ask for. */
export const askable = (tenant: Tenant): Amount[] => AMOUNTS.filter((of) => quotaOf(tenant, of) !== null);

export function readAsk(texts: Record<AskField, string>): { asked: (ReturnType<typeof placed> & { reason: string }) | null; faults: Partial<Record<AskField, string>> } {
  const faults: Partial<Record<AskField, string>> = {};
  const amounts: Partial<Record<Amount, number>> = {};
  for (const of of AMOUNTS) {
    if (!texts[of].trim()) continue;
    const parsed = ROWS[of].parse(texts[of]);
    if (!parsed.ok) faults[of] = parsed.msg;
    else if (parsed.value !== null) amounts[of] = parsed.value;
  }
  if (!texts.reason.trim()) faults.reason = t("enter the purpose");
  if (!Object.keys(amounts).length && !Object.keys(faults).some((f) => f !== "reason")) faults.cpu = t("enter an amount");
  return { asked: Object.keys(faults).length ? null : { ...placed(amounts), reason: texts.reason.trim() }, faults };
}

/** Which field a refusal speaks of. */
export const askFieldOf = (msg: string): AskField | null => ([...AMOUNTS, "reason"] as AskField[]).find((of) => new RegExp(`\\b(${of}${of === "rom" ? "|storage" : ""})\\b`).test(msg)) ?? null;

/** "CPU 8 cores, memory 16 GiB". */
export const amountWords = (of: QuotaRequest): string =>
  AMOUNTS.flatMap((one) => {
    const asked = quotaOf(of, one);
    return asked === null ? [] : [t("{field} {value}", { field: label(one), value: shown(one, asked) })];
  }).join(t(", "));

const STATES: Record<QuotaRequest["state"], () => string> = {
  open: () => t("waits for an answer"), accepted: () => t("accepted"), declined: () => t("declined"), withdrawn: () => t("taken back"),
};
export const stateWords = (of: QuotaRequest): string => STATES[of.state]();
export const tones: Record<QuotaRequest["state"], string> = { open: "wait", accepted: "good", declined: "bad", withdrawn: "idle" };

/** What the tenant would be if that were accepted: what it has more of by now stays. */
export function wouldBe(tenant: Tenant, asked: QuotaRequest): TenantSettings {
  const raised = Object.fromEntries(AMOUNTS.flatMap((of) => {
    const [has, wants] = [quotaOf(tenant, of), quotaOf(asked, of)];
    return has === null || wants === null ? [] : [[of, Math.max(has, wants)]];
  })) as Partial<Record<Amount, number>>;
  const { amounts, ...flat } = placed(raised);
  return { ...unchanged(tenant), ...flat, ...(amounts ? { amounts: { ...tenant.amounts, ...amounts } } : {}) };
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
