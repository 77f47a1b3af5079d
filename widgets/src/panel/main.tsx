/** Entry of the pages below /services/mlp/. */
import { render } from "preact";
import { keepFocus } from "../components/basics/focus";
import { Client } from "../core/service/api";
import { Themes } from "../core/accounts/theme";
import { documentedAt } from "../core/format/reasons";
import { App } from "./App";
import { begin } from "./chosen";
import { base } from "./shared/address";
import "uplot/dist/uPlot.min.css";
import "../styles/base.css";
import "../styles/monitor.css";
import "../styles/fields.css";
import "../styles/panel.css";

const root = document.getElementById("app");
if (root) {
  const themes = new Themes({ root: document.documentElement, store: () => localStorage, system: matchMedia("(prefers-color-scheme: dark)") });
  const client = new Client(`${base}api/v1`, {
    fetch: (...args) => fetch(...args),
    origin: location.href,
  });
  documentedAt(`${base}docs/`);
  keepFocus(root);
  root.classList.add("mlp", "mlp-page");
  document.documentElement.classList.add("mlp-document");
  // nothing is shown in one language to be replaced by another
  void begin().then(() => {
    root.replaceChildren();
    render(<App client={client} themes={themes} />, root);
  });
}
