/**
 * The REST client of pages and widgets. In our pages a session's cookie says who asks, and what changes something
 * carries the session's XSRF token. A widget asks its page's notebook server, which passes it on in its user's name:
 * there every request carries that server's own XSRF token.
 */
import { secondsText } from "../format/format";
import { capital } from "../format/reasons";
import { fill, language, t, zone, type Args } from "../format/language";
import type { Session } from "./wire";

export type ErrorKind =
  | "refused" // 403: the service says what was wrong
  | "auth" // no login, or one that is over
  | "fault" // 503 or another server fault
  | "network" // no answer
  | "foreign"; // an answer, but not from our service (a saved notebook elsewhere)

export class ApiError extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly status = 0,
    readonly reason = "",
    /** Where a person can do something about it, in a tab of its own. */
    readonly way: { href: string; text: string } | null = null,
    /** The same in English, whoever reads it: what tells which field a refusal speaks of. */
    readonly plain = message,
  ) {
    super(message);
  }

  /** The message as a sentence on a page. One that begins with a name stays as it is: names are not changed. */
  get sentence(): string {
    return this.named ? this.message : capital(this.message);
  }

  /** Whether the message may begin with a name, as it does where its template begins with a hole or is not known. */
  named = true;

  /** The id of the request that failed, which the operator finds in the logs; empty where none is known. */
  request = "";

  /** Take the id from an answer, if it is one: another server may have answered. */
  of(id: unknown): this {
    if (typeof id === "string" && /^[A-Za-z0-9._-]{1,64}$/.test(id)) this.request = id;
    return this;
  }
}

/** What the body of a failed request may have; nothing of it is certain, because another server may have answered. */
interface FailureBody {
  msg?: unknown;
  reason?: unknown;
  message?: unknown;
  request_id?: unknown;
  detail?: { id?: unknown; args?: Args };
}

export interface ClientDeps {
  fetch: typeof fetch;
  /** The XSRF token of the page's notebook server, where that passes requests on. */
  xsrf?: () => string;
  /** Where relative addresses start. */
  origin: string;
}

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface Page<T> {
  items: T[];
  next: string | null;
  /** How many there are on all pages, where the service says so. */
  total: number | null;
}

export class Client {
  readonly base: string;
  /** The service's pages: the base without /api/v1. */
  readonly root: string;
  /** The language of the last answer: that of the user's setting, where there is one. Empty: nothing was answered. */
  answeredIn = "";
  private known: Session | null = null;
  private asking: Promise<Session> | null = null;

  constructor(
    base: string,
    private readonly deps: ClientDeps,
  ) {
    this.base = base.replace(/\/+$/, "");
    this.root = this.base.replace(/\/api\/v1$/, "");
  }

  /** Whether a notebook server passes the requests on: then logging in is that server's matter. */
  get passed(): boolean {
    return this.deps.xsrf !== undefined;
  }

  /** Address of the page that logs in and comes back to `next`. */
  loginUrl(next: string): string {
    return `${this.root}/login?next=${encodeURIComponent(next)}`;
  }

  socketUrl(path: string): string {
    const url = new URL(this.base + path, this.deps.origin);
    // a WebSocket of a browser can have no headers
    url.searchParams.set("zone", zone());
    url.searchParams.set("language", language());
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    return url.href;
  }

  /** Who is logged in; asked once, then remembered. */
  session(fresh = false): Promise<Session> {
    if (this.known && !fresh) return Promise.resolve(this.known);
    this.asking ??= this.send<Session>("GET", "/session")
      .then((s) => {
        this.known = s;
        return s;
      })
      .finally(() => {
        this.asking = null;
      });
    return this.asking;
  }

  get<T>(path: string): Promise<T> {
    return this.send<T>("GET", path);
  }

  /** A list with the cursor of its next page: a bare array (cursor in a header), or an object with `items`. */
  async list<T>(path: string): Promise<Page<T>> {
    let next: string | null = null;
    let total: number | null = null;
    const body = await this.send<T[] | { items: T[]; next_cursor?: string | null }>("GET", path, undefined, {}, (r) => {
      next = r.headers.get("X-Next-Cursor");
      total = r.headers.has("X-Total-Count") ? Number(r.headers.get("X-Total-Count")) : null;
    });
    return Array.isArray(body) ? { items: body, next, total } : { items: body.items, next: body.next_cursor ?? next, total };
  }

  /** All of a list, page by page, for what is shown as a whole or chosen from. */
  async all<T>(path: string): Promise<Page<T>> {
    const items: T[] = [];
    let next: string | null = null;
    do {
      const page: Page<T> = await this.list<T>(`${path}?limit=1000${next === null ? "" : `&cursor=${enc(next)}`}`);
      items.push(...page.items);
      next = page.next === next ? null : page.next;
    } while (next !== null);
    return { items, next: null, total: items.length };
  }

