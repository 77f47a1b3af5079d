/** Addresses below the service's base, kept by the browser's history. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";

/** The base from the page's meta tag, with a slash at its end. */
export const base: string = (() => {
  const found = document.querySelector<HTMLMetaElement>('meta[name="mlp-base"]')?.content ?? "/services/mlp/";
  return found.endsWith("/") ? found : `${found}/`;
})();

/** One of the hub's own pages: the base is always HUB/services/NAME/. */
export const hubPage = (name: string): string => base.replace(/services\/[^/]+\/$/, `hub/${name}`);

/** Address of a page from its parts, each encoded by itself. */
export const href = (...parts: string[]): string => base + parts.map(encodeURIComponent).join("/");

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function current(): string[] {
  const path = location.pathname;
  const rest = path.startsWith(base) ? path.slice(base.length) : "";
  return rest.split("/").filter(Boolean).map(decode);
}

const CHANGED = "mlp-route";

export function go(to: string, replace = false): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  window.dispatchEvent(new Event(CHANGED));
}

export function useAddress(): string[] {
  const [parts, setParts] = useState(current);
  useEffect(() => {
    const update = (): void => setParts(current());
    window.addEventListener("popstate", update);
    window.addEventListener(CHANGED, update);
    return () => {
      window.removeEventListener("popstate", update);
      window.removeEventListener(CHANGED, update);
    };
  }, []);
  return parts;
}

export function Link({ to, children, cls = "mlp-link", current: here, label }: {
  to: string;
  children: ComponentChildren;
  cls?: string;
  current?: boolean;
  /** What is heard in the place of its text, where several say the same. */
  label?: string;
}): JSX.Element {
  const click = (event: MouseEvent): void => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a class={cls} href={to} onClick={click} {...(here ? { "aria-current": "page" as const } : {})} {...(label ? { "aria-label": label } : {})}>
      {children}
    </a>
  );
}
