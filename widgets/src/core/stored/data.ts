/** Files of datasets, in the name of the page's session: listed page by page, sent with their progress, removed. */
import { ApiError, type Client } from "../service/api";
import { t } from "../format/language";

export interface DataEntry {
  name: string;
  directory: boolean;
  size: number;
  modified: string;
}

/** A file that is to go up, and its path in the dataset. */
export interface Upload {
  path: string;
  file: File;
}

const enc = (path: string): string => path.split("/").filter(Boolean).map(encodeURIComponent).join("/");
const DIGESTED = 64 * 2 ** 20; // a browser can say the checksum of what it has in memory only

export const dataUrl = (client: Client, user: string, name: string, path = ""): string =>
  `${client.root}/data/${encodeURIComponent(user)}/${encodeURIComponent(name)}/${enc(path)}`;

/** The name of a dataset for what was chosen: of its directory, or of the one file; empty where nothing of it can be one. */
export function nameFor(uploads: Upload[]): string {
  const first = uploads[0]?.path ?? "";
  const own = first.includes("/") ? first.slice(0, first.indexOf("/")) : first.replace(/(.)(\.tar)?\.[^.]+$/, "$1");
  const name = own.toLowerCase().replace(/[^a-z0-9.-]+/g, "-").replace(/^[^a-z]+/, "");
  return name.slice(0, 50).replace(/[.-]+$/, "");
}

/** What is chosen as one directory goes up as what is in it. */
export function withoutTop(uploads: Upload[]): Upload[] {
  const tops = new Set(uploads.map(({ path }) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "")));
  const [top] = tops;
  return tops.size === 1 && top ? uploads.map((u) => ({ ...u, path: u.path.slice(top.length + 1) })) : uploads;
}

/** Directories that have to be there for the files, parents first. */
export function directoriesOf(uploads: Upload[]): string[] {
  const found = new Set<string>();
  for (const { path } of uploads) {
    const steps = path.split("/").slice(0, -1);
    steps.forEach((_, i) => found.add(steps.slice(0, i + 1).join("/")));
  }
  return [...found].sort();
}

/** A page of a directory: directories first, then files, both by name; `next` is what to ask for the next one with. */
export interface DataPage {
  entries: DataEntry[];
  next: string | null;
}

const date = (text: unknown): string => {
  const at = new Date(typeof text === "string" ? text : "");
  return Number.isNaN(at.getTime()) ? "" : at.toISOString();
};

/** Read a page; what is none has nothing in it. */
export function pageOf(said: unknown): DataPage {
  const { entries, next } = (said ?? {}) as { entries?: unknown; next?: unknown };
  const found = (Array.isArray(entries) ? entries : []) as Partial<DataEntry>[];
  return {
    entries: found.map((e) => ({ name: String(e.name ?? ""), directory: e.directory === true, size: Number(e.size ?? 0), modified: date(e.modified) })).filter((e) => e.name !== ""),
    next: typeof next === "string" && next ? next : null,
  };
}

async function ask(client: Client, method: string, url: string, init: RequestInit = {}, fine: number[] = []): Promise<Response> {
  const headers = { ...(init.headers as Record<string, string>), "X-XSRFToken": (await client.session()).xsrf };
  let response: Response;
  try {
    response = await fetch(url, { ...init, method, headers, credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new ApiError("network", t("MLP Hub cannot be reached"));
  }
  if (!response.ok && !fine.includes(response.status)) throw refusal(client, response.status, await response.text());
  return response;
}

function refusal(client: Client, status: number, text: string): ApiError {
  let msg = "";
  try {
    const body = JSON.parse(text) as { msg?: unknown };
    if (typeof body.msg === "string") msg = body.msg;
  } catch {
    // an answer of the proxy
  }
  if (status === 401) return new ApiError("auth", t("You are not logged in"), status, "", { href: client.loginUrl(`${client.root}/`), text: t("Log in") });
  if (status >= 500 && status !== 507) return new ApiError("fault", msg || t("MLP Hub does not answer just now"), status);
  return new ApiError("refused", msg || t("The file was refused (HTTP {status})", { status }), status);
}

/** Rows of a table that a browser still draws at once. */
const SHOWN = 1000;

/** Return so many pages of a directory, one after the other. */
export async function listData(client: Client, url: string, pages = 1): Promise<DataPage> {
  const found: DataEntry[] = [];
  let next: string | null = "";
  for (let page = 0; page < pages && next !== null; page++) {
    const response = await ask(client, "GET", `${url}?entries&limit=${SHOWN}&after=${encodeURIComponent(next)}`);
    const read = pageOf(await response.json().catch(() => null));
    found.push(...read.entries);
    next = read.next;
  }
  return { entries: found, next };
}

export const removeData = (client: Client, url: string): Promise<Response> => ask(client, "DELETE", url);

/** Make a directory where there is none. */
export const makeDirectory = (client: Client, url: string): Promise<Response> => ask(client, "MKCOL", url, {}, [405]);

async function digestOf(file: File): Promise<string | null> {
  if (file.size > DIGESTED || !globalThis.crypto?.subtle) return null;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", await file.arrayBuffer()));
  return `sha-256=:${btoa(String.fromCharCode(...digest))}:`;
}

/** Send a file whole; a signal ends it, and then nothing is there of it. */
export async function sendFile(client: Client, url: string, file: File, told: (sent: number) => void, signal: AbortSignal): Promise<void> {
  const { xsrf } = await client.session();
  const digest = await digestOf(file);
  await new Promise<void>((done, failed) => {
    const request = new XMLHttpRequest();
    const stop = (): void => request.abort();
    request.open("PUT", url);
    request.setRequestHeader("X-XSRFToken", xsrf);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    if (digest) request.setRequestHeader("Repr-Digest", digest);
    request.upload.onprogress = (e) => told(e.loaded);
    request.onload = () => (request.status < 300 ? done() : failed(refusal(client, request.status, request.responseText)));
    request.onerror = () => failed(new ApiError("network", t("The connection was lost; complete files stay, upload the rest again")));
    request.onabort = () => failed(new ApiError("refused", t("Stopped; complete files stay")));
    request.onloadend = () => signal.removeEventListener("abort", stop);
    signal.addEventListener("abort", stop);
    if (signal.aborted) stop();
    else request.send(file);
  });
}
