/** What my tenants may use and who uses it; and a token for scripts. */
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { BudgetBars } from "../../components/basics/BudgetBars";
import { QuotaBars } from "../../components/basics/QuotaBars";
import { paths } from "../../core/service/api";
import { COUNTED, heldOf, ROWS } from "../../core/format/dimensions";
import { ago, bytes, cores, ram } from "../../core/format/format";
import { remember } from "../../core/accounts/firststeps";
import { pinned, replicaName } from "../../core/jobs/runs";
import { capWords } from "../../core/teams/team";
import type { BudgetState, Holding, MemberCap, Usage } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { PageHead } from "../../components/basics/form";
import { href, hubPage, Link } from "../shared/address";
import { n, t } from "../../core/format/language";

const APPLIER: Record<string, () => string> = { dm: () => t("data"), jm: () => t("job"), am: () => t("app"), mm: () => t("model"), sp: () => t("notebook"), st: () => t("storage") };

/** Whether it is only kept, and nothing works there. */
const stores = (h: Holding): boolean => h.applier === "st";

/** Who holds it: a job or a replica of an app by its name, with the page where it is. */
function Holder({ of: h, links }: { of: Holding; links: boolean }): JSX.Element {
  if (h.app && links) return <Link to={href("app", h.user, h.app)}>{replicaName(h.app, h.replica)}</Link>;
  if (h.job && links) return <Link to={href("jobs", h.user, pinned(h.job))}>{h.job}</Link>;
  return <>{h.holder}</>;
}

export function Holdings({ holdings, linkUser }: { holdings: Holding[]; linkUser: (user: string) => boolean }): JSX.Element {
  const now = useNow(10_000);
  const columns: Column<Holding>[] = [
    {
      title: t("Holder"),
      kind: "name",
      cell: (h) => <Holder of={h} links={linkUser(h.user)} />,
    },
    { title: t("Kind"), kind: "tight", cell: (h) => (h.app ? t("app") : (APPLIER[h.applier]?.() ?? h.applier)) },
    { title: t("User"), cell: (h) => h.user },
    { title: t("CPU"), kind: "num", cell: (h) => (stores(h) ? "" : cores(h.cpu)) },
    { title: t("GPU"), kind: "num low", cell: (h) => (stores(h) ? "" : cores(h.gpu)) },
    { title: t("Memory"), kind: "num", cell: (h) => (stores(h) ? "" : ram(h.ram)) },
    ...(holdings.some((h) => h.rom) ? [{ title: t("Storage"), kind: "num", cell: (h) => (h.rom ? bytes(h.rom) : "") } satisfies Column<Holding>] : []),
    ...COUNTED.filter((d) => holdings.some((h) => heldOf(h, d))).map((d): Column<Holding> => ({ title: ROWS[d].label(), kind: "num", cell: (h) => (heldOf(h, d) ? ROWS[d].show(heldOf(h, d)) : "") })),
    { title: t("Since"), kind: "num low", cell: (h) => ago(h.since, now) },
  ];
  if (!holdings.length) return <p class="mlp-dim">{t("Nothing is in use.")}</p>;
  return <Table stack caption={t("Current users")} columns={columns} rows={holdings} rowKey={(h) => `${h.applier} ${h.holder} ${h.user} ${h.since}`} />;
}

export function QuotaPage(): JSX.Element {
  const { client, session } = useHub();
  const usage = useLoad("quota", () => client.list<Usage>(paths.quota(session.username)), 5000);
  const budgets = useLoad("budgets", () => client.list<BudgetState>(paths.budgets(session.username)), 60_000);
  const items = usage.data?.items ?? [];
  useEffect(() => remember(session.username, { quota: true }), [session.username]);
  return (
    <>
      <PageHead title={t("Quota")} sub={t("The quota of your teams and its current users")}>
        <Link to={href("usage")}>{t("Usage")}</Link>
      </PageHead>
      {usage.error ? <ErrorBox error={usage.error} retry={() => void usage.reload()} /> : null}
      {!usage.data && !usage.error ? <Loading what={t("Loading your quota")} lines={5} /> : null}
      {usage.data && !items.length ? <Empty title={t("You are in no team yet")}><p>{t("Ask an admin to add you to one.")}</p></Empty> : null}
      {items.map((u) => (
        <section key={u.tenant.name} class="mlp-card" aria-label={t("Team {name}", { name: u.tenant.name })}>
          <div class="mlp-card-head">
            <h2><Link to={href("tenants", u.tenant.name)}>{u.tenant.name}</Link></h2>
            {session.tenant_admin.includes(u.tenant.name) ? <Chip>{t("you are its admin")}</Chip> : null}
            <span class="mlp-dim">{n("1 job running, {waiting} waiting", "{n} jobs running, {waiting} waiting", u.tenant.running, { waiting: u.tenant.waiting })}</span>
            {u.tenant.description ? <span class="mlp-dim">{u.tenant.description}</span> : null}
          </div>
          <QuotaBars tenant={u.tenant} />
          <OwnCap tenant={u.tenant.name} user={session.username} />
          <BudgetBars budgets={(budgets.data?.items ?? []).filter((one) => one.tenant === u.tenant.name)} />
          <Holdings holdings={u.holdings} linkUser={(user) => user === session.username || session.admin} />
        </section>
      ))}
      <Token />
    </>
  );
}

/** The cap of the reader in a team, where there is one: their jobs wait for it although the team's quota has room. */
function OwnCap({ tenant, user }: { tenant: string; user: string }): JSX.Element | null {
  const { client } = useHub();
  const found = useLoad(`caps ${tenant}`, () => client.list<MemberCap>(paths.caps(tenant)), 60_000);
  const items = found.data?.items ?? [];
  const mine = items.find((one) => one.user === user) ?? items.find((one) => one.user === null);
  return mine ? <p class="mlp-dim">{t("Your cap in this team: {cap}. Jobs beyond it wait.", { cap: capWords(mine) })}</p> : null;
}

function Token(): JSX.Element {
  return (
    <section class="mlp-card" aria-label={t("Token")}>
      <div class="mlp-card-head">
        <h2>{t("Token for scripts")}</h2>
        <span class="mlp-dim">{t("For the mlp command and REST, in your name. Made and revoked on the hub's own page.")}</span>
      </div>
      <a class="mlp-button" href={hubPage("token")}>
        {t("Make a token")}
      </a>
    </section>
  );
}
