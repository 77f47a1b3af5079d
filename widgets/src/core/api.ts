/**
 * The REST client of pages and widgets. A request that finds no login tries a silent one once and goes again;
 * requests that change something carry the XSRF token of the session.
 */
import type { Session } from "./wire";

export type ErrorKind =
  | "refused" // 403: the service says what was wrong
  | "auth" // 401, and a silent login did not help
  | "fault" // 503 or another server fault
  | "network" // no answer
  | "foreign"; // an answer, but not from our service (a saved notebook elsewhere)

export class ApiError extends Error {
  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly status = 0,
    readonly reason = "",
  ) {
    super(message);
  }
}

export interface ClientDeps {
  fetch: typeof fetch;
  /** Try to log in without asking the person; true when it worked. */
  login: (root: string) => Promise<boolean>;
  /** Where relative addresses start. */
  origin: string;
}

export type Method = "GET" | "POST" | "PUT" | "DELETE";

export interface Page<T> {
  items: T[];
  next: string | null;
}

const SAFE = new Set<Method>(["GET"]);
/** GETs that give something away, for which the service asks for the XSRF token as for a change. */
const GUARDED = /\/token$/;
const guarded = (method: Method, path: string): boolean => !SAFE.has(method) || GUARDED.test(path);

export class Client {
  readonly base: string;
  /** The service's pages: the base without /api/v1. */
  readonly root: string;
  private known: Session | null = null;
  private asking: Promise<Session> | null = null;
  private loggingIn: Promise<boolean> | null = null;

  constructor(
    base: string,
    private readonly deps: ClientDeps,
  ) {
    this.base = base.replace(/\/+$/, "");
    this.root = this.base.replace(/\/api\/v1$/, "");
  }

  /** Address of the page that logs in and comes back to `next`. */
  loginUrl(next: string): string {
    return `${this.root}/login?next=${encodeURIComponent(next)}`;
  }

  socketUrl(path: string): string {
    const url = new URL(this.base + path, this.deps.origin);
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
    const body = await this.send<T[] | { items: T[]; next_cursor?: string | null }>("GET", path, undefined, {}, (r) => {
      next = r.headers.get("X-Next-Cursor");
    });
    return Array.isArray(body) ? { items: body, next } : { items: body.items, next: body.next_cursor ?? next };
  }

  post<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
    return this.send<T>("POST", path, body, headers);
  }

  put<T>(path: string, body?: unknown): Promise<T> {
    return this.send<T>("PUT", path, body);
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
    if (response.status === 401 && (await this.silentLogin())) {
      this.known = null;
      response = await this.once(method, path, body, headers);
    } else if (response.status === 403 && guarded(method, path) && (await mentionsXsrf(response))) {
      // the session's token changed (a new login in another tab): fetch it anew, once
      this.known = null;
      response = await this.once(method, path, body, headers);
    }
    if (!response.ok) throw await failure(response);
    seen?.(response);
    const type = response.headers.get("Content-Type") ?? "";
    if (response.status === 204) return undefined as T;
    if (!type.includes("json")) {
      if (type.includes("text/plain")) return (await response.text()) as T;
      throw new ApiError("foreign", "MLP Hub does not answer at this address", response.status);
    }
    return (await response.json()) as T;
  }

  /** End the session; returns where the hub ends its own. */
  async logout(): Promise<string> {
    return (await this.send<{ next: string }>("POST", "logout")).next;
  }

  private async once(method: Method, path: string, body: unknown, extra: Record<string, string>): Promise<Response> {
    const headers: Record<string, string> = { Accept: "application/json", ...extra };
    if (guarded(method, path)) headers["X-XSRFToken"] = (await this.session()).xsrf;
    const init: RequestInit = { method, headers, credentials: "same-origin", cache: "no-store" };
    if (body !== undefined) {
      headers["Content-Type"] = "application/json";
      init.body = JSON.stringify(body);
    }
    try {
      return await this.deps.fetch(new URL(path.startsWith("/") ? this.base + path : `${this.root}/${path}`, this.deps.origin).href, init);
    } catch {
      throw new ApiError("network", "MLP Hub cannot be reached");
    }
  }

  /** Requests that find no login at the same time share one try. */
  private silentLogin(): Promise<boolean> {
    this.loggingIn ??= this.deps.login(this.root).finally(() => {
      this.loggingIn = null;
    });
    return this.loggingIn;
  }
}

async function mentionsXsrf(response: Response): Promise<boolean> {
  try {
    return /xsrf/i.test(await response.clone().text());
  } catch {
    return false;
  }
}

async function failure(response: Response): Promise<ApiError> {
  let msg = "";
  let reason = "";
  try {
    const body = (await response.json()) as { msg?: unknown; reason?: unknown };
    if (typeof body.msg === "string") msg = body.msg;
    if (typeof body.reason === "string") reason = body.reason;
  } catch {
    // not JSON: an answer of the proxy or of somebody else
  }
  const { status } = response;
  if (status === 401) return new ApiError("auth", "You are not logged in", status);
  if (status === 429) {
    const after = response.headers.get("Retry-After");
    return new ApiError("fault", msg || `Too many requests; try again${after ? ` in ${after} s` : " soon"}`, status);
  }
  if (status === 403 && msg) return new ApiError("refused", msg, status, reason);
  if (status >= 500) return new ApiError("fault", msg || "MLP Hub does not answer just now", status);
  if (msg) return new ApiError("refused", msg, status, reason);
  return new ApiError("foreign", "MLP Hub does not answer at this address", status);
}

/** What to show for anything thrown. */
export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

const enc = encodeURIComponent;
export const paths = {
  jobs: (user: string): string => `/users/${enc(user)}/jobs`,
  job: (user: string, job: string): string => `/users/${enc(user)}/jobs/${enc(job)}`,
  jobAction: (user: string, job: string, action: string): string => `/users/${enc(user)}/jobs/${enc(job)}:${action}`,
  decisions: (user: string, job: string): string => `/users/${enc(user)}/jobs/${enc(job)}/decisions`,
  scheduling: "/scheduling",
  simulate: "/simulate?chart=true",
  jobStream: (user: string, job: string, since: number): string =>
    `/users/${enc(user)}/jobs/${enc(job)}:stream?since=${since}`,
  quota: (user: string): string => `/users/${enc(user)}/quota`,
  token: (user: string): string => `/users/${enc(user)}/token`,
  user: (user: string): string => `/users/${enc(user)}`,
  approve: (user: string): string => `/users/${enc(user)}:approve`,
  users: "/users",
  tenants: "/tenants",
  tenant: (tenant: string): string => `/tenants/${enc(tenant)}`,
  preview: (tenant: string): string => `/tenants/${enc(tenant)}:preview`,
  usage: (tenant: string): string => `/tenants/${enc(tenant)}/usage`,
  queue: (tenant: string): string => `/tenants/${enc(tenant)}/queue`,
  bookings: (tenant: string): string => `/tenants/${enc(tenant)}/bookings`,
  booking: (tenant: string, name: string): string => `/tenants/${enc(tenant)}/bookings/${enc(name)}`,
  members: (tenant: string): string => `/tenants/${enc(tenant)}/members`,
  member: (tenant: string, user: string): string => `/tenants/${enc(tenant)}/members/${enc(user)}`,
};
