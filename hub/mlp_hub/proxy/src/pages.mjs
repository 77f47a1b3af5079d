// What is shown where nobody answers.

const TEXTS = {
  404: ["Nothing is here", "No part of this hub answers at this address.", ""],
  503: [
    "Not there at the moment",
    "This part of the hub is starting or was restarted. The page tries again by itself; running jobs go on meanwhile.",
    '<meta http-equiv="refresh" content="2">',
  ],
};

/** Return the body and its type for an error, as HTML for browsers and as JSON for programs; `id` is the request's. */
export function pageFor(code, accept, id) {
  const [title, text, head] = TEXTS[code] ?? ["Something went wrong", `The proxy answered ${code}.`, ""];
  if (!(accept ?? "").includes("text/html")) {
    return { type: "application/json", body: JSON.stringify({ msg: `${title}: ${text}`, request_id: id }) + "\n" };
  }
  return { type: "text/html; charset=utf-8", body: html(title, `${text}</p><p>Request ${escaped(id ?? "")}`, head) };
}

/** Write text as it stands in a page. */
export function escaped(text) {
  return text.replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** Write a page that says one thing; all of it is HTML already. */
export function html(title, text, head = "") {
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>${title}</title>${head}
<meta name="viewport" content="width=device-width">
<style>:root{color-scheme:light dark}body{font:16px/1.5 system-ui,sans-serif;display:grid;place-content:center;min-height:90vh;margin:0 1.5rem}
main{max-width:34rem}h1{font-size:1.4rem;font-weight:600}</style>
<main role="status"><h1>${title}</h1><p>${text}</p></main></html>\n`;
}
