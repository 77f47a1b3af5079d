/** Countdowns of one's own notebook servers that are idle, each with a button that keeps it; nothing where there are none. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { idleWords, KEEP_HOURS, keepWords } from "../../core/accounts/idleservers";
import { paths, type Client } from "../../core/service/api";
import { t } from "../../core/format/language";
import type { ServerCountdown } from "../../core/service/wire";
import { ErrorBox, Icon } from "./basics";
import { useLoad } from "./hooks";

const EVERY = 15_000;

export function IdleServers({ client, user, every = EVERY }: { client: Client; user: string; every?: number }): JSX.Element | null {
  const found = useLoad(`idle ${user}`, async () => (user ? (await client.list<ServerCountdown>(paths.idleServers(user))).items : []), every);
  const [error, setError] = useState<unknown>(null);
  const shown = (found.data ?? []).filter((one) => one.left_s !== null);
  if (!shown.length) return null;
  const keep = async (server: string): Promise<void> => {
    setError(null);
    try {
      await client.put(paths.keepServer(user), { server, hours: KEEP_HOURS });
      await found.reload();
    } catch (e) {
      setError(e);
    }
  };
  return (
    <section class="mlp-announced" aria-label={t("Idle notebook servers")}>
      {shown.map((one) => (
        <div key={one.server} class="mlp-note mlp-note-wait" role="status">
          <Icon name="warn" />
          <div class="mlp-note-text">{idleWords(one)}</div>
          <button type="button" class="mlp-button mlp-small" onClick={() => void keep(one.server)}>
            {keepWords()}
          </button>
        </div>
      ))}
      {error ? <ErrorBox error={error} /> : null}
    </section>
  );
}
