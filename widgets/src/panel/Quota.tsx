/** What my tenants may use and who uses it; and a token for scripts. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { BarLegend, Chip, Empty, ErrorBox, Icon, Loading, QuotaBar, Table, type Column } from "../components/basics";
import { useLoad, useNow } from "../components/hooks";
import { paths } from "../core/api";
import { ago, bytes, cores, plural, ram } from "../core/format";
import { beyondWords, loweredWords, sharingWords, standing } from "../core/sharing";
import type { Holding, Tenant, Usage } from "../core/wire";
import { useHub } from "./context";
import { PageHead } from "./form";
import { href, Link } from "./router";

const APPLIER: Record<string, string> = { dm: "data", jm: "job", am: "app", mm: "model", sp: "notebook" };

export function QuotaBars({ tenant, back }: {
  tenant: Tenant;
  /** When it is expected inside its quota again, where the reader may know. */
  back?: string;
}): JSX.Element {
  const shares = sharingWords(tenant);
  const beyond = beyondWords(tenant);
  const over = Object.keys(tenant.over).length > 0;
  const lowered = loweredWords(tenant, useNow(10_000));
  const bars = (["cpu", "gpu", "ram", "rom"] as const).map((d) => standing(tenant, d));
  return (
    <>
      <div class="mlp-quotas">
        <QuotaBar name="CPU" of={standing(tenant, "cpu")} show={cores} />
        <QuotaBar name="GPU" of={standing(tenant, "gpu")} show={cores} />
        <QuotaBar name="Memory" of={standing(tenant, "ram")} show={ram} />
        <QuotaBar name="Storage" of={standing(tenant, "rom")} show={bytes} />
      </div>
      <BarLegend bars={bars} />
      {beyond ? (
        <div class={`mlp-note mlp-note-${over ? "bad" : "wait"} mlp-beyond`} role="note">
          <Icon name={over ? "warn" : "wait"} />
          <div class="mlp-note-text">{`${[beyond, over ? back : ""].filter(Boolean).join(". ")}.`}</div>
        </div>
      ) : null}
      {lowered ? (
        <div class="mlp-note mlp-note-wait mlp-lowered">
          <Icon name="idle" />
          <div class="mlp-note-text">{lowered}</div>
        </div>
      ) : null}
      {shares ? <p class="mlp-dim mlp-shares-line">{shares}</p> : null}
    </>
  );
}

export function Holdings({ holdings, linkUser }: { holdings: Holding[]; linkUser: (user: string) => boolean }): JSX.Element {
  const now = useNow(10_000);
  const columns: Column<Holding>[] = [
    {
      title: "Holder",
      kind: "grow",
      cell: (h) => (h.applier === "jm" && h.user && linkUser(h.user) ? <Link to={href("jobs", h.user, jobName(h))}>{jobName(h)}</Link> : h.holder),
    },
    { title: "Kind", cell: (h) => APPLIER[h.applier] ?? h.applier },
    { title: "User", cell: (h) => h.user },
    { title: "CPU", kind: "num", cell: (h) => cores(h.cpu) },
    { title: "GPU", kind: "num low", cell: (h) => cores(h.gpu) },
    { title: "Memory", kind: "num", cell: (h) => ram(h.ram) },
    { title: "Since", kind: "num low", cell: (h) => ago(h.since, now) },
  ];
  if (!holdings.length) return <p class="mlp-dim">Nothing is in use.</p>;
  return <Table caption="Who uses it" columns={columns} rows={holdings} rowKey={(h) => `${h.applier} ${h.holder} ${h.user} ${h.since}`} />;
}

/** A holder of kind job is named by the job, with or without words around it. */
function jobName(h: Holding): string {
  return h.holder.replace(/^job /, "").split("/").at(-1) ?? h.holder;
}

export function QuotaPage(): JSX.Element {
  const { client, session } = useHub();
  const usage = useLoad("quota", () => client.list<Usage>(paths.quota(session.username)), 5000);
  const items = usage.data?.items ?? [];
  return (
    <>
      <PageHead title="Quota" sub="What your tenants may use, and who uses it now" />
      {usage.error ? <ErrorBox error={usage.error} retry={() => void usage.reload()} /> : null}
      {!usage.data && !usage.error ? <Loading what="your quota" lines={5} /> : null}
      {usage.data && !items.length ? <Empty title="You are in no tenant yet"><p>Ask an admin to add you to one.</p></Empty> : null}
      {items.map((u) => (
        <section key={u.tenant.name} class="mlp-card" aria-label={`Tenant ${u.tenant.name}`}>
          <div class="mlp-card-head">
            <h2>{u.tenant.name}</h2>
            {session.tenant_admin.includes(u.tenant.name) ? <Chip>you are its admin</Chip> : null}
            <span class="mlp-dim">{`${plural(u.tenant.running, "job")} running, ${u.tenant.waiting} waiting`}</span>
            {u.tenant.description ? <span class="mlp-dim">{u.tenant.description}</span> : null}
          </div>
          <QuotaBars tenant={u.tenant} />
          <Holdings holdings={u.holdings} linkUser={(user) => user === session.username || session.admin} />
        </section>
      ))}
      <Token />
    </>
  );
}

function Token(): JSX.Element {
  const { client, session, say } = useHub();
  const [token, setToken] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const make = async (): Promise<void> => {
    setError(null);
    try {
      setToken(await client.get<string>(paths.token(session.username)));
    } catch (e) {
      setError(e);
    }
  };
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(token ?? "");
      say("Token copied");
    } catch {
      say("The browser does not let pages copy; select the text instead");
    }
  };
  return (
    <section class="mlp-card" aria-label="Token">
      <div class="mlp-card-head">
        <h2>Token for scripts</h2>
        <span class="mlp-dim">For the mlp command and REST, in your name. Made anew each time; shown once.</span>
      </div>
      {error ? <ErrorBox error={error} /> : null}
      {token === null ? (
        <button type="button" class="mlp-button" onClick={() => void make()}>
          Make a token
        </button>
      ) : (
        <div class="mlp-row">
          <code class="mlp-token" tabIndex={0} aria-label="Your new token">{token}</code>
          <button type="button" class="mlp-button" onClick={() => void copy()}>
            Copy
          </button>
          <button type="button" class="mlp-button" onClick={() => setToken(null)}>
            Hide
          </button>
        </div>
      )}
    </section>
  );
}
