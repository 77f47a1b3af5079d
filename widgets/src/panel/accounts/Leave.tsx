/** Closing an account: what its owner has here, and what is to become of it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox, Loading } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { useLoad } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { t } from "../../core/format/language";
import { leaveLines } from "../../core/accounts/leave";
import type { Leaving } from "../../core/service/wire";
import { useHub } from "../shared/context";
import { Select } from "../../components/basics/form";

export function Leave({ name, run, busy, error, close }: {
  name: string;
  run: (work: () => Promise<unknown>, said?: string) => Promise<void>;
  busy: boolean;
  error: JSX.Element | null;
  close: () => void;
}): JSX.Element {
  const { client } = useHub();
  const [jobs, setJobs] = useState("finish");
  const [files, setFiles] = useState("keep");
  const found = useLoad(`leaving ${name}`, () => client.get<Leaving>(paths.leaving(name)));
  return (
    <Dialog title={t("Deactivate {name}?", { name })} onClose={close}>
      {found.error ? <ErrorBox error={found.error} /> : null}
      {!found.data && !found.error ? <Loading what={t("Checking what {name} has here", { name })} lines={3} /> : null}
      {found.data ? (
        <ul class="mlp-dialog-text">
          {leaveLines(found.data, jobs, files).map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      ) : null}
      <div class="mlp-dialog-fields">
        <Select label={t("Jobs")} name="jobs" value={jobs} options={[["finish", t("Running jobs can finish")], ["stop", t("All stop")]]} onChange={setJobs} />
        <Select label={t("Files")} name="files" value={files} options={[["keep", t("Keep")], ["remove", t("Remove for good")]]} onChange={setFiles} />
      </div>
      {error}
      <div class="mlp-dialog-buttons">
        <button type="button" class="mlp-button" data-autofocus onClick={close}>
          {t("Cancel")}
        </button>
        <button type="button" class="mlp-button mlp-danger" disabled={busy || !found.data} onClick={() => void run(() => client.put(paths.leave(name, jobs, files)), t("{name} deactivated", { name }))}>
          {t("Deactivate")}
        </button>
      </div>
    </Dialog>
  );
}
