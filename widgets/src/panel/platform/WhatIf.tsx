/** What-if: the hub as it is beside the hub with other quotas, nodes or policy, run in virtual time. Changes nothing. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { duration } from "../../core/format/format";
import { policyWords } from "../../core/format/policy";
import { POLICIES } from "../../core/format/terms";
import { askedOf, draftOf, kindsOf, type Draft, type Kind } from "../../core/platform/whatif";
import type { Node, Scheduling, Simulated, Tenant } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { PageHead, Select } from "../../components/basics/form";
import { NodeRows, TenantRows } from "./WhatIfForm";
import { Result } from "./WhatIfResult";
import { n, t } from "../../core/format/language";

const sources = (): [string, string][] => [["now", t("From now on")], ["1", t("The last day")], ["7", t("The last 7 days")], ["30", t("The last 30 days")]];

export function WhatIfPage(): JSX.Element {
  const { client } = useHub();
  const tenants = useLoad("what-if-tenants", () => client.all<Tenant>(paths.tenants));
  const nodes = useLoad("what-if-nodes", () => client.list<Node>("/nodes"));
  const scheduling = useLoad("what-if-scheduling", () => client.get<Scheduling>(paths.scheduling));
  const error = tenants.error ?? nodes.error ?? scheduling.error;
  const policy = scheduling.data ? ` ${t("Policy in force: {policy}.", { policy: policyWords(scheduling.data.policy) })}` : "";
  const head = <PageHead title={t("What-if")} sub={t("Try other quotas, nodes or a policy on the hub's own work. Nothing is changed.") + policy} />;
  if (tenants.data && nodes.data && scheduling.data) {
    return (
      <>
        {head}
        <Workbench tenants={tenants.data.items} kinds={kindsOf(nodes.data.items)} now={scheduling.data} />
      </>
    );
  }
  const retry = (): void => void Promise.all([tenants.reload(), nodes.reload(), scheduling.reload()]);
  return (
    <>
      {head}
      {error ? <ErrorBox error={error} retry={retry} /> : <Loading what={t("Loading teams, nodes and policy")} lines={6} />}
    </>
  );
}

function Workbench({ tenants, kinds, now }: { tenants: Tenant[]; kinds: Kind[]; now: Scheduling }): JSX.Element {
  const { client } = useHub();
  const [draft, setDraft] = useState<Draft>(() => draftOf(tenants, kinds));
  const [running, setRunning] = useState<number | null>(null);
  const [shown, setShown] = useState<{ answer: Simulated; of: Draft } | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [tried, setTried] = useState(false);
  const [round, setRound] = useState(0); // begins anew with `Start over`, so that nothing stays unfolded
  const result = useRef<HTMLElement>(null);
  const form = useRef<HTMLFormElement>(null);
  const asked = askedOf(draft, tenants, kinds, Date.now());
  const faults = tried ? asked.faults : {};
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change });
  const startOver = (): void => {
    setDraft({ ...draftOf(tenants, kinds), from: draft.from });
    setTried(false);
    setRound(round + 1);
  };
  const run = async (event: Event): Promise<void> => {
    event.preventDefault();
    setTried(true);
    const bad = Object.keys(asked.faults);
    if (bad.length) {
      form.current?.querySelector<HTMLInputElement>(`input[name="${CSS.escape(bad[0] ?? "")}"]`)?.focus();
      return;
    }
    setError(null);
    setRunning(Date.now());
    try {
      setShown({ answer: await client.post<Simulated>(paths.simulate, asked.body), of: draft });
    } catch (e) {
      setError(e);
    } finally {
      setRunning(null);
    }
  };
  useEffect(() => {
    if (shown) result.current?.focus();
  }, [shown]);
  return (
    <>
      <form ref={form} class="mlp-whatif" onSubmit={(e) => void run(e)} noValidate aria-label={t("Changes to try")}>
        <section class="mlp-card" aria-label={t("Quotas")}>
          <div class="mlp-card-head">
            <h2>{t("Quotas")}</h2>
            <span class="mlp-dim">{t("An empty field means no limit")}</span>
          </div>
          <TenantRows key={round} draft={draft} tenants={tenants} faults={faults} set={set} />
        </section>
        <section class="mlp-card" aria-label={t("Nodes")}>
          <div class="mlp-card-head">
            <h2>{t("Nodes")}</h2>
            <span class="mlp-dim">{t("Number of nodes of each kind")}</span>
          </div>
          <NodeRows draft={draft} kinds={kinds} faults={faults} set={set} />
        </section>
        <section class="mlp-card mlp-whatif-run" aria-label={t("Run")}>
          <Select label={t("Work")} name="from" value={draft.from} onChange={(from) => set({ from })} options={sources()} />
          <Select label={t("Policy")} name="policy" value={draft.policy} onChange={(policy) => set({ policy })} options={[["", t("As it is ({now})", { now: now.policy })], ...Object.keys(POLICIES).map((name) => [name, policyWords(name)] as [string, string])]} />
          <Select
            label={t("Preemption")}
            name="preemption"
            value={draft.preemption}
            onChange={(preemption) => set({ preemption })}
            options={[["", t("As it is ({now})", { now: now.preemption ? t("allowed") : t("never") })], ["on", t("Allowed")], ["off", t("Never")]]}
          />
          <div class="mlp-whatif-go">
            <span class="mlp-dim" role="status">
              {asked.changes ? n("1 change", "{n} changes", asked.changes) : t("No change yet")}
            </span>
            <button type="button" class="mlp-button" disabled={!asked.changes} onClick={startOver}>
              {t("Start over")}
            </button>
            <button type="submit" class="mlp-button mlp-primary" disabled={running !== null}>
              {t("Run")}
            </button>
          </div>
        </section>
      </form>
      {running !== null ? <Progress since={running} /> : null}
      {error && running === null ? <ErrorBox error={error} retry={() => form.current?.requestSubmit()} /> : null}
      {shown ? (
        <section ref={result} class="mlp-whatif-result" tabIndex={-1} aria-label={t("Result")} data-stale={shown.of !== draft}>
          {shown.of !== draft ? <p class="mlp-dim">{t("The form has changed; run again to see the effect.")}</p> : null}
          <Result answer={shown.answer} />
        </section>
      ) : running === null && !error ? (
        <Empty title={t("Nothing was run yet")}>
          <p>{t("Change any field, then run: the hub schedules the same work twice, as it is and with your changes.")}</p>
        </Empty>
      ) : null}
    </>
  );
}

function Progress({ since }: { since: number }): JSX.Element {
  const now = useNow(1000);
  return (
    <div class="mlp-whatif-wait" role="status">
      <Loading what={t("Loading both runs")} lines={4} />
      <p class="mlp-dim">{t("Running both, for {span}; at most a minute.", { span: duration(Math.max(0, now - since) / 1000) })}</p>
    </div>
  );
}
