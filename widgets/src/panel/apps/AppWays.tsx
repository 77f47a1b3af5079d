/** Ways into an app: its address, how programs ask it, its keys, and who may open it. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox, type Column } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { useId, useLoad, useNow } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { paths } from "../../core/service/api";
import { nameFault } from "../../core/apps/appform";
import { askedBy, curlOf, KEY, pythonOf } from "../../core/apps/appexamples";
import { clock } from "../../core/format/format";
import { t } from "../../core/format/language";
import type { Application, AppKeyShown, SharedApp } from "../../core/service/wire";
import { base } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { Copy } from "../shared/Copy";
import { Field, Select } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";
import { OwnList } from "../shared/OwnList";

const EVERY = 20_000;
type Named = { user: string; name: string };
export type Access = Application["access"];

/** Where an app answers, below this address of the hub's: the panel's own base has its path. */
export const addressOf = (a: Named): string => new URL(`${base}apps/${encodeURIComponent(a.user)}/${encodeURIComponent(a.name)}/`, location.origin).href;

/** Whether a model answers, which has no page of its own: people are shown how to ask it. */
export const servesModel = (a: Application | SharedApp): boolean => ("serves" in a ? a.serves === "model" : a.command === null);

export const accessWords = (access: Access): string =>
  ({ private: t("only its owner"), tenant: t("members of its team"), hub: t("everybody with an account") })[access];

/** The address to copy, and texts that ask it. */
export function Asking({ of }: { of: Application | SharedApp }): JSX.Element {
  const { session } = useHub();
  const url = addressOf(of);
  const asked = { url, model: servesModel(of) ? askedBy(of.model_name) : "" };
  const mine = of.user === session.username;
  const examples: [string, string, string][] = [
    [t("In a shell"), curlOf(asked), t("Copy the command")],
    [t("In Python"), pythonOf(asked), t("Copy the program")],
  ];
  return (
    <section class="mlp-card" id="ask" aria-label={t("How to ask it")}>
      <div class="mlp-card-head">
        <h2>{t("How to ask it")}</h2>
        <span class="mlp-dim">
          {mine
            ? rich(t("Replace {key} with one of its keys below, or with one of your tokens"), { key: <code>{KEY}</code> })
            : rich(t("Replace {key} with one of your tokens, or with a key that {user} gives you"), { key: <code>{KEY}</code>, user: of.user })}
        </span>
      </div>
      <div class="mlp-copied">
        <code>{url}</code>
        <Copy text={url} label={t("Copy the address")} />
        {servesModel(of) ? null : (
          <a class="mlp-button mlp-small" href={url}>
            {t("Open")}
          </a>
        )}
      </div>
      {examples.map(([title, text, label]) => (
        <div key={title} class="mlp-example">
          <div class="mlp-section-head">
            <h3>{title}</h3>
            <Copy text={text} label={label} />
          </div>
          <pre tabIndex={0} aria-label={title}>{text}</pre>
        </div>
      ))}
    </section>
  );
}

/** Who may open it with an account; its owner says. */
export function AccessCard({ of, changed }: { of: Application; changed: () => Promise<void> }): JSX.Element {
  const { client, session } = useHub();
  const [moved, setMoved] = useState<Access | null>(null);
  const { run, error } = useRun(async () => {
    await changed();
    setMoved(null);
  });
  const change = (access: string): void => {
    setMoved(access as Access);
    void run(() => client.put(`${paths.app(of.user, of.name)}/access`, { access }), t("{name} may be opened by {who}", { name: of.name, who: accessWords(access as Access) })).finally(() => setMoved(null));
  };
  return (
    <section class="mlp-card" aria-label={t("Access")}>
      <div class="mlp-card-head">
        <h2>{t("Access")}</h2>
        <span class="mlp-dim">{t("Users of the hub who can open it, in addition to its owner; keys work independently of this")}</span>
      </div>
      {error ? <ErrorBox error={error} /> : null}
      {of.user === session.username && of.phase !== "deleting" ? (
        <Select label={t("Access")} hideLabel name="access" value={moved ?? of.access} onChange={change} options={(["private", "tenant", "hub"] as const).map((one) => [one, accessWords(one)])} />
      ) : (
        <p>{accessWords(of.access)}</p>
      )}
    </section>
  );
}

