/** Environments of a team: what their form may say, and how one stands. */
import { t } from "./language";
import type { EnvironmentCreate, EnvironmentInfo } from "./wire";

export type EnvironmentField = "name" | "requirements";
export const ENVIRONMENT_FIELDS: readonly EnvironmentField[] = ["name", "requirements"];

const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,49}$/;

export interface ReadEnvironment {
  asked: EnvironmentCreate | null;
  faults: Partial<Record<EnvironmentField, string>>;
}

/** Read the form; `names` are those that there are. */
export function readEnvironment(texts: Record<EnvironmentField, string>, names: string[]): ReadEnvironment {
  const name = texts.name.trim();
  const faults: ReadEnvironment["faults"] = {};
  const same = names.find((one) => one.toLowerCase() === name.toLowerCase());
  if (!NAME.test(name)) faults.name = t("Letters, digits, -, _ and ., at most 50");
  else if (same) faults.name = t("There is {name} already", { name: same });
  if (!texts.requirements.trim()) faults.requirements = t("Name a package at least");
  return { asked: Object.keys(faults).length ? null : { name, requirements: texts.requirements }, faults };
}

/** Which field a refusal speaks of. */
export const environmentFieldOf = (msg: string): EnvironmentField | null =>
  /\brequirements\b|需求/.test(msg) ? "requirements" : /^environment\b|^环境/.test(msg) ? "name" : null;

export function environmentState(of: Pick<EnvironmentInfo, "state" | "lock">): { kind: string; words: string } {
  return {
    creating: { kind: "busy", words: of.lock ? t("being installed") : t("being resolved") },
    ready: { kind: "good", words: t("ready") },
    error: { kind: "bad", words: t("error") },
    deleting: { kind: "idle", words: t("being deleted") },
  }[of.state];
}

/** What an environment brings in a few words: its first packages, and how many there are besides. */
export function packagesTold(packages: Record<string, string>, most = 3): string {
  const all = Object.entries(packages).map(([name, version]) => `${name} ${version}`);
  const shown = all.slice(0, most).join(t(", "));
  return all.length > most ? t("{packages} and {n} more", { packages: shown, n: all.length - most }) : shown;
}