  post<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
    return this.send<T>("POST", path, body, headers);
  }

  put<T>(path: string, body?: unknown): Promise<T> {
    return this.send<T>("PUT", path, body);
  }

  patch<T>(path: string, body: unknown): Promise<T> {
    return this.send<T>("PATCH", path, body);
  }

  delete<T>(path: string): Promise<T> {
    return this.send<T>("DELETE", path);
  }

  private async send<T>(
    method: Method,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
    seen?: (r: Response) => void,
  ): Promise<T> {
    let response = await this.once(method, path, body, headers);
    if (response.status === 403 && method !== "GET" && (await mentionsXsrf(response))) {
      // the session's token changed (a new login in another tab): fetch it anew, once
      this.known = null;
      response = await this.once(method, path, body, headers);
    }
    if (!response.ok) throw await this.failure(response);
    this.answeredIn = response.headers.get("Content-Language") ?? "";
    seen?.(response);
    const type = response.headers.get("Content-Type") ?? "";
    if (response.status === 204) return undefined as T;
    if (!type.includes("json")) {
      if (type.includes("text/plain")) return (await response.text()) as T;
      throw new ApiError("foreign", t("MLP Hub does not answer at this address"), response.status);
    }
    return (await response.json()) as T;
  }

  /** End the session; returns where the hub ends its own. */
  async logout(): Promise<string> {
    return (await this.send<{ next: string }>("POST", "logout")).next;
  }

  private async once(method: Method, path: string, body: unknown, extra: Record<string, string>): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json", "Accept-Language": language(), "Time-Zone": zone(), ...extra };
    if (this.deps.xsrf) headers["X-XSRFToken"] = this.deps.xsrf();
    else if (method !== "GET") headers["X-XSRFToken"] = (await this.session()).xsrf;
    const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    try {
      return await this.deps.fetch(new URL(path.startsWith("/") ? this.base + path : `${this.root}/${path}`, this.deps.origin).href, init);
    } catch {
      throw new ApiError("network", t("MLP Hub cannot be reached"));
    }
  }

  private async failure(response: Response): Promise<ApiError> {
    let body: FailureBody = {};
    try {
      const found: unknown = await response.json();
      if (found && typeof found === "object") body = found;
    } catch {
      // not JSON: an answer of the proxy or of somebody else
    }
    const error = this.explained(response, body).of(response.headers.get("X-Request-ID") ?? body.request_id);
    error.named = typeof body.detail?.id !== "string" || body.detail.id.startsWith("{");
    return error;
  }

  private explained(response: Response, body: FailureBody): ApiError {
    const { status } = response;
    const msg = typeof body.msg === "string" ? body.msg : "";
    const reason = typeof body.reason === "string" ? body.reason : "";
    const plain = typeof body.detail?.id === "string" ? fill(body.detail.id, body.detail.args ?? {}) : msg;
    const server = typeof body.message === "string" ? body.message : ""; // what a notebook server says for itself
    if (this.passed && status === 403 && !msg && server) {
      return new ApiError("auth", t("This page's notebook server no longer recognizes you: load the page again"), status);
    }
    if (status === 401) {
      return new ApiError("auth", t("You are not logged in"), status, "", { href: this.loginUrl(`${this.root}/`), text: t("Log in") });
    }
    if (status === 429) {
      const after = response.headers.get("Retry-After");
      return new ApiError("fault", msg || (after ? t("Too many requests; try again in {span}", { span: secondsText(after) }) : t("Too many requests; try again soon")), status);
    }
    if (status === 403 && reason === "LoginTooOld") {
      const way = { href: this.root.replace(/services\/[^/]+$/, "hub/confirm"), text: t("Enter your password") };
      return new ApiError("refused", t("This needs your password again. After that, repeat the action."), status, reason, way);
    }
    if (status === 403 && msg) return new ApiError("refused", msg, status, reason, null, plain);
    if (status >= 500) return new ApiError("fault", msg || t("MLP Hub does not answer just now"), status);
    if (msg) return new ApiError("refused", msg, status, reason);
    return new ApiError("foreign", t("MLP Hub does not answer at this address"), status);
  }
}

async function mentionsXsrf(response: Response): Promise<boolean> {
  try {
    return /xsrf/i.test(await response.clone().text());
  } catch {
    return false;
  }
}

/** What to show for anything thrown. */
export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The same as a sentence of its own on a page. */
export const sentence = (error: unknown): string => (error instanceof ApiError ? error.sentence : words(error));

/** The same in English, where the service told that. */
export const plain = (error: unknown): string => (error instanceof ApiError ? error.plain : words(error));

