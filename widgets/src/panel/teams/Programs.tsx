/** Accounts of a tenant for its programs: made, given another token, and ended by its admins; a token is shown once. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, type Column } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { useId, useLoad, useNow } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { givenWords, longestFirst, NEW_FIELDS, newFieldOf, newTexts, readNew, readTurn, tokenWords, TURN_FIELDS, turnFieldOf, turnTexts } from "../../core/teams/programs";
import type { ServiceAccount, ServiceTokenGiven, TokenInfo } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";
import { Field } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";
import { OwnList } from "../shared/OwnList";
import { t } from "../../core/format/language";

const EVERY = 20_000;

export function Programs({ tenant }: { tenant: string }): JSX.Element {
  const { client } = useHub();
  const now = useNow(10_000);
  const accounts = useLoad(`services ${tenant}`, () => client.list<ServiceAccount>(paths.services(tenant)), EVERY);
  const [form, setForm] = useState<{ of: string | null } | null>(null);
  const [given, setGiven] = useState<ServiceTokenGiven | null>(null);
  const [ending, setEnding] = useState<string | null>(null);
  const { run, busy, error, clear } = useRun(async () => {
    setEnding(null);
    await accounts.reload();
  });
  const done = (made: ServiceTokenGiven): void => {
    setForm(null);
    setGiven(made);
    void accounts.reload();
  };
  const columns: Column<ServiceAccount>[] = [
    {
      title: t("Account"),
      kind: "name",
      cell: (of) => (
        <>
          {of.name}
          <span class="mlp-dim mlp-under">{t("works as {user}, made by {name}", { user: of.user, name: of.made_by })}</span>
        </>
      ),
    },
    { title: t("Tokens"), kind: "grow", cell: (of) => <Tokens of={longestFirst(of)} now={now} /> },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (of) => (
        <>
          <button type="button" class="mlp-button mlp-small" disabled={busy} onClick={() => setForm({ of: of.name })} aria-label={t("New token for {name}", { name: of.name })}>
            {t("New token")}
          </button>
          <button type="button" class="mlp-button mlp-small mlp-quiet-danger" disabled={busy} onClick={() => setEnding(of.name)} aria-label={t("End account {name}", { name: of.name })}>
            {t("End")}
          </button>
        </>
      ),
    },
  ];
  const names = (accounts.data?.items ?? []).map((of) => of.name);
  return (
    <OwnList
      title={t("Accounts for programs")}
      about={t("Builds and nightly runs use these accounts. They can submit their own jobs in this team's quota, and nothing else")}
      load={accounts}
      words={{ loading: t("Loading accounts for programs"), none: t("This team has no accounts for programs"), caption: t("Accounts for programs of {tenant}", { tenant }) }}
      add={{ label: t("New account"), open: () => setForm({ of: null }) }}
      form={
        !form ? null : form.of === null ? (
          <NewForm tenant={tenant} names={names} done={done} cancel={() => setForm(null)} />
        ) : (
          <TurnForm key={form.of} tenant={tenant} name={form.of} done={done} cancel={() => setForm(null)} />
        )
      }
      columns={columns}
      busy={busy}
      error={error}
      removing={
        ending !== null
          ? {
              title: t("End account {name}?", { name: ending }),
              text: t("All its tokens become invalid. Running jobs continue until they end, waiting jobs are suspended. Its name and files stay with this team."),
              yes: t("End account"),
              onYes: () => void run(() => client.delete(paths.service(tenant, ending)), t("Account {name} ended", { name: ending })),
              onNo: () => {
                setEnding(null);
                clear();
              },
            }
          : null
      }
    >
      {given ? <Given of={given} close={() => setGiven(null)} /> : null}
    </OwnList>
  );
}

function Tokens({ of, now }: { of: TokenInfo[]; now: number }): JSX.Element {
  if (!of.length) return <Chip kind="bad">{t("no valid token")}</Chip>;
  return (
    <ul class="mlp-tokens">
      {of.map((token) => {
        const { used, ends } = tokenWords(token, now);
        return (
          <li key={token.id}>
            {token.ends_soon ? <Chip kind="wait">{ends}</Chip> : ends} <span class="mlp-dim">{`· ${used}`}</span>
          </li>
        );
      })}
    </ul>
  );
}

function NewForm({ tenant, names, done, cancel }: { tenant: string; names: string[]; done: (made: ServiceTokenGiven) => void; cancel: () => void }): JSX.Element {
  const { client } = useHub();
  const form = useForm({
    begin: newTexts,
    read: (texts) => readNew(texts, names),
    send: async (read) => done(await client.post<ServiceTokenGiven>(paths.services(tenant), read.asked)),
    order: NEW_FIELDS,
    fieldOf: newFieldOf,
  });
  return (
    <OwnForm form={form} label={t("New account for a program of {tenant}", { tenant })} yes={t("Make account and token")} doing={t("Making")} cancel={cancel}>
      <div class="mlp-form-grid">
        <Field {...form.given("name")} label={t("Name")} placeholder="nightly" hint={t("It works as the user svc-NAME; nobody can log in as that user")} autofocus />
        <Field {...form.given("days")} label={t("Days its token is valid")} hint={t("365 at most; make another one before it ends")} />
      </div>
    </OwnForm>
  );
}

function TurnForm({ tenant, name, done, cancel }: { tenant: string; name: string; done: (made: ServiceTokenGiven) => void; cancel: () => void }): JSX.Element {
  const { client } = useHub();
  const form = useForm({
    begin: turnTexts,
    read: readTurn,
    send: async (read) => done(await client.put<ServiceTokenGiven>(paths.turnService(tenant, name), read.asked)),
    order: TURN_FIELDS,
    fieldOf: turnFieldOf,
  });
  return (
    <OwnForm form={form} label={t("New token for {name}", { name })} yes={t("Make token")} doing={t("Making")} cancel={cancel}>
      <div class="mlp-form-grid">
        <Field {...form.given("days")} label={t("Days the new token is valid")} hint={t("365 at most; make another one before it ends")} autofocus />
        <Field {...form.given("grace")} label={t("Hours the old tokens stay valid")} hint={t("0: the old tokens end at once, for example after one was lost")} />
      </div>
    </OwnForm>
  );
}

function Given({ of, close }: { of: ServiceTokenGiven; close: () => void }): JSX.Element {
  const { say } = useHub();
  const id = useId("token");
  const copies = "clipboard" in navigator; // not where the page came without TLS
  const copy = (): void => void navigator.clipboard.writeText(of.token).then(() => say(t("Token copied")));
  return (
    <Dialog title={t("Token of {user}", { user: of.user })} onClose={close}>
      <div class="mlp-dialog-text">
        <div class="mlp-field">
          <label for={id}>{t("Its program sets it as MLP_TOKEN")}</label>
          <input id={id} readOnly value={of.token} data-autofocus onFocus={(e) => e.currentTarget.select()} autocomplete="off" spellcheck={false} />
        </div>
        {givenWords(of, Date.now()).map((line) => (
          <p key={line}>{line}</p>
        ))}
      </div>
      <div class="mlp-dialog-buttons">
        {copies ? (
          <button type="button" class="mlp-button" onClick={copy}>
            {t("Copy")}
          </button>
        ) : null}
        <button type="button" class="mlp-button mlp-primary" onClick={close}>
          {t("I have stored it")}
        </button>
      </div>
    </Dialog>
  );
}
