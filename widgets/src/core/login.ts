/** A login without asking: the hub knows the browser, so a hidden frame through its OAuth pages is enough. */

const PATIENCE_MS = 10_000;

/** Resolves true when the frame came back to our own blank page. */
export function silentLogin(root: string): Promise<boolean> {
  const blank = `${new URL(root, location.href).pathname}/blank`;
  return new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.hidden = true;
    frame.setAttribute("aria-hidden", "true");
    frame.tabIndex = -1;
    frame.title = "login";
    const done = (ok: boolean): void => {
      clearTimeout(timer);
      frame.remove();
      resolve(ok);
    };
    const timer = setTimeout(() => done(false), PATIENCE_MS);
    frame.addEventListener("load", () => {
      try {
        const at = frame.contentWindow?.location.pathname ?? "";
        // about:blank loads first in some browsers
        if (at === blank) done(true);
        else if (at !== "blank") done(false);
      } catch {
        done(false); // a page that we may not look into: the hub's login form, or another site
      }
    });
    frame.addEventListener("error", () => done(false));
    frame.src = `${root}/login?next=${encodeURIComponent(blank)}`;
    document.body.append(frame);
  });
}
