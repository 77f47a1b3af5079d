/** Secrets that open object stores, of a person or of a team: set, set anew and removed; nobody is shown what is in one. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Column } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { clock } from "../../core/format/format";
import { t } from "../../core/format/language";
import { readSecret, SECRET_FIELDS, secretTexts } from "../../core/stored/secrets";
import type { Secret } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";
import { Field } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";
import { OwnList } from "../shared/OwnList";

const EVERY = 20_000;

/** Whose secrets they are: a person's own, or a team's, which its members may use. */
export type Owner = { user: string } | { tenant: string };

export function Secrets({ of }: { of: Owner }): JSX.Element {
  const { client } = useHub();
  const now = useNow(60_000);
  const path = "user" in of ? paths.ownSecrets(of.user) : paths.teamSecrets(of.tenant);
  const secrets = useLoad(path, () => client.list<Secret>(path), EVERY);
  const [form, setForm] = useState<{ name: string } | null>(null);
  const [ending, setEnding] = useState<string | null>(null);
  const { run, busy, error, clear } = useRun(async () => {
    setEnding(null);
    await secrets.reload();
  });
  const columns: Column<Secret>[] = [
    { title: t("Secret"), kind: "name", cell: (one) => one.name },
    { title: t("Entries"), kind: "grow", cell: (one) => one.keys.join(", ") },
    { title: t("Set"), kind: "low", cell: (one) => t("{time} by {name}", { time: clock(one.changed_at, now), name: one.changed_by }) },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (one) => (
        <>
          <button type="button" class="mlp-button mlp-small" disabled={busy} onClick={() => setForm({ name: one.name })} aria-label={t("Set {name} again", { name: one.name })}>
            {t("Set again")}
          </button>
          <button type="button" class="mlp-button mlp-small mlp-quiet-danger" disabled={busy} onClick={() => setEnding(one.name)} aria-label={t("Remove {name}", { name: one.name })}>
            {t("Remove")}
          </button>
        </>
      ),
    },
  ];
  return (
    <OwnList
      title={t("Secrets")}
      about={"user" in of ? t("Your datasets are copied from object stores that these secrets open; their contents are never shown") : t("Datasets of the team's members use them to open object stores; their contents are never shown")}
      load={secrets}
      words={{ loading: t("Loading secrets"), none: t("No secrets yet"), caption: t("Secrets, by name") }}
      add={{ label: t("New secret"), open: () => setForm({ name: "" }) }}
      form={form ? <SecretForm key={form.name} path={path} name={form.name} done={() => (setForm(null), void secrets.reload())} cancel={() => setForm(null)} /> : null}
      columns={columns}
      busy={busy}
      error={error}
      removing={
        ending === null
          ? null
          : {
              title: t("Remove secret {name}?", { name: ending }),
              text: t("Its contents are deleted. Datasets that were copied with it stay, but are not fetched again without a secret."),
              yes: t("Remove"),
              onYes: () => void run(() => client.delete(paths.secret(path, ending)), t("Secret {name} removed", { name: ending })),
              onNo: () => {
                setEnding(null);
                clear();
              },
            }
      }
    />
  );
}

function SecretForm({ path, name, done, cancel }: { path: string; name: string; done: () => void; cancel: () => void }): JSX.Element {
  const { client, say } = useHub();
  const form = useForm({
    begin: () => secretTexts(name),
    read: readSecret,
    send: async (read) => {
      await client.put(paths.secret(path, read.name), read.asked);
      say(t("Secret {name} set", { name: read.name }));
      done();
    },
    order: SECRET_FIELDS,
    fieldOf: () => null,
  });
  return (
    <OwnForm form={form} label={name ? t("Set {name} again", { name }) : t("New secret")} yes={t("Set secret")} doing={t("Encrypting")} cancel={cancel}>
      <div class="mlp-form-grid">
        <Field {...form.given("name")} label={t("Name")} placeholder="lab" hint={t("A secret of the same name is replaced")} autofocus={!name} disabled={Boolean(name)} />
        <Field {...form.given("access_key_id")} label={t("Access key's id")} autofocus={Boolean(name)} />
        <Field {...form.given("secret_access_key")} type="password" label={t("Secret access key")} />
        <Field {...form.given("session_token")} type="password" label={t("Session token")} hint={t("Only if the store gave you one")} />
      </div>
    </OwnForm>
  );
}
