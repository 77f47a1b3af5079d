/** Hooks shared by the widget and the pages. */
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { JobStore, View } from "../../core/stream/jobstore";
import { ApiError } from "../../core/service/api";
import { useLanguage } from "./language";

/** The store's view; renders again when it changes, at most once a frame. */
export function useView(store: JobStore): View {
  const [view, setView] = useState(store.view);
  useEffect(() => {
    setView(store.view);
    return store.subscribe((changes) => {
      if (changes.has("view")) setView(store.view);
    });
  }, [store]);
  return view;
}

/** The time in milliseconds, renewed every `every` milliseconds; stands still when `on` is false. */
export function useNow(every: number, on = true): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!on) return undefined;
    const timer = setInterval(() => setNow(Date.now()), every);
    return () => clearInterval(timer);
  }, [every, on]);
  return now;
}

export interface Loaded<T> {
  data: T | null;
  error: unknown;
  reload: () => Promise<void>;
}

/** Whether asking again would bring the same: it is not there, or nobody's business here. */
const isClosed = (error: unknown): boolean => error instanceof ApiError && (error.reason === "NotFound" || error.reason === "Forbidden");

/**
 * Load when `key` changes and, when `every` is given, again and again while the page is seen.
 * What is not there, or not for whom it is asked, is not asked for again by itself: that answer stays.
 * An error keeps the last data: a page does not go blank because one request failed.
 * Answers that come in another order than they were asked for are shown in that: an older one does not replace a newer one.
 */
export function useLoad<T>(key: string, load: () => Promise<T>, every = 0): Loaded<T> {
  const [state, setState] = useState<{ key: string; data: T | null; error: unknown }>({ key, data: null, error: null });
  const current = useRef(key);
  current.current = key;
  const spoken = useLanguage(); // the service's sentences are in it
  const loader = useRef(load);
  loader.current = load;
  const turns = useRef({ asked: 0, shown: 0 });
  const closed = useRef(false);
  const reload = useCallback(async () => {
    const asked = current.current;
    const turn = (turns.current.asked += 1);
    const isNews = (): boolean => {
      if (current.current !== asked || turn < turns.current.shown) return false;
      turns.current.shown = turn;
      return true;
    };
    try {
      const data = await loader.current();
      if (!isNews()) return;
      closed.current = false;
      setState({ key: asked, data, error: null });
    } catch (error) {
      if (!isNews()) return;
      closed.current = isClosed(error);
      setState((old) => ({ key: asked, data: old.key === asked ? old.data : null, error }));
    }
  }, []);
  useEffect(() => {
    closed.current = false;
    void reload();
    if (!every) return undefined;
    const timer = setInterval(() => {
      if (!document.hidden && !closed.current) void reload();
    }, every);
    return () => clearInterval(timer);
  }, [key, every, reload, spoken]);
  const mine = state.key === key;
  return { data: mine ? state.data : null, error: mine ? state.error : null, reload };
}

/** The value, once it has stood still for `ms`: so that not every key that is pressed asks the service. */
export function useSettled<T>(value: T, ms = 250): T {
  const [settled, setSettled] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** What the navigation counts: people who wait for approval, requests of teams for more quota, requests of people to a team. */
export type Counted = "sign-ups" | "quota requests" | `joins ${string}`;
const COUNTED = "mlp-counted";

/** Tell whoever shows how many of these wait that one was answered. */
export const countChanged = (of: Counted): boolean => window.dispatchEvent(new CustomEvent(COUNTED, { detail: of }));

/** Calls back when that was told. */
export function useCountChanged(of: Counted, changed: () => void): void {
  const told = useRef(changed);
  told.current = changed;
  useEffect(() => {
    const hear = (event: Event): void => {
      if ((event as CustomEvent<Counted>).detail === of) told.current();
    };
    window.addEventListener(COUNTED, hear);
    return () => window.removeEventListener(COUNTED, hear);
  }, [of]);
}

let ids = 0;
/** An id for labels, unique in the page. */
export function useId(prefix: string): string {
  const [id] = useState(() => `mlp-${prefix}-${(ids += 1)}`);
  return id;
}

/** Colours and the like follow the theme: calls back when JupyterLab's, the page's or the system's theme changes. */
export function onThemeChange(fn: () => void): () => void {
  const observer = new MutationObserver(fn);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-name", "data-jp-theme-light", "class"] });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-mlp-theme"] });
  const query = matchMedia("(prefers-color-scheme: dark)");
  query.addEventListener("change", fn);
  return () => {
    observer.disconnect();
    query.removeEventListener("change", fn);
  };
}
