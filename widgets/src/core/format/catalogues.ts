/** The catalogues of the languages but English, each a file of its own that only its readers load. */
import { LANGUAGES, speak, type Catalogue } from "./language";

/** Address of each language's catalogue, beside the script; `build.mjs` fills it in. */
declare const CATALOGUES: Readonly<Record<string, string>>;

/** Speak a language as soon as its catalogue is here, and a null at once: English. One that cannot be had leaves English sentences. */
export function learn(tag: string, folder: string): Promise<void> | null {
  const file = CATALOGUES[tag];
  if (file === undefined) {
    speak(LANGUAGES[0]?.[0] ?? tag, {});
    return null;
  }
  return fetch(`${folder}/${file}`)
    .then((answer) => (answer.ok ? (answer.json() as Promise<Catalogue>) : {}))
    .catch((): Catalogue => ({}))
    .then((catalogue) => speak(tag, catalogue));
}
