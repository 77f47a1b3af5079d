/**
 * Sentences in the reader's language. The key is the English sentence, so English needs no catalogue; one of another
 * language comes as a file of its own. `t` and `n` are called with literals: what extracts the catalogue reads the source.
 */

/** English sentence (of a plural the one for 1) to its forms. */
export type Catalogue = Readonly<Record<string, readonly string[]>>;
export type Args = Readonly<Record<string, string | number>>;

export const LANGUAGES: readonly (readonly [string, string])[] = [["en", "English"], ["zh-CN", "简体中文"]];

/** In catalogues a plural's forms stand in this order. */
const CATEGORIES: readonly Intl.LDMLPluralRule[] = ["zero", "one", "two", "few", "many", "other"];

let known: Catalogue = {};
let spoken = "en";
let rules = new Intl.PluralRules(spoken);
let numbers = new Intl.NumberFormat(spoken);

/** The language of all that is drawn from now on. */
export const language = (): string => spoken;

/** The reader's time zone, for who makes sentences with times in them. */
export const zone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

/** The language here that a tag means: "zh", "zh-Hans-CN", "zh_CN"; null for others. */
export const languageOf = (tag: string): string | null =>
  LANGUAGES.find(([own]) => own.slice(0, 2) === /^[a-z]*/i.exec(tag)?.[0].toLowerCase())?.[0] ?? null;

/** Speak a language from now on; a sentence that its catalogue lacks stays English. */
export function speak(tag: string, catalogue: Catalogue): void {
  spoken = tag;
  known = catalogue;
  rules = new Intl.PluralRules(tag);
  numbers = new Intl.NumberFormat(tag);
}

const form = (id: string, at: number): string | undefined => (Object.hasOwn(known, id) ? known[id]?.[at] : undefined);

/** The pieces of a sentence around its {holes}, each of which is text or the name of a hole that there is something for. */
export const pieces = (sentence: string, has: (name: string) => boolean): (string | { hole: string })[] =>
  sentence.split(/(\{\w+\})/).filter(Boolean).map((piece) => {
    const hole = piece.slice(1, -1);
    return piece.startsWith("{") && has(hole) ? { hole } : piece;
  });

/** A sentence whose {holes} are filled. */
export const fill = (sentence: string, args: Args): string =>
  pieces(sentence, (name) => Object.hasOwn(args, name)).map((piece) => (typeof piece === "string" ? piece : args[piece.hole])).join("");

/** A sentence; what fills its {holes} is text, whatever it is. */
export const t = (sentence: string, args: Args = {}): string => fill(form(sentence, 0) || sentence, args);

/** A sentence that has a form of its own for 1; its hole {n} is how many. */
export function n(one: string, several: string, count: number, args: Args = {}): string {
  const has = rules.resolvedOptions().pluralCategories;
  const at = CATEGORIES.filter((category) => has.includes(category)).indexOf(rules.select(count));
  return fill(form(one, at) || (count === 1 ? one : several), { n: numbers.format(count), ...args });
}
