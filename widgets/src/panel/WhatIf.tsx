/** What-if: the hub as it is beside the hub with other quotas, nodes or policy, run in virtual time. Changes nothing. */
import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading } from "../components/basics";
import { useLoad, useNow } from "../components/hooks";
import { paths } from "../core/api";
import { duration, plural } from "../core/format";
import { POLICIES, policyWords } from "../core/policy";
import { askedOf, draftOf, kindsOf, type Draft, type Kind } from "../core/whatif";
import type { Node, Scheduling, Simulated, Tenant } from "../core/wire";
import { useHub } from "./context";
import { PageHead, Select } from "./form";
import { NodeRows, TenantRows } from "./WhatIfForm";
import { Result } from "./WhatIfResult";

const SOURCES: [string, string][] = [["now", "From now on"], ["1", "The last day"], ["7", "The last 7 days"], ["30", "The last 30 days"]];

export function WhatIfPage(): JSX.Element {
  const { client } = useHub();
  const tenants = useLoad("what-if-tenants", () => client.list<Tenant>(paths.tenants));
  const nodes = useLoad("what-if-nodes", () => client.list<Node>("/nodes"));
  const scheduling = useLoad("what-if-scheduling", () => client.get<Scheduling>(paths.scheduling));
  const error = tenants.error ?? nodes.error ?? scheduling.error;
  const policy = scheduling.data ? ` Policy in force: ${policyWords(scheduling.data.policy)}.` : "";
  const head = <PageHead title="What-if" sub={`Try other quotas, nodes or a policy on the hub's own work. Nothing is changed.${policy}`} />;
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
      {error ? <ErrorBox error={error} retry={retry} /> : <Loading what="tenants, nodes and policy" lines={6} />}
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
      <form ref={form} class="mlp-whatif" onSubmit={(e) => void run(e)} noValidate aria-label="What would be other">
        <section class="mlp-card" aria-label="Quotas">
          <div class="mlp-card-head">
            <h2>Quotas</h2>
            <span class="mlp-dim">An empty field means no limit</span>
          </div>
          <TenantRows key={round} draft={draft} tenants={tenants} faults={faults} set={set} />
        </section>
        <section class="mlp-card" aria-label="Nodes">
          <div class="mlp-card-head">
            <h2>Nodes</h2>
            <span class="mlp-dim">How many there would be of each kind</span>
          </div>
          <NodeRows draft={draft} kinds={kinds} faults={faults} set={set} />
        </section>
        <section class="mlp-card mlp-whatif-run" aria-label="Run">
          <Select label="Work" name="from" value={draft.from} onChange={(from) => set({ from })} options={SOURCES} />
          <Select label="Policy" name="policy" value={draft.policy} onChange={(policy) => set({ policy })} options={[["", `As it is (${now.policy})`], ...POLICIES.map((name) => [name, policyWords(name)] as [string, string])]} />
          <Select
            label="Preemption"
            name="preemption"
            value={draft.preemption}
            onChange={(preemption) => set({ preemption })}
            options={[["", `As it is (${now.preemption ? "allowed" : "never"})`], ["on", "Allowed"], ["off", "Never"]]}
          />
          <div class="mlp-whatif-go">
            <span class="mlp-dim" role="status">
              {asked.changes ? plural(asked.changes, "change") : "No change yet"}
            </span>
            <button type="button" class="mlp-button" disabled={!asked.changes} onClick={startOver}>
              Start over
            </button>
            <button type="submit" class="mlp-button mlp-primary" disabled={running !== null}>
              Run
            </button>
          </div>
        </section>
      </form>
      {running !== null ? <Progress since={running} /> : null}
      {error && running === null ? <ErrorBox error={error} retry={() => form.current?.requestSubmit()} /> : null}
      {shown ? (
        <section ref={result} class="mlp-whatif-result" tabIndex={-1} aria-label="Result" data-stale={shown.of !== draft}>
          {shown.of !== draft ? <p class="mlp-dim">The form was changed since; run again to see what that means.</p> : null}
          <Result answer={shown.answer} />
        </section>
      ) : running === null && !error ? (
        <Empty title="Nothing was run yet">
          <p>Change what you like, then run: the same work is scheduled twice, as things are and with your changes.</p>
        </Empty>
      ) : null}
    </>
  );
}

function Progress({ since }: { since: number }): JSX.Element {
  const now = useNow(1000);
  return (
    <div class="mlp-whatif-wait" role="status">
      <Loading what="both runs" lines={4} />
      <p class="mlp-dim">{`Running both, for ${duration(Math.max(0, now - since) / 1000)}; at most a minute.`}</p>
    </div>
  );
}
