/**
 * The anywidget module of `mlp_widgets.JobMonitor`. All data comes over the browser's own connection to the service,
 * so a busy, restarted or dead kernel changes nothing; without a service the notebook's saved picture is shown.
 */
import { render as draw } from "preact";
import { Monitor } from "./components/Monitor";
import { Client } from "./core/api";
import { isFinal } from "./core/phase";
import { liveJob } from "./core/live";
import { silentLogin } from "./core/login";
import "uplot/dist/uPlot.min.css";
import "./styles/base.css";
import "./styles/monitor.css";

/** What we use of anywidget's model. */
export interface Model {
  get(name: string): unknown;
  set(name: string, value: unknown): void;
  save_changes(): void;
  on(event: string, fn: () => void): void;
  off(event: string, fn: () => void): void;
}

/** How often a running job's picture is put into the notebook, in milliseconds. */
const KEEP_EVERY = 15_000;

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const root = document.createElement("div");
  root.className = "mlp mlp-widget";
  root.dataset["jpSuppressContextMenu"] = "";
  el.append(root);
  const free = keepKeys(root);
  let stop = mount(model, root);
  const again = (): void => {
    stop();
    stop = mount(model, root);
  };
  for (const trait of ["user", "name", "api"]) model.on(`change:${trait}`, again);
  return () => {
    for (const trait of ["user", "name", "api"]) model.off(`change:${trait}`, again);
    free();
    stop();
    root.remove();
  };
}

/**
 * JupyterLab's single-key shortcuts (`d d` deletes the cell) must not act while somebody uses the widget, those with
 * Ctrl and the like still should. Lab looks for this attribute on the focused element itself, from its listener on
 * the document; the window hears of the key before it.
 */
function keepKeys(root: HTMLElement): () => void {
  const keys = (event: KeyboardEvent): void => {
    const at = event.target;
    if (!(at instanceof Element) || !root.contains(at)) return;
    at.toggleAttribute("data-lm-suppress-shortcuts", !event.ctrlKey && !event.metaKey && !event.altKey);
  };
  window.addEventListener("keydown", keys, true);
  return () => window.removeEventListener("keydown", keys, true);
}

function mount(model: Model, root: HTMLElement): () => void {
  const user = text(model.get("user"));
  const name = text(model.get("name"));
  const client = new Client(text(model.get("api")) || "/services/mlp/api/v1", {
    fetch: (...args) => fetch(...args),
    login: silentLogin,
    origin: location.href,
  });
  const live = liveJob(client, user, name, model.get("snapshot"));
  const keep = (): void => {
    const snapshot = live.store.view.saved === null ? live.store.snapshot() : null;
    if (!snapshot) return;
    try {
      model.set("snapshot", snapshot);
      model.save_changes();
    } catch {
      // no kernel to tell: the picture stays as it was saved
    }
  };
  let kept = "";
  const timer = setInterval(() => {
    const { job } = live.store.view;
    if (job && !isFinal(job.phase)) keep();
  }, KEEP_EVERY);
  const forget = live.store.subscribe(() => {
    const { job, connection } = live.store.view;
    const key = `${job?.uid}/${job?.phase}/${connection === "ended"}`;
    if (!job || key === kept || live.store.view.saved !== null) return;
    kept = key;
    keep();
  });
  draw(<Monitor client={client} live={live} user={user} name={name} page={false} onAction={() => undefined} />, root);
  live.start();
  return () => {
    clearInterval(timer);
    forget();
    live.stop();
    draw(null, root);
  };
}

export default { render };
