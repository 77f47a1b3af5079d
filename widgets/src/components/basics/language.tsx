/** Sentences with elements in them, and what is drawn anew when the language changes. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { language, pieces } from "../../core/format/language";

/** A sentence, as `t` gives it, whose remaining {holes} are elements or what a person wrote: that is never read for holes. */
export function rich(sentence: string, elements: Readonly<Record<string, ComponentChildren>>): ComponentChildren[] {
  return pieces(sentence, (name) => Object.hasOwn(elements, name)).map((piece) => (typeof piece === "string" ? piece : elements[piece.hole]));
}

const SPOKEN = "mlp-spoken";

/** Tell all that is drawn that another language is spoken. */
export const spoken = (): boolean => window.dispatchEvent(new Event(SPOKEN));

/** The language; what uses it is drawn anew with another one. */
export function useLanguage(): string {
  const [now, setNow] = useState(language);
  useEffect(() => {
    const hear = (): void => setNow(language());
    window.addEventListener(SPOKEN, hear);
    return () => window.removeEventListener(SPOKEN, hear);
  }, []);
  return now;
}
