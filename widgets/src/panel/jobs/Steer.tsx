/** What may be changed of a job that has not ended: priority, time limit, and for its team's admins its place in the queue. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { paths, type Client } from "../../core/service/api";
import { priorityName } from "../../core/jobs/decisions";
import { isOpen, isWaiting } from "../../core/jobs/phase";
import { reference, title } from "../../core/jobs/runs";
import { seconds as parseDuration } from "../../core/jobs/submitform";
import type { Job, QueueEntry, Session } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";
import { Field, Select } from "../../components/basics/form";
import { t } from "../../core/format/language";

/** What is known of it, on its own page or in a queue. */
type Steered = Pick<QueueEntry, "user" | "name" | "run" | "tenant" | "phase" | "priority" | "put_first">;
const CLASSES = ["low", "normal", "high"];

const leads = (session: Session, job: Steered): boolean => session.admin || session.tenant_admin.includes(job.tenant);
/** Whether somebody may change anything of it: its owner while it waits, an admin of its team until it ends. */
export const maySteer = (session: Session, job: Steered): boolean => isOpen(job.phase) && (leads(session, job) || (job.user === session.username && isWaiting(job.phase)));

const updated = (client: Client, job: Steered, body: Record<string, unknown>): Promise<Job> => client.put<Job>(paths.jobAction(job.user, reference(job), "update"), body);

export function Steer({ job, done }: { job: Steered; done: () => Promise<void> }): JSX.Element | null {
  const { client, session, show } = useHub();
  const { run, busy, error, clear } = useRun(done);
  if (!maySteer(session, job)) return null;
  const admin = leads(session, job);
  const change = (body: Record<string, unknown>, said: string): void => void run(() => updated(client, job, body), said);
  const name = title(job);
  return (
    <span class="mlp-steer">
      <button type="button" class="mlp-button mlp-small" aria-label={t("Change {job}", { job: name })} onClick={() => {
        clear();
        show(<Form job={job} raises={admin} done={done} onClose={() => show(null)} />);
      }}>{t("Change …")}</button>
      {admin && isWaiting(job.phase) ? (
        job.put_first
          ? <button type="button" class="mlp-button mlp-small" disabled={busy} aria-label={t("Own place: {job}", { job: name })} onClick={() => change({ place: "own" }, t("{job} has its own place in the queue again", { job: name }))}>{t("Own place")}</button>
          : <button type="button" class="mlp-button mlp-small" disabled={busy} aria-label={t("Put first: {job}", { job: name })} onClick={() => change({ place: "first" }, t("{job} is first in the queue of {tenant}", { job: name, tenant: job.tenant }))}>{t("Put first")}</button>
      ) : null}
      {error ? <ErrorBox error={error} /> : null}
    </span>
  );
}

/** The job may end while it is filled in: then the service says so, and what was typed stays to be read. */
function Form({ job, raises, done, onClose }: { job: Steered; raises: boolean; done: () => Promise<void>; onClose: () => void }): JSX.Element {
  const { client } = useHub();
  const { run, busy, error } = useRun(async () => {
    onClose();
    await done();
  });
  const [priority, setPriority] = useState(job.priority);
  const [limit, setLimit] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  // who only owns it may lower it
  const classes = raises ? CLASSES : CLASSES.slice(0, CLASSES.indexOf(job.priority) + 1);
  const send = (): void => {
    const given = limit.trim();
    const seconds = given === "none" ? null : parseDuration(given);
    if (given && given !== "none" && seconds === null) return setFault(t("a length of time such as 90s, 30m, 2h or 1h30m, or none"));
    const body = { ...(priority !== job.priority ? { priority } : {}), ...(given ? { time_limit: seconds } : {}) };
    if (!Object.keys(body).length) return onClose();
    void run(() => updated(client, job, body), t("{job} is changed", { job: title(job) }));
  };
  return (
    <Dialog title={t("Change {job}", { job: title(job) })} onClose={onClose}>
      <form class="mlp-form" noValidate onSubmit={(e) => {
        e.preventDefault();
        send();
      }}>
        <Select label={t("Priority")} name="priority" value={priority} onChange={setPriority} options={classes.map((one) => [one, priorityName(one)])} />
        <Field label={t("Time limit")} name="time_limit" value={limit} placeholder={t("as it is")} hint={t("such as 30m or 2h, or none; empty does not change it")} error={fault} onInput={(v) => {
          setLimit(v);
          setFault(null);
        }} />
        {error ? <ErrorBox error={error} /> : null}
        <div class="mlp-dialog-buttons">
          <button type="button" class="mlp-button" onClick={onClose}>{t("Close")}</button>
          <button type="submit" class="mlp-button mlp-primary" disabled={busy}>{t("Change")}</button>
        </div>
      </form>
    </Dialog>
  );
}
