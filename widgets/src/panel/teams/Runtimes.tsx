/** Runtimes of a tenant: its admins register, change and remove them, a platform admin approves and disables. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, type Column } from "../../components/basics/basics";
import { useLoad } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { readRuntime, RUNTIME_FIELDS, runtimeFieldOf, runtimeState, runtimeTexts, runtimeTold, startsWords } from "../../core/teams/runtime";
import type { RuntimeInfo } from "../../core/service/wire";
import { useHub, useRun } from "../shared/context";
import { Field, Lines } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";
import { OwnList } from "../shared/OwnList";
import { t } from "../../core/format/language";

const EVERY = 20_000;

export function Runtimes({ tenant, manages }: { tenant: string; manages: boolean }): JSX.Element {
  const { client, session, say } = useHub();
  const runtimes = useLoad(`runtimes ${tenant}`, () => client.list<RuntimeInfo>(paths.runtimes(tenant)), EVERY);
  const [form, setForm] = useState<{ of: RuntimeInfo | null } | null>(null);
  const [removing, setRemoving] = useState<RuntimeInfo | null>(null);
  const items = runtimes.data?.items ?? [];
  const { run, busy, error, clear } = useRun(async () => {
    setRemoving(null);
    await runtimes.reload();
  });
  const columns: Column<RuntimeInfo>[] = [
    { title: t("Runtime"), kind: "name", cell: (r) => r.name },
    {
      title: t("Description"),
      kind: "grow",
      cell: (r) => (
        <>
          {r.title}
          {r.description ? <span class="mlp-dim">{` · ${r.description}`}</span> : null}
          <div>
            <code>{startsWords(r)}</code>
          </div>
        </>
      ),
    },
    { title: t("State"), cell: (r) => <Chip kind={runtimeState(r).kind}>{runtimeState(r).words}</Chip> },
    { title: t("Changed by"), kind: "low", cell: (r) => r.changed_by ?? "" },
  ];
  if (manages) {
    const button = (verb: string, label: string, act: () => void, danger = false): JSX.Element => (
      <button type="button" class={`mlp-button mlp-small${danger ? " mlp-quiet-danger" : ""}`} disabled={busy} onClick={act} aria-label={label}>
        {verb}
      </button>
    );
    const set = (r: RuntimeInfo, verb: "approve" | "disable"): void =>
      void run(() => client.post<RuntimeInfo>(paths.runtimeAction(tenant, r.name, verb), {}), runtimeTold(r.name, verb === "approve" ? "approved" : "disabled"));
    columns.push({
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (r) => (
        <>
          {session.admin && r.state !== "approved" ? button(t("Approve"), t("Approve runtime {name}", { name: r.name }), () => set(r, "approve")) : null}
          {session.admin && r.state !== "disabled" ? button(t("Disable"), t("Disable runtime {name}", { name: r.name }), () => set(r, "disable"), true) : null}
          {button(t("Edit"), t("Edit runtime {name}", { name: r.name }), () => setForm({ of: r }))}
          {button(t("Remove"), t("Remove runtime {name}", { name: r.name }), () => setRemoving(r), true)}
        </>
      ),
    });
  }
  const stop = (): void => {
    setRemoving(null);
    clear();
  };
  return (
    <OwnList
      title={t("Runtimes")}
      about={t("Ways to start ranks, in addition to those of the platform; for members of this team")}
      load={runtimes}
      words={{ loading: t("Loading runtimes"), none: t("This team has not registered any runtimes"), caption: t("Runtimes of {tenant}", { tenant }) }}
      add={manages ? { label: t("Register a runtime"), open: () => setForm({ of: null }) } : null}
      form={
        form ? (
          <RuntimeForm
            key={form.of?.name ?? ""}
            tenant={tenant}
            of={form.of}
            names={items.map((r) => r.name)}
            done={(made) => {
              setForm(null);
              say(runtimeTold(made.name, made.state));
              void runtimes.reload();
            }}
            cancel={() => setForm(null)}
          />
        ) : null
      }
      columns={columns}
      busy={busy}
      error={error}
      removing={
        removing && {
          title: t("Remove runtime {name}?", { name: removing.name }),
          text: t("New jobs cannot use it. Jobs that were submitted with it keep it."),
          yes: t("Remove"),
          onYes: () => void run(() => client.delete(paths.runtime(tenant, removing.name)), t("Runtime {name} removed", { name: removing.name })),
          onNo: stop,
        }
      }
    />
  );
}

function RuntimeForm({ tenant, of, names, done, cancel }: {
  tenant: string;
  of: RuntimeInfo | null;
  names: string[];
  done: (made: RuntimeInfo) => void;
  cancel: () => void;
}): JSX.Element {
  const { client } = useHub();
  const form = useForm({
    begin: () => runtimeTexts(of),
    read: (texts) => readRuntime(texts, names, of),
    send: async (read) => done(await client.put<RuntimeInfo>(paths.runtime(tenant, read.name), read.asked)),
    order: RUNTIME_FIELDS,
    fieldOf: runtimeFieldOf,
  });
  const { given } = form;
  const label = of ? t("Edit runtime {name}", { name: of.name }) : t("Register a runtime for {tenant}", { tenant });
  return (
    <OwnForm form={form} label={label} yes={of ? t("Save") : t("Register")} doing={t("Saving")} cancel={cancel}>
      <div class="mlp-form-grid">
        <Field {...given("name")} label={t("Name")} placeholder="ps-workers" hint={t("The NAME in --runtime NAME")} autofocus={!of} disabled={of !== null} />
        <Field {...given("title")} label={t("Title")} autofocus={of !== null} />
        <Field {...given("description")} label={t("Description")} />
      </div>
      <div class="mlp-form-grid">
        <Lines {...given("program")} label={t("Command of a rank")} hint={t("One argument per line, without a shell; {place} is the job's program", { place: "{program}" })} />
        <Lines {...given("env")} label={t("Variables")} hint={t("NAME=VALUE, one per line")} />
        <Lines {...given("launcher")} label={t("Launcher")} hint={t("A command that starts the ranks itself and contains {place}; usually empty", { place: "{start_rank}" })} />
      </div>
      <div class="mlp-form-grid">
        <Field {...given("roles")} label={t("Roles")} hint={t("Such as chief 1, worker, ps; a role without a number gets all other ranks")} />
        <Field {...given("ends_with")} label={t("Ends with role")} placeholder={t("none")} hint={t("The job ends when the first rank of this role ends")} />
        <Field {...given("needs")} label={t("Needs package")} placeholder={t("none")} hint={t("Its name in Python")} />
        <Field {...given("success")} label={t("Exit statuses of success")} hint={t("Separated by commas")} />
        <Field {...given("image")} label={t("Image")} placeholder={t("none")} hint={t("Image of its ranks' containers, where jobs are pods")} />
      </div>
    </OwnForm>
  );
}
