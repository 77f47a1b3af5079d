/** The keyboard's place in a page is kept: what has it may go away, move, or be unusable for a moment, while nobody asked for that. */

const GROUPS = "dialog, section, form, [role=group], [role=region], .mlp-card, main, .mlp-lab-panel";

/** What an element lies in, the innermost first: asked while it is there, for when it is gone. */
export function around(element: Element): Element[] {
  const found: Element[] = [];
  for (let one = element.parentElement; one; one = one.parentElement) found.push(one);
  return found;
}

/** Give the focus to what is left around something that is gone: to its heading, or to a group that has none; false where there is neither. */
export function focusNear(places: Element[]): boolean {
  for (const place of places) {
    if (!place.isConnected || !place.matches(GROUPS)) continue;
    const next = place.querySelector<HTMLElement>("h1, h2, h3") ?? (place.matches("[role=group], section") ? (place as HTMLElement) : null);
    if (!next) continue;
    if (!next.hasAttribute("tabindex")) next.tabIndex = -1;
    next.focus({ preventScroll: true });
    return document.activeElement === next;
  }
  return false;
}

/** Watch over the focus in `root` until the function that is returned is called. */
export function keepFocus(root: HTMLElement): () => void {
  let last: HTMLElement | null = null;
  let places: Element[] = [];
  const took = (event: FocusEvent): void => {
    last = event.target instanceof HTMLElement && root.contains(event.target) ? event.target : null;
    places = last ? around(last) : [];
  };
  // who points at something else means to go there
  const pointed = (): void => {
    last = null;
  };
  const look = (): void => {
    if (!last || (document.activeElement && document.activeElement !== document.body)) return;
    if (!last.isConnected) focusNear(places);
    else if (!last.matches(":disabled")) last.focus({ preventScroll: true });
  };
  const changes = new MutationObserver(look);
  changes.observe(root, { subtree: true, childList: true, attributes: true, attributeFilter: ["disabled"] });
  document.addEventListener("focusin", took);
  document.addEventListener("pointerdown", pointed, true);
  return () => {
    changes.disconnect();
    document.removeEventListener("focusin", took);
    document.removeEventListener("pointerdown", pointed, true);
  };
}
