/** A script or notebook as a job: from what its form says to the request, with the defaults of the contract. Pure. */
import { COUNTED, placed, ROWS, type Dimension } from "../format/dimensions";
import { parseAmount, parseRam, ram, trim } from "../format/format";
import { t } from "../format/language";
import { SUBMIT } from "../format/terms";
import type { JobCreate } from "../service/wire";

export type FieldName = "name" | "runtime" | "workers" | Exclude<Dimension, "rom"> | "tenant" | "time_limit" | "params";
type Asked = Exclude<Dimension, "cpu" | "gpu" | "ram" | "rom">;
export type Texts = Record<FieldName, string>;
export type Faults = Partial<Record<FieldName, string>>;

const PARAM = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/;
const MOST_PARAMS = 100;
const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,49}$/;
const UNITS: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };
const YEAR_S = 365 * 86_400;

/** What may be a job: the service runs these. */
export const runnable = (path: string): boolean => path.endsWith(".py") || isNotebook(path);

/** One kernel runs it: as one worker, by no launcher. */
export const isNotebook = (path: string): boolean => path.endsWith(".ipynb");

/** The file's name as that of a job, by the same rule as `mlp submit` has it (test/jobs/jobnames.json). */
export function nameOf(path: string): string {
  const stem = (path.split("/").at(-1) ?? "").replace(/\.[^.]*$/, "");
  return stem.replace(/[^A-Za-z0-9._-]+/g, "-").replace(/^[^A-Za-z0-9_]+/, "").slice(0, 50) || "job";
}

export const textsOf = (path: string): Texts => ({
  name: nameOf(path),
  runtime: "",
  workers: String(SUBMIT.workers),
  cpu: trim(SUBMIT.cpu),
  gpu: trim(SUBMIT.gpu),
  ram: ram(SUBMIT.ram),
  ...(Object.fromEntries(COUNTED.map((d) => [d, ""])) as Record<Asked, string>),
  tenant: "",
  time_limit: "",
  params: "",
});

/** Seconds of "90s", "30m", "1h30m"; null where it is none. */
export function seconds(text: string): number | null {
  const typed = text.replace(/\s+/g, "").toLowerCase();
  const parts = [...typed.matchAll(/(\d+(?:\.\d+)?)([smhd])/g)];
  if (!parts.length || parts.map((part) => part[0]).join("") !== typed) return null;
  const all = Math.round(parts.reduce((sum, part) => sum + Number(part[1]) * (UNITS[part[2] ?? ""] ?? 0), 0));
  return all >= 1 && all <= YEAR_S ? all : null;
}

function workers(text: string): number | string | null {
  const found = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text.trim());
  if (!found) return null;
  const low = Number(found[1]);
  const high = Number(found[2] ?? found[1]);
  if (low < 1 || high < low || high > 10_000) return null;
  return low === high ? low : `${low}:${high}`;
}

/** What "lr=0.1 deep=true" means, as `--param` reads it; null where it is none. */
export function params(text: string): Record<string, string | number | boolean> | null {
  const words = text.split(/[\s,]+/).filter(Boolean);
  const pairs = words.map((word): [string, string] => [word.split("=", 1)[0] ?? "", word.slice(word.indexOf("=") + 1)]);
  if (words.length > MOST_PARAMS || words.some((word) => !word.includes("=")) || pairs.some(([name]) => !PARAM.test(name))) return null;
  return Object.fromEntries(
    pairs.map(([name, value]) => [name, /^(true|false)$/i.test(value) ? value.toLowerCase() === "true" : NUMBER.test(value) && Number.isFinite(Number(value)) ? Number(value) : value]),
  );
}

/** Request for the offer of a job by its name and shape; its memory and cores do not matter to what earlier runs used. */
export function offerPath(body: JobCreate): string {
  const asked: Record<string, string> = { name: body.name, workers: String(body.workers ?? 1) };
  if (body.runtime) asked.runtime = body.runtime;
  if (body.gpu) asked.gpu = String(body.gpu);
  if (body.tenant) asked.tenant = body.tenant;
  return `/offer?${new URLSearchParams(asked).toString()}`;
}

export function read(path: string, texts: Texts): { body: JobCreate | null; faults: Faults } {
  const faults: Faults = {};
  const name = texts.name.trim();
  if (!NAME.test(name)) faults.name = t("letters, digits, -, _ and ., such as lr-0.001, at most 50 characters");
  const count = workers(texts.workers);
  if (count === null) faults.workers = t("a number such as 4, or 2:8 for as many as fit");
  const usual = t("empty means the default");
  const auto = texts.ram.trim().toLowerCase() === "auto";
  const amounts = { cpu: parseAmount(texts.cpu, t("CPU"), 0.1, usual), gpu: parseAmount(texts.gpu, t("GPU"), 0, usual), ram: auto ? { ok: true as const, value: null } : parseRam(texts.ram, usual) };
  for (const field of ["cpu", "gpu", "ram"] as const) {
    const amount = amounts[field];
    if (!amount.ok) faults[field] = amount.msg;
  }
  const counted: Partial<Record<Dimension, number | null>> = {};
  for (const d of COUNTED) {
    const amount = ROWS[d].parse(texts[d as Asked], usual);
    if (amount.ok) counted[d] = amount.value;
    else (faults as Partial<Record<Dimension, string>>)[d] = amount.msg;
  }
  const limit = texts.time_limit.trim() ? seconds(texts.time_limit) : null;
  if (texts.time_limit.trim() && limit === null) faults.time_limit = t("a length of time such as 90s, 30m, 2h or 1h30m; empty means none");
  const given = params(texts.params);
  if (given === null) faults.params = t("names with values, such as lr=0.1 optimizer=adam");
  if (Object.keys(faults).length || count === null) return { body: null, faults };
  const value = (field: "cpu" | "gpu" | "ram"): number => {
    const amount = amounts[field];
    return (amount.ok ? amount.value : null) ?? SUBMIT[field];
  };
  const body: JobCreate = { name, entry: path, workers: isNotebook(path) ? 1 : count, cpu: value("cpu"), gpu: value("gpu"), ram: auto ? "auto" : value("ram"), ...placed(counted) as Pick<JobCreate, "amounts"> };
  if (texts.runtime && !isNotebook(path)) body.runtime = texts.runtime;
  if (texts.tenant) body.tenant = texts.tenant;
  if (limit !== null) body.time_limit = limit;
  if (given && Object.keys(given).length) body.params = given;
  return { body, faults };
}
