/** The panel's pages, one row each: where it is, what it is called, who sees it, and its entry in the navigation. */
import type { JSX } from "preact";
import { t } from "../core/format/language";
import type { Session } from "../core/service/wire";
import { AccountingPage, OwnAccounting } from "./teams/Accounting";
import { AlertsPage } from "./teams/Alerts";
import { AllRunsPage } from "./platform/AllRuns";
import { AppPage, AppsPage } from "./apps/Apps";
import { AuditPage } from "./teams/Audit";
import { ComparePage } from "./jobs/Compare";
import { DatasetPage, DatasetsPage } from "./stored/Datasets";
import { EnvironmentPage, EnvironmentsPage } from "./stored/Environments";
import { JobPage, JobsPage } from "./jobs/Jobs";
import { MePage } from "./accounts/Me";
import { ModelPage, ModelsPage } from "./stored/Models";
import { NodesPage } from "./platform/Nodes";
import { OverTimePage } from "./teams/OverTime";
import { OverviewPage } from "./platform/Overview";
import { QueuePage } from "./jobs/Queue";
import { QuotaPage } from "./teams/Quota";
import { SweepPage, SweepsPage } from "./jobs/Sweeps";
import { RequestsPage } from "./teams/Requests";
import { NewTenantPage, TenantPage, TenantsPage } from "./teams/Tenants";
import { RunsPage } from "./jobs/Runs";
import { UserPage } from "./platform/UserPage";
import { UsersPage } from "./platform/Users";
import { WhatIfPage } from "./platform/WhatIf";

interface Page {
  /** Its address, as `tenants/:`; each colon is a part that names something, and is handed to what follows. */
  path: string;
  title: (...named: string[]) => string;
  page: (...named: string[]) => JSX.Element;
  /** Who sees it; left out: everybody. What lies under `admin` only administrators see. */
  sees?: (session: Session, ...named: string[]) => boolean;
  /** Which entry of the navigation is marked while it is shown; left out: its own. */
  under?: (session: Session, ...named: string[]) => string;
  /** What its entries in the navigation name; left out: it has none. `[[]]`: one that names nothing. */
  entries?: (session: Session) => string[][];
  /** Text of an entry that is not its title. */
  entry?: (...named: string[]) => string;
}

const one = (): string[][] => [[]];

