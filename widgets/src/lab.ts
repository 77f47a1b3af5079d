/**
 * The live monitor as a renderer of cell outputs in JupyterLab and Notebook: what a cell shows and a notebook keeps is
 * which job it is and its picture, so the monitor is there without any kernel, before and after the job ends. And what Lab
 * itself knows of jobs: `lab/plugin.tsx`.
 *
 * Built by hand as what Lab loads: a federated module whose container gives renderer and plugin, and which takes Lumino from Lab.
 */
import { show, showSweep } from "./lab/cell";
import { shared as sharedModule, type LuminoModule, type Shared } from "./lab/modules";
import { plugin } from "./lab/plugin";

/** What an output shows, by its kind, and what draws it. */
const KINDS = {
  job: { mime: "application/vnd.mlp-hub.job+json", draw: show },
  sweep: { mime: "application/vnd.mlp-hub.sweep+json", draw: showSweep },
};
/** Before ipywidgets (-10), HTML (50) and text: lower ranks are preferred. */
const RANK = -20;

/** An output as Lab hands it over. */
interface Output {
  readonly data: Readonly<Record<string, unknown>>;
}

const record = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function renderer({ Widget }: LuminoModule, kind: keyof typeof KINDS): unknown {
  const { mime, draw } = KINDS[kind];
  class Monitor extends Widget {
    private stop: (() => void) | null = null;
    private shown = "";

    constructor() {
      super();
      this.addClass("mlp-output");
    }

    /** Called again when the kernel renews what the notebook keeps; who looks at the monitor keeps what they opened. */
    renderModel(output: Output): Promise<void> {
      // a notebook is anybody's text: only these are taken from it, never an address to ask
      const { user, name, snapshot } = record(output.data[mime]);
      const job = JSON.stringify([user, name]);
      if (job !== this.shown) {
        this.stop?.();
        this.shown = job;
        this.stop = draw(this.node, text(user), text(name), snapshot, folder);
      }
      return Promise.resolve();
    }

    override dispose(): void {
      this.stop?.();
      this.stop = null;
      super.dispose();
    }
  }
  const rendererFactory = { safe: true, mimeTypes: [mime], defaultRank: RANK, createRenderer: () => new Monitor() };
  return { id: `mlp-hub:${kind}`, rendererFactory, rank: RANK, dataType: "json" };
}

let shared: Shared = {};

async function lumino(): Promise<LuminoModule> {
  const found = await sharedModule<LuminoModule>(shared, "@lumino/widgets");
  if (!found) throw new Error("mlp-hub: this page does not share @lumino/widgets");
  return found;
}

const script = document.currentScript instanceof HTMLScriptElement ? document.currentScript.src : "";
const folder = script.replace(/\/[^/]*$/, "");
let styled = false;

function style(): void {
  if (styled) return;
  styled = true;
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = script.replace(/\.js(\?.*)?$/, ".css$1");
  document.head.append(link);
}

const page = window as unknown as { _JUPYTERLAB?: Record<string, unknown> };
page._JUPYTERLAB ??= {};
page._JUPYTERLAB["mlp-hub"] = {
  init: (scope: Shared) => {
    shared = scope;
  },
  get: async (what: string) => {
    const module = await lumino();
    const extension = what === "./extension" ? await plugin(module, shared, folder) : [renderer(module, "job"), renderer(module, "sweep")];
    style();
    return () => ({ __esModule: true, default: extension });
  },
};
