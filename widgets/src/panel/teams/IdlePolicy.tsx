/** A team's policies for what is held and not used, notebook servers and GPUs of jobs; its admins change them. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { Field } from "../../components/basics/form";
import { useLoad } from "../../components/basics/hooks";
import { policyTexts, readPolicy, type PolicyTexts } from "../../core/accounts/idleservers";
import { paths } from "../../core/service/api";
import { t } from "../../core/format/language";
import type { TenantIdleJobPolicy, TenantIdlePolicy } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";

interface Kind {
  title: () => string;
  after: () => string;
  what: () => string;
  path: (tenant: string) => string;
}

const SERVERS: Kind = {
  title: () => t("Idle notebook servers"),
  after: () => t("Stop after hours without use"),
  what: () => t("Open pages do not count. Kernels, terminals and processor time do."),
  path: paths.idlePolicy,
};
const JOBS: Kind = {
  title: () => t("Unused GPUs of jobs"),
  after: () => t("Suspend after hours without use of GPUs"),
  what: () => t("Work of any GPU engine or processor counts. Apps are not counted."),
  path: paths.idleJobPolicy,
};

export function IdlePolicies({ tenant }: { tenant: string }): JSX.Element {
  return (
    <>
      <IdlePolicy tenant={tenant} of={SERVERS} />
      <IdlePolicy tenant={tenant} of={JOBS} />
    </>
  );
}

function IdlePolicy({ tenant, of }: { tenant: string; of: Kind }): JSX.Element {
  const { client } = useHub();
  const path = of.path(tenant);
  const found = useLoad(`idle policy ${path}`, () => client.get<TenantIdlePolicy | TenantIdleJobPolicy>(path));
  const [typed, setTyped] = useState<PolicyTexts | null>(null);
  const { run, busy, error } = useRun(async () => {
    await found.reload();
    setTyped(null);
  });
  const texts = typed ?? (found.data ? policyTexts(found.data) : null);
  const { body, faults } = texts ? readPolicy(texts) : { body: null, faults: {} as Partial<PolicyTexts> };
  return (
    <section class="mlp-card" aria-label={of.title()}>
      <div class="mlp-card-head">
        <h2>{of.title()}</h2>
      </div>
      {found.error || error ? <ErrorBox error={error ?? found.error} retry={() => void found.reload()} /> : null}
      {texts ? (
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (body) void run(() => client.put(path, body), t("Policy of {tenant} saved", { tenant }));
          }}
        >
          <div class="mlp-form-grid">
            <Field name="after" label={of.after()} value={texts.after} placeholder={t("never")} hint={of.what()} error={faults.after ?? null} onInput={(after) => setTyped({ ...texts, after })} />
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
