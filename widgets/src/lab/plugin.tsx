/**
 * What JupyterLab and Notebook know of jobs: side panel, tabs, status bar, notifications, commands, and a form to submit a script or notebook.
 * Every token is optional: Notebook has no tabs, launcher or status bar, and then the hub's pages stand in.
 */
import { render, type JSX } from "preact";
import { languageOfNotebook, serverClient, show } from "./cell";
import { keepFocus } from "../components/basics/focus";
import { spoken, useLanguage } from "../components/basics/language";
import { keepIn, keptIn } from "../components/basics/kept";
import { Announcer, type Herald } from "../core/accounts/announcer";
import { KEEP_HOURS, keepWords } from "../core/accounts/idleservers";
import { IdleTeller } from "../core/accounts/idleteller";
import { learn } from "../core/format/catalogues";
import { t } from "../core/format/language";
import { reference } from "../core/jobs/runs";
import { paths } from "../core/service/api";
import { documentedAt } from "../core/format/reasons";
import { hubPages, withoutSettings } from "../core/service/server";
import { isNotebook, runnable } from "../core/jobs/submitform";
import { counts, SHOWN, Watch, type Clock, type News } from "../core/jobs/watching";
import type { Job } from "../core/service/wire";
import { shared, type Application, type ApputilsModule, type Args, type Files, type Launcher, type LuminoModule, type LuminoWidget, type Palette, type Restorer, type Shared, type StatusBar, type UiModule } from "./modules";
import { Panel, useWatch } from "./Panel";
import { SubmitForm } from "./SubmitForm";
import "../styles/fields.css";
import "../styles/lab.css";

const SHOW = "mlp-hub:show-jobs";
const OPEN = "mlp-hub:open-job";
const SUBMIT = "mlp-hub:submit";
const SUBMIT_CHOSEN = "mlp-hub:submit-chosen";
const PAGE = "mlp-hub:open-page";
const CATEGORY = "MLP Hub";
const PANEL_ID = "mlp-hub-jobs";
/** Tuning: milliseconds that a notification of something good stays. */
const SEEN_MS = 10_000;
/** Tuning: milliseconds that one of a failed job stays. JupyterLab keeps it behind its bell, and counts only while its window has the focus. */
const FAILED_MS = 20_000;
const RANK = 450;

const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" width="16" viewBox="0 0 16 16"><path class="jp-icon3" fill="#616161" d="M2 2.5h8v2.6H2zM2 6.7h12v2.6H2zM2 10.9h5v2.6H2z"/></svg>';

const PAGES: Readonly<Record<string, { label: () => string; path: string }>> = {
  jobs: { label: () => t("Open the jobs page of MLP Hub"), path: "" },
  quota: { label: () => t("Open the quota page of MLP Hub"), path: "quota" },
  me: { label: () => t("Open my page of MLP Hub"), path: "me" },
};

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** A file of Lab as a path in the home: without the drive that it may be on. */
const inHome = (path: string): string => path.replace(/^[^/:]*:/, "").replace(/^\/+/, "");

function Status({ watch, show: onClick }: { watch: Watch; show: () => void }): JSX.Element | null {
  useLanguage();
  const { jobs, sweeps } = useWatch(watch);
  if (!jobs) return null;
  const { running, waiting } = counts(jobs, sweeps);
  const said = t("Jobs: {running} running, {waiting} waiting", { running, waiting });
  return (
    <button type="button" title={t("Show my jobs")} onClick={onClick}>
      {said}
    </button>
  );
}

/** The plugin, as Lab takes it: tokens are compared by what they are, so they come from the modules that the page shares. */
export async function plugin(lumino: LuminoModule, scope: Shared, folder: string): Promise<unknown> {
  const [application, apputils, launcher, statusbar, filebrowser, ui] = await Promise.all([
    shared<{ ILabShell?: unknown; ILayoutRestorer?: unknown }>(scope, "@jupyterlab/application"),
    shared<ApputilsModule>(scope, "@jupyterlab/apputils"),
    shared<{ ILauncher?: unknown }>(scope, "@jupyterlab/launcher"),
    shared<{ IStatusBar?: unknown }>(scope, "@jupyterlab/statusbar"),
    shared<{ IFileBrowserFactory?: unknown }>(scope, "@jupyterlab/filebrowser"),
    shared<UiModule>(scope, "@jupyterlab/ui-components"),
  ]);
  const tokens = {
    shell: application?.ILabShell,
    restorer: application?.ILayoutRestorer,
    palette: apputils?.ICommandPalette,
    launcher: launcher?.ILauncher,
    status: statusbar?.IStatusBar,
    files: filebrowser?.IFileBrowserFactory,
  };
  const names = (Object.keys(tokens) as (keyof typeof tokens)[]).filter((name) => tokens[name]);
  return {
    id: "mlp-hub:jobs",
    description: "Jobs of MLP Hub: a side panel, tabs, the status bar, notifications and a form to submit.",
    autoStart: true,
    optional: names.map((name) => tokens[name]),
    activate: (app: Application, ...found: unknown[]) => {
      const given = Object.fromEntries(names.map((name, at) => [name, found[at] ?? null]));
      activate(app, { ...given, lumino, apputils, ui } as unknown as Parts, folder);
    },
  };
}

