/** Create or edit a tenant: checked while typing, with what the change would mean for its jobs and its neighbours'. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ErrorBox, Icon } from "../../components/basics/basics";
import { useNow } from "../../components/basics/hooks";
import { ApiError, paths, words } from "../../core/service/api";
import { DIMENSIONS, ROWS } from "../../core/format/dimensions";
import { previewLines, toneOf, type Line } from "../../core/teams/preview";
import { place } from "../../core/teams/sharing";
import { EMPTY, fieldOf, LIMIT_FIELDS, plain, PLAIN_FIELDS, read, SHARING_FIELDS, textsOf, update, type FieldName, type PlainField, type Read, type Texts } from "../../core/teams/tenantform";
import type { Tenant, TenantPreview } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { Field, Select } from "../../components/basics/form";
import { SharingFields } from "./SharingFields";
import { t } from "../../core/format/language";

export interface FormProps {
  /** The tenant to edit; null: a new one. */
  tenant: Tenant | null;
  /** The other tenants: their names are taken, and may be parents. */
  others: Tenant[];
  /** Another value: something happened, the preview is asked for anew. */
  fresh?: unknown;
  onSave: (texts: Texts, read: Read) => Promise<void>;
  onCancel: () => void;
}

export function TenantForm({ tenant, others, fresh, onSave, onCancel }: FormProps): JSX.Element {
  const [texts, setTexts] = useState<Texts>(tenant ? textsOf(tenant) : EMPTY);
  const [touched, setTouched] = useState<Set<FieldName>>(new Set());
  const [refused, setRefused] = useState<{ field: FieldName | null; error: unknown } | null>(null);
  const [busy, setBusy] = useState(false);
  const [unfolded, setUnfolded] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const wanted = useRef<FieldName | null>(null);
  const r = read(texts, tenant ? null : others.map((one) => one.name), tenant);
  useEffect(() => {
    form.current?.querySelector<HTMLInputElement>("input:not([disabled])")?.focus();
  }, []);
  useEffect(() => {
    if (!wanted.current) return;
    const field = form.current?.querySelector<HTMLInputElement>(`input[name="${wanted.current}"]`);
    if (field) wanted.current = null;
    field?.focus();
  });
  /** Lead to a field, unfolding it first. */
  const lead = (field: FieldName): void => {
    if (SHARING_FIELDS.includes(field)) setUnfolded(true);
    wanted.current = field;
  };
  const set = (field: FieldName) => (value: string): void => {
    setTexts({ ...texts, [field]: value });
    setTouched(new Set([...touched, field]));
    if (refused?.field === field) setRefused(null);
  };
  const wrong = (field: FieldName): string | null => {
    if (refused?.field === field) return refused.error instanceof Error ? refused.error.message : String(refused.error);
    // another field may have made a limit wrong that was right
    const shown = touched.has(field) || (LIMIT_FIELDS as FieldName[]).includes(field);
    return shown ? (r.faults[field] ?? null) : null;
  };
  const hidden = SHARING_FIELDS.some((f) => r.faults[f]);
  useEffect(() => {
    if (hidden) setUnfolded(true);
  }, [hidden]);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    const bad = Object.keys(r.faults) as FieldName[];
    if (bad[0]) {
      setTouched(new Set([...touched, ...bad]));
      lead(bad[0]);
      return;
    }
    setBusy(true);
    setRefused(null);
    try {
      await onSave(texts, r);
    } catch (error) {
      const field = error instanceof ApiError && error.kind === "refused" ? fieldOf(error.plain) : null;
      if (field) lead(field);
      setRefused({ field, error });
    } finally {
      setBusy(false);
    }
  };
  const field = (name: FieldName, label: string, hint: string, placeholder = t("no limit")): JSX.Element => (
    <Field name={name} label={label} value={texts[name]} onInput={set(name)} hint={hint} error={wrong(name)} placeholder={placeholder} />
  );
  const where = place({ cohort: texts.cohort.trim() || null, parent: texts.parent.trim() || null });
  return (
    <form ref={form} class="mlp-form" onSubmit={(e) => void submit(e)} noValidate aria-label={tenant ? t("Edit team {name}", { name: tenant.name }) : t("New team")}>
      {tenant ? null : field("name", t("Name"), t("a-z, 0-9 and dashes; it cannot be changed later"), "red")}
      <div class="mlp-form-grid">
        {DIMENSIONS.map((d) => field(d, ROWS[d].label(), ROWS[d].hint()))}
      </div>
      <p class="mlp-dim">{t("An empty field means no limit: the team may use what the nodes have.")}</p>
      <div class="mlp-form-grid">
        {field("weight", t("Weight"), t("Share of free capacity when teams compete"), "1")}
        {PLAIN_FIELDS.map((name) => (plain(name).options ? null : field(name, plain(name).label(), plain(name).hint(), "")))}
      </div>
      {PLAIN_FIELDS.map((name) => <Choice key={name} name={name} value={texts[name]} onChange={set(name)} />)}
      <details class="mlp-fold" open={unfolded} onToggle={(e) => setUnfolded(e.currentTarget.open)}>
        <summary>
          {t("Order and sharing")}{" "}<span class="mlp-dim">{where || t("with nobody")}</span>
        </summary>
        {unfolded ? <SharingFields texts={texts} set={set} wrong={wrong} others={others.map(textsOf)} /> : null}
      </details>
      {tenant ? <PreviewBox tenant={tenant} texts={texts} read={r} fresh={fresh} /> : null}
      {refused && !refused.field ? <ErrorBox error={refused.error} /> : null}
      <div class="mlp-form-buttons">
        <button type="submit" class="mlp-button mlp-primary" disabled={busy}>
          {tenant ? t("Save") : t("Create team")}
        </button>
        <button type="button" class="mlp-button" onClick={onCancel}>
          {t("Cancel")}
        </button>
      </div>
    </form>
  );
}

