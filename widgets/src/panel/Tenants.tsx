/** All tenants; a new one; the page of one: use, quota, members, delete. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, StandingBar, Table, type Column } from "../components/basics";
import { Confirm } from "../components/Dialog";
import { useLoad } from "../components/hooks";
import { paths } from "../core/api";
import { bytes, cores, plural, ram } from "../core/format";
import { place, standing, type Standing } from "../core/sharing";
import { orderWords } from "../core/policy";
import { backWords } from "../core/preview";
import { unchanged, update, type Read, type Texts } from "../core/tenantform";
import type { QueueEntry, Tenant, TenantPreview, Usage } from "../core/wire";
import { useHub } from "./context";
import { PageHead } from "./form";
import { Bookings } from "./Bookings";
import { Members } from "./Members";
import { Holdings, QuotaBars } from "./Quota";
import { QueueTables, useQueueHints } from "./Queue";
import { go, href, Link } from "./router";
import { TenantForm } from "./TenantForm";

const EVERY = 6000;

function Use({ of, show }: { of: Standing; show: (n: number) => string }): JSX.Element {
  const { used, limit } = of;
  const text = limit === null ? `${show(used)} used` : `${show(used)} / ${show(limit)}`;
  const more = of.over > 1e-9 ? `${show(of.over)} beyond quota` : of.borrowed ? `${show(of.borrowed)} borrowed` : of.lent ? `${show(of.lent)} lent` : "";
  return (
    <span class="mlp-use mlp-use-wide">
      <span>
        {text}
        {more ? <span class="mlp-dim">{` · ${more}`}</span> : null}
      </span>
      {limit === null ? null : <StandingBar of={of} />}
    </span>
  );
}

function Name({ tenant }: { tenant: Tenant }): JSX.Element {
  const where = place(tenant);
  return (
    <>
      <Link to={href("admin", "tenants", tenant.name)}>{tenant.name}</Link>
      {where ? <span class="mlp-dim mlp-under">{where}</span> : null}
    </>
  );
}

const COLUMNS: Column<Tenant>[] = [
  { title: "Tenant", cell: (t) => <Name tenant={t} />, kind: "name" },
  { title: "CPU", cell: (t) => <Use of={standing(t, "cpu")} show={cores} /> },
  { title: "GPU", cell: (t) => <Use of={standing(t, "gpu")} show={cores} />, kind: "low" },
  { title: "Memory", cell: (t) => <Use of={standing(t, "ram")} show={ram} /> },
  { title: "Storage", cell: (t) => <Use of={standing(t, "rom")} show={bytes} />, kind: "low" },
  { title: "Members", cell: (t) => t.members, kind: "num" },
  { title: "Running", cell: (t) => t.running, kind: "num" },
  { title: "Waiting", cell: (t) => t.waiting, kind: "num" },
];

export function TenantsPage(): JSX.Element {
  const { client } = useHub();
  const tenants = useLoad("tenants", () => client.list<Tenant>(paths.tenants), EVERY);
  const items = tenants.data?.items ?? [];
  return (
    <>
      <PageHead title="Tenants" sub={tenants.data ? plural(items.length, "tenant") : undefined}>
        <Link to={href("admin", "tenants", "new")} cls="mlp-button mlp-primary">
          New tenant
        </Link>
      </PageHead>
      {tenants.error ? <ErrorBox error={tenants.error} retry={() => void tenants.reload()} /> : null}
      {!tenants.data ? (
        tenants.error ? null : <Loading what="tenants" lines={5} />
      ) : items.length ? (
        <Table caption="Tenants and what they use" columns={COLUMNS} rows={items} rowKey={(t) => t.name} />
      ) : (
        <Empty title="No tenants yet">
          <p>A tenant is a team with its quota.</p>
        </Empty>
      )}
    </>
  );
}

export function NewTenantPage(): JSX.Element {
  const { client, say } = useHub();
  const tenants = useLoad("tenants", () => client.list<Tenant>(paths.tenants));
  const save = async (texts: Texts, r: Read): Promise<void> => {
    const made = await client.post<Tenant>(paths.tenants, { name: texts.name, ...r.amounts, weight: r.weight, ...r.sharing, description: texts.description });
    say(`Tenant ${made.name} created`);
    go(href("admin", "tenants", made.name));
  };
  return (
    <>
      <p class="mlp-crumbs">
        <Link to={href("admin", "tenants")}>Tenants</Link>
        <span aria-hidden="true"> / </span>new
      </p>
      <PageHead title="New tenant" />
      <div class="mlp-card">
        <TenantForm
          tenant={null}
          others={tenants.data?.items ?? []}
          onSave={save}
          onCancel={() => go(href("admin", "tenants"))}
        />
      </div>
    </>
  );
}

export function TenantPage({ name }: { name: string }): JSX.Element {
  const { client, session, say } = useHub();
  const [editing, setEditing] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const [saves, setSaves] = useState(0);
  const manages = session.admin || session.tenant_admin.includes(name);
  // asked for together, or holders and queue would contradict each other for a while
  const state = useLoad(
    `tenant ${name}`,
    async () => {
      const [usage, queue] = await Promise.all([
        client.get<Usage>(paths.usage(name)),
        manages ? client.list<QueueEntry>(paths.queue(name)) : null,
      ]);
      // what a save of what is there would mean says when it is inside its quota again
      const asked = session.admin && Object.keys(usage.tenant.over).length > 0;
      const preview = asked ? await client.post<TenantPreview>(paths.preview(name), unchanged(usage.tenant)) : null;
      return { usage, queue: queue?.items ?? [], preview };
    },
    EVERY,
  );
  useQueueHints(client, () => void state.reload(), session.admin);
  const tenant = state.data?.usage.tenant ?? null;
  return (
    <>
      {session.admin ? (
        <p class="mlp-crumbs">
          <Link to={href("admin", "tenants")}>Tenants</Link>
          <span aria-hidden="true"> / </span>
          {name}
        </p>
      ) : null}
      <PageHead
        title={name}
        sub={tenant ? [tenant.description, `${plural(tenant.running, "job")} running, ${tenant.waiting} waiting`].filter(Boolean).join(" · ") : undefined}
      >
        {session.admin && tenant && !editing ? (
          <>
            <button type="button" class="mlp-button" onClick={() => setEditing(true)}>
              Edit quota
            </button>
            {name !== "default" ? (
              <button type="button" class="mlp-button mlp-quiet-danger" onClick={() => setDeleting(true)}>
                Delete
              </button>
            ) : null}
          </>
        ) : null}
      </PageHead>
      {state.error ? <ErrorBox error={state.error} retry={() => void state.reload()} /> : null}
      {!tenant && !state.error ? <Loading what={`tenant ${name}`} lines={6} /> : null}
      {tenant && state.data ? (
        <>
          {editing ? (
            <Edit
              tenant={tenant}
              queue={state.data.queue}
              done={() => {
                setEditing(false);
                say(`Tenant ${name} saved`);
                setSaves((n) => n + 1);
                void state.reload();
              }}
              cancel={() => setEditing(false)}
            />
          ) : null}
          <section class="mlp-card" aria-label="Quota in use">
            <div class="mlp-card-head">
              <h2>Quota in use</h2>
            </div>
            <QuotaBars tenant={tenant} back={backWords(state.data.preview, Date.now())} />
            <Holdings holdings={state.data.usage.holdings} linkUser={() => manages} />
          </section>
          <Bookings tenant={name} saves={saves} />
          {manages ? <TenantQueue rows={state.data.queue} order={tenant.queue_order} /> : null}
          {manages ? <Members tenant={name} /> : null}
        </>
      ) : null}
      {deleting && tenant ? <DeleteTenant tenant={tenant} close={() => setDeleting(false)} /> : null}
    </>
  );
}

function TenantQueue({ rows, order }: { rows: QueueEntry[]; order: string }): JSX.Element {
  return (
    <section class="mlp-card" aria-label="Queue">
      <div class="mlp-card-head">
        <h2>Queue</h2>
        <span class="mlp-dim">{`Goes by ${orderWords(order)}`}</span>
      </div>
      {rows.length ? <QueueTables rows={rows} tenants={false} /> : <p class="mlp-dim">Nothing runs and nothing waits.</p>}
    </section>
  );
}

function Edit({ tenant, queue, done, cancel }: { tenant: Tenant; queue: QueueEntry[]; done: () => void; cancel: () => void }): JSX.Element {
  const { client } = useHub();
  const others = useLoad("tenants", () => client.list<Tenant>(paths.tenants));
  // the form keeps what is typed; only the figures of the preview follow what happens
  return (
    <section class="mlp-card" aria-label="Edit quota">
      <div class="mlp-card-head">
        <h2>Edit quota</h2>
      </div>
      <TenantForm
        tenant={tenant}
        others={(others.data?.items ?? []).filter((t) => t.name !== tenant.name)}
        fresh={queue.map((e) => `${e.user}/${e.name} ${e.phase}`).join()}
        onSave={async (texts, r) => {
          await client.put<Tenant>(paths.tenant(tenant.name), update(tenant, texts, r));
          done();
        }}
        onCancel={cancel}
      />
    </section>
  );
}

function DeleteTenant({ tenant, close }: { tenant: Tenant; close: () => void }): JSX.Element {
  const { client, say } = useHub();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const yes = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      await client.delete(paths.tenant(tenant.name));
      say(`Tenant ${tenant.name} deleted`);
      go(href("admin", "tenants"));
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  const busyJobs = tenant.running + tenant.waiting;
  return (
    <Confirm
      title={`Delete tenant ${tenant.name}?`}
      text={
        <p>
          {`Its quota and its ${plural(tenant.members, "membership")} are removed. The users and their files stay.`}
          {busyJobs ? ` It has ${plural(tenant.running, "running job")} and ${tenant.waiting} waiting.` : ""}
        </p>
      }
      yes="Delete tenant"
      busy={busy}
      error={error ? <ErrorBox error={error} /> : null}
      onYes={() => void yes()}
      onNo={close}
    />
  );
}