const enc = encodeURIComponent;
export const paths = {
  jobs: (user: string): string => `/users/${enc(user)}/jobs`,
  job: (user: string, job: string): string => `/users/${enc(user)}/jobs/${enc(job)}`,
  runs: (user: string, search: string, sort: string, start: number, limit: number): string =>
    `/users/${enc(user)}/runs?search=${enc(search)}&sort=${enc(sort)}&start=${start}&limit=${limit}`,
  runsNamed: (user: string, runs: string[]): string => `/users/${enc(user)}/runs?runs=${enc(runs.join(","))}`,
  runsCsv: (user: string, search: string, sort: string): string => `/users/${enc(user)}/runs:csv?search=${enc(search)}&sort=${enc(sort)}`,
  runsAct: (user: string): string => `/users/${enc(user)}/runs:act`,
  run: (user: string, run: string): string => `/users/${enc(user)}/runs/${enc(run)}`,
  curves: (user: string, run: string, by: string, metric: string, points: number): string =>
    `/users/${enc(user)}/runs/${enc(run)}/curves?by=${by}&metric=${enc(metric)}&points=${points}`,
  runCurves: (user: string, runs: string[], by: string, metric: string, points: number): string =>
    `/users/${enc(user)}/runs:curves?runs=${enc(runs.join(","))}&by=${by}&metric=${enc(metric)}&points=${points}`,
  sweeps: (user: string): string => `/users/${enc(user)}/sweeps`,
  sweep: (user: string, sweep: string): string => `/users/${enc(user)}/sweeps/${enc(sweep)}`,
  models: (user: string): string => `/users/${enc(user)}/models`,
  model: (user: string, model: string): string => `/users/${enc(user)}/models/${enc(model)}`,
  datasets: (user: string): string => `/users/${enc(user)}/datasets`,
  ownSecrets: (user: string): string => `/users/${enc(user)}/secrets`,
  teamSecrets: (tenant: string): string => `/tenants/${enc(tenant)}/secrets`,
  /** One of a person's or a team's, by their path. */
  secret: (of: string, name: string): string => `${of}/${enc(name)}`,
  dataset: (user: string, dataset: string): string => `/users/${enc(user)}/datasets/${enc(dataset)}`,
  jobModels: (user: string, job: string): string => `/users/${enc(user)}/jobs/${enc(job)}/models`,
  apps: (user: string): string => `/users/${enc(user)}/apps`,
  app: (user: string, app: string): string => `/users/${enc(user)}/apps/${enc(app)}`,
  /** Of a job or a model, by its path. */
  files: (of: string, directory: string, limit: number): string => `${of}/files?limit=${limit}&path=${enc(directory)}`,
  content: (of: string, path: string): string => `${of}/files/content?path=${enc(path)}`,
  jobAction: (user: string, job: string, action: string): string => `/users/${enc(user)}/jobs/${enc(job)}:${action}`,
  why: (user: string, job: string): string => `/users/${enc(user)}/jobs/${enc(job)}/why`,
  preferences: (user: string): string => `/users/${enc(user)}/preferences`,
  decisions: (user: string, job: string): string => `/users/${enc(user)}/jobs/${enc(job)}/decisions`,
  scheduling: "/scheduling",
  simulate: "/simulate?chart=true",
  jobStream: (user: string, job: string, since: number): string =>
    `/users/${enc(user)}/jobs/${enc(job)}:stream?since=${since}`,
  budgets: (user: string): string => `/users/${enc(user)}/budgets`,
  allBudgets: "/budgets",
  quota: (user: string): string => `/users/${enc(user)}/quota`,
  idleServers: (user: string): string => `/users/${enc(user)}/idle_servers`,
  keepServer: (user: string): string => `/users/${enc(user)}/idle_servers:keep`,
  idleJobPolicy: (tenant: string): string => `/tenants/${enc(tenant)}/idle_job_policy`,
  idleWork: (tenant: string): string => `/tenants/${enc(tenant)}/idle_work`,
  idlePolicy: (tenant: string): string => `/tenants/${enc(tenant)}/idle_policy`,
  user: (user: string): string => `/users/${enc(user)}`,
  notifications: (user: string): string => `/users/${enc(user)}/notifications`,
  notices: (user: string): string => `/users/${enc(user)}/notices`,
  tokens: (user: string): string => `/users/${enc(user)}/tokens`,
  leaving: (user: string): string => `/users/${enc(user)}/leaving`,
  leave: (user: string, jobs: string, files: string): string => `/users/${enc(user)}?jobs=${enc(jobs)}&files=${enc(files)}`,
  userAction: (user: string, action: "approve" | "password" | "logout" | "stop_servers" | "admin"): string => `/users/${enc(user)}:${action}`,
  /** Users by name whose name holds `search`. */
  users: (search: string, limit: number): string => `/users?limit=${limit}${search ? `&search=${enc(search)}` : ""}`,
  allRuns: (search: string, limit: number): string => `/runs?search=${enc(search)}&limit=${limit}`,
  allRunsCsv: (search: string): string => `/runs:csv?search=${enc(search)}`,
  importPeople: "/users:import",
  overview: "/overview",
  nodeDrain: (node: string): string => `/nodes/${enc(node)}/drain`,
  nodeAction: (node: string, action: "drain" | "return"): string => `/nodes/${enc(node)}:${action}`,
  announcements: "/announcements",
  allAnnouncements: "/announcements:all",
  announcement: (id: string): string => `/announcements/${enc(id)}`,
  tenantAnnouncements: (tenant: string): string => `/tenants/${enc(tenant)}/announcements`,
  tenantAnnouncement: (tenant: string, id: string): string => `/tenants/${enc(tenant)}/announcements/${enc(id)}`,
  alerts: "/alerts",
  tenantAlerts: (tenant: string): string => `/tenants/${enc(tenant)}/alerts`,
  silences: "/silences",
  silence: (id: string): string => `/silences/${enc(id)}`,
  tenantSilences: (tenant: string): string => `/tenants/${enc(tenant)}/silences`,
  tenantSilence: (tenant: string, id: string): string => `/tenants/${enc(tenant)}/silences/${enc(id)}`,
  waiting: "/users?waiting=true&limit=1000",
  tenants: "/tenants",
  tenant: (tenant: string): string => `/tenants/${enc(tenant)}`,
  preview: (tenant: string): string => `/tenants/${enc(tenant)}:preview`,
  usage: (tenant: string): string => `/tenants/${enc(tenant)}/usage`,
  queue: (tenant: string): string => `/tenants/${enc(tenant)}/queue`,
  bookings: (tenant: string): string => `/tenants/${enc(tenant)}/bookings`,
  booking: (tenant: string, name: string): string => `/tenants/${enc(tenant)}/bookings/${enc(name)}`,
  runtimes: (tenant: string): string => `/tenants/${enc(tenant)}/runtimes`,
  runtime: (tenant: string, name: string): string => `/tenants/${enc(tenant)}/runtimes/${enc(name)}`,
  runtimeAction: (tenant: string, name: string, verb: "approve" | "disable"): string => `/tenants/${enc(tenant)}/runtimes/${enc(name)}:${verb}`,
  environments: (tenant: string): string => `/tenants/${enc(tenant)}/environments`,
  environment: (tenant: string, name: string): string => `/tenants/${enc(tenant)}/environments/${enc(name)}`,
  services: (tenant: string): string => `/tenants/${enc(tenant)}/services`,
  service: (tenant: string, name: string): string => `/tenants/${enc(tenant)}/services/${enc(name)}`,
  turnService: (tenant: string, name: string): string => `/tenants/${enc(tenant)}/services/${enc(name)}:rotate`,
  members: (tenant: string): string => `/tenants/${enc(tenant)}/members`,
  member: (tenant: string, user: string): string => `/tenants/${enc(tenant)}/members/${enc(user)}`,
  tenantRuns: (tenant: string, search: string, sort: string, start: number, limit: number): string =>
    `/tenants/${enc(tenant)}/runs?search=${enc(search)}&sort=${enc(sort)}&start=${start}&limit=${limit}`,
  tenantRunsCsv: (tenant: string, search: string, sort: string): string => `/tenants/${enc(tenant)}/runs:csv?search=${enc(search)}&sort=${enc(sort)}`,
  tenantAuditFile: (tenant: string, form: "csv" | "lines"): string => `/tenants/${enc(tenant)}/audit:${form}`,
  tenantAudit: (tenant: string, limit: number, cursor: string | null): string => `/tenants/${enc(tenant)}/audit?limit=${limit}${cursor ? `&cursor=${enc(cursor)}` : ""}`,
  /** Of all tenants, those that wait for an answer. */
  openRequests: "/quota_requests",
  quotaRequests: (tenant: string): string => `/tenants/${enc(tenant)}/quota_requests`,
  quotaRequest: (tenant: string, id: string): string => `/tenants/${enc(tenant)}/quota_requests/${enc(id)}`,
  answerRequest: (tenant: string, id: string, verb: "accept" | "decline"): string => `/tenants/${enc(tenant)}/quota_requests/${enc(id)}:${verb}`,
  caps: (tenant: string): string => `/tenants/${enc(tenant)}/caps`,
  teams: (user: string): string => `/users/${enc(user)}/teams`,
  team: (user: string, tenant: string): string => `/users/${enc(user)}/teams/${enc(tenant)}`,
  joins: (tenant: string): string => `/tenants/${enc(tenant)}/joins`,
  join: (tenant: string, user: string, verb: "approve" | "decline"): string => `/tenants/${enc(tenant)}/joins/${enc(user)}:${verb}`,
};
