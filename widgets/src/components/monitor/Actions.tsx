/** What may be done with a job just now. What cannot be undone asks first; refusals are shown where one clicked. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { paths, type Client } from "../../core/service/api";
import { t } from "../../core/format/language";
import { actions, type ActionName } from "../../core/jobs/phase";
import { reference, title } from "../../core/jobs/runs";
import type { Job } from "../../core/service/wire";
import { ErrorBox } from "../basics/basics";
import { Confirm } from "../basics/Dialog";

const LABEL: Record<ActionName, () => string> = {
  suspend: () => t("Suspend"), resume: () => t("Resume"), cancel: () => t("Cancel job"), resubmit: () => t("Resubmit"), delete: () => t("Delete"),
};

/** What is asked before it is done, and what is lost. */
const LOSS: Partial<Record<ActionName, (title: string) => { ask: string; loss: string }>> = {
  cancel: (job) => ({
    ask: t("Cancel {job}?", { job }), loss: t("The ranks of {job} are stopped for good. Its output so far stays.", { job }),
  }),
  delete: (job) => ({
    ask: t("Delete {job}?", { job }), loss: t("The record of {job}, its logs, curves and the files of its job directory are removed. This cannot be undone.", { job }),
  }),
};

/** Do one action; a deleted job's answer is its last record. */
export function act(client: Client, job: Job, action: ActionName): Promise<Job> {
  return action === "delete"
    ? client.delete<Job>(paths.job(job.user, reference(job)))
    : client.put<Job>(paths.jobAction(job.user, reference(job), action));
}

export function Actions({ client, job, onDone, disabled }: {
  client: Client;
  job: Job;
  /** Told the action and the service's answer. */
  onDone: (action: ActionName, job: Job) => void;
  disabled: boolean;
}): JSX.Element | null {
  const [busy, setBusy] = useState<ActionName | null>(null);
  const [asking, setAsking] = useState<ActionName | null>(null);
  const [error, setError] = useState<unknown>(null);
  const go = async (action: ActionName): Promise<void> => {
    setBusy(action);
    setError(null);
    try {
      const answer = await act(client, job, action);
      setAsking(null);
      onDone(action, answer);
    } catch (e) {
      setError(e);
    } finally {
      setBusy(null);
    }
  };
  const click = (action: ActionName): void => {
    setError(null);
    if (LOSS[action] && !(action === "cancel" && job.phase === "queued")) setAsking(action);
    else void go(action);
  };
  const possible = actions(job.phase);
  return (
    <div class="mlp-actions" role="group" aria-label={t("Actions on {job}", { job: title(job) })}>
      {possible.map((action) => (
        <button
          key={action}
          type="button"
          class={`mlp-button mlp-small${LOSS[action] ? " mlp-quiet-danger" : ""}`}
          disabled={disabled || busy !== null}
          onClick={() => click(action)}
        >
          {LABEL[action]()}
        </button>
      ))}
      {error && !asking ? <ErrorBox error={error} /> : null}
      {asking ? (
        <Confirm
          title={LOSS[asking]?.(title(job)).ask ?? ""}
          text={<p>{LOSS[asking]?.(title(job)).loss}</p>}
          yes={LABEL[asking]()}
          no={asking === "cancel" ? t("Let it continue") : t("Cancel")}
          busy={busy !== null}
          error={error ? <ErrorBox error={error} /> : null}
          onYes={() => void go(asking)}
          onNo={() => {
            setAsking(null);
            setError(null);
          }}
        />
      ) : null}
    </div>
  );
}