/** Keys: made and shown once, listed by name, revoked after a question. */
export function AppKeys({ of }: { of: Application }): JSX.Element {
  const { client, session } = useHub();
  const now = useNow(60_000);
  const path = `${paths.app(of.user, of.name)}/keys`;
  const keys = useLoad(path, () => client.list<AppKeyShown>(path), EVERY);
  const [making, setMaking] = useState(false);
  const [made, setMade] = useState<AppKeyShown | null>(null);
  const [ending, setEnding] = useState<string | null>(null);
  const { run, busy, error, clear } = useRun(async () => {
    setEnding(null);
    await keys.reload();
  });
  const mine = of.user === session.username && of.phase !== "deleting";
  const columns: Column<AppKeyShown>[] = [
    { title: t("Key"), kind: "name", cell: (one) => one.name },
    { title: t("Made"), kind: "grow", cell: (one) => t("{time} by {name}", { time: clock(one.made_at, now), name: one.made_by }) },
    { title: t("Last used"), kind: "num", cell: (one) => (one.used_at ? clock(one.used_at, now) : t("never")) },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (one) =>
        mine ? (
          <button type="button" class="mlp-button mlp-small mlp-quiet-danger" disabled={busy} onClick={() => setEnding(one.name)} aria-label={t("Revoke {name}", { name: one.name })}>
            {t("Revoke")}
          </button>
        ) : null,
    },
  ];
  return (
    <>
      <OwnList
        title={t("Keys")}
        about={t("A program with one of these keys can use this app and nothing else")}
        load={keys}
        words={{ loading: t("Loading keys"), none: t("No keys yet"), caption: t("Keys, by name") }}
        add={mine ? { label: t("New key"), open: () => setMaking(true) } : null}
        form={
          making ? (
            <KeyForm
              path={path}
              taken={(keys.data?.items ?? []).map((one) => one.name)}
              done={(key) => {
                setMaking(false);
                setMade(key);
                void keys.reload();
              }}
              cancel={() => setMaking(false)}
            />
          ) : null
        }
        columns={columns}
        busy={busy}
        error={error}
        removing={
          ending === null
            ? null
            : {
                title: t("Revoke key {name}?", { name: ending }),
                text: t("Programs that use it are refused within seconds."),
                yes: t("Revoke"),
                onYes: () => void run(() => client.delete(`${path}/${encodeURIComponent(ending)}`), t("Key {name} is revoked", { name: ending })),
                onNo: () => {
                  setEnding(null);
                  clear();
                },
              }
        }
      />
      {made ? <MadeKey of={made} close={() => setMade(null)} /> : null}
    </>
  );
}

function KeyForm({ path, taken, done, cancel }: { path: string; taken: string[]; done: (made: AppKeyShown) => void; cancel: () => void }): JSX.Element {
  const { client } = useHub();
  const form = useForm({
    begin: () => ({ name: "" }),
    read: ({ name }) => {
      const fault = taken.includes(name) ? t("A key of this name exists; revoke it first") : nameFault(name);
      return { asked: fault ? null : { name }, faults: fault ? { name: fault } : {} };
    },
    send: async ({ asked }) => done(await client.post<AppKeyShown>(path, asked)),
    order: ["name"] as const,
    fieldOf: () => null,
  });
  return (
    <OwnForm form={form} label={t("New key")} yes={t("Make key")} doing={t("Making")} cancel={cancel}>
      <Field {...form.given("name")} label={t("Name")} placeholder="builds" hint={t("Shows which program uses it")} autofocus />
    </OwnForm>
  );
}

function MadeKey({ of, close }: { of: AppKeyShown; close: () => void }): JSX.Element {
  const id = useId("key");
  const key = of.key ?? "";
  return (
    <Dialog title={t("Key {name}", { name: of.name })} onClose={close}>
      <div class="mlp-dialog-text">
        <div class="mlp-field">
          <label for={id}>{t("You see it only once; copy it now.")}</label>
          <input id={id} readOnly value={key} data-autofocus onFocus={(e) => e.currentTarget.select()} autocomplete="off" spellcheck={false} />
        </div>
      </div>
      <div class="mlp-dialog-buttons">
        <Copy text={key} label={t("Copy the key")} large />
        <button type="button" class="mlp-button mlp-primary" onClick={close}>
          {t("I have stored it")}
        </button>
      </div>
    </Dialog>
  );
}
