/** The form of a tenant's runtime as data: texts that people typed, what is wrong with them, and the request. Pure. */
import { badName } from "../format/format";
import { t } from "../format/language";
import type { RuntimeUpdate, RuntimeInfo, RuntimeRole } from "../service/wire";

export const RUNTIME_FIELDS = ["name", "title", "description", "program", "launcher", "env", "roles", "ends_with", "needs", "success", "image"] as const;
export type RuntimeField = (typeof RUNTIME_FIELDS)[number];
export type RuntimeTexts = Record<RuntimeField, string>;
export type RuntimeFaults = Partial<Record<RuntimeField, string>>;

const lines = (text: string): string[] => text.split("\n").filter((line) => line !== "");

/** What the form begins with: a new one, or one that is there. */
export function runtimeTexts(of: RuntimeInfo | null): RuntimeTexts {
  return {
    name: of?.name ?? "",
    title: of?.title ?? "",
    description: of?.description ?? "",
    program: (of?.program ?? ["{program}"]).join("\n"),
    launcher: (of?.launcher ?? []).join("\n"),
    env: Object.entries(of?.env ?? {}).map(([name, value]) => `${name}=${value}`).join("\n"),
    roles: (of?.roles ?? [{ name: "worker", count: null }]).map((r) => (r.count === null ? r.name : `${r.name} ${r.count}`)).join(", "),
    ends_with: of?.ends_with ?? "",
    needs: of?.needs ?? "",
    success: (of?.success ?? [0]).join(", "),
    image: of?.image ?? "",
  };
}

/** What is asked for; what the form has no field for stays as it is in `before`. */
export function readRuntime(texts: RuntimeTexts, names: string[], before: RuntimeInfo | null): { name: string; asked: RuntimeUpdate | null; faults: RuntimeFaults } {
  const faults: RuntimeFaults = {};
  const name = texts.name.trim();
  const bad = badName(name) ?? (!before && names.includes(name) ? t("a runtime {name} already exists", { name }) : null);
  if (bad) faults.name = bad;
  const title = texts.title.trim();
  if (!title) faults.title = t("a title is needed");
  const program = lines(texts.program);
  if (!program.length) faults.program = t("a command is needed, one argument per line");
  const env: Record<string, string> = {};
  for (const line of lines(texts.env)) {
    const at = line.indexOf("=");
    if (at < 1) faults.env = t("{line} is not a variable; write NAME=VALUE, one per line", { line: line.slice(0, 40) });
    else env[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  const roles: RuntimeRole[] = [];
  for (const part of texts.roles.split(",").map((p) => p.trim()).filter(Boolean)) {
    const found = /^([a-z][a-z0-9-]*)(?:\s+(\d{1,4}))?$/.exec(part);
    if (!found) {
      faults.roles = t("{part} is not a role; write chief 1, worker", { part: part.slice(0, 40) });
      continue;
    }
    const role = found[1] ?? "";
    const program = before?.roles.find((r) => r.name === role)?.program ?? null;
    roles.push({ name: role, count: found[2] === undefined ? null : Number(found[2]), program });
  }
  if (!roles.length && !faults.roles) faults.roles = t("a role is needed, such as worker");
  const statuses = texts.success.split(",").map((s) => s.trim()).filter(Boolean);
  if (statuses.some((s) => !/^\d{1,3}$/.test(s) || Number(s) > 127)) faults.success = t("exit statuses are numbers from 0 to 127, separated by commas");
  const launcher = lines(texts.launcher);
  if (Object.keys(faults).length) return { name, asked: null, faults };
  const kept = before ? { rank_env: before.rank_env, linger_s: before.linger_s } : {};
  return {
    name,
    faults,
    asked: {
      title,
      description: texts.description.trim(),
      program,
      env,
      roles,
      launcher: launcher.length ? launcher : null,
      needs: texts.needs.trim() || null,
      image: texts.image.trim() || null,
      ends_with: texts.ends_with.trim() || null,
      success: statuses.map(Number),
      ...kept,
    },
  };
}

/** Which field a refusal speaks of, when its message begins with one: in every language these are the names of REST. */
export function runtimeFieldOf(msg: string): RuntimeField | null {
  return (new RegExp(`^(${RUNTIME_FIELDS.join("|")})\\b`).exec(msg)?.[1] as RuntimeField | undefined) ?? null;
}

/** What of it is run, as people read it. */
export const startsWords = (of: RuntimeInfo): string => (of.launcher ?? of.program).join(" ");

const STATES: Record<RuntimeInfo["state"], { kind: string; words: () => string; told: (name: string) => string }> = {
  approved: { kind: "good", words: () => t("approved"), told: (name) => t("Runtime {name} approved", { name }) },
  submitted: { kind: "wait", words: () => t("waits for review"), told: (name) => t("Runtime {name} waits for review", { name }) },
  disabled: { kind: "bad", words: () => t("disabled"), told: (name) => t("Runtime {name} disabled", { name }) },
};

export const runtimeState = (of: RuntimeInfo): { kind: string; words: string } => ({ kind: STATES[of.state].kind, words: STATES[of.state].words() });

/** What is said once a runtime has come into a state. */
export const runtimeTold = (name: string, state: RuntimeInfo["state"]): string => STATES[state].told(name);
