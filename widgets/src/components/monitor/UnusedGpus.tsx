/** A running job does not use its GPUs: what follows of it, and a button that keeps it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { n } from "../../core/format/language";
import { countsDown, KEEP_HOURS, unusedGpus } from "../../core/jobs/idle";
import { reference } from "../../core/jobs/runs";
import { paths, type Client } from "../../core/service/api";
import type { Job } from "../../core/service/wire";
import { ErrorBox, Icon } from "../basics/basics";

export function UnusedGpus({ client, job, disabled, onKept }: { client: Client; job: Job; disabled: boolean; onKept: (job: Job) => void }): JSX.Element | null {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const words = unusedGpus(job);
  if (!words) return null;
  const keep = async (): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      onKept(await client.put<Job>(paths.jobAction(job.user, reference(job), "keep"), { hours: KEEP_HOURS }));
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  const soon = countsDown(job);
  return (
    <>
      <div class={`mlp-note ${soon ? "mlp-note-wait" : "mlp-note-idle"}`} role="status">
        <Icon name={soon ? "warn" : "wait"} />
        <div class="mlp-note-text">{words}</div>
        {soon ? (
          <button type="button" class="mlp-button mlp-small" disabled={disabled || busy} onClick={() => void keep()}>
            {n("Keep it 1 hour", "Keep it {n} hours", KEEP_HOURS)}
          </button>
        ) : null}
      </div>
      {error ? <ErrorBox error={error} /> : null}
    </>
  );
}
