/** What every page needs: the client, who is logged in, and a way to say that something was done. */
import { createContext, type ComponentChildren, type JSX } from "preact";
import { useCallback, useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Client } from "../../core/service/api";
import { t } from "../../core/format/language";
import type { Session } from "../../core/service/wire";

export interface Hub {
  client: Client;
  session: Session;
  /** Ask anew who is logged in, because it has changed what that may see: teams one is in, or leads. */
  renew: () => Promise<void>;
  /** A short line that something was done; goes away by itself. */
  say: (text: string) => void;
  /** A dialog that stays also when what it was opened from goes away, as the row of a job that ends. */
  show: (dialog: JSX.Element | null) => void;
}

const Context = createContext<Hub | null>(null);

export function useHub(): Hub {
  const hub = useContext(Context);
  if (!hub) throw new Error("useHub outside of HubProvider");
  return hub;
}

/** What a page's buttons do: `run` does the work, says that it is done and renews the page; an error stays to be shown. */
export function useRun(done: () => Promise<void>): { run: (work: () => Promise<unknown>, said?: string) => Promise<void>; busy: boolean; error: unknown; clear: () => void } {
  const { say } = useHub();
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const run = async (work: () => Promise<unknown>, said = ""): Promise<void> => {
    setError(null);
    setBusy(true);
    try {
      await work();
      if (said) say(said);
      await done();
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  return { run, busy, error, clear: () => setError(null) };
}

/** Tuning: milliseconds that a notification stays at least: time to notice it and to read a short one. */
const SHOWN_MS = 5000;
/** Tuning: milliseconds for each character of a longer one: the pace of a slow reader. */
const READ_MS = 80;
/** Tuning: milliseconds that it stays at most; until then it can be dismissed. */
const LONGEST_MS = 20_000;

export function HubProvider({ client, session, renew, children }: {
  client: Client;
  session: Session;
  renew: () => Promise<void>;
  children: ComponentChildren;
}): JSX.Element {
  const [toasts, setToasts] = useState<{ id: number; text: string }[]>([]);
  const next = useRef(0);
  const putAway = (id: number): void => setToasts((old) => old.filter((one) => one.id !== id));
  const say = useCallback((text: string) => {
    const id = (next.current += 1);
    setToasts((old) => [...old.slice(-2), { id, text }]);
    setTimeout(() => putAway(id), Math.min(LONGEST_MS, Math.max(SHOWN_MS, READ_MS * text.length)));
  }, []);
  const [dialog, show] = useState<JSX.Element | null>(null);
  useEffect(() => {
    const gone = (): void => show(null); // it was of another page
    addEventListener("popstate", gone);
    return () => removeEventListener("popstate", gone);
  }, []);
  const hub = useMemo(() => ({ client, session, renew, say, show }), [client, session, renew, say]);
  return (
    <Context.Provider value={hub}>
      {children}
      {dialog}
      <div class="mlp-toasts" role="status" aria-live="polite">
        {toasts.map((one) => (
          <div key={one.id} class="mlp-toast">
            <span>{one.text}</span>
            <button type="button" aria-label={t("Dismiss")} title={t("Dismiss")} onClick={() => putAway(one.id)} />
          </div>
        ))}
      </div>
    </Context.Provider>
  );
}
