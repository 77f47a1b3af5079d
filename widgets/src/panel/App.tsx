/** Frame of the pages: navigation, and which page an address means. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ErrorBox, Empty, Loading } from "../components/basics";
import { ApiError, paths, type Client } from "../core/api";
import { THEMES, type Theme, type Themes } from "../core/theme";
import type { Session, User } from "../core/wire";
import { useLoad, useSignUpsChanged } from "../components/hooks";
import { plural } from "../core/format";
import { AuditPage } from "./Audit";
import { HubProvider } from "./context";
import { JobPage, JobsPage } from "./Jobs";
import { NodesPage } from "./Nodes";
import { QueuePage } from "./Queue";
import { QuotaPage } from "./Quota";
import { base, href, hubHome, Link, useRoute } from "./router";
import { NewTenantPage, TenantPage, TenantsPage } from "./Tenants";
import { UsersPage } from "./Users";
import { WhatIfPage } from "./WhatIf";

interface Place {
  title: string;
  /** Which entry of the navigation it belongs to. */
  nav: string;
  page: JSX.Element;
}

function place(parts: string[], session: Session): Place {
  const [a = "", b = "", c = ""] = parts;
  const here = parts.length;
  if (a === "" || (a === "jobs" && here === 1)) return { title: "Jobs", nav: "jobs", page: <JobsPage /> };
  if (a === "jobs" && here === 3) return { title: c, nav: b === session.username ? "jobs" : "queue", page: <JobPage key={`${b}/${c}`} user={b} name={c} /> };
  if (a === "quota" && here === 1) return { title: "Quota", nav: "quota", page: <QuotaPage /> };
  if (a === "tenants" && here === 2 && (session.admin || session.tenants.includes(b))) {
    return { title: b, nav: `tenant ${b}`, page: <TenantPage key={b} name={b} /> };
  }
  if (a === "admin" && session.admin) {
    if (b === "" || (b === "tenants" && here === 2)) return { title: "Tenants", nav: "tenants", page: <TenantsPage /> };
    if (b === "tenants" && c === "new" && here === 3) return { title: "New tenant", nav: "tenants", page: <NewTenantPage /> };
    if (b === "tenants" && here === 3) return { title: c, nav: "tenants", page: <TenantPage key={c} name={c} /> };
    if (b === "users" && here === 2) return { title: "Users", nav: "users", page: <UsersPage /> };
    if (b === "queue" && here === 2) return { title: "Queue", nav: "queue", page: <QueuePage /> };
    if (b === "nodes" && here === 2) return { title: "Nodes", nav: "nodes", page: <NodesPage /> };
    if (b === "what-if" && here === 2) return { title: "What-if", nav: "what-if", page: <WhatIfPage /> };
    if (b === "audit" && here === 2) return { title: "Audit", nav: "audit", page: <AuditPage /> };
  }
  return {
    title: "Nothing here",
    nav: "",
    page: (
      <Empty title="There is no such page, or it is not for you">
        <p>
          <Link to={base}>Go to your jobs</Link>
        </p>
      </Empty>
    ),
  };
}

/** Ends the session here, then at the hub. A service that does not answer keeps nobody logged in: the hub's page is asked all the same. */
function LogOut({ client }: { client: Client }): JSX.Element {
  const leave = (): void => {
    client.logout().catch(() => `${base}logout`).then((next) => location.assign(next));
  };
  return (
    <button type="button" class="mlp-nav-link mlp-nav-button" onClick={leave}>
      Log out
    </button>
  );
}

const SIGN_UPS_EVERY = 20_000;

/** How many people wait for approval. */
function SignUps({ client }: { client: Client }): JSX.Element | null {
  const waiting = useLoad("sign-ups", () => client.list<User>(`${paths.users}?state=NotActive`), SIGN_UPS_EVERY);
  useSignUpsChanged(() => void waiting.reload());
  const count = waiting.data?.items.filter((u) => u.new).length ?? 0;
  return count ? (
    <span class="mlp-count" title={`${plural(count, "sign-up")} to approve`}>
      {count}
      <span class="mlp-hidden"> to approve</span>
    </span>
  ) : null;
}

