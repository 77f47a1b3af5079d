/** The what-if's form: each tenant's quota and sharing, and the nodes, as they would be. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useId } from "../components/hooks";
import { plural } from "../core/format";
import { place } from "../core/sharing";
import { SHARING_FIELDS, textsOf, type Texts } from "../core/tenantform";
import { AMOUNTS, kindWords, NO_NODES, NO_TENANT, sharingChanges, type Draft, type Kind, type NewNodes } from "../core/whatif";
import type { Tenant } from "../core/wire";
import { SharingFields } from "./SharingFields";

function Cell({ name, label, value, was, fault, onInput, placeholder = "no limit" }: {
  name: string;
  label: string;
  value: string;
  /** What it is now; undefined for something new. */
  was?: string | undefined;
  fault: string | undefined;
  onInput: (value: string) => void;
  placeholder?: string;
}): JSX.Element {
  const id = useId("cell");
  const other = was !== undefined && value.trim() !== was;
  return (
    <span class={`mlp-cell-field${other ? " mlp-cell-other" : ""}${fault ? " mlp-field-bad" : ""}`}>
      <input
        class="mlp-input"
        name={name}
        aria-label={label}
        value={value}
        placeholder={placeholder}
        autocomplete="off"
        spellcheck={false}
        aria-invalid={Boolean(fault)}
        aria-describedby={fault || other ? id : undefined}
        onInput={(e) => onInput(e.currentTarget.value)}
      />
      {fault ? (
        <span id={id} class="mlp-field-error" role="alert">{fault}</span>
      ) : other ? (
        <span id={id} class="mlp-field-hint">{`now ${was || "no limit"}`}</span>
      ) : null}
    </span>
  );
}

const TITLES: Record<(typeof AMOUNTS)[number], string> = { cpu: "CPU", gpu: "GPU", ram: "Memory", weight: "Weight" };

/** One tenant: its amounts in cells, and below them, when it is asked for, with whom it shares. */
function TenantRow({ id, label, texts, was, head, end, faults, others, change }: {
  /** Begins the names of its fields: the tenant's name, or `new-0`. */
  id: string;
  label: string;
  texts: Texts;
  /** What it is now; undefined for a new one. */
  was: Texts | undefined;
  head: JSX.Element | string;
  end: JSX.Element | null;
  faults: Record<string, string>;
  others: Texts[];
  change: (change: Partial<Texts>) => void;
}): JSX.Element {
  const [asked, setAsked] = useState(false);
  const box = useId("sharing");
  const wrong = (field: string): string | null => faults[`${id}.${field}`] ?? null;
  // what is wrong must be seen
  const open = asked || SHARING_FIELDS.some((f) => wrong(f));
  const differs = was ? sharingChanges(texts, was) : 0;
  return (
    <>
      <tr>
        <th scope="row" class="mlp-col-name">{head}</th>
        {AMOUNTS.map((field) => (
          <td key={field} data-title={TITLES[field]}>
            <Cell
              name={`${id}.${field}`}
              label={`${TITLES[field]} of ${label}`}
              value={texts[field]}
              was={was?.[field]}
              fault={wrong(field) ?? undefined}
              onInput={(value) => change({ [field]: value })}
              placeholder={field === "weight" ? "1" : "no limit"}
            />
          </td>
        ))}
        <td data-title="Sharing">
          <button type="button" class="mlp-toggle" aria-expanded={open} aria-controls={box} aria-label={`Sharing of ${label}`} onClick={() => setAsked(!open)}>
            {place({ cohort: texts.cohort.trim() || null, parent: texts.parent.trim() || null }) || "with nobody"}
          </button>
          {differs ? <span class="mlp-field-hint">{`${plural(differs, "field")} changed`}</span> : null}
        </td>
        <td>{end}</td>
      </tr>
      {open ? (
        <tr class="mlp-edit-more">
          <td colSpan={AMOUNTS.length + 3}>
            <div id={box} role="group" aria-label={`Sharing of ${label}`}>
              <SharingFields texts={texts} was={was} prefix={`${id}.`} set={(field) => (value) => change({ [field]: value })} wrong={wrong} others={others} />
            </div>
          </td>
        </tr>
      ) : null}
    </>
  );
}

