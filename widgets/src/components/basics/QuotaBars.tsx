/** How much of its quota a tenant uses, borrows and lends, with what is to be said of it. */
import type { JSX } from "preact";
import { ROWS, shownOf } from "../../core/format/dimensions";
import { t } from "../../core/format/language";
import { beyondWords, isolationWords, loweredWords, moveWords, networkWords, sharingWords, standing } from "../../core/teams/sharing";
import type { Tenant } from "../../core/service/wire";
import { BarLegend, Icon, QuotaBar } from "./basics";
import { useNow } from "./hooks";

export function QuotaBars({ tenant, back }: {
  tenant: Tenant;
  /** When it is expected inside its quota again, where the reader may know. */
  back?: string;
}): JSX.Element {
  const shares = sharingWords(tenant);
  const beyond = beyondWords(tenant);
  const over = Object.keys(tenant.over).length > 0;
  const lowered = loweredWords(tenant, useNow(10_000));
  const moves = moveWords(tenant.move);
  const shown = shownOf(tenant);
  return (
    <>
      <div class="mlp-quotas">
        {shown.map((d) => <QuotaBar key={d} name={ROWS[d].label()} of={standing(tenant, d)} show={ROWS[d].show} />)}
      </div>
      <BarLegend bars={shown.map((d) => standing(tenant, d))} />
      {beyond ? (
        <div class={`mlp-note mlp-note-${over ? "bad" : "wait"} mlp-beyond`} role="note">
          <Icon name={over ? "warn" : "wait"} />
          <div class="mlp-note-text">{t("{text}.", { text: [beyond, over ? back : ""].filter(Boolean).join(t(". ")) })}</div>
        </div>
      ) : null}
      {lowered ? (
        <div class="mlp-note mlp-note-wait mlp-lowered">
          <Icon name="idle" />
          <div class="mlp-note-text">{lowered}</div>
        </div>
      ) : null}
      {shares ? <p class="mlp-dim mlp-shares-line">{shares}</p> : null}
      <p class="mlp-dim mlp-network-line">{networkWords(tenant)}</p>
      {isolationWords(tenant) ? <p class="mlp-dim mlp-isolation-line">{isolationWords(tenant)}</p> : null}
      {moves ? (
        <div class={`mlp-note mlp-note-${tenant.move?.state === "failed" ? "bad" : "wait"} mlp-move`} role="status">
          <Icon name={tenant.move?.state === "failed" ? "warn" : "wait"} />
          <div class="mlp-note-text">
            {moves}
            {tenant.move?.total && ["copying", "comparing"].includes(tenant.move.state) ? (
              <progress max={tenant.move.total} value={tenant.move.done} aria-label={t("How much is done")} />
            ) : null}
          </div>
        </div>
      ) : null}
    </>
  );
}
