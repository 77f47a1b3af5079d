// What is said in place of an app's answer.

import { escaped, html } from "../pages.mjs";

const TITLES = { 401: "Log in first", 403: "Refused", 404: "Nothing is here", 413: "Too large", 429: "Too often", 502: "A faulty answer", 503: "Not there at the moment", 504: "No answer" };

/** Return the body and its type: a page for browsers, which tries again by itself after `again` seconds, else JSON. */
export function pageOf(status, text, accept, again) {
  const title = TITLES[status] ?? "Not understood";
  if (!(accept ?? "").includes("text/html")) {
    return { type: "application/json", body: JSON.stringify({ msg: text }) + "\n" };
  }
  const head = again && status === 503 ? `<meta http-equiv="refresh" content="${Number(again)}">` : "";
  return { type: "text/html; charset=utf-8", body: html(title, escaped(text), head) };
}
