/**
 * The live monitor of one job, or one sweep, in a cell's output. All data comes over the browser's own connection to the notebook
 * server, which passes it on from the service beside all kernels; so a busy, restarted or dead kernel changes nothing.
 * Without a service the picture that the notebook keeps is shown.
 */
import { render, type JSX } from "preact";
import { Monitor, type MonitorProps } from "../components/monitor/Monitor";
import { SweepMonitor } from "../components/monitor/SweepMonitor";
import { Client } from "../core/service/api";
import { learn } from "../core/format/catalogues";
import { languageOf } from "../core/format/language";
import { liveJob } from "../core/stream/live";
import { readableSweep } from "../core/jobs/sweep";
import { SHOWN } from "../core/jobs/watching";
import { serverApi, serverXsrf } from "../core/service/server";
import "uplot/dist/uPlot.min.css";
import "../styles/base.css";
import "../styles/monitor.css";

/** How long what is drawn waits for the service to say in which language. */
const ASKED_MS = 500;

/** Asks the page's notebook server, which passes it on. */
export const serverClient = (): Client =>
  new Client(serverApi(document), {
    fetch: (...args) => fetch(...args),
    xsrf: () => serverXsrf(document),
    origin: location.href,
  });

/** The language of the notebook's magics, which the service knows; without a service the page's. */
export async function languageOfNotebook(client: Client): Promise<string> {
  const late = new Promise((resolve) => setTimeout(resolve, ASKED_MS));
  await Promise.race([client.session(true).catch(() => undefined), late]);
  return languageOf(client.answeredIn) ?? languageOf(document.documentElement.lang) ?? "";
}

/** What is drawn into a cell, and what ends with it. */
interface Drawn {
  view: (client: Client) => JSX.Element;
  begin?: () => void;
  end?: () => void;
}

/** Draw into an element, in the notebook's language, whose catalogue is in a folder; what is returned takes it away. */
function draw(el: HTMLElement, folder: string, make: (client: Client) => Drawn): () => void {
  const root = document.createElement("div");
  root.className = "mlp mlp-widget";
  root.dataset["jpSuppressContextMenu"] = "";
  el.append(root);
  const free = keepKeys(root);
  const client = serverClient();
  const drawn = make(client);
  let gone = false;
  const begin = (): void => {
    if (gone) return;
    render(drawn.view(client), root);
    drawn.begin?.();
    window.dispatchEvent(new Event(SHOWN));
  };
  void languageOfNotebook(client)
    .then((tag) => learn(tag, folder))
    .then(begin);
  return () => {
    gone = true;
    drawn.end?.();
    render(null, root);
    free();
    root.remove();
  };
}

/** Draw job `name` of `user`. */
export function show(el: HTMLElement, user: string, name: string, snapshot: unknown, folder: string, onAction: MonitorProps["onAction"] = () => undefined): () => void {
  return draw(el, folder, (client) => {
    const live = liveJob(client, user, name, snapshot);
    return {
      view: () => <Monitor client={client} live={live} user={user} name={name} page={false} onAction={onAction} />,
      begin: () => live.start(),
      end: () => live.stop(),
    };
  });
}

/** Draw sweep `name` of `user`; a trial is named as the magics name it. */
export function showSweep(el: HTMLElement, user: string, name: string, snapshot: unknown, folder: string): () => void {
  const job = (of: string): JSX.Element => <span title={`%mlp watch ${of}`}>{of}</span>;
  return draw(el, folder, () => ({
    view: (client) => <SweepMonitor client={client} user={user} name={name} page={false} saved={readableSweep(snapshot)} job={job} />,
  }));
}

/**
 * JupyterLab's single-key shortcuts (`d d` deletes the cell) must not act while somebody uses the monitor, those with
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
