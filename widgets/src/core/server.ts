/** The notebook server of the page that a widget is in. */

/** Where it passes requests to MLP Hub on: below its own base, which Lab and Notebook write into their pages. */
export function serverApi(page: Document): string {
  let base = "/";
  try {
    const config = JSON.parse(page.getElementById("jupyter-config-data")?.textContent ?? "{}") as { baseUrl?: unknown };
    if (typeof config.baseUrl === "string") base = config.baseUrl;
  } catch {
    // not a page of Jupyter's
  }
  return `${base.replace(/\/+$/, "")}/mlp/api/v1`;
}

/** Its XSRF token, anew each time: another login in another tab changes it. */
export function serverXsrf(page: Document): string {
  return /(?:^|;\s*)_xsrf=([^;]*)/.exec(page.cookie)?.[1] ?? "";
}
