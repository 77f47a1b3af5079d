/** What administrators tell, at the top of pages and of the panel in JupyterLab; each reader may put it away. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { AWAY, left, put, readAway } from "../../core/accounts/announcements";
import { paths, type Client } from "../../core/service/api";
import { t } from "../../core/format/language";
import type { Announcement } from "../../core/service/wire";
import { Icon } from "./basics";
import { useLoad } from "./hooks";
import { keepIn, keptIn } from "./kept";

const EVERY = 60_000;
const KINDS = { info: "info", warning: "wait", critical: "bad" } as const;

export function Announced({ client, every = EVERY }: { client: Client; every?: number }): JSX.Element | null {
  const found = useLoad("announcements", () => client.list<Announcement>(paths.announcements), every);
  const [away, setAway] = useState(() => readAway(keptIn(AWAY)));
  const shown = left(found.data?.items ?? [], away);
  if (!shown.length) return null;
  const dismiss = (id: number): void => {
    const next = put(away, id);
    setAway(next);
    keepIn(AWAY, JSON.stringify(next));
  };
  return (
    <section class="mlp-announced" aria-label={t("Announced now")}>
      {shown.map((one) => (
        <div key={one.id} class={`mlp-note mlp-note-${KINDS[one.level]}`} role={one.level === "critical" ? "alert" : "status"}>
          {one.level === "info" ? null : <Icon name="warn" />}
          <div class="mlp-note-text">
            {one.text}
            {one.tenant ? <span class="mlp-dim">{` · ${t("to team {name}", { name: one.tenant })}`}</span> : null}
          </div>
          <button type="button" class="mlp-button mlp-small" aria-label={t("Hide: {text}", { text: one.text })} onClick={() => dismiss(one.id)}>
            {t("Hide")}
          </button>
        </div>
      ))}
    </section>
  );
}
