/** What a job wrote and is a model, registered from its page. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad, useView } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { paths } from "../../core/service/api";
import { modelName, nameFault } from "../../core/apps/appform";
import { n, t } from "../../core/format/language";
import type { LiveJob } from "../../core/stream/live";
import { isFinal } from "../../core/jobs/phase";
import type { FoundModel, Model } from "../../core/service/wire";
import { go, href, Link } from "../shared/address";
import { useHub } from "../shared/context";
import { Field, Select } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";

const EVERY = 30_000;

export function RegisterModel({ live, user, name }: { live: LiveJob; user: string; name: string }): JSX.Element | null {
  const { client, session } = useHub();
  const { job } = useView(live.store);
  const path = paths.jobModels(user, name);
  const ended = job !== null && isFinal(job.phase);
  const found = useLoad(`${path} ${ended}`, () => client.list<FoundModel>(path), ended ? 0 : EVERY);
  const [open, setOpen] = useState(false);
  const mine = user === session.username;
  const some = mine && (found.data?.items.length ?? 0) > 0;
  const models = useLoad(`models of ${job?.uid} ${some}`, () => (some ? client.all<Model>(paths.models(user)) : Promise.resolve(null)));
  if (!mine || !some || !models.data) return null;
  const versions = models.data.items.filter((one) => one.lineage.job_uid === job?.uid && one.state !== "deleting");
  const items = (found.data?.items ?? []).filter((one) => !versions.some((made) => made.state !== "error" && made.src === one.src));
  return (
    <section class="mlp-card" aria-label={t("Register as a model")}>
      <div class="mlp-card-head">
        <h2>{items.length ? n("1 model was found in its files", "{n} models were found in its files", items.length) : t("Its model is registered")}</h2>
        <span class="mlp-dim">{items.map((one) => `${one.path} (${one.format})`).join(t(", "))}</span>
        {open || !items.length ? null : (
          <button type="button" class="mlp-button mlp-small mlp-head-end" onClick={() => setOpen(true)}>
            {t("Register as a model")}
          </button>
        )}
      </div>
      {versions.map((one) => (
        <p key={one.uid}>
          {rich(one.state === "error" ? t("{model} could not be registered: {why}") : t("Registered as {model}"), {
            model: <Link to={href("models", one.user, `${one.name}@${one.version}`)}>{`${one.name}@${one.version}`}</Link>, why: one.message,
          })}
        </p>
      ))}
      {open && items.length ? <RegisterForm items={items} job={name} cancel={() => setOpen(false)} /> : null}
    </section>
  );
}

function RegisterForm({ items, job, cancel }: { items: FoundModel[]; job: string; cancel: () => void }): JSX.Element {
  const { client, session, say } = useHub();
  const [src, setSrc] = useState(items[0]?.src ?? "");
  const form = useForm({
    begin: () => ({ name: modelName(job) }),
    read: ({ name }) => {
      const wrong = nameFault(name);
      return { asked: wrong ? null : { name }, faults: wrong ? { name: wrong } : {} };
    },
    send: async ({ asked }) => {
      const made = await client.post<Model>(paths.models(session.username), { ...asked, src });
      say(t("{name} is being copied", { name: `${made.name}@${made.version}` }));
      go(href("models", made.user, `${made.name}@${made.version}`));
    },
    order: ["name"] as const,
    fieldOf: () => null,
  });
  return (
    <OwnForm form={form} label={t("Register as a model")} yes={t("Register")} doing={t("Registering")} cancel={cancel}>
      <div class="mlp-form-grid">
        <Field {...form.given("name")} label={t("Name")} hint={t("If a model of this name exists, this is its next version")} autofocus />
        {items.length > 1 ? <Select label={t("What")} name="src" value={src} onChange={setSrc} options={items.map((one) => [one.src, `${one.path} (${one.format})`])} /> : null}
      </div>
    </OwnForm>
  );
}
