/** Form fields with their label, hint and what is wrong with them. */
import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { useId } from "./hooks";

export function Field({ label, value, onInput, hint, error, name, autofocus, disabled, placeholder, choices, type = "text" }: {
  label: string;
  name: string;
  value: string;
  onInput: (value: string) => void;
  hint?: ComponentChildren;
  error?: string | null;
  autofocus?: boolean;
  disabled?: boolean;
  placeholder?: string;
  /** What is offered while one types; anything else may be typed too. */
  choices?: string[] | undefined;
  type?: "text" | "password" | "datetime-local" | "time";
}): JSX.Element {
  const id = useId("field");
  const box = useRef<HTMLInputElement>(null);
  // a browser's own `autofocus` does nothing where the button that opened the form stays and has the focus
  useLayoutEffect(() => {
    if (autofocus) box.current?.focus();
  }, []);
  const bad = Boolean(error);
  // the types of inputs know which of them offer choices, so each kind is told apart
  const how = choices?.length ? { type: "text" as const, list: `${id}-choices` } : type === "text" ? { type } : type === "password" ? { type } : { type };
  return (
    <div class={bad ? "mlp-field mlp-field-bad" : "mlp-field"}>
      <label for={id}>{label}</label>
      <input
        ref={box}
        id={id}
        name={name}
        autocomplete={type === "password" ? "new-password" : "off"}
        spellcheck={false}
        value={value}
        disabled={disabled ?? false}
        placeholder={placeholder ?? ""}
        {...how}
        aria-invalid={bad}
        aria-describedby={`${id}-hint`}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
      {choices?.length ? (
        <datalist id={`${id}-choices`}>
          {choices.map((choice) => (
            <option key={choice} value={choice} />
          ))}
        </datalist>
      ) : null}
      <span id={`${id}-hint`} class={bad ? "mlp-field-error" : "mlp-field-hint"} {...(bad ? { role: "alert" } : {})}>
        {bad ? error : hint}
      </span>
    </div>
  );
}

/** A field of several lines. */
export function Lines({ label, name, value, onInput, hint, error }: {
  label: string;
  name: string;
  value: string;
  onInput: (value: string) => void;
  hint?: ComponentChildren;
  error?: string | null;
}): JSX.Element {
  const id = useId("field");
  const bad = Boolean(error);
  return (
    <div class={bad ? "mlp-field mlp-field-bad" : "mlp-field"}>
      <label for={id}>{label}</label>
      <textarea
        id={id}
        name={name}
        rows={4}
        spellcheck={false}
        value={value}
        aria-invalid={bad}
        aria-describedby={`${id}-hint`}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
      <span id={`${id}-hint`} class={bad ? "mlp-field-error" : "mlp-field-hint"} {...(bad ? { role: "alert" } : {})}>
        {bad ? error : hint}
      </span>
    </div>
  );
}

export function Select({ label, name, value, options, onChange, hideLabel }: {
  label: string;
  name: string;
  value: string;
  options: [string, string][];
  onChange: (value: string) => void;
  hideLabel?: boolean;
}): JSX.Element {
  const id = useId("select");
  return (
    <span class="mlp-select-box">
      <label for={id} class={hideLabel ? "mlp-hidden" : ""}>
        {label}
      </label>
      <select id={id} name={name} class="mlp-select" value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {options.map(([key, text]) => (
          <option key={key} value={key}>
            {text}
          </option>
        ))}
      </select>
    </span>
  );
}

export function PageHead({ title, sub, children }: {
  title: ComponentChildren;
  sub?: ComponentChildren;
  children?: ComponentChildren;
}): JSX.Element {
  return (
    <header class="mlp-page-head">
      <div>
        <h1 tabIndex={-1}>{title}</h1>
        {sub ? <p class="mlp-dim">{sub}</p> : null}
      </div>
      {children ? <div class="mlp-page-tools">{children}</div> : null}
    </header>
  );
}
