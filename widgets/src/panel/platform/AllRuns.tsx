/** The runs of everybody, in all states, also those that ended long ago: for who runs the platform. */
import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, ShowMore, StateBadge, Table, type Column } from "../../components/basics/basics";
import { useLoad, useNow, useSettled } from "../../components/basics/hooks";
import { searchOf } from "../../core/platform/allruns";
import { paths } from "../../core/service/api";
import { ago, coreHours, cores, duration, ram } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { reference, title } from "../../core/jobs/runs";
import type { ListedRun, RunPage, Tenant } from "../../core/service/wire";
import { href, Link } from "../shared/address";
import { useHub } from "../shared/context";
import { PageHead, Select } from "../../components/basics/form";

const EVERY = 6000;
const PAGE = 100;
const MOST = 1000;

const columns = (now: number): Column<ListedRun>[] => [
  { title: t("Job"), kind: "name", cell: (run) => <Link to={href("jobs", run.user, reference(run))}>{title(run)}</Link> },
  { title: t("State"), kind: "tight", cell: (run) => <StateBadge phase={run.phase} reason={run.reason} /> },
  { title: t("User"), cell: (run) => run.user },
  { title: t("Team"), cell: (run) => <Link to={href("admin", "tenants", run.tenant)}>{run.tenant}</Link> },
  { title: t("Submitted"), kind: "tight", cell: (run) => ago(run.submitted_at, now) },
  { title: t("Ran"), kind: "num", cell: (run) => (run.duration_s === null ? "–" : duration(run.duration_s)) },
  { title: t("Core-hours"), kind: "num low", cell: (run) => coreHours(run.core_hours) },
  { title: t("Peak"), kind: "low", cell: (run) => (run.cpu_peak === null || run.ram_peak === null ? "–" : `${cores(run.cpu_peak)} · ${ram(run.ram_peak)}`) },
];

export function AllRunsPage(): JSX.Element {
  const { client } = useHub();
  const now = useNow(10_000);
  const [words, setWords] = useState("");
  const [user, setUser] = useState("");
  const [state, setState] = useState("");
  const [team, setTeam] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const search = useSettled(searchOf(words, state, team, user));
  const teams = useLoad("tenants", () => client.all<Tenant>(paths.tenants));
  const runs = useLoad(`all runs ${search} ${limit}`, () => client.get<RunPage>(paths.allRuns(search, limit)), EVERY);
  // what is shown stays until the answer to another search is there
  const last = useRef<RunPage | null>(null);
  last.current = runs.data ?? last.current;
  const page = runs.error ? null : last.current;
  const find = (label: string, value: string, set: (text: string) => void): JSX.Element => (
    <label class="mlp-inline">
      <span class="mlp-hidden">{label}</span>
      <input class="mlp-input" type="search" placeholder={label} value={value} onInput={(e) => set(e.currentTarget.value)} />
    </label>
  );
  return (
    <>
      <PageHead title={t("All runs")} sub={page ? n("1 run", "{n} runs", page.total) : undefined}>
        {find(t("Search, such as lr<0.1 tag=best"), words, setWords)}
        {find(t("Of user"), user, setUser)}
        <Select
          label={t("State")}
          hideLabel
          name="state"
          value={state}
          onChange={setState}
          options={[["", t("All states")], ["creating", t("Waiting or starting")], ["running", t("Running")], ["finished", t("Finished")], ["error", t("Failed or cancelled")]]}
        />
        <Select label={t("Team")} hideLabel name="team" value={team} onChange={setTeam} options={[["", t("All teams")], ...(teams.data?.items ?? []).map((one): [string, string] => [one.name, one.name])]} />
        <a class="mlp-button" href={client.base + paths.allRunsCsv(search)} download="runs.csv">
          {t("CSV")}
        </a>
      </PageHead>
      {runs.error ? <ErrorBox error={runs.error} retry={() => void runs.reload()} /> : null}
      {!page && !runs.error ? <Loading what={t("Loading runs")} lines={6} /> : null}
      {page && !page.runs.length ? <Empty title={search ? t("No run matches") : t("No runs yet")} /> : null}
      {page?.runs.length ? <Table stack caption={t("Runs of everybody, the newest first")} columns={columns(now)} rows={page.runs} rowKey={(run) => run.uid} /> : null}
      {page && page.total > page.runs.length && limit < MOST ? <ShowMore more={() => setLimit((shown) => Math.min(MOST, shown + PAGE))} /> : null}
    </>
  );
}
