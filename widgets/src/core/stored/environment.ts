/** Environments of a team: what their form may say, and how one stands. */
import { t } from "../format/language";
import type { EnvironmentCreate, EnvironmentInfo } from "../service/wire";

export type EnvironmentField = "name" | "requirements" | "image";
export const ENVIRONMENT_FIELDS: readonly EnvironmentField[] = ["name", "requirements", "image"];

const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,49}$/;
/** Roughly how an image is named; the service says it exactly. */
const IMAGE = /^[A-Za-z0-9][A-Za-z0-9._:/@-]{0,499}$/;

export interface ReadEnvironment {
  asked: EnvironmentCreate | null;
  faults: Partial<Record<EnvironmentField, string>>;
}

/** Read the form; `names` are those that there are, `images` whether one is an image here. */
export function readEnvironment(texts: Record<EnvironmentField, string>, names: string[], images = false): ReadEnvironment {
  const name = texts.name.trim();
  const faults: ReadEnvironment["faults"] = {};
  const same = names.find((one) => one.toLowerCase() === name.toLowerCase());
  if (!NAME.test(name)) faults.name = t("Letters, digits, -, _ and ., at most 50 characters");
  else if (same) faults.name = t("{name} already exists", { name: same });
  const image = texts.image.trim();
  if (images && !IMAGE.test(image)) faults.image = t("An image, such as registry.example.org/team/train:1");
  if (!images && !texts.requirements.trim()) faults.requirements = t("Name at least one package");
  const of = images ? { image } : { requirements: texts.requirements };
  return { asked: Object.keys(faults).length ? null : { name, ...of }, faults };
}

/** Which field a refusal speaks of. */
export const environmentFieldOf = (msg: string): EnvironmentField | null =>
  /^image\b|^镜像/.test(msg) ? "image" : /\brequirements\b|需求/.test(msg) ? "requirements" : /^environment\b|^环境/.test(msg) ? "name" : null;

/** What makes an environment with PyTorch. */
export const TORCH = { name: "pytorch", requirements: "torch\n" } satisfies EnvironmentCreate;

/** Whether an environment brings PyTorch, or is the one that will. */
export const hasTorch = (of: Pick<EnvironmentInfo, "name" | "packages">): boolean => "torch" in of.packages || of.name.toLowerCase() === TORCH.name;

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
