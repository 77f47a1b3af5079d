/** What teams have spent of their budgets, and what they are expected to spend. */
import type { JSX } from "preact";
import { t } from "../../core/format/language";
import { budgetBar } from "../../core/teams/money";
import type { BudgetState } from "../../core/service/wire";
import { Icon } from "./basics";

export function BudgetBars({ budgets, named }: {
  budgets: readonly BudgetState[];
  /** Whether several teams are shown, so that each has its name. */
  named?: boolean;
}): JSX.Element {
  return (
    <div class="mlp-quotas mlp-budgets">
      {budgets.map((budget) => {
        const bar = budgetBar(budget);
        const name = named ? budget.tenant : t("Budget");
        if (!bar) return <p key={budget.tenant} class="mlp-dim">{t("{name}: {amount} {currency}. {why}", { name, amount: budget.amount, currency: budget.currency, why: budget.uncounted ?? "" })}</p>;
        return (
          <div key={budget.tenant} class="mlp-quota">
            <span class="mlp-quota-name">{name}</span>
            <span class={`mlp-bar mlp-bar-parts${bar.tone === "bad" ? " mlp-bar-over" : bar.tone === "wait" ? " mlp-bar-high" : ""}`} role="img" aria-label={bar.text}>
              <span class="mlp-bar-fill" style={{ width: `${bar.spent * 100}%` }} />
              <span class="mlp-bar-fill mlp-bar-expected" style={{ width: `${(bar.expected - bar.spent) * 100}%` }} />
            </span>
            <span class="mlp-quota-text">
              {bar.tone === "ok" ? null : <Icon name="warn" />} {bar.text}
              <span class="mlp-dim">{` · ${bar.more}`}</span>
            </span>
          </div>
        );
      })}
    </div>
  );
}
