/** Last lines that an app's replicas wrote. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { useLoad } from "../../components/basics/hooks";
import { t } from "../../core/format/language";
import { asTerminal } from "../../core/stream/logs";
import type { Application, LogLine } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { Select } from "../../components/basics/form";

const EVERY = 5000;
const LINES = 50;

export function AppLog({ of, path }: { of: Application; path: string }): JSX.Element | null {
  const { client } = useHub();
  const [chosen, setChosen] = useState("");
  // one that waits has written nothing, and none of this number may be there any more
  const there = of.running.filter((r) => r.phase !== "queued").map((r) => String(r.replica));
  const replica = there.includes(chosen) ? chosen : there[0];
  const ask = async (): Promise<LogLine[]> =>
    replica === undefined ? [] : (await client.get<{ lines: LogLine[] }>(`${path}/logs?replica=${replica}&tail=${LINES}`)).lines;
  const log = useLoad(`${path} log ${replica ?? ""}`, ask, EVERY);
  if (replica === undefined) return null;
  return (
    <section class="mlp-card" aria-label={t("Log")}>
      <div class="mlp-card-head">
        <h2>{t("Log")}</h2>
        <span class="mlp-dim">{t("The last lines of replica {n}", { n: replica })}</span>
        {there.length > 1 ? (
          <span class="mlp-head-end">
            <Select label={t("Replica")} hideLabel name="replica" value={replica} onChange={setChosen} options={there.map((one) => [one, t("Replica {n}", { n: one })])} />
          </span>
        ) : null}
      </div>
      {log.error ? <ErrorBox error={log.error} /> : null}
      {log.data?.length ? (
        <pre class="mlp-lines-box" tabIndex={0} role="log" aria-live="off" aria-label={t("Log lines")}>{log.data.map((line) => asTerminal(line.text)).join("\n")}</pre>
      ) : log.data ? (
        <p class="mlp-dim">{t("It has written nothing yet.")}</p>
      ) : null}
    </section>
  );
}
