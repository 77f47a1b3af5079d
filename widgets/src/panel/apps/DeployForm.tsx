/** A model deployed as an app: what `mlp apps deploy` asks for, with its defaults. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { useLoad } from "../../components/basics/hooks";
import { ApiError, paths } from "../../core/service/api";
import { nameFault, replicasOf } from "../../core/apps/appform";
import { t } from "../../core/format/language";
import type { Application, EnvironmentInfo, Model } from "../../core/service/wire";
import { go, href } from "../shared/address";
import { accessWords, type Access } from "./AppWays";
import { useHub } from "../shared/context";
import { Field, Select } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";

type Texts = { name: string; replicas: string };

export function DeployForm({ model, cancel }: { model: Model; cancel: () => void }): JSX.Element {
  const { client, session, say } = useHub();
  const [access, setAccess] = useState<Access>("tenant");
  const [environment, setEnvironment] = useState("");
  const environments = useLoad(`environments ${model.tenant}`, () => client.list<EnvironmentInfo>(paths.environments(model.tenant)));
  const ready = (environments.data?.items ?? []).filter((one) => one.state === "ready").map((one) => one.name);
  const [there, setThere] = useState(""); // the name of an app that is there already
  const form = useForm({
    begin: (): Texts => ({ name: model.name, replicas: "1" }),
    read: ({ name, replicas }) => {
      const count = replicasOf(replicas);
      const wrong = nameFault(name);
      const faults: Partial<Record<keyof Texts, string>> = {
        ...(wrong ? { name: wrong } : {}),
        ...(count === null ? { replicas: t("A number from 1 to 100, or MIN:MAX such as 0:2") } : {}),
      };
      return { asked: wrong || count === null ? null : { name, replicas: count }, faults };
    },
    send: async ({ asked }) => {
      const replace = asked.name === there;
      try {
        const made = await client.post<Application>(paths.apps(session.username), { ...asked, model_name: `${model.name}@${model.version}`, tenant: model.tenant, access, replace, ...(environment ? { env_name: environment } : {}) });
        say(t("{name} is being started", { name: made.name }));
        go(href("app", made.user, made.name));
      } catch (error) {
        if (error instanceof ApiError && error.reason === "Conflict" && !replace) setThere(asked.name);
        throw error;
      }
    },
    order: ["name", "replicas"] as const,
    fieldOf: () => null,
  });
  const replaces = Boolean(there) && form.given("name").value === there;
  return (
    <section class="mlp-card" aria-label={t("Deploy {name} as an app", { name: `${model.name}@${model.version}` })}>
      <div class="mlp-card-head">
        <h2>{t("Deploy {name} as an app", { name: `${model.name}@${model.version}` })}</h2>
        <span class="mlp-dim">{t("Each replica takes 1 core and 1 GiB of {team}; the mlp command has more options", { team: model.tenant })}</span>
      </div>
      {replaces ? <ErrorBox error={t("An app {name} already exists. If you continue, it serves this version from then on; its address and keys stay.", { name: there })} /> : null}
      <OwnForm form={replaces ? { ...form, refused: null } : form} label={t("Deploy")} yes={replaces ? t("Change that app") : t("Deploy")} doing={t("Deploying")} cancel={cancel}>
        <div class="mlp-form-grid">
          <Field {...form.given("name")} label={t("Name of the app")} autofocus />
          <Field {...form.given("replicas")} label={t("Replicas")} hint={t("0:2 sleeps while no requests come")} />
          <Select label={t("Access")} name="access" value={access} onChange={(one) => setAccess(one as Access)} options={(["private", "tenant", "hub"] as const).map((one) => [one, accessWords(one)])} />
          {ready.length ? <Select label={t("Environment")} name="env_name" value={environment} onChange={setEnvironment} options={[["", t("none: the platform's packages")], ...ready.map((name): [string, string] => [name, name])]} /> : null}
        </div>
      </OwnForm>
    </section>
  );
}
