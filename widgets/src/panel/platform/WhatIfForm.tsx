/** The what-if's form: each tenant's quota and sharing, and the nodes, as they would be. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useId } from "../../components/basics/hooks";
import { place } from "../../core/teams/sharing";
import { SHARING_FIELDS, textsOf, type Texts } from "../../core/teams/tenantform";
import { AMOUNTS, kindWords, NO_NODES, NO_TENANT, sharingChanges, type Draft, type Kind, type NewNodes } from "../../core/platform/whatif";
import type { Tenant } from "../../core/service/wire";
import { SharingFields } from "../teams/SharingFields";
import { n, t } from "../../core/format/language";

function Cell({ name, label, value, was, fault, onInput, placeholder = t("no limit") }: {
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
        <span id={id} class="mlp-field-hint">{t("now {value}", { value: was || t("no limit") })}</span>
      ) : null}
    </span>
  );
}

const titles = (): Record<(typeof AMOUNTS)[number], string> => ({ cpu: t("CPU"), gpu: t("GPU"), ram: t("Memory"), weight: t("Weight") });

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
  const shared = place({ cohort: texts.cohort.trim() || null, parent: texts.parent.trim() || null }) || t("with nobody");
  const differs = was ? sharingChanges(texts, was) : 0;
  return (
    <>
      <tr>
        <th scope="row" class="mlp-col-name">{head}</th>
        {AMOUNTS.map((field) => (
          <td key={field} data-title={titles()[field]}>
            <Cell
              name={`${id}.${field}`}
              label={t("{field} of {tenant}", { field: titles()[field], tenant: label })}
              value={texts[field]}
              was={was?.[field]}
              fault={wrong(field) ?? undefined}
              onInput={(value) => change({ [field]: value })}
              placeholder={field === "weight" ? "1" : t("no limit")}
            />
          </td>
        ))}
        <td data-title={t("Sharing")}>
          <button type="button" class="mlp-toggle" aria-expanded={open} aria-controls={box} aria-label={t("Sharing of {tenant}: {shared}", { tenant: label, shared })} onClick={() => setAsked(!open)}>
            {shared}
          </button>
          {differs ? <span class="mlp-field-hint">{n("1 field changed", "{n} fields changed", differs)}</span> : null}
        </td>
        <td>{end}</td>
      </tr>
      {open ? (
        <tr class="mlp-edit-more">
          <td colSpan={AMOUNTS.length + 3}>
            <div id={box} role="group" aria-label={t("Sharing of {tenant}", { tenant: label })}>
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
  const textsNow = (of: Tenant): Texts => draft.tenants[of.name] ?? textsOf(of);
  const all = [...tenants.map(textsNow), ...draft.added.filter((one) => one.name.trim())];
  return (
    <>
      <div class="mlp-table-box">
        <table class="mlp-table mlp-edit">
          <caption class="mlp-hidden">{t("Quota of each team in this what-if")}</caption>
          <thead>
            <tr>
              <th scope="col">{t("Team")}</th>
              {AMOUNTS.map((field) => <th key={field} scope="col">{titles()[field]}</th>)}
              <th scope="col">{t("Sharing")}</th>
              <th scope="col"><span class="mlp-hidden">{t("Remove")}</span></th>
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
            {draft.added.map((added, i) => {
              const edit = (change: Partial<Texts>): void => set({ added: draft.added.map((old, at) => (at === i ? { ...old, ...change } : old)) });
              return (
                <TenantRow
                  key={`new-${i}`}
                  id={`new-${i}`}
                  label={added.name || t("new team {n}", { n: i + 1 })}
                  texts={added}
                  was={undefined}
                  head={<Cell name={`new-${i}.name`} label={t("Name of new team {n}", { n: i + 1 })} value={added.name} fault={faults[`new-${i}.name`]} onInput={(name) => edit({ name })} placeholder={t("name")} />}
                  end={
                    <button type="button" class="mlp-button mlp-small" aria-label={t("Remove new team {n}", { n: i + 1 })} onClick={() => set({ added: draft.added.filter((_, at) => at !== i) })}>
                      {t("Remove")}
                    </button>
                  }
                  faults={faults}
                  others={all.filter((o) => o !== added)}
                  change={edit}
                />
              );
            })}
          </tbody>
        </table>
      </div>
      <button type="button" class="mlp-button mlp-small" onClick={() => set({ added: [...draft.added, NO_TENANT] })}>
        {t("Add a team")}
      </button>
    </>
  );
}

/** The first names, and how many more there are. */
function some(names: string[]): string {
  const first = names.slice(0, 3).join(t(", "));
  return names.length > 3 ? t("{names} and {n} more", { names: first, n: names.length - 3 }) : first;
}

export function NodeRows({ draft, kinds, faults, set }: {
  draft: Draft;
  kinds: Kind[];
  faults: Record<string, string>;
  set: (change: Partial<Draft>) => void;
}): JSX.Element {
  const edit = (i: number, change: Partial<NewNodes>): void => set({ nodes: draft.nodes.map((n, at) => (at === i ? { ...n, ...change } : n)) });
  const part = (i: number, nodes: NewNodes, field: keyof NewNodes, title: string, placeholder = ""): JSX.Element => (
    <label class="mlp-whatif-part">
      <span>{title}</span>
      <Cell name={`nodes-${i}.${field}`} label={t("{field} of new nodes {n}", { field: title, n: i + 1 })} value={nodes[field]} fault={faults[`nodes-${i}.${field}`]} onInput={(value) => edit(i, { [field]: value })} placeholder={placeholder} />
    </label>
  );
  return (
    <>
      <ul class="mlp-whatif-kinds">
        {kinds.map((kind) => (
          <li key={kind.key}>
            <Cell
              name={`kind.${kind.key}`}
              label={t("Nodes of {kind}", { kind: kindWords(kind) })}
              value={draft.kinds[kind.key] ?? ""}
              was={String(kind.names.length)}
              fault={faults[`kind.${kind.key}`]}
              onInput={(value) => set({ kinds: { ...draft.kinds, [kind.key]: value } })}
              placeholder="0"
            />
            <span>
              {`× ${kindWords(kind)} `}
              <span class="mlp-dim">{some(kind.names)}</span>
            </span>
          </li>
        ))}
        {draft.nodes.map((n, i) => (
          <li key={`nodes-${i}`}>
            {part(i, n, "count", t("New nodes"), "1")}
            {part(i, n, "cpu", t("CPU"), "8")}
            {part(i, n, "ram", t("Memory"), "32 GiB")}
            {part(i, n, "gpu", t("GPU"), "0")}
            {part(i, n, "gpu_kind", t("GPU kind"), t("any"))}
            <button type="button" class="mlp-button mlp-small" aria-label={t("Remove new nodes {n}", { n: i + 1 })} onClick={() => set({ nodes: draft.nodes.filter((_, at) => at !== i) })}>
              {t("Remove")}
            </button>
          </li>
        ))}
      </ul>
      <button type="button" class="mlp-button mlp-small" onClick={() => set({ nodes: [...draft.nodes, NO_NODES] })}>
        {t("Add nodes of another kind")}
      </button>
    </>
  );
}