interface Parts {
  lumino: LuminoModule;
  apputils: ApputilsModule | null;
  ui: UiModule | null;
  /** Lab's own shell: there are tabs, and somebody sits there for long. */
  shell?: unknown;
  restorer?: Restorer | null;
  palette?: Palette | null;
  launcher?: Launcher | null;
  status?: StatusBar | null;
  files?: Files | null;
}

function activate(app: Application, parts: Parts, folder: string): void {
  const { lumino, apputils } = parts;
  const lab = Boolean(parts.shell);
  const client = serverClient();
  const pages = hubPages(document);
  documentedAt(pages && `${pages}docs/`);
  const icon = parts.ui ? new parts.ui.LabIcon({ name: "mlp-hub:jobs", svgstr: ICON }) : undefined;
  const pageOf = (user: string, name: string): string => `${pages}jobs/${encodeURIComponent(user)}/${encodeURIComponent(name)}`;
  const open = (user: string, name: string): void => {
    if (lab) void app.commands.execute(OPEN, { user, name });
    else if (pages) window.open(pageOf(user, name), "_blank", "noopener");
  };
  const notify = ({ text, kind }: Herald, badClose: number | false, label: string, callback: () => void): void => {
    apputils?.Notification.emit(text, kind, { autoClose: kind === "success" || kind === "info" ? SEEN_MS : badClose, actions: [{ label, callback }] });
  };
  const clock: Clock = {
    later: (fn, ms) => {
      const timer = setTimeout(fn, ms);
      return () => clearTimeout(timer);
    },
    hidden: () => document.hidden,
  };
  const tell = (news: News): void => notify(news, FAILED_MS, t("Show job"), () => open(news.job.user, reference(news.job)));
  // of several pages of Notebook each would tell
  const watch = new Watch(client, clock, lab ? tell : () => undefined);
  // Lab shortens a long text; the side panel has it whole. What is urgent stays until it was read
  const announcer = new Announcer(client, clock, { read: keptIn, write: keepIn }, (news) => notify(news, false, t("Show in the side panel"), () => app.shell.activateById(PANEL_ID)));
  // stays until it is read, kept or over: a page of Lab that is only read is no use of its server
  const idle = new IdleTeller(client, clock, () => watch.seen.user, (said, server) => {
    const keep = (): void => void client.put(paths.keepServer(watch.seen.user), { server, hours: KEEP_HOURS }).then(() => idle.hurry(), () => app.shell.activateById(PANEL_ID));
    const id = apputils?.Notification.emit(said, "warning", { autoClose: false, actions: [{ label: keepWords(), callback: keep }] });
    return () => {
      if (id) apputils?.Notification.dismiss(id);
    };
  });
  const left = withoutSettings(document);
  if (left) apputils?.Notification.emit(left, "warning", { autoClose: false });
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    if (lab || panel.isVisible) void watch.hurry();
    if (lab) void announcer.hurry();
    if (lab) void idle.hurry();
  });

  window.addEventListener(SHOWN, () => {
    if (lab || panel.isVisible) void watch.hurry();
  });

  const draw = (visible: boolean): void =>
    render(<Panel client={client} watch={watch} visible={visible} open={open} pages={pages} />, panel.node);
  class Side extends lumino.Widget {
    constructor() {
      super();
      this.id = PANEL_ID;
      this.addClass("mlp");
      this.addClass("mlp-lab-side");
      this.title.icon = icon;
      this.node.tabIndex = -1;
      // a landmark, as Lab's own side panels are
      this.node.setAttribute("role", "region");
      this.named();
    }
    named(): void {
      this.title.caption = t("Jobs");
      this.node.setAttribute("aria-label", t("Jobs of MLP Hub"));
    }
    // Lumino calls these
    onActivateRequest(): void {
      // whoever called it by a key goes on in it, also from the palette, which gives the focus back to where it was
      setTimeout(() => this.node.focus({ preventScroll: true }));
    }
    onAfterShow(): void {
      if (!lab) watch.start();
      draw(true);
    }
    onAfterHide(): void {
      if (!lab) watch.stop();
      draw(false);
    }
  }
  const panel = new Side();
  keepFocus(panel.node);
  app.shell.add(panel, "left", { rank: RANK });
  parts.restorer?.add(panel, PANEL_ID);

  const tabs = lab && apputils ? new apputils.WidgetTracker({ namespace: "mlp-hub-jobs" }) : null;
  const shown = new WeakMap<LuminoWidget, { user: string; name: string }>();
  class Tab extends lumino.Widget {
    private readonly end: () => void;
    private readonly rest: () => void;
    constructor(user: string, name: string) {
      super();
      this.id = `mlp-hub-job-${user}-${name}`;
      this.addClass("mlp-lab-tab");
      this.title.label = name;
      this.title.caption = t("Job {job} of {user}", { job: name, user });
      this.title.icon = icon;
      this.title.closable = true;
      this.node.tabIndex = -1;
      this.rest = keepFocus(this.node);
      this.end = show(this.node, user, name, null, folder, (action, job) => {
        void watch.hurry();
        if (action === "resubmit") open(job.user, reference(job));
        else if (action === "delete") this.dispose();
      });
    }
    onActivateRequest(): void {
      this.node.focus();
    }
    override dispose(): void {
      this.end();
      this.rest();
      super.dispose();
    }
  }
  const openTab = (args: Args): void => {
    const [user, name] = [text(args["user"]), text(args["name"])];
    if (!user || !name) return;
    const there = tabs?.find((one) => shown.get(one)?.user === user && shown.get(one)?.name === name);
    const tab = there ?? new Tab(user, name);
    if (!there) {
      shown.set(tab, { user, name });
      app.shell.add(tab, "main");
      void tabs?.add(tab);
    }
    app.shell.activateById(tab.id);
  };

  let form: (() => void) | null = null;
  const submit = (path: string): void => {
    form?.();
    const root = document.createElement("div");
    root.className = "mlp";
    document.body.append(root);
    form = () => {
      render(null, root);
      root.remove();
      form = null;
    };
    const done = (job: Job): void => {
      void watch.hurry();
      if (!lab) return;
      form?.();
      open(job.user, reference(job));
    };
    render(<SubmitForm client={client} path={inHome(path)} onDone={done} onClose={() => form?.()} pageOf={lab || !pages ? null : pageOf} />, root);
  };
  const current = (): string => text(app.shell.currentWidget?.context?.path);
  const chosen = (): string => parts.files?.tracker.currentWidget?.selectedItems().next().value?.path ?? "";

  const { commands } = app;
  commands.addCommand(SHOW, {
    label: () => t("Show my jobs"),
    icon,
    isVisible: () => lab || Boolean(pages),
    execute: () => {
      if (lab) app.shell.activateById(PANEL_ID);
      else window.open(pages, "_blank", "noopener");
    },
  });
  commands.addCommand(OPEN, { label: () => t("Open a job's monitor"), isVisible: () => false, execute: openTab });
  commands.addCommand(SUBMIT, {
    label: () => (isNotebook(current()) ? t("Submit this notebook as a job …") : t("Submit this script as a job …")),
    isEnabled: () => runnable(current()),
    execute: async () => {
      const context = app.shell.currentWidget?.context;
      // what runs is the file
      if (context?.model?.dirty) await context.save?.();
      submit(current());
    },
  });
  commands.addCommand(SUBMIT_CHOSEN, {
    label: () => t("Submit as a job …"),
    icon,
    isEnabled: () => runnable(chosen()),
    execute: () => submit(chosen()),
  });
  commands.addCommand(PAGE, {
    label: (args) => PAGES[text(args["page"])]?.label() ?? "",
    isVisible: () => Boolean(pages),
    execute: (args) => window.open(pages + (PAGES[text(args["page"])]?.path ?? ""), "_blank", "noopener"),
  });
  for (const kind of ["python", "notebook"]) {
    app.contextMenu.addItem({ command: SUBMIT_CHOSEN, selector: `.jp-DirListing-item[data-file-type="${kind}"]`, rank: 4 });
  }
  for (const command of [SHOW, SUBMIT]) parts.palette?.addItem({ command, category: CATEGORY });
  for (const page of Object.keys(PAGES)) parts.palette?.addItem({ command: PAGE, category: CATEGORY, args: { page } });
  parts.launcher?.add({ command: SHOW, category: "Other", rank: 50 });
  if (tabs) parts.restorer?.restore(tabs, { command: OPEN, args: (tab) => shown.get(tab) ?? {}, name: (tab) => tab.id });
  if (parts.status && lab) {
    const item = new lumino.Widget();
    item.addClass("mlp-lab-status");
    parts.status.registerStatusItem("mlp-hub:jobs", { item, align: "left", rank: RANK, isActive: () => true });
    render(<Status watch={watch} show={() => void commands.execute(SHOW)} />, item.node);
  }
  void languageOfNotebook(client)
    .then((tag) => learn(tag, folder))
    .then(() => {
      spoken();
      panel.named();
      commands.notifyCommandChanged();
      if (!lab) return;
      watch.start();
      void announcer.hurry();
      void idle.hurry();
    });
}
