/** Parts of a long page as tabs. The address keeps which one is shown, after its #, so a link leads to it. */
import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useState } from "preact/hooks";

export interface Tab {
  /** Its name in the address. */
  key: string;
  title: string;
  content: () => ComponentChildren;
}

const named = (tabs: Tab[]): string => {
  const anchor = location.hash.slice(1);
  return (tabs.find((tab) => tab.key === anchor) ?? tabs[0])?.key ?? "";
};
const MOVES: Readonly<Record<string, (at: number, last: number) => number>> = {
  ArrowLeft: (at, last) => (at === 0 ? last : at - 1),
  ArrowRight: (at, last) => (at === last ? 0 : at + 1),
  Home: () => 0,
  End: (_at, last) => last,
};

export function Tabs({ label, tabs }: { label: string; tabs: Tab[] }): JSX.Element {
  const id = useId();
  const [shown, setShown] = useState(() => named(tabs));
  useEffect(() => {
    const follow = (): void => setShown(named(tabs));
    window.addEventListener("hashchange", follow);
    window.addEventListener("popstate", follow);
    return () => {
      window.removeEventListener("hashchange", follow);
      window.removeEventListener("popstate", follow);
    };
  }, [tabs.map((tab) => tab.key).join()]);
  const at = Math.max(0, tabs.findIndex((tab) => tab.key === shown));
  const choose = (key: string): void => {
    history.replaceState(history.state, "", `#${key}`);
    setShown(key);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const next = tabs[MOVES[event.key]?.(at, tabs.length - 1) ?? -1];
    if (!next) return;
    event.preventDefault();
    choose(next.key);
    document.getElementById(`${id}-${next.key}`)?.focus();
  };
  const tab = tabs[at];
  return (
    <>
      <div class="mlp-tabs" role="tablist" aria-label={label} onKeyDown={onKeyDown}>
        {tabs.map((one) => (
          <button
            key={one.key}
            type="button"
            role="tab"
            id={`${id}-${one.key}`}
            class="mlp-tab"
            aria-selected={one === tab}
            aria-controls={`${id}-panel`}
            tabIndex={one === tab ? 0 : -1}
            onClick={() => choose(one.key)}
          >
            {one.title}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${id}-panel`} aria-labelledby={`${id}-${tab?.key ?? ""}`} key={tab?.key}>
        {tab?.content()}
      </div>
    </>
  );
}
