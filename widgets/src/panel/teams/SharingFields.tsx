/** What its queue goes by, whom a tenant shares with, and within what limits: the folded part of the tenant's form and of the what-if's rows. */
import type { JSX } from "preact";
import { ROWS } from "../../core/format/dimensions";
import { orderWords } from "../../core/format/policy";
import { ORDERS } from "../../core/format/terms";
import { capital } from "../../core/format/reasons";
import { fieldsOf, type FieldName, type LimitWord, type Texts } from "../../core/teams/tenantform";
import { Field, Select } from "../../components/basics/form";
import { t } from "../../core/format/language";

const rows = (): { word: LimitWord; title: string; says: string; empty: string }[] => [
  { word: "borrow", title: t("Borrow at most"), says: t("More than its own quota, while other teams leave it idle. They take it back when they need it."), empty: t("no limit") },
  { word: "lend", title: t("Lend at most"), says: t("The part of its quota that others can use while it is idle. 0 lends nothing."), empty: t("all idle") },
  { word: "reserve", title: t("Keep reserved"), says: t("The part of its quota that is kept free for it on the nodes, used or not, regardless of others."), empty: t("nothing") },
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
  const cohorts = [...new Set(others.flatMap((one) => (one.cohort.trim() ? [one.cohort.trim()] : [])))].sort();
  const choices = { cohort: cohorts, parent: others.map((one) => one.name).sort() };
  const now = (name: FieldName, none: string): string => (was && texts[name].trim() !== was[name] ? t("now {value}", { value: was[name] || none }) : "");
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
      <Select label={t("Order of its jobs")} name={`${prefix}queue_order`} value={texts.queue_order} options={Object.keys(ORDERS).map((o) => [o, capital(orderWords(o))] as [string, string])} onChange={set("queue_order")} />
      <p class="mlp-dim">{now("queue_order", "") || t("Age alone: a job never passes or stops another job of the team because of its priority. Turns: the member whose jobs hold the smallest share is next. Many jobs of one member therefore do not delay the others. If the hub's policy orders the jobs of all teams together, that order applies instead.")}</p>
      <div class="mlp-form-grid">
        {field("cohort", t("Cohort"), t("The teams of a cohort lend each other idle quota"), t("none"))}
        {field("parent", t("Parent"), t("Or: take the quota out of this team's quota"), t("none"))}
      </div>
      {rows().map((row) => (
        <fieldset key={row.word} class="mlp-fields">
          <legend>{row.title}</legend>
          <p class="mlp-dim">{row.says}</p>
          <div class="mlp-form-grid mlp-form-grid-small">
            {fieldsOf(row.word).map((d) => field(`${row.word}_${d}`, ROWS[d][row.word](), "", row.empty))}
          </div>
        </fieldset>
      ))}
    </div>
  );
}
