/** What its queue goes by, whom a tenant shares with, and within what limits: the folded part of the tenant's form and of the what-if's rows. */
import type { JSX } from "preact";
import { orderWords, QUEUE_ORDERS } from "../core/policy";
import { capital } from "../core/reasons";
import { fieldsOf, type Dimension, type FieldName, type LimitWord, type Texts } from "../core/tenantform";
import { Field, Select } from "./form";

const NAMES: Record<Dimension, string> = { cpu: "CPU", gpu: "GPU", ram: "memory", rom: "storage" };
const ROWS: { word: LimitWord; verb: string; title: string; says: string; empty: string }[] = [
  { word: "borrow", verb: "Borrow", title: "Borrow at most", says: "Beyond its own quota, while others leave it idle. It goes back when they need it.", empty: "no limit" },
  { word: "lend", verb: "Lend", title: "Lend at most", says: "Of its own quota, while it leaves it idle. 0 keeps all of it back.", empty: "all idle" },
  { word: "reserve", verb: "Reserve", title: "Keep reserved", says: "Of its own quota, kept free for it on the nodes, used or not, whatever others may use.", empty: "nothing" },
];

export function SharingFields({ texts, set, wrong, others, prefix = "", was }: {
  texts: Texts;
  set: (field: FieldName) => (value: string) => void;
  wrong: (field: FieldName) => string | null;
  /** The other tenants: each may be its parent. */
  others: Pick<Texts, "name" | "cohort">[];
  /** Begins the fields' names, where there are several such parts. */
  prefix?: string;
  /** What it is now, said below what is other; absent where that is no matter. */
  was?: Texts | undefined;
}): JSX.Element {
  const cohorts = [...new Set(others.flatMap((t) => (t.cohort.trim() ? [t.cohort.trim()] : [])))].sort();
  const choices = { cohort: cohorts, parent: others.map((t) => t.name).sort() };
  const now = (name: FieldName, none: string): string => (was && texts[name].trim() !== was[name] ? `now ${was[name] || none}` : "");
  const field = (name: FieldName, label: string, hint: string, placeholder: string): JSX.Element => (
    <Field
      name={`${prefix}${name}`}
      label={label}
      value={texts[name]}
      onInput={set(name)}
      hint={now(name, placeholder) || hint}
      error={wrong(name)}
      placeholder={placeholder}
      choices={name === "cohort" || name === "parent" ? choices[name] : undefined}
    />
  );
  return (
    <div class="mlp-fold-body">
      <Select label="Its own jobs go by" name={`${prefix}queue_order`} value={texts.queue_order} options={QUEUE_ORDERS.map((o) => [o, capital(orderWords(o))] as [string, string])} onChange={set("queue_order")} />
      <p class="mlp-dim">{now("queue_order", "") || "Age alone: no job of it passes or stops another for its priority. Turns: whose jobs hold the smallest share is next, so one member's many jobs do not hold up the others. Where the hub's policy puts all tenants' jobs into one line, that line's order holds instead."}</p>
      <div class="mlp-form-grid">
        {field("cohort", "Cohort", "Its members lend each other what they leave idle", "none")}
        {field("parent", "Parent", "Or: carve the quota out of this tenant's", "none")}
      </div>
      {ROWS.map((row) => (
        <fieldset key={row.word} class="mlp-fields">
          <legend>{row.title}</legend>
          <p class="mlp-dim">{row.says}</p>
          <div class="mlp-form-grid mlp-form-grid-small">
            {fieldsOf(row.word).map((d) => field(`${row.word}_${d}`, `${row.verb} ${NAMES[d]}`, "", row.empty))}
          </div>
        </fieldset>
      ))}
    </div>
  );
}
