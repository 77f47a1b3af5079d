/** What is typed to deploy a model or to register one, read as it is asked for. */
import { t } from "../format/language";

export const APP_NAME = /^[a-z]([a-z0-9-]{0,48}[a-z0-9])?$/;
const REPLICAS = /^(\d{1,3})(?::(\d{1,3}))?$/;
const MOST = 100;

export const nameFault = (name: string): string | null => (APP_NAME.test(name) ? null : t("a-z first, then a-z, 0-9 and -, at most 50 characters"));

/** A number, or MIN:MAX as it is sent; null: neither. */
export function replicasOf(text: string): number | string | null {
  const found = REPLICAS.exec(text.trim());
  if (!found) return null;
  const low = Number(found[1]);
  const high = Number(found[2] ?? found[1]);
  if (low > high || high < 1 || high > MOST) return null;
  return low === high ? low : `${low}:${high}`;
}

/** A name that a model may have, from that of a job. */
export const modelName = (job: string): string =>
  (job.split("@")[0] ?? job).toLowerCase().replace(/[^a-z0-9-]+/g, "-").replace(/^[^a-z]+|-+$/g, "").slice(0, 50).replace(/-+$/, "");