export function TenantRows({ draft, tenants, faults, set }: {
  draft: Draft;
  tenants: Tenant[];
  faults: Record<string, string>;
  set: (change: Partial<Draft>) => void;
}): JSX.Element {
  const textsNow = (t: Tenant): Texts => draft.tenants[t.name] ?? textsOf(t);
  const all = [...tenants.map(textsNow), ...draft.added.filter((t) => t.name.trim())];
  return (
    <>
      <div class="mlp-table-box">
        <table class="mlp-table mlp-edit">
          <caption class="mlp-hidden">Quota of each tenant as it would be</caption>
          <thead>
            <tr>
              <th scope="col">Tenant</th>
              {AMOUNTS.map((field) => <th key={field} scope="col">{TITLES[field]}</th>)}
              <th scope="col">Sharing</th>
              <th scope="col"><span class="mlp-hidden">Remove</span></th>
            </tr>
          </thead>
          <tbody>
            {tenants.map((t) => (
              <TenantRow
                key={t.name}
                id={t.name}
                label={t.name}
                texts={textsNow(t)}
                was={textsOf(t)}
                head={t.name}
                end={null}
                faults={faults}
                others={all.filter((o) => o.name !== t.name)}
                change={(c) => set({ tenants: { ...draft.tenants, [t.name]: { ...textsNow(t), ...c } } })}
              />
            ))}
            {draft.added.map((t, i) => {
              const edit = (change: Partial<Texts>): void => set({ added: draft.added.map((old, at) => (at === i ? { ...old, ...change } : old)) });
              return (
                <TenantRow
                  key={`new-${i}`}
                  id={`new-${i}`}
                  label={t.name || `new tenant ${i + 1}`}
                  texts={t}
                  was={undefined}
                  head={<Cell name={`new-${i}.name`} label={`Name of new tenant ${i + 1}`} value={t.name} fault={faults[`new-${i}.name`]} onInput={(name) => edit({ name })} placeholder="name" />}
                  end={
                    <button type="button" class="mlp-button mlp-small" aria-label={`Remove new tenant ${i + 1}`} onClick={() => set({ added: draft.added.filter((_, at) => at !== i) })}>
                      Remove
                    </button>
                  }
                  faults={faults}
                  others={all.filter((o) => o !== t)}
                  change={edit}
                />
              );
            })}
          </tbody>
        </table>
      </div>
      <button type="button" class="mlp-button mlp-small" onClick={() => set({ added: [...draft.added, NO_TENANT] })}>
        Add a tenant
      </button>
    </>
  );
}

export function NodeRows({ draft, kinds, faults, set }: {
  draft: Draft;
  kinds: Kind[];
  faults: Record<string, string>;
  set: (change: Partial<Draft>) => void;
}): JSX.Element {
  const edit = (i: number, change: Partial<NewNodes>): void => set({ nodes: draft.nodes.map((n, at) => (at === i ? { ...n, ...change } : n)) });
  const part = (i: number, n: NewNodes, field: keyof NewNodes, title: string, placeholder = ""): JSX.Element => (
    <label class="mlp-whatif-part">
      <span>{title}</span>
      <Cell name={`nodes-${i}.${field}`} label={`${title} of new nodes ${i + 1}`} value={n[field]} fault={faults[`nodes-${i}.${field}`]} onInput={(value) => edit(i, { [field]: value })} placeholder={placeholder} />
    </label>
  );
  return (
    <>
      <ul class="mlp-whatif-kinds">
        {kinds.map((kind) => (
          <li key={kind.key}>
            <Cell
              name={`kind.${kind.key}`}
              label={`Nodes of ${kindWords(kind)}`}
              value={draft.kinds[kind.key] ?? ""}
              was={String(kind.names.length)}
              fault={faults[`kind.${kind.key}`]}
              onInput={(value) => set({ kinds: { ...draft.kinds, [kind.key]: value } })}
              placeholder="0"
            />
            <span>
              {`× ${kindWords(kind)} `}
              <span class="mlp-dim">{kind.names.slice(0, 3).join(", ")}{kind.names.length > 3 ? ` and ${kind.names.length - 3} more` : ""}</span>
            </span>
          </li>
        ))}
        {draft.nodes.map((n, i) => (
          <li key={`nodes-${i}`}>
            {part(i, n, "count", "New nodes", "1")}
            {part(i, n, "cpu", "CPU", "8")}
            {part(i, n, "ram", "Memory", "32 GiB")}
            {part(i, n, "gpu", "GPU", "0")}
            {part(i, n, "gpu_kind", "GPU kind", "any")}
            <button type="button" class="mlp-button mlp-small" aria-label={`Remove new nodes ${i + 1}`} onClick={() => set({ nodes: draft.nodes.filter((_, at) => at !== i) })}>
              Remove
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="mlp-button mlp-small" onClick={() => set({ nodes: [...draft.nodes, NO_NODES] })}>
        Add nodes of another kind
      </button>
    </>
  );
}
