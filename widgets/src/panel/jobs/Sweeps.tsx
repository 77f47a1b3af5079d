/** My sweeps, and the page of one. */
import type { JSX } from "preact";
import { Chip, Empty, ErrorBox, HeadingLevel, Icon, Loading, Table, type Column } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { SweepMonitor } from "../../components/monitor/SweepMonitor";
import { paths } from "../../core/service/api";
import { clock, coreHours, metric as show } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { countsWords, ended, hasEnded, sweepReference, sweepTone, sweepWord } from "../../core/jobs/sweep";
import type { Sweep } from "../../core/service/wire";
import { go, href, Link } from "../shared/address";
import { useHub } from "../shared/context";
import { PageHead } from "../../components/basics/form";

const EVERY = 4000;
const MINUTE = 60_000;
const PAGE = 200;

export function SweepsPage(): JSX.Element {
  const { client, session } = useHub();
  const sweeps = useLoad("sweeps", () => client.list<Sweep>(`${paths.sweeps(session.username)}?limit=${PAGE}`), EVERY);
  const now = useNow(MINUTE);
  const columns: Column<Sweep>[] = [
    {
      title: t("Name"), kind: "name", cell: (s) => (
        <>
          <Link to={href("sweeps", s.user, sweepReference(s))}>{s.name}</Link>
          <span class="mlp-dim mlp-run">{t("run {run}", { run: s.run })}</span>
        </>
      ),
    },
    { title: t("State"), kind: "tight", cell: (s) => <Chip kind={sweepTone(s.state)}><Icon name={sweepTone(s.state)} />{sweepWord(s.state)}</Chip> },
    { title: t("Trials"), kind: "num", cell: (s) => <span title={countsWords(s)}>{`${ended(s)}/${s.budget_trials}`}</span> },
    { title: t("Best"), kind: "tight", cell: (s) => (s.best && s.metric ? `${s.metric} ${show(s.best.value)}` : "–") },
    { title: t("Note"), hideTitle: true, kind: "grow", cell: (s) => <span class="mlp-clip" title={s.message}>{s.message}</span> },
    { title: t("Core-hours"), kind: "num low", cell: (s) => coreHours(s.core_hours) },
    { title: t("Team"), kind: "low", cell: (s) => s.tenant },
    { title: t("Started"), kind: "num", cell: (s) => clock(s.submitted_at, now) },
  ];
  const items = sweeps.data?.items ?? [];
  const busy = items.filter((s) => !hasEnded(s)).length;
  return (
    <>
      <PageHead title={t("Sweeps")} sub={sweeps.data ? n("1 sweep, {busy} active", "{n} sweeps, {busy} active", items.length, { busy }) : undefined} />
      {sweeps.error ? <ErrorBox error={sweeps.error} retry={() => void sweeps.reload()} /> : null}
      {!sweeps.data ? (
        sweeps.error ? null : <Loading what={t("Loading sweeps")} lines={6} />
      ) : items.length === 0 ? (
        <Empty title={t("No sweeps yet")}>
          <p>{rich(t("Run one program with many parameters: {command}"), { command: <code>%%mlp sweep --grid lr=0.1,0.01 --metric accuracy --goal max</code> })}</p>
        </Empty>
      ) : (
        <Table stack caption={t("My sweeps, newest first")} columns={columns} rows={items} rowKey={(s) => s.uid} />
      )}
    </>
  );
}

export function SweepPage({ user, name }: { user: string; name: string }): JSX.Element {
  const { client, say } = useHub();
  return (
    <HeadingLevel.Provider value="h2">
      <div class="mlp-monitor-box">
        <SweepMonitor
          client={client}
          user={user}
          name={name}
          page
          saved={null}
          compare={(jobs) => go(href("compare", user, jobs.join(",")))}
          job={(job) => <Link to={href("jobs", user, job)}>{job}</Link>}
          onDeleted={() => {
            say(t("Sweep {name} is being deleted", { name }));
            go(href("sweeps"));
          }}
        />
      </div>
    </HeadingLevel.Provider>
  );
}
