/** A button that takes a text along; not there where the page came without TLS, which has no clipboard. */
import type { JSX } from "preact";
import { t } from "../../core/format/language";
import { useHub } from "./context";

export function Copy({ text, label, large }: {
  text: string;
  /** What is copied, for who only hears the button. */
  label: string;
  large?: boolean;
}): JSX.Element | null {
  const { say } = useHub();
  if (!("clipboard" in navigator)) return null;
  const copy = (): void => void navigator.clipboard.writeText(text).then(() => say(t("Copied")), () => say(t("The browser does not let this page copy: select the text instead")));
  return (
    <button type="button" class={large ? "mlp-button" : "mlp-button mlp-small"} onClick={copy} aria-label={label} title={label}>
      {t("Copy")}
    </button>
  );
}
