/** Forms of what a tenant has, a runtime or a window: what was typed, what is wrong with it, and what was refused of it. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { ApiError, plain, words } from "../../core/service/api";
import { t } from "../../core/format/language";

type Faults<F extends string> = Partial<Record<F, string>>;
type Given<F extends string> = { name: F; value: string; error: string | null; onInput: (value: string) => void };

export interface Form<F extends string> {
  /** What a field of this name is given. */
  given: (name: F) => Given<F>;
  /** What was refused of none of its fields: a sentence, or the error where there is a way out of it. */
  refused: unknown;
  busy: boolean;
  submit: (event: Event) => void;
}

/** `read` turns the texts into what is asked for, `send` asks for it; `fieldOf` tells which of the `order` a refusal speaks of. */
export function useForm<F extends string, R extends { asked: unknown; faults: Faults<F> }>(of: {
  begin: () => Record<F, string>;
  read: (texts: Record<F, string>) => R;
  send: (read: R & { asked: NonNullable<R["asked"]> }) => Promise<void>;
  order: readonly F[];
  fieldOf: (msg: string) => F | null;
  say?: (msg: string) => string;
}): Form<F> {
  const [texts, setTexts] = useState(of.begin);
  const [tried, setTried] = useState(false);
  const [refused, setRefused] = useState<{ field: F | null; msg: string; error: unknown } | null>(null);
  const [busy, setBusy] = useState(false);
  const { faults } = of.read(texts);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    const read = of.read(texts);
    setTried(true);
    setRefused(null);
    const focus = (field: string | null | undefined): void => {
      if (field) (form.elements.namedItem(field) as HTMLElement | null)?.focus();
    };
    if (!read.asked) return focus(of.order.find((f) => read.faults[f]));
    setBusy(true);
    try {
      await of.send(read as R & { asked: NonNullable<R["asked"]> });
    } catch (e) {
      const way = e instanceof ApiError && e.way ? e : null;
      const field = way ? null : of.fieldOf(plain(e));
      const msg = (of.say ?? ((msg) => msg))(words(e));
      setRefused({ field, msg, error: way ?? msg });
      setBusy(false);
      focus(field);
    }
  };
  const given = (name: F): Given<F> => ({
    name,
    value: texts[name],
    error: refused?.field === name ? refused.msg : tried ? (faults[name] ?? null) : null,
    onInput: (value) => {
      setTexts((old) => ({ ...old, [name]: value }));
      setRefused(null);
    },
  });
  return { given, refused: refused && !refused.field ? refused.error : null, busy, submit: (event) => void submit(event) };
}

/** The form itself, with what was refused of none of its fields, and its buttons. */
export function OwnForm<F extends string>({ form, label, yes, doing, cancel, children }: {
  form: Form<F>;
  label: string;
  yes: string;
  doing: string;
  cancel: () => void;
  children: ComponentChildren;
}): JSX.Element {
  return (
    <form class="mlp-form mlp-book" onSubmit={form.submit} aria-label={label} noValidate>
      {children}
      {form.refused ? <ErrorBox error={form.refused} /> : null}
      <div class="mlp-form-buttons">
        <button type="submit" class="mlp-button mlp-primary" disabled={form.busy}>
          {form.busy ? doing : yes}
        </button>
        <button type="button" class="mlp-button" onClick={cancel}>
          {t("Cancel")}
        </button>
      </div>
    </form>
  );
}
