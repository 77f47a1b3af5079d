/** A question in front of everything else; the browser's own modal dialog keeps the focus inside. */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { t } from "../../core/format/language";
import { around, focusNear } from "./focus";
import { useId } from "./hooks";

const FOCUSABLE = "button:not([disabled]), [href], input:not([disabled]), select:not([disabled]), textarea, [tabindex='0']";

export function Dialog({ title, onClose, children }: {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}): JSX.Element {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId("dialog");
  useLayoutEffect(() => {
    const dialog = box.current;
    const before = document.activeElement;
    const places = before ? around(before) : [];
    dialog?.showModal();
    (dialog?.querySelector("[data-autofocus]") as HTMLElement | null)?.focus();
    return () => {
      dialog?.close();
      // what it was opened by may have gone meanwhile, as the row of a job that ended, or be of no use just now
      if (before instanceof HTMLElement && before !== document.body) before.focus();
      if (before !== document.body && document.activeElement !== before) focusNear(places);
    };
  }, []);
  // Tab goes round inside: without this a browser's own bars would be next
  const keys = (event: KeyboardEvent): void => {
    if (event.key !== "Tab" || !box.current) return;
    const all = [...box.current.querySelectorAll<HTMLElement>(FOCUSABLE)];
    const first = all[0];
    const last = all.at(-1);
    const at = document.activeElement;
    if (event.shiftKey && at === first && last) {
      event.preventDefault();
      last.focus();
    } else if (!event.shiftKey && at === last && first) {
      event.preventDefault();
      first.focus();
    }
  };
  return (
    <dialog
      ref={box}
      class="mlp-dialog"
      aria-labelledby={id}
      onKeyDown={keys}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
    </dialog>
  );
}

/** Ask before something that cannot be undone. `text` says what is lost. */
export function Confirm({ title, text, yes, no = t("Cancel"), busy, error, onYes, onNo }: {
  title: string;
  text: ComponentChildren;
  yes: string;
  no?: string;
  busy: boolean;
  error: ComponentChildren;
  onYes: () => void;
  onNo: () => void;
}): JSX.Element {
  return (
    <Dialog title={title} onClose={onNo}>
      <div class="mlp-dialog-text">{text}</div>
      {error}
      <div class="mlp-dialog-buttons">
        <button type="button" class="mlp-button" data-autofocus onClick={onNo}>
          {no}
        </button>
        <button type="button" class="mlp-button mlp-danger" disabled={busy} onClick={onYes}>
          {yes}
        </button>
      </div>
    </Dialog>
  );
}
