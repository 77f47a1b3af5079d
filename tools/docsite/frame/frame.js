// Keeps one theme for these pages and for the panel, which share a browser's storage: the panel's name for it is `mlp-theme`.
(() => {
  const KEY = "mlp-theme";
  const ORDER = ["system", "light", "dark"]; // as in `palette` of site.toml
  const media = (theme) => (theme === "system" ? "(prefers-color-scheme)" : `(prefers-color-scheme: ${theme})`);
  try {
    const kept = localStorage.getItem(KEY);
    const theme = ORDER.includes(kept) ? kept : "system";
    const scheme = theme === "dark" ? "slate" : "default";
    __md_set("__palette", { index: ORDER.indexOf(theme), color: { media: media(theme), scheme, primary: "indigo", accent: "indigo" } });
  } catch {
    return; // the browser keeps nothing for this page
  }
  addEventListener("change", (event) => {
    if (event.target.name !== "__palette") return;
    const theme = ORDER.find((name) => media(name) === event.target.dataset.mdColorMedia) ?? "system";
    if (theme === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, theme);
  });
})();

// The search puts a style element into its shadow root, which the hub's policy for pages refuses. The same text as a sheet is allowed.
(() => {
  const attach = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attach.call(this, options);
    const append = root.appendChild;
    root.appendChild = (node) => {
      if (node.localName !== "style") return append.call(root, node);
      const sheet = new CSSStyleSheet();
      sheet.replaceSync(node.textContent);
      root.adoptedStyleSheets.push(sheet);
      return node;
    };
    return root;
  };
})();

// Labels that open the navigation of a narrow window and the search: a keyboard reaches them too.
addEventListener("DOMContentLoaded", () => {
  for (const label of document.querySelectorAll("label.md-header__button[for='__drawer'], label.md-header__button[for='__search']")) {
    label.tabIndex = 0;
    label.setAttribute("role", "button");
    label.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      label.click();
    });
  }
});

// Wide tables scroll by themselves: the keyboard must reach them.
const reach = () => {
  const word = document.documentElement.lang.startsWith("zh") ? "表格" : "Table";
  document.querySelectorAll(".md-typeset__scrollwrap").forEach((part, at) => {
    const scrolls = part.scrollWidth > part.clientWidth;
    for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", `${word} ${at + 1}`]]) {
      if (scrolls) part.setAttribute(name, value);
      else part.removeAttribute(name);
    }
  });
};
addEventListener("load", reach);
addEventListener("resize", reach);

// The theme makes a landmark of each button that copies a block; one would not be told from the other.
new MutationObserver(() => {
  for (const nav of document.querySelectorAll("nav.md-code__nav:not([role])")) nav.setAttribute("role", "none");
  reach();
}).observe(document, { subtree: true, childList: true });
