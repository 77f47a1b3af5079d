/** What JupyterLab and Notebook share with their extensions, and as much of its types as we use. */

/** Modules by name and version, each with a promise of what gives it. */
export type Shared = Record<string, Record<string, { get: () => Promise<() => unknown> | (() => unknown) }>>;

/** A module that the page shares; null where it has none. */
export async function shared<T>(scope: Shared, name: string): Promise<T | null> {
  const [found] = Object.values(scope[name] ?? {});
  return found ? ((await found.get())() as T) : null;
}

/** What we use of Lumino's widgets, which Lab's renderers, panels and tabs are. */
export interface LuminoWidget {
  readonly node: HTMLElement;
  id: string;
  readonly title: { label: string; caption: string; icon: unknown; closable: boolean };
  readonly isVisible: boolean;
  readonly isDisposed: boolean;
  addClass(name: string): void;
  dispose(): void;
}
export type LuminoModule = { Widget: new () => LuminoWidget };

export interface CommandOptions {
  label?: string | ((args: Args) => string);
  caption?: string | ((args: Args) => string);
  icon?: unknown;
  execute: (args: Args) => unknown;
  isEnabled?: (args: Args) => boolean;
  isVisible?: (args: Args) => boolean;
}
export type Args = Readonly<Record<string, unknown>>;

export interface Shell {
  readonly currentWidget: (LuminoWidget & { context?: { path?: unknown; model?: { dirty?: boolean }; save?: () => Promise<void> } }) | null;
  add(widget: LuminoWidget, area: string, options?: Readonly<Record<string, unknown>>): void;
  activateById(id: string): void;
}

export interface Application {
  readonly shell: Shell;
  readonly commands: {
    addCommand(id: string, options: CommandOptions): unknown;
    execute(id: string, args?: Args): Promise<unknown>;
    notifyCommandChanged(id?: string): void;
  };
  readonly contextMenu: { addItem(options: { command: string; selector: string; rank: number }): unknown };
}

export interface ApputilsModule {
  readonly ICommandPalette: unknown;
  readonly WidgetTracker: new (options: { namespace: string }) => Tracker;
  readonly Notification: {
    emit(message: string, type: string, options: { autoClose: number | false; actions?: { label: string; callback: () => void }[] }): string;
    dismiss(id?: string): void;
  };
}
export interface Tracker {
  add(widget: LuminoWidget): Promise<void>;
  find(test: (widget: LuminoWidget) => boolean): LuminoWidget | undefined;
}
export interface Palette {
  addItem(item: { command: string; category: string; args?: Args }): unknown;
}
export interface Launcher {
  add(item: { command: string; category: string; rank: number }): unknown;
}
export interface StatusBar {
  registerStatusItem(id: string, item: { item: LuminoWidget; align: string; rank: number; isActive: () => boolean }): unknown;
}
export interface Files {
  readonly tracker: { readonly currentWidget: { selectedItems(): Iterator<{ path: string; type: string }> } | null };
}
export interface Restorer {
  add(widget: LuminoWidget, name: string): void;
  restore(tracker: Tracker, options: { command: string; args: (widget: LuminoWidget) => Args; name: (widget: LuminoWidget) => string }): unknown;
}
/** Makes icons of Lab's tabs and menus of an SVG's text. */
export type UiModule = { LabIcon: new (options: { name: string; svgstr: string }) => unknown };
