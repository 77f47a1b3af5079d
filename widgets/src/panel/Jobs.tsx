/** My jobs, and the page of one job. */
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, StateBadge, Table, type Column } from "../components/basics";
import { useLoad, useNow } from "../components/hooks";
import { Monitor } from "../components/Monitor";
import { paths } from "../core/api";
import { cores, plural, ram, starts } from "../core/format";
import { liveJob } from "../core/live";
import { keepingWords } from "../core/keeping";
import { isFinal, isWaiting, workersWords } from "../core/phase";
import { timing } from "../core/spans";
import type { Job } from "../core/wire";
import { useHub } from "./context";
import { PageHead, Select } from "./form";
import { go, href, Link } from "./router";

const EVERY = 4000;
const PAGE = 100;
const MOST = 1000;

function note(job: Job, now: number): string {
  if (job.failure) return job.failure.message || job.failure.cause;
  if (isWaiting(job.phase)) {
    const place = job.position !== null ? `position ${job.position}` : "";
    const start = job.expected_start ? `expected ${starts(job.expected_start, now)}` : "";
    return [job.message, place, start].filter(Boolean).join(" · ");
  }
  return job.phase === "running" && job.progress ? `${job.progress} %` : job.message;
}

export function JobsPage(): JSX.Element {
  const { client, session } = useHub();
  const [state, setState] = useState("");
  const [limit, setLimit] = useState(PAGE);
  const query = state ? `&state=${state}` : "";
  const jobs = useLoad(`jobs ${state} ${limit}`, () => client.list<Job>(`${paths.jobs(session.username)}?limit=${limit}${query}`), EVERY);
  const now = useNow(1000);
  const columns: Column<Job>[] = [
    { title: "Name", cell: (j) => <Link to={href("jobs", j.user, j.name)}>{j.name}</Link>, kind: "name" },
    { title: "State", cell: (j) => <StateBadge phase={j.phase} />, kind: "tight" },
    { title: "", cell: (j) => <span class="mlp-clip" title={note(j, now)}>{note(j, now)}</span>, kind: "grow" },
    { title: "Tenant", cell: (j) => j.tenant, kind: "low" },
    { title: "Shape", cell: (j) => `${j.runtime}, ${workersWords(j)}, ${cores(j.cpu)} cpu, ${ram(j.ram)}`, kind: "low" },
    { title: "Time", cell: (j) => timing(j, now), kind: "num" },
  ];
  const items = jobs.data?.items ?? [];
  const busy = items.filter((j) => !isFinal(j.phase)).length;
  return (
    <>
      <PageHead title="Jobs" sub={jobs.data ? `${plural(items.length, "job")}${jobs.data.next ? " (the newest)" : ""}, ${busy} not ended` : undefined}>
        <Select
          label="State"
          name="state"
          value={state}
          hideLabel
          onChange={setState}
          options={[["", "All states"], ["creating", "Waiting or starting"], ["running", "Running"], ["finished", "Finished"], ["error", "Failed or cancelled"]]}
        />
      </PageHead>
      {jobs.error ? <ErrorBox error={jobs.error} retry={() => void jobs.reload()} /> : null}
      {!jobs.data ? (
        jobs.error ? null : <Loading what="jobs" lines={6} />
      ) : items.length === 0 ? (
        <Empty title={state ? "No job in this state" : "No jobs yet"}>
          {state ? null : (
            <p>
              Submit one from a notebook cell: <code>%%mlp submit --runtime mpi --workers 2 --name digits</code>
            </p>
          )}
        </Empty>
      ) : (
        <>
          <Table stack caption="My jobs, newest first" columns={columns} rows={items} rowKey={(j) => j.uid || j.name} />
          {jobs.data.next && limit < MOST ? (
            <p class="mlp-more">
              <button type="button" class="mlp-button" onClick={() => setLimit((n) => Math.min(MOST, n + PAGE))}>
                Show more
              </button>
            </p>
          ) : null}
          {keepingWords(session.keeping) ? <p class="mlp-dim mlp-kept">{keepingWords(session.keeping)}</p> : null}
          {jobs.data.next && limit >= MOST ? <p class="mlp-dim mlp-more">{`The ${MOST} newest; choose a state to see older ones.`}</p> : null}
        </>
      )}
    </>
  );
}

export function JobPage({ user, name }: { user: string; name: string }): JSX.Element {
  const { client, session, say } = useHub();
  const live = useMemo(() => liveJob(client, user, name), [client, user, name]);
  useEffect(() => {
    live.start();
    return () => live.stop();
  }, [live]);
  return (
    <>
      <p class="mlp-crumbs">
        {user === session.username ? <Link to={href()}>Jobs</Link> : session.admin ? <Link to={href("admin", "queue")}>Queue</Link> : <span>{user}</span>}
        <span aria-hidden="true"> / </span>
        {user === session.username ? name : `${name} of ${user}`}
      </p>
      <div class="mlp-monitor-box">
        <Monitor
          client={client}
          live={live}
          user={user}
          name={name}
          page
          onAction={(action, job) => {
            if (action === "delete") {
              say(`Job ${name} is being deleted`);
              go(href());
            } else if (action === "resubmit" && job.name !== name) {
              say(`Submitted again as ${job.name}`);
              go(href("jobs", job.user, job.name));
            }
          }}
        />
      </div>
    </>
  );
}
