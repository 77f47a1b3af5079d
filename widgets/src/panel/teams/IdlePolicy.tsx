/** A team's policy for notebook servers that are held and not used; its admins change it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { Field } from "../../components/basics/form";
import { useLoad } from "../../components/basics/hooks";
import { policyTexts, readPolicy, type PolicyTexts } from "../../core/accounts/idleservers";
import { paths } from "../../core/service/api";
import { t } from "../../core/format/language";
import type { TenantIdlePolicy } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";

export function IdlePolicy({ tenant }: { tenant: string }): JSX.Element {
  const { client } = useHub();
  const found = useLoad(`idle policy ${tenant}`, () => client.get<TenantIdlePolicy>(paths.idlePolicy(tenant)));
  const [typed, setTyped] = useState<PolicyTexts | null>(null);
  const { run, busy, error } = useRun(async () => {
    await found.reload();
    setTyped(null);
  });
  const texts = typed ?? (found.data ? policyTexts(found.data) : null);
  const { body, faults } = texts ? readPolicy(texts) : { body: null, faults: {} as Partial<PolicyTexts> };
  return (
    <section class="mlp-card" aria-label={t("Idle notebook servers")}>
      <div class="mlp-card-head">
        <h2>{t("Idle notebook servers")}</h2>
      </div>
      {found.error || error ? <ErrorBox error={error ?? found.error} retry={() => void found.reload()} /> : null}
      {texts ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (body) void run(() => client.put(paths.idlePolicy(tenant), body), t("Policy of {tenant} saved", { tenant }));
          }}
        >
          <div class="mlp-form-grid">
            <Field name="after" label={t("Stop after hours without use")} value={texts.after} placeholder={t("never")} hint={t("Open pages do not count. Kernels, terminals and processor time do.")} error={faults.after ?? null} onInput={(after) => setTyped({ ...texts, after })} />
            <Field name="grace" label={t("Countdown in minutes")} value={texts.grace} hint={t("The owner can stop it with one click.")} error={faults.grace ?? null} onInput={(grace) => setTyped({ ...texts, grace })} />
          </div>
          <div class="mlp-dialog-buttons">
            <button type="submit" class="mlp-button" disabled={busy || !body || typed === null}>{t("Save policy")}</button>
          </div>
        </form>
      ) : null}
    </section>
  );
}
