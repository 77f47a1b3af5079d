/**
 * Which language the pages speak: the user's setting, as soon as the session tells it, until then this browser's cookie,
 * else what the browser asks for. The cookie follows the setting: the page to log in has nothing else.
 */
import { spoken } from "../components/basics/language";
import { learn } from "../core/format/catalogues";
import { language, LANGUAGES, languageOf } from "../core/format/language";
import { base } from "./shared/address";

const COOKIE = "mlp-language";
const YEAR_S = 31_536_000;

const english = LANGUAGES[0]?.[0] ?? "en";

function chosen(): string {
  const kept = new RegExp(`(?:^|;\\s*)${COOKIE}=([^;]*)`).exec(document.cookie)?.[1] ?? "";
  return [kept, ...navigator.languages].map(languageOf).find((tag) => tag !== null) ?? english;
}

/** Speak a language; the page that is open stays as it is. */
async function use(tag: string): Promise<void> {
  await learn(tag, `${base}static`);
  document.documentElement.lang = tag;
  spoken();
}

export const begin = (): Promise<void> => use(chosen());

function keep(tag: string): void {
  // for all of the hub, whose pages are above the service's
  const path = base.replace(/services\/[^/]+\/$/, "");
  const age = tag ? YEAR_S : 0;
  document.cookie = `${COOKIE}=${tag}; Path=${path}; Max-Age=${age}; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;
}

/** Speak as the user's setting says; one that is empty leaves it to the browser. */
export async function follow(setting: string): Promise<void> {
  if (!setting) return;
  keep(setting);
  if (setting !== language()) await use(setting);
}

/** Speak a language from now on; an empty one: as the browser asks. */
export function choose(tag: string): Promise<void> {
  keep(tag);
  return use(chosen());
}