/** In the order of the navigation; of two that fit an address the first is shown. */
const PAGES: Page[] = [
  { path: "", title: () => t("Jobs"), page: () => <JobsPage />, entries: one },
  { path: "jobs", title: () => t("Jobs"), page: () => <JobsPage />, under: () => "" },
  {
    path: "jobs/:/:", title: (_, name = "") => name, page: (user = "", name = "") => <JobPage key={`${user}/${name}`} user={user} name={name} />,
    under: (session, user) => (user === session.username ? "" : "admin/queue"),
  },
  { path: "runs", title: () => t("Runs"), page: () => <RunsPage />, entries: one },
  {
    path: "compare/:/:", title: () => t("Compare"), page: (user = "", runs = "") => <ComparePage key={`${user}/${runs}`} user={user} runs={runs} />,
    under: () => "runs",
  },
  { path: "sweeps", title: () => t("Sweeps"), page: () => <SweepsPage />, entries: one },
  {
    path: "sweeps/:/:", title: (_, name = "") => name, page: (user = "", name = "") => <SweepPage key={`${user}/${name}`} user={user} name={name} />,
    under: () => "sweeps",
  },
  { path: "datasets", title: () => t("Datasets"), page: () => <DatasetsPage />, entries: one },
  {
    path: "datasets/:/:", title: (_, name = "") => name, page: (user = "", name = "") => <DatasetPage key={`${user}/${name}`} user={user} name={name} />,
    under: () => "datasets",
  },
  { path: "models", title: () => t("Models"), page: () => <ModelsPage />, entries: one },
  {
    path: "models/:/:", title: (_, name = "") => name, page: (user = "", name = "") => <ModelPage key={`${user}/${name}`} user={user} name={name} />,
    under: () => "models",
  },
  { path: "environments", title: () => t("Environments"), page: () => <EnvironmentsPage />, entries: one },
  {
    path: "environments/:/:", title: (_, name = "") => name, page: (tenant = "", name = "") => <EnvironmentPage key={`${tenant}/${name}`} tenant={tenant} name={name} />,
    under: () => "environments",
  },
  { path: "apps", title: () => t("Apps"), page: () => <AppsPage />, entries: one },
  // not below apps: what follows there is the app itself
  {
    path: "app/:/:", title: (_, name = "") => name, page: (user = "", name = "") => <AppPage key={`${user}/${name}`} user={user} name={name} />,
    under: () => "apps",
  },
  { path: "quota", title: () => t("Quota"), page: () => <QuotaPage />, entries: one },
  { path: "usage", title: () => t("Usage"), page: () => <OwnAccounting />, entries: (session) => (session.admin ? [] : [[]]), under: (session) => (session.admin ? "quota" : "usage") },
  { path: "me", title: () => t("My account"), page: () => <MePage />, entries: one },
  {
    path: "tenants/:", title: (name = "") => name, page: (name = "") => <TenantPage key={name} name={name} />,
    sees: (session, name = "") => session.admin || session.tenants.includes(name),
    entries: (session) => (session.admin ? [] : session.tenant_admin.map((name) => [name])),
    entry: (name = "") => t("Team {name}", { name }),
  },
  { path: "admin", title: () => t("Overview"), page: () => <OverviewPage />, entries: one },
  {
    path: "tenants/:/runs", title: (name = "") => t("Runs of {tenant}", { tenant: name }), page: (name = "") => <RunsPage key={name} tenant={name} />,
    sees: (session, name = "") => session.admin || session.tenant_admin.includes(name),
    under: (session, name = "") => (session.admin ? "admin/tenants" : `tenants/${name}`),
  },
  {
    path: "tenants/:/usage", title: (name = "") => t("Usage of {tenant}", { tenant: name }), page: (name = "") => <AccountingPage key={name} whose={{ tenant: name }} />,
    sees: (session, name = "") => session.admin || session.tenant_admin.includes(name),
    under: (session, name = "") => (session.admin ? "admin/tenants" : `tenants/${name}`),
  },
  {
    path: "tenants/:/over-time", title: (name = "") => t("{tenant} over time", { tenant: name }), page: (name = "") => <OverTimePage key={name} tenant={name} />,
    sees: (session, name = "") => session.admin || session.tenants.includes(name),
    under: (session, name = "") => (session.admin ? "admin/tenants" : session.tenant_admin.includes(name) ? `tenants/${name}` : "quota"),
  },
  {
    path: "tenants/:/alerts", title: (name = "") => t("Alerts of {tenant}", { tenant: name }), page: (name = "") => <AlertsPage key={name} tenant={name} />,
    sees: (session, name = "") => session.admin || session.tenant_admin.includes(name),
    under: (session, name = "") => (session.admin ? "admin/tenants" : `tenants/${name}`),
  },
  { path: "admin/alerts", title: () => t("Alerts"), page: () => <AlertsPage key="all" />, under: () => "admin" },
  { path: "admin/tenants", title: () => t("Teams"), page: () => <TenantsPage />, entries: one },
  { path: "admin/tenants/new", title: () => t("New team"), page: () => <NewTenantPage />, under: () => "admin/tenants" },
  { path: "admin/tenants/:", title: (name = "") => name, page: (name = "") => <TenantPage key={name} name={name} />, under: () => "admin/tenants" },
  { path: "admin/requests", title: () => t("Requests"), page: () => <RequestsPage />, entries: one },
  { path: "admin/users", title: () => t("Users"), page: () => <UsersPage />, entries: one },
  { path: "admin/users/:", title: (name = "") => name, page: (name = "") => <UserPage key={name} name={name} />, under: () => "admin/users" },
  { path: "admin/queue", title: () => t("Queue"), page: () => <QueuePage />, entries: one },
  { path: "admin/runs", title: () => t("All runs"), page: () => <AllRunsPage />, entries: one },
  { path: "admin/usage", title: () => t("Usage of all"), page: () => <AccountingPage key="all" whose="all" />, under: () => "admin" },
  { path: "admin/over-time", title: () => t("Over time"), page: () => <OverTimePage tenant={null} />, under: () => "admin" },
  { path: "admin/nodes", title: () => t("Nodes"), page: () => <NodesPage />, entries: one },
  { path: "admin/what-if", title: () => t("What-if"), page: () => <WhatIfPage />, entries: one },
  { path: "admin/audit", title: () => t("Audit"), page: () => <AuditPage />, entries: one },
];

export interface Place {
  title: string;
  page: JSX.Element;
  /** Address, in parts, of the entry of the navigation that it belongs to. */
  under: string;
}

const split = (path: string): string[] => path.split("/").filter(Boolean);
const isFor = (row: Page, session: Session, named: string[]): boolean =>
  (session.admin || split(row.path)[0] !== "admin") && (row.sees?.(session, ...named) ?? true);

function named(path: string, parts: string[]): string[] | null {
  const pattern = split(path);
  const fits = pattern.length === parts.length && pattern.every((p, i) => p === ":" || p === parts[i]);
  return fits ? parts.filter((_, i) => pattern[i] === ":") : null;
}

const filled = (path: string, names: string[]): string[] => {
  const left = [...names];
  return split(path).map((p) => (p === ":" ? left.shift() ?? "" : p));
};

/** What is shown at an address; null: there is no such page, or it is not for this person. */
export function place(parts: string[], session: Session): Place | null {
  for (const row of PAGES) {
    const names = named(row.path, parts);
    if (names && isFor(row, session, names)) {
      return { title: row.title(...names), page: row.page(...names), under: row.under?.(session, ...names) ?? parts.join("/") };
    }
  }
  return null;
}

export interface NavEntry {
  to: string[];
  text: string;
}

/** The entries of the navigation that a person has. */
export function entries(session: Session): NavEntry[] {
  return PAGES.flatMap((row) =>
    (row.entries?.(session) ?? [])
      .filter((names) => isFor(row, session, names))
      .map((names) => ({ to: filled(row.path, names), text: (row.entry ?? row.title)(...names) })),
  );
}
