/** A script or a notebook as a job, with the options of `mlp submit` that most jobs need. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ErrorBox } from "../components/basics/basics";
import { Dialog } from "../components/basics/Dialog";
import { useLoad, useSettled } from "../components/basics/hooks";
import { paths, type Client } from "../core/service/api";
import { t } from "../core/format/language";
import { reference, title } from "../core/jobs/runs";
import { COUNTED, ROWS } from "../core/format/dimensions";
import { isNotebook, offerPath, read, textsOf, type FieldName } from "../core/jobs/submitform";
import { memoryWords } from "../core/jobs/used";
import type { Job, Offer, RuntimeInfo } from "../core/service/wire";
import { Field, Select } from "../components/basics/form";

export function SubmitForm({ client, path, onDone, onClose, pageOf }: {
  client: Client;
  /** From the home on. */
  path: string;
  onDone: (job: Job) => void;
  onClose: () => void;
  /** Where a job's page is, if that is to be told because no tab opens. */
  pageOf: ((user: string, name: string) => string) | null;
}): JSX.Element {
  const [texts, setTexts] = useState(() => textsOf(path));
  const [tried, setTried] = useState(false);
  const [busy, setBusy] = useState(false);
  const [made, setMade] = useState<Job | null>(null);
  const [error, setError] = useState<unknown>(null);
  // one key for one form: what is sent again because no answer came makes no second job
  const key = useMemo(() => crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`, [texts]);
  const me = useLoad("me", () => client.session());
  const runtimes = useLoad("runtimes", async () => (await client.list<RuntimeInfo>("/runtimes")).items);
  const { body, faults } = read(path, texts);
  const asked = useSettled(body ? offerPath(body) : "", 500);
  const offer = useLoad(asked, () => (asked ? client.get<Offer>(asked) : Promise.resolve(null)));
  const earlier = memoryWords(offer.data?.memory);
  const offered = [...new Set((runtimes.data ?? []).filter((one) => one.state === "approved" && (!one.tenant || !texts.tenant || one.tenant === texts.tenant)).map((one) => one.name))];
  const field = (name: FieldName, label: string, hint = "", placeholder = ""): JSX.Element => (
    <Field
      name={name}
      label={label}
      value={texts[name]}
      hint={hint}
      placeholder={placeholder}
      error={tried ? (faults[name] ?? null) : null}
      autofocus={name === "name"}
      onInput={(value) => setTexts((old) => ({ ...old, [name]: value }))}
    />
  );
  const submit = async (): Promise<void> => {
    setTried(true);
    if (!body || !me.data) return;
    setBusy(true);
    setError(null);
    try {
      const job = await client.post<Job>(paths.jobs(me.data.username), body, { "Idempotency-Key": key });
      setMade(job);
      onDone(job);
    } catch (e) {
      setError(e);
      setBusy(false);
    }
  };
  if (made) {
    return (
      <Dialog title={t("Submitted as {job}", { job: title(made) })} onClose={onClose}>
        <div class="mlp-dialog-buttons">
          <button type="button" class="mlp-button" onClick={onClose}>{t("Close")}</button>
          {pageOf ? <a class="mlp-button mlp-primary" data-autofocus href={pageOf(made.user, reference(made))} target="_blank" rel="noopener" onClick={onClose}>{t("Show job")}</a> : null}
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog title={t("Submit {file} as a job", { file: path })} onClose={onClose}>
      <form
        class="mlp-lab-form"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div class="mlp-form-grid">
          {field("name", t("Name"), t("a name that was used before makes this its next run"))}
          {isNotebook(path) ? null : (
            <>
              <Select
                label={t("Runtime")}
                name="runtime"
                value={texts.runtime}
                onChange={(runtime) => setTexts((old) => ({ ...old, runtime }))}
                options={[["", t("by the number of workers")], ...offered.map((name): [string, string] => [name, name])]}
              />
              {field("workers", t("Workers"), t("4, or 2:8 for as many as fit"))}
            </>
          )}
          {field("cpu", t("CPU"), t("cores of each"))}
          {field("ram", t("Memory"), earlier ? t("of each, such as 2 GiB, or auto. {earlier}.", { earlier }) : t("of each, such as 2 GiB"))}
          {COUNTED.map((d) => field(d as FieldName, ROWS[d].label(), ROWS[d].ofRank?.(), t("default")))}
          {field("gpu", t("GPU"), t("devices of each"))}
          <Select
            label={t("Team")}
            name="tenant"
            value={texts.tenant}
            onChange={(tenant) => setTexts((old) => ({ ...old, tenant }))}
            options={[["", t("yours")], ...(me.data?.tenants ?? []).map((name): [string, string] => [name, name])]}
          />
          {field("time_limit", t("Time limit"), t("such as 30m or 2h"), t("none"))}
          {field("params", t("Parameters"), t("such as lr=0.1 epochs=5"), t("none"))}
        </div>
        {error || me.error ? <ErrorBox error={error ?? me.error} /> : null}
        <div class="mlp-dialog-buttons">
          <button type="button" class="mlp-button" onClick={onClose}>{t("Cancel")}</button>
          <button type="submit" class="mlp-button mlp-primary" disabled={busy || !me.data}>{t("Submit job")}</button>
        </div>
      </form>
    </Dialog>
  );
}
