/** The notebook server of the page that a widget is in. */

/** What it wrote into its page. */
function told(page: Document): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(page.getElementById("jupyter-config-data")?.textContent ?? "{}") as Record<string, unknown>;
  } catch {
    return {}; // not a page of Jupyter's
  }
}

/** Where it passes requests to MLP Hub on: below its own base, which Lab and Notebook write into their pages. */
export function serverApi(page: Document): string {
  const { baseUrl } = told(page);
  return `${(typeof baseUrl === "string" ? baseUrl : "/").replace(/\/+$/, "")}/mlp/api/v1`;
}

/** Where MLP Hub's pages are, with a slash at the end; empty where no hub started the server. */
export function hubPages(page: Document): string {
  const { hubPrefix, hubHost } = told(page);
  if (typeof hubPrefix !== "string" || !hubPrefix) return "";
  return `${typeof hubHost === "string" ? hubHost : ""}${hubPrefix.replace(/hub\/?$/, "")}services/mlp/`;
}

/** Why it runs without its user's settings, in a sentence; empty where it has them. */
export function withoutSettings(page: Document): string {
  const { mlpWithoutSettings } = told(page);
  return typeof mlpWithoutSettings === "string" ? mlpWithoutSettings : "";
}

/** Its XSRF token, anew each time: another login in another tab changes it. */
export function serverXsrf(page: Document): string {
  return /(?:^|;\s*)_xsrf=([^;]*)/.exec(page.cookie)?.[1] ?? "";
}
