/** The side panel: my jobs and, where I administer a team, its; and what is left of my quota. */
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Announced } from "../components/basics/Announced";
import { Empty, ErrorBox, Loading, StateBadge } from "../components/basics/basics";
import { useLoad, useNow } from "../components/basics/hooks";
import { useLanguage } from "../components/basics/language";
import { IdleServers } from "../components/basics/IdleServers";
import { QuotaBars } from "../components/basics/QuotaBars";
import { paths, type Client } from "../core/service/api";
import { n, t } from "../core/format/language";
import { lineOf } from "../core/jobs/notes";
import { reference } from "../core/jobs/runs";
import { timing } from "../core/jobs/spans";
import { NEWEST, type Watch } from "../core/jobs/watching";
import type { Job, QueueEntry, Usage } from "../core/service/wire";
import { Select } from "../components/basics/form";

const EVERY_MS = 4000;
const QUOTA_MS = 10_000;

type Line = Pick<Job, "user" | "name" | "run" | "phase" | "reason" | "tenant" | "message" | "position" | "expected_start" | "submitted_at" | "started_at" | "waiting_since" | "waited_s" | "ran_s"> &
  Partial<Pick<Job, "failure" | "progress" | "finished_at" | "uid" | "forecast">>;

export interface PanelProps {
  client: Client;
  watch: Watch;
  visible: boolean;
  open: (user: string, name: string) => void;
  /** Where the page of all jobs is; empty where there is none. */
  pages: string;
}

/** What is drawn anew whenever the list of my jobs was. */
export function useWatch(watch: Watch): Watch["seen"] {
  const [seen, setSeen] = useState(watch.seen);
  useEffect(() => {
    setSeen(watch.seen);
    return watch.subscribe(() => setSeen(watch.seen));
  }, [watch]);
  return seen;
}

function Row({ job, mine, now, open }: { job: Line; mine: boolean; now: number; open: PanelProps["open"] }): JSX.Element {
  const said = lineOf(job, now);
  return (
    <li>
      <button type="button" class="mlp-lab-row" onClick={() => open(job.user, reference(job))}>
        <span class="mlp-lab-line">
          <span class="mlp-lab-name" title={job.name}>{job.name}</span>
          <span class="mlp-dim mlp-run">{t("run {run}", { run: job.run })}</span>
          <StateBadge phase={job.phase} reason={job.reason} />
        </span>
        <span class="mlp-lab-line mlp-dim">
          <span class="mlp-lab-note" title={said}>{[mine ? "" : job.user, said].filter(Boolean).join(" · ")}</span>
          <span class="mlp-lab-time">{timing({ finished_at: null, ...job } as Job, now)}</span>
        </span>
      </button>
    </li>
  );
}

export function Panel({ client, watch, visible, open, pages }: PanelProps): JSX.Element {
  const spoken = useLanguage();
  const seen = useWatch(watch);
  const [whose, setWhose] = useState("");
  const [state, setState] = useState("");
  const team = seen.mine.includes(whose) ? whose : "";
  const other = Boolean(seen.user && (team || state));
  const query = state ? `&state=${state}` : "";
  const loaded = useLoad<Line[]>(
    `${seen.user} ${team} ${state} ${spoken}`,
    async () => {
      if (!other) return [];
      if (team) return (await client.list<QueueEntry>(paths.queue(team))).items.filter((entry) => entry.kind === "job") as unknown as Line[];
      return (await client.list<Job>(`${paths.jobs(seen.user)}?limit=${NEWEST}${query}`)).items;
    },
    visible && other ? EVERY_MS : 0,
  );
  const quota = useLoad<Usage[]>(`quota ${seen.user}`, async () => (seen.user ? (await client.list<Usage>(paths.quota(seen.user))).items : []), visible ? QUOTA_MS : 0);
  const now = useNow(1000, visible);
  useEffect(() => {
    if (!visible) return undefined;
    const again = (): void => {
      if (document.hidden) return;
      void watch.hurry();
      void loaded.reload();
      void quota.reload();
    };
    again();
    document.addEventListener("visibilitychange", again);
    return () => document.removeEventListener("visibilitychange", again);
  }, [visible, watch]);

  const phases: Record<string, (phase: string) => boolean> = {
    "": () => true,
    creating: (phase) => ["queued", "admitted", "starting", "suspended"].includes(phase),
    running: (phase) => !["queued", "admitted", "starting", "suspended"].includes(phase),
  };
  const rows: readonly Line[] | null = other ? (loaded.data && team ? loaded.data.filter((job) => (phases[state] ?? (() => false))(job.phase)) : loaded.data) : seen.jobs;
  const error = seen.error ?? (other ? loaded.error : null);
  const retry = (): void => {
    void watch.hurry();
    void loaded.reload();
  };
  return (
    <div class="mlp-lab-panel">
      <div class="mlp-lab-head">
        <h2>{t("Jobs")}</h2>
        {pages ? <a class="mlp-link" href={pages} target="_blank" rel="noopener">{t("All on MLP Hub")}</a> : null}
      </div>
      <Announced client={client} every={visible ? 60_000 : 0} />
      <IdleServers client={client} user={seen.user} every={visible ? 15_000 : 0} />
      <div class="mlp-lab-tools">
        {seen.mine.length ? (
          <Select label={t("Owner of the jobs")} hideLabel name="whose" value={team} onChange={setWhose} options={[["", t("Mine")], ...seen.mine.map((name): [string, string] => [name, t("Team {name}", { name })])]} />
        ) : null}
        <Select
          label={t("State")}
          hideLabel
          name="state"
          value={state}
          onChange={setState}
          options={[["", t("All states")], ["creating", t("Waiting or starting")], ["running", t("Running")], ...(team ? [] : ([["finished", t("Finished")], ["error", t("Failed or cancelled")]] as [string, string][]))]}
        />
      </div>
      {error ? <ErrorBox error={error} retry={retry} /> : null}
      {rows === null ? (
        error ? null : <Loading what={t("Loading jobs")} lines={5} />
      ) : rows.length ? (
        <ul class="mlp-lab-jobs" aria-label={team ? t("Jobs of team {name}", { name: team }) : t("My jobs, newest first")}>
          {rows.map((job) => (
            <Row key={job.uid ?? `${job.user} ${reference(job)}`} job={job} mine={!team} now={now} open={open} />
          ))}
        </ul>
      ) : (
        <Empty title={state ? t("No job in this state") : t("No jobs yet")}>
          {state || team ? null : <p>{t("Submit a script or a notebook: right-click it in the file browser.")}</p>}
        </Empty>
      )}
      {quota.data?.map(({ tenant }) => (
        <section key={tenant.name} class="mlp-lab-quota" aria-label={t("Team {name}", { name: tenant.name })}>
          <div class="mlp-lab-head">
            <h3>{t("Quota of {tenant}", { tenant: tenant.name })}</h3>
            <span class="mlp-dim">{n("1 job running, {waiting} waiting", "{n} jobs running, {waiting} waiting", tenant.running, { waiting: tenant.waiting })}</span>
          </div>
          <QuotaBars tenant={tenant} />
        </section>
      ))}
    </div>
  );
}