function ThemeChoice({ themes }: { themes: Themes }): JSX.Element {
  const [theme, setTheme] = useState(themes.chosen);
  const choose = (chosen: Theme): void => {
    themes.choose(chosen);
    setTheme(chosen);
  };
  return (
    <select class="mlp-select mlp-theme" aria-label="Theme" title="Theme" value={theme} onChange={(e) => choose(e.currentTarget.value as Theme)}>
      {THEMES.map(([key, text]) => (
        <option key={key} value={key}>{text}</option>
      ))}
    </select>
  );
}

function Nav({ client, session, nav, themes }: { client: Client; session: Session; nav: string; themes: Themes }): JSX.Element {
  const item = (key: string, to: string, text: ComponentChildren): JSX.Element => (
    <Link to={to} cls="mlp-nav-link" current={nav === key}>
      {text}
    </Link>
  );
  return (
    <header class="mlp-top">
      <a class="mlp-brand" href={base}>
        MLP Hub
      </a>
      <nav aria-label="Pages">
        {item("jobs", base, "Jobs")}
        {item("quota", href("quota"), "Quota")}
        {session.admin ? null : session.tenant_admin.map((t) => <span key={t}>{item(`tenant ${t}`, href("tenants", t), `Tenant ${t}`)}</span>)}
        {session.admin ? (
          <>
            <span class="mlp-nav-gap" aria-hidden="true" />
            {item("tenants", href("admin", "tenants"), "Tenants")}
            {item("users", href("admin", "users"), <>Users<SignUps key={nav} client={client} /></>)}
            {item("queue", href("admin", "queue"), "Queue")}
            {item("nodes", href("admin", "nodes"), "Nodes")}
            {item("what-if", href("admin", "what-if"), "What-if")}
            {item("audit", href("admin", "audit"), "Audit")}
          </>
        ) : null}
      </nav>
      <div class="mlp-top-end">
        <ThemeChoice themes={themes} />
        <span class="mlp-who" title={session.admin ? "Platform admin" : "Logged in"}>
          {session.username}
        </span>
        <a class="mlp-nav-link" href={hubHome}>
          Hub home
        </a>
        <LogOut client={client} />
      </div>
    </header>
  );
}

export function App({ client, themes }: { client: Client; themes: Themes }): JSX.Element {
  const parts = useRoute();
  const [session, setSession] = useState<Session | null>(null);
  const [error, setError] = useState<unknown>(null);
  const load = (): void => {
    setError(null);
    client.session().then(setSession, setError);
  };
  useEffect(load, [client]);
  const shown = session ? place(parts, session) : null;
  const address = parts.join("/");
  useEffect(() => {
    if (shown) document.title = `${shown.title} · MLP Hub`;
  }, [shown?.title]);
  useEffect(() => {
    // a new page starts at its top, and a screen reader at its heading
    if (!session) return;
    window.scrollTo(0, 0);
    if (document.activeElement === document.body || document.activeElement?.closest("nav, .mlp-table")) {
      document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
    }
  }, [address]);
  if (error) return <NoSession client={client} error={error} retry={load} />;
  if (!session || !shown) {
    return (
      <main class="mlp-main">
        <Loading what="MLP Hub" lines={6} />
      </main>
    );
  }
  return (
    <HubProvider client={client} session={session}>
      <a class="mlp-skip" href="#main">
        Skip to the page
      </a>
      <Nav client={client} session={session} nav={shown.nav} themes={themes} />
      <main class="mlp-main" id="main">
        {shown.page}
      </main>
    </HubProvider>
  );
}

function NoSession({ client, error, retry }: { client: Client; error: unknown; retry: () => void }): JSX.Element {
  const login = error instanceof ApiError && error.kind === "auth";
  return (
    <main class="mlp-main">
      {login ? (
        <Empty title="You are not logged in">
          <a class="mlp-button mlp-primary" href={client.loginUrl(location.pathname + location.search)}>
            Log in
          </a>
        </Empty>
      ) : (
        <ErrorBox error={error} retry={retry} />
      )}
    </main>
  );
}