function Choice({ name, value, onChange }: { name: PlainField; value: string; onChange: (value: string) => void }): JSX.Element | null {
  const { label, hint, options } = plain(name);
  if (!options) return null;
  return (
    <>
      <Select label={label()} name={name} value={value} options={options()} onChange={onChange} />
      <p class="mlp-dim">{hint()}</p>
    </>
  );
}

/** So long one types before the service is asked. */
const PAUSE_MS = 250;

function PreviewBox({ tenant, texts, read: r, fresh }: { tenant: Tenant; texts: Texts; read: Read; fresh: unknown }): JSX.Element {
  const { client } = useHub();
  const now = useNow(10_000);
  const [answer, setAnswer] = useState<{ body: string; preview: TenantPreview } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const asked = useRef(false);
  const bad = Object.keys(r.faults).length > 0;
  const body = bad ? "" : JSON.stringify(update(tenant, texts, r));
  useEffect(() => {
    if (!body) return undefined;
    let stale = false;
    const ask = async (): Promise<void> => {
      try {
        const found = await client.post<TenantPreview>(paths.preview(tenant.name), JSON.parse(body));
        if (stale) return;
        setAnswer({ body, preview: found });
        setError(null);
      } catch (e) {
        if (!stale) setError(e);
      }
    };
    const timer = window.setTimeout(() => void ask(), asked.current ? PAUSE_MS : 0);
    asked.current = true;
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [client, tenant.name, body, fresh]);
  let lines: Line[];
  if (bad) lines = [{ tone: "idle", text: t("Correct the fields to see the effect") }];
  else if (error) lines = [{ tone: "bad", text: words(error) }];
  else if (!answer) lines = [{ tone: "idle", text: t("Checking the effect") }];
  else lines = previewLines(answer.preview, now);
  const kind = toneOf(lines);
  return (
    <div
      class={`mlp-note mlp-note-${kind} mlp-preview`}
      role="status"
      aria-live="polite"
      aria-label={t("Effect of this quota")}
      // the answer to what was typed before is shown faintly until the new one is there
      aria-busy={!bad && !error && answer?.body !== body}
    >
      <Icon name={kind === "bad" ? "warn" : kind === "good" ? "good" : "wait"} />
      <div class="mlp-note-text">
        {lines.map((l) => (
          <p key={l.text}>{l.text}</p>
        ))}
      </div>
    </div>
  );
}
