/** Frame of the pages: the bar at their top with the navigation, and what all of them show. */
import type { JSX } from "preact";
import { useCallback, useEffect, useState } from "preact/hooks";
import { ErrorBox, Empty, Icon, Loading } from "../components/basics/basics";
import { ApiError, paths, type Client } from "../core/service/api";
import { themes as themeWords, type Theme, type Themes } from "../core/accounts/theme";
import type { JoinRequest, QuotaRequest, Session, User } from "../core/service/wire";
import { useCountChanged, useLoad, type Counted } from "../components/basics/hooks";
import { choose, follow } from "./chosen";
import { HubProvider } from "./shared/context";
import { PageHead } from "../components/basics/form";
import { Announced } from "../components/basics/Announced";
import { base, href, hubPage, Link, useAddress } from "./shared/address";
import { Telling } from "./accounts/Notifications";
import { entries, place, type Place } from "./pages";
import { useLanguage } from "../components/basics/language";
import { LANGUAGES, n, t } from "../core/format/language";
import { capital } from "../core/format/reasons";

function nothing(): Place {
  return {
    title: t("Nothing here"),
    under: "nothing",
    page: (
      <>
        <PageHead title={t("Nothing here")} />
        <Empty title={t("This page does not exist, or you may not see it")}>
          <p>
            <Link to={base}>{t("Go to your jobs")}</Link>
          </p>
        </Empty>
      </>
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
      {t("Log out")}
    </button>
  );
}

const COUNTS_EVERY = 20_000;

/** How many wait for an answer of whoever opens this page of the navigation. */
function Waiting({ of, load, title, what }: { of: Counted; load: () => Promise<number>; title: (count: number) => string; what: string }): JSX.Element | null {
  const waiting = useLoad(of, load, COUNTS_EVERY);
  useCountChanged(of, () => void waiting.reload());
  const count = waiting.data ?? 0;
  return count ? (
    <span class="mlp-count" title={title(count)}>
      {count}
      <span class="mlp-hidden">{" "}{what}</span>
    </span>
  ) : null;
}

/** What waits beside an entry of the navigation; most have nothing. */
function Count({ client, to }: { client: Client; to: string[] }): JSX.Element | null {
  const [first = "", second = ""] = to;
  if (first === "tenants") {
    const load = async (): Promise<number> => (await client.list<JoinRequest>(paths.joins(second))).items.length;
    return <Waiting of={`joins ${second}`} load={load} title={(count) => n("1 person asks to join", "{n} people ask to join", count)} what={t("ask to join")} />;
  }
  if (first !== "admin") return null;
  if (second === "users") {
    const load = async (): Promise<number> => (await client.list<User>(paths.waiting)).items.filter((u) => u.new).length;
    return <Waiting of="sign-ups" load={load} title={(count) => n("1 sign-up to approve", "{n} sign-ups to approve", count)} what={t("to approve")} />;
  }
  if (second === "requests") {
    const load = async (): Promise<number> => (await client.list<QuotaRequest>(paths.openRequests)).items.length;
    return <Waiting of="quota requests" load={load} title={(count) => n("1 request to answer", "{n} requests to answer", count)} what={t("to answer")} />;
  }
  return null;
}

function ThemeChoice({ themes }: { themes: Themes }): JSX.Element {
  const [theme, setTheme] = useState(themes.chosen);
  const choose = (chosen: Theme): void => {
    themes.choose(chosen);
    setTheme(chosen);
  };
  return (
    <select class="mlp-select mlp-theme" aria-label={t("Theme")} title={t("Theme")} value={theme} onChange={(e) => choose(e.currentTarget.value as Theme)}>
      {themeWords().map(([key, text]) => (
        <option key={key} value={key}>{text}</option>
      ))}
    </select>
  );
}

/** The user's setting: it is for all of their browsers, notebooks and commands. */
function LanguageChoice({ client, session, changed }: { client: Client; session: Session; changed: () => void }): JSX.Element {
  const set = async (tag: string): Promise<void> => {
    // stored first: who asks for the session from here on is told the new one, and nothing flips back
    await client.patch(paths.preferences(session.username), { language: tag });
    await choose(tag);
    changed();
  };
  return (
    <select class="mlp-select mlp-theme" aria-label={t("Language")} title={t("Language")} value={session.language} onChange={(e) => void set(e.currentTarget.value).catch(changed)}>
      <option value="">{t("Language: automatic")}</option>
      {LANGUAGES.map(([tag, own]) => (
        <option key={tag} value={tag} lang={tag}>{own}</option>
      ))}
    </select>
  );
}

function Nav({ client, session, changed, nav, themes }: { client: Client; session: Session; changed: () => void; nav: string; themes: Themes }): JSX.Element {
  const shown = entries(session).map(({ to, text }) => ({ key: to.join("/"), admin: to[0] === "admin", to, text }));
  const item = ({ key, to, text }: (typeof shown)[number]): JSX.Element => (
    <Link key={key} to={href(...to)} cls="mlp-nav-link" current={nav === key}>
      {text}
      <Count key={nav} client={client} to={to} />
    </Link>
  );
  return (
    <header class="mlp-top">
      <a class="mlp-brand" href={base}>
        MLP Hub
      </a>
      <nav aria-label={t("Pages")}>
        {shown.filter((e) => !e.admin).map(item)}
        {session.admin ? <span class="mlp-nav-gap" aria-hidden="true" /> : null}
        {shown.filter((e) => e.admin).map(item)}
      </nav>
      <div class="mlp-top-end">
        <LanguageChoice client={client} session={session} changed={changed} />
        <ThemeChoice themes={themes} />
        <span class="mlp-who" title={session.admin ? t("Platform administrator") : t("Logged in")}>
          {session.username}
        </span>
        <a class="mlp-nav-link" href={hubPage("spawn")} title={t("Opens your notebook server, and starts it first if it does not run")}>
          {t("Notebook")}
        </a>
        <a class="mlp-nav-link" href={`${base}docs/`}>
          {t("Help")}
        </a>
        <a class="mlp-nav-link" href={hubPage("home")}>
          {t("Hub home")}
        </a>
        <LogOut client={client} />
      </div>
    </header>
  );
}

export function App({ client, themes }: { client: Client; themes: Themes }): JSX.Element {
  const parts = useAddress();
  useLanguage();
  const [session, setSession] = useState<Session | null>(null);
  const [error, setError] = useState<unknown>(null);
  const ask = async (fresh: boolean): Promise<void> => {
    const found = await client.session(fresh);
    // nothing is shown in another language than the user's
    await follow(found.language);
    setSession(found);
  };
  const load = (fresh = false): void => {
    setError(null);
    ask(fresh).catch(setError);
  };
  // what is shown stays where that fails: the page itself says what is wrong
  const renew = useCallback(() => ask(true).catch(() => undefined), [client]);
  useEffect(() => load(), [client]);
  const shown = session ? place(parts, session) ?? nothing() : null;
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
  if (error) return <NoSession client={client} error={error} retry={() => load()} />;
  if (!session || !shown) {
    return (
      <main class="mlp-main">
        <Loading what={t("Loading MLP Hub")} lines={6} />
      </main>
    );
  }
  return (
    <HubProvider client={client} session={session} renew={renew}>
      <a class="mlp-skip" href="#main">
        {t("Skip to the content")}
      </a>
      <Nav client={client} session={session} changed={() => load(true)} nav={shown.under} themes={themes} />
      <main class="mlp-main" id="main">
        <Problems client={client} admin={session.admin} />
        <Announced client={client} />
        <Telling />
        {parts[0] === "admin" ? session.warnings.map((text) => <Warning key={text} text={text} />) : null}
        {shown.page}
      </main>
    </HubProvider>
  );
}

const HEALTH_EVERY_MS = 30_000;

/** Components whose problems only administrators of the platform can act on, and nobody else notices. */
const OF_ADMINS = new Set(["audit"]);

/** What does not work now, for everybody: as the platform says of itself. */
function Problems({ client, admin }: { client: Client; admin: boolean }): JSX.Element | null {
  const [messages, setMessages] = useState<string[]>([]);
  const spoken = useLanguage();
  useEffect(() => {
    const ask = (): void => {
      client.get<{ problems?: { component?: string; message: string }[] }>("/health").then(
        (health) => setMessages((health.problems ?? []).filter((one) => admin || !OF_ADMINS.has(one.component ?? "")).map((one) => capital(one.message))),
        () => undefined, // what fails altogether, the pages themselves say
      );
    };
    ask();
    const timer = setInterval(ask, HEALTH_EVERY_MS);
    return () => clearInterval(timer);
  }, [client, spoken, admin]);
  if (!messages.length) return null;
  return (
    <div class="mlp-note mlp-note-bad" role="status" aria-label={t("Current problems")}>
      <Icon name="warn" />
      <div class="mlp-note-text">{messages.join(t(". "))}</div>
    </div>
  );
}

/** What an administrator has to know of how the hub is set up. */
function Warning({ text }: { text: string }): JSX.Element {
  return (
    <div class="mlp-note mlp-note-bad" role="note" aria-label={t("Settings are less safe than possible")}>
      <Icon name="warn" />
      <div class="mlp-note-text">{t("Warning: {text}.", { text })}</div>
    </div>
  );
}

function NoSession({ client, error, retry }: { client: Client; error: unknown; retry: () => void }): JSX.Element {
  const login = error instanceof ApiError && error.kind === "auth";
  return (
    <main class="mlp-main">
      {login ? (
        <Empty title={t("You are not logged in")}>
          <a class="mlp-button mlp-primary" href={client.loginUrl(location.pathname + location.search)}>
            {t("Log in")}
          </a>
        </Empty>
      ) : (
        <ErrorBox error={error} retry={retry} />
      )}
    </main>
  );
}
