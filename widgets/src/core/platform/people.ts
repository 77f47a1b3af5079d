/** Many people at once: a file as bytes to text, lines that are to be done to lots, and what came of them as CSV. Pure. */
import { t } from "../format/language";
import type { ImportedPerson } from "../service/wire";

/** Bytes of a file of people; more is no list of people. */
export const MOST_BYTES = 500_000;
/** Lines that are sent at once: the answer is awaited. */
export const LOT = 50;

/** The text of a file that a spreadsheet wrote; a sentence of what is wrong with it instead, as `Error`. */
export function decoded(data: ArrayBuffer): string {
  if (data.byteLength > MOST_BYTES) throw new Error(t("The file is too large for a list of people; at most half a megabyte"));
  const [a, b] = new Uint8Array(data.slice(0, 2));
  const encoding = a === 0xff && b === 0xfe ? "utf-16le" : a === 0xfe && b === 0xff ? "utf-16be" : "utf-8";
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(data);
  } catch {
    throw new Error(t("The file is not text in UTF-8; save the table as CSV, encoded as UTF-8"));
  }
}

export const stateWord = (state: ImportedPerson["state"]): string =>
  ({ new: t("will be made"), joins: t("will join the team"), there: t("already exists"), made: t("made"), joined: t("joined"), refused: t("refused") })[state];

/** Lines of those for whom something is to be done, as lots of CSV; their names and teams hold nothing that would need quotes. */
export function lots(people: ImportedPerson[]): string[] {
  const lines = people.filter((one) => one.state === "new" || one.state === "joins").map((one) => `${one.name},${one.team},${one.admin ? "yes" : "no"}`);
  return Array.from({ length: Math.ceil(lines.length / LOT) }, (_, i) => ["name,team,platform_admin", ...lines.slice(i * LOT, (i + 1) * LOT)].join("\n"));
}

/** Who was made with which password; nothing in it is a formula to a spreadsheet. */
export const passwords = (people: ImportedPerson[]): string =>
  ["name,password", ...people.filter((one) => one.password).map((one) => `${one.name},${one.password ?? ""}`)].join("\r\n");
