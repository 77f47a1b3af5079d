/** The table below a reason: what, how much, and who it is about, in the reader's words. */

import type { Fact } from "../../core/service/wire";

export function Facts({ facts }: { facts: readonly Fact[] }) {
  return (
    <dl class="mlp-numbers">
      {facts.map((fact, i) => (
        <div key={i}>
          <dt>{fact.label}</dt>
          <dd>
            {fact.value}
            {fact.who ? <span class="mlp-dim"> {fact.who}</span> : null}
          </dd>
        </div>
      ))}
    </dl>
  );
}
