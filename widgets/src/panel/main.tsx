/** Entry of the pages below /services/mlp/. */
import { render } from "preact";
import { Client } from "../core/api";
import { silentLogin } from "../core/login";
import { Themes } from "../core/theme";
import { App } from "./App";
import { base } from "./router";
import "uplot/dist/uPlot.min.css";
import "../styles/base.css";
import "../styles/monitor.css";
import "../styles/panel.css";

const root = document.getElementById("app");
if (root) {
  const themes = new Themes({ root: document.documentElement, store: () => localStorage, system: matchMedia("(prefers-color-scheme: dark)") });
  const client = new Client(`${base}api/v1`, {
    fetch: (...args) => fetch(...args),
    login: silentLogin,
    origin: location.href,
  });
  root.classList.add("mlp", "mlp-page");
  document.documentElement.classList.add("mlp-document");
  root.replaceChildren();
  render(<App client={client} themes={themes} />, root);
}
