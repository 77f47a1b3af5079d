/** All tenants; a new one; the page of one: use, quota, members, delete. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, StandingBar, Table, type Column } from "../../components/basics/basics";
import { Confirm } from "../../components/basics/Dialog";
import { useLoad } from "../../components/basics/hooks";
import { QuotaBars } from "../../components/basics/QuotaBars";
import { paths } from "../../core/service/api";
import { bytes, cores, ram } from "../../core/format/format";
import { place, standing, type Standing } from "../../core/teams/sharing";
import { orderWords } from "../../core/format/policy";
import { countWords } from "../../core/jobs/queuecounts";
import { backWords } from "../../core/teams/preview";
import { create, unchanged, update, type Read, type Texts } from "../../core/teams/tenantform";
import type { QueueEntry, Tenant, TenantPreview, Usage } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { PageHead } from "../../components/basics/form";
import { Announcing } from "./Announcing";
import { IdlePolicies } from "./IdlePolicy";
import { IdleWork } from "./IdleWork";
import { Bookings } from "./Bookings";
import { Members } from "./Members";
import { Programs } from "./Programs";
import { Holdings } from "./Quota";
import { QueueTables, useQueueHints } from "../jobs/Queue";
import { go, href, Link } from "../shared/address";
import { Runtimes } from "./Runtimes";
import { Secrets } from "../stored/Secrets";
import { Caps, Joins, MoreQuota, TeamAudit } from "./Team";
import { TenantForm } from "./TenantForm";
import { budgetOf } from "./Accounting";
import { BudgetBars } from "../../components/basics/BudgetBars";
import { Tabs, type Tab } from "../shared/Tabs";
import { UsageOverTime } from "./UsageOverTime";
import { n, t } from "../../core/format/language";

const EVERY = 6000;

function Use({ of, show }: { of: Standing; show: (n: number) => string }): JSX.Element {
  const { used, limit } = of;
  const text = limit === null ? t("{amount} used", { amount: show(used) }) : `${show(used)} / ${show(limit)}`;
  const more = of.over > 1e-9 ? t("{amount} beyond quota", { amount: show(of.over) }) : of.borrowed ? t("{amount} borrowed", { amount: show(of.borrowed) }) : of.lent ? t("{amount} lent", { amount: show(of.lent) }) : "";
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

const columns = (): Column<Tenant>[] => [
  { title: t("Team"), cell: (of) => <Name tenant={of} />, kind: "name" },
  { title: t("CPU"), cell: (of) => <Use of={standing(of, "cpu")} show={cores} /> },
  { title: t("GPU"), cell: (of) => <Use of={standing(of, "gpu")} show={cores} />, kind: "low" },
  { title: t("Memory"), cell: (of) => <Use of={standing(of, "ram")} show={ram} /> },
  { title: t("Storage"), cell: (of) => <Use of={standing(of, "rom")} show={bytes} />, kind: "low" },
  { title: t("Members"), cell: (of) => of.members, kind: "num" },
  { title: t("Running"), cell: (of) => of.running, kind: "num" },
  { title: t("Waiting"), cell: (of) => of.waiting, kind: "num" },
];

export function TenantsPage(): JSX.Element {
  const { client } = useHub();
  const tenants = useLoad("tenants", () => client.all<Tenant>(paths.tenants), EVERY);
  const items = tenants.data?.items ?? [];
  return (
    <>
      <PageHead title={t("Teams")} sub={tenants.data ? n("1 team", "{n} teams", items.length) : undefined}>
        <Link to={href("admin", "tenants", "new")} cls="mlp-button mlp-primary">
          {t("New team")}
        </Link>
      </PageHead>
      {tenants.error ? <ErrorBox error={tenants.error} retry={() => void tenants.reload()} /> : null}
      {!tenants.data ? (
        tenants.error ? null : <Loading what={t("Loading teams")} lines={5} />
      ) : items.length ? (
        <Table stack caption={t("Teams and what they use")} columns={columns()} rows={items} rowKey={(of) => of.name} />
      ) : (
        <Empty title={t("No teams yet")}>
          <p>{t("A team is a group of users with its own quota.")}</p>
        </Empty>
      )}
    </>
  );
}

export function NewTenantPage(): JSX.Element {
  const { client, say } = useHub();
  const tenants = useLoad("tenants", () => client.all<Tenant>(paths.tenants));
  const save = async (texts: Texts, r: Read): Promise<void> => {
    const made = await client.post<Tenant>(paths.tenants, create(texts, r));
    say(t("Team {name} created", { name: made.name }));
    go(href("admin", "tenants", made.name));
  };
  return (
    <>
      <p class="mlp-crumbs">
        <Link to={href("admin", "tenants")}>{t("Teams")}</Link>
        <span aria-hidden="true"> / </span>{t("new")}
      </p>
      <PageHead title={t("New team")} />
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
  const [taken, setTaken] = useState(0);
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
  const budget = useLoad(`budget ${name}`, () => budgetOf(client, session, name), 60_000);
  const tenant = state.data?.usage.tenant ?? null;
  const quota = tenant && state.data ? (
    <section class="mlp-card" aria-label={t("Quota in use")}>
      <div class="mlp-card-head">
        <h2>{t("Quota in use")}</h2>
      </div>
      <QuotaBars tenant={tenant} back={backWords(state.data.preview, Date.now())} />
      {budget.data ? <BudgetBars budgets={[budget.data]} /> : null}
      <Holdings holdings={state.data.usage.holdings} linkUser={() => manages} />
    </section>
  ) : null;
  const joins = <Joins tenant={name} open={tenant?.joining === "asked"} taken={() => setTaken((count) => count + 1)} />;
  const use = tenant && state.data ? <UsageOverTime tenant={tenant} history={state.data.usage.history} jobs={state.data.usage.jobs} /> : null;
  // of who manages the team: others see so little that one page has room for it
  const tabs: Tab[] = [
    {
      key: "now",
      title: t("Now"),
      content: () => <>{joins}{quota}{use}{tenant ? <TenantQueue rows={state.data?.queue ?? []} order={tenant.queue_order} done={state.reload} /> : null}<IdleWork tenant={name} /></>,
    },
    {
      key: "people",
      title: t("People"),
      content: () => (
        <>
          <Members tenant={name} taken={taken} />
          {name !== "default" ? <Programs tenant={name} /> : null}
          <Caps tenant={name} />
        </>
      ),
    },
    {
      key: "settings",
      title: t("Settings"),
      content: () => (
        <>
          <Announcing tenant={name} />
          <Bookings tenant={name} saves={saves} />
          {tenant ? <MoreQuota tenant={tenant} /> : null}
          <IdlePolicies tenant={name} />
          <Runtimes tenant={name} manages />
          <Secrets of={{ tenant: name }} />
        </>
      ),
    },
    { key: "log", title: t("Log"), content: () => <TeamAudit tenant={name} /> },
  ];
  return (
    <>
      {session.admin ? (
        <p class="mlp-crumbs">
          <Link to={href("admin", "tenants")}>{t("Teams")}</Link>
          <span aria-hidden="true"> / </span>
          {name}
        </p>
      ) : null}
      <PageHead
        title={name}
        sub={tenant && state.data ? [tenant.description, manages ? countWords(state.data.queue, state.data.queue.length).join(t(", ")) : n("1 job running, {waiting} waiting", "{n} jobs running, {waiting} waiting", tenant.running, { waiting: tenant.waiting })].filter(Boolean).join(" · ") : undefined}
      >
        <Link to={href("tenants", name, "over-time")} cls="mlp-button">
          {t("Over time")}
        </Link>
        {manages ? (
          <>
            <Link to={href("tenants", name, "usage")} cls="mlp-button">
              {t("Usage")}
            </Link>
            <Link to={href("tenants", name, "alerts")} cls="mlp-button">
              {t("Alerts")}
            </Link>
            <Link to={href("tenants", name, "runs")} cls="mlp-button">
              {t("All runs")}
            </Link>
          </>
        ) : null}
        {session.admin && tenant && !editing ? (
          <>
            <button type="button" class="mlp-button" onClick={() => setEditing(true)}>
              {t("Edit quota")}
            </button>
            {name !== "default" ? (
              <button type="button" class="mlp-button mlp-quiet-danger" onClick={() => setDeleting(true)}>
                {t("Delete")}
              </button>
            ) : null}
          </>
        ) : null}
      </PageHead>
      {state.error ? <ErrorBox error={state.error} retry={() => void state.reload()} /> : null}
      {!tenant && !state.error ? <Loading what={t("Loading team {name}", { name })} lines={6} /> : null}
      {tenant && state.data ? (
        <>
          {editing ? (
            <Edit
              tenant={tenant}
              queue={state.data.queue}
              done={() => {
                setEditing(false);
                say(t("Team {name} saved", { name }));
                setSaves((count) => count + 1);
                void state.reload();
              }}
              cancel={() => setEditing(false)}
            />
          ) : null}
          {manages ? <Tabs label={t("Parts of the page of {name}", { name })} tabs={tabs} /> : <>{quota}{use}<Bookings tenant={name} saves={saves} /><Runtimes tenant={name} manages={false} /></>}
        </>
      ) : null}
      {deleting && tenant ? <DeleteTenant tenant={tenant} close={() => setDeleting(false)} /> : null}
    </>
  );
}

function TenantQueue({ rows, order, done }: { rows: QueueEntry[]; order: string; done: () => Promise<void> }): JSX.Element {
  return (
    <section class="mlp-card" aria-label={t("Queue")}>
      <div class="mlp-card-head">
        <h2>{t("Queue")}</h2>
        <span class="mlp-dim">{t("Order: {order}", { order: orderWords(order) })}</span>
      </div>
      {rows.length ? <QueueTables rows={rows} tenants={false} done={done} /> : <p class="mlp-dim">{t("Nothing is running or waiting.")}</p>}
    </section>
  );
}

function Edit({ tenant, queue, done, cancel }: { tenant: Tenant; queue: QueueEntry[]; done: () => void; cancel: () => void }): JSX.Element {
  const { client } = useHub();
  const others = useLoad("tenants", () => client.all<Tenant>(paths.tenants));
  // the form keeps what is typed; only the figures of the preview follow what happens
  return (
    <section class="mlp-card" aria-label={t("Edit quota")}>
      <div class="mlp-card-head">
        <h2>{t("Edit quota")}</h2>
      </div>
      <TenantForm
        tenant={tenant}
        others={(others.data?.items ?? []).filter((one) => one.name !== tenant.name)}
        fresh={queue.map((e) => `${e.user}/${e.name} ${e.run} ${e.phase}`).join()}
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
      say(t("Team {name} deleted", { name: tenant.name }));
      go(href("admin", "tenants"));
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  const busyJobs = tenant.running + tenant.waiting;
  return (
    <Confirm
      title={t("Delete team {name}?", { name: tenant.name })}
      text={
        <p>
          {n("Its quota and its 1 membership are removed. The users and their files stay.", "Its quota and its {n} memberships are removed. The users and their files stay.", tenant.members)}
          {busyJobs ? ` ${n("It has 1 running job and {waiting} waiting.", "It has {n} running jobs and {waiting} waiting.", tenant.running, { waiting: tenant.waiting })}` : ""}
        </p>
      }
      yes={t("Delete team")}
      busy={busy}
      error={error ? <ErrorBox error={error} /> : null}
      onYes={() => void yes()}
      onNo={close}
    />
  );
}
