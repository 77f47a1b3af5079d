/** Create or edit a tenant: checked while typing, with what the quota would mean for its jobs. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ErrorBox, Icon } from "../components/basics";
import { ApiError } from "../core/api";
import { countHolding, preview, previewWords } from "../core/preview";
import { EMPTY, fieldOf, read, textsOf, type FieldName, type Read, type Texts } from "../core/tenantform";
import type { QueueEntry, Tenant } from "../core/wire";
import { Field } from "./form";

export interface FormProps {
  /** The tenant to edit; null: a new one. */
  tenant: Tenant | null;
  /** Names that are taken. */
  names: string[];
  queue: QueueEntry[] | null;
  onSave: (texts: Texts, read: Read) => Promise<void>;
  onCancel: () => void;
}

export function TenantForm({ tenant, names, queue, onSave, onCancel }: FormProps): JSX.Element {
  const [texts, setTexts] = useState<Texts>(tenant ? textsOf(tenant) : EMPTY);
  const [touched, setTouched] = useState<Set<FieldName>>(new Set());
  const [refused, setRefused] = useState<{ field: FieldName | null; error: unknown } | null>(null);
  const [busy, setBusy] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const r = read(texts, tenant ? null : names);
  useEffect(() => {
    form.current?.querySelector<HTMLInputElement>("input:not([disabled])")?.focus();
  }, []);
  const set = (field: FieldName) => (value: string): void => {
    setTexts({ ...texts, [field]: value });
    setTouched(new Set([...touched, field]));
    if (refused?.field === field) setRefused(null);
  };
  const wrong = (field: FieldName): string | null => {
    if (refused?.field === field) return refused.error instanceof Error ? refused.error.message : String(refused.error);
    return touched.has(field) ? (r.faults[field] ?? null) : null;
  };
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const bad = Object.keys(r.faults) as FieldName[];
    if (bad.length) {
      setTouched(new Set([...touched, ...bad]));
      form.current?.querySelector<HTMLInputElement>(`input[name="${bad[0]}"]`)?.focus();
      return;
    }
    setBusy(true);
    setRefused(null);
    try {
      await onSave(texts, r);
    } catch (error) {
      const field = error instanceof ApiError && error.kind === "refused" ? fieldOf(error.message) : null;
      setRefused({ field, error });
      if (field) form.current?.querySelector<HTMLInputElement>(`input[name="${field}"]`)?.focus();
    } finally {
      setBusy(false);
    }
  };
  const field = (name: FieldName, label: string, hint: string, placeholder = "no limit"): JSX.Element => (
    <Field name={name} label={label} value={texts[name]} onInput={set(name)} hint={hint} error={wrong(name)} placeholder={placeholder} />
  );
  return (
    <form ref={form} class="mlp-form" onSubmit={(e) => void submit(e)} noValidate aria-label={tenant ? `Edit tenant ${tenant.name}` : "New tenant"}>
      {tenant ? null : field("name", "Name", "a-z, 0-9 and dashes; it cannot be changed later", "red")}
      <div class="mlp-form-grid">
        {field("cpu", "CPU", "Cores")}
        {field("gpu", "GPU", "Devices")}
        {field("ram", "Memory", "Such as 16 GiB; a bare number is MiB")}
        {field("rom", "Storage", "Such as 100 GiB")}
      </div>
      <p class="mlp-dim">An empty field means no limit: the tenant may use what the nodes have.</p>
      <div class="mlp-form-grid">
        {field("weight", "Weight", "Share of what is free when tenants compete", "1")}
        {field("description", "Description", "", "")}
      </div>
      {tenant && queue ? <PreviewBox tenant={tenant} queue={queue} read={r} /> : null}
      {refused && !refused.field ? <ErrorBox error={refused.error} /> : null}
      <div class="mlp-form-buttons">
        <button type="submit" class="mlp-button mlp-primary" disabled={busy}>
          {tenant ? "Save" : "Create tenant"}
        </button>
        <button type="button" class="mlp-button" onClick={onCancel}>
          Cancel
        </button>
      </div>
    </form>
  );
}

function PreviewBox({ tenant, queue, read: r }: { tenant: Tenant; queue: QueueEntry[]; read: Read }): JSX.Element {
  const bad = (["cpu", "gpu", "ram", "rom"] as const).some((f) => r.faults[f]);
  const lines = bad ? [] : previewWords(preview(tenant, queue, r.amounts), countHolding(queue, tenant.name));
  const kind = lines.some((l) => l.tone === "bad") ? "bad" : lines.some((l) => l.tone === "good") ? "good" : "idle";
  return (
    <div class={`mlp-note mlp-note-${kind} mlp-preview`} role="status" aria-live="polite" aria-label="What this quota would mean">
      <Icon name={kind === "bad" ? "warn" : kind === "good" ? "good" : "wait"} />
      <div class="mlp-note-text">
        {bad ? <p>Correct the amounts to see what they would mean</p> : lines.map((l) => <p key={l.text}>{l.text}</p>)}
      </div>
    </div>
  );
}
