/** Secrets as data: what is asked for one that opens an object store, and what is wrong with it. Pure. */
import { badName } from "../format/format";
import { t } from "../format/language";
import type { SecretSet } from "../service/wire";

export const SECRET_FIELDS = ["name", "access_key_id", "secret_access_key", "session_token"] as const;
export type SecretField = (typeof SECRET_FIELDS)[number];
const VALUE_MAX = 8192;

export const secretTexts = (name = ""): Record<SecretField, string> => ({ name, access_key_id: "", secret_access_key: "", session_token: "" });

export function readSecret(texts: Record<SecretField, string>): { asked: SecretSet | null; name: string; faults: Partial<Record<SecretField, string>> } {
  const { name: typed, ...values } = texts;
  const name = typed.trim();
  const faults: Partial<Record<SecretField, string>> = {};
  const bad = badName(name);
  if (bad) faults.name = bad;
  const keys: Record<string, string> = {};
  for (const [key, value] of Object.entries(values) as [Exclude<SecretField, "name">, string][]) {
    const given = value.trim();
    if (given.length > VALUE_MAX) faults[key] = t("{most} characters at most", { most: VALUE_MAX });
    else if (given) keys[key] = given;
    else if (key !== "session_token") faults[key] = t("needed");
  }
  return { asked: Object.keys(faults).length ? null : { keys }, name, faults };
}
