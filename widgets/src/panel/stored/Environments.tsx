/** Environments of my teams: made by pasting requirements, shown with how their making goes, deleted after a question. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, ErrorBox, Loading, type Column } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { Tail } from "../../components/basics/Tail";
import { paths } from "../../core/service/api";
import { ENVIRONMENT_FIELDS, environmentFieldOf, environmentState, hasTorch, packagesTold, readEnvironment, TORCH } from "../../core/stored/environment";
import { bytes, clock } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import type { EnvironmentDetail, EnvironmentInfo } from "../../core/service/wire";
import { href, Link } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { Field, Lines, PageHead, Select } from "../../components/basics/form";
import { OwnForm, useForm } from "../shared/OwnForm";
import { OwnList } from "../shared/OwnList";

const EVERY = 3000;
const MINUTE = 60_000;

function State({ of }: { of: EnvironmentInfo }): JSX.Element {
  const { kind, words } = environmentState(of);
  return <Chip kind={kind}>{words}</Chip>;
}

export function EnvironmentsPage(): JSX.Element {
  const { session } = useHub();
  const [tenant, setTenant] = useState(session.tenants[0] ?? "");
  return (
    <>
      <PageHead title={t("Environments")} sub={session.images ? t("Images in which a team's jobs and notebook servers run, instead of the platform's") : t("Packages that jobs and notebooks of a team have in addition to the platform's")}>
        {session.tenants.length > 1 ? <Select label={t("Team")} name="tenant" value={tenant} onChange={setTenant} options={session.tenants.map((name) => [name, name])} /> : null}
      </PageHead>
      {tenant ? <Environments key={tenant} tenant={tenant} /> : null}
    </>
  );
}

function Environments({ tenant }: { tenant: string }): JSX.Element {
  const { client, session, say } = useHub();
  const environments = useLoad(`environments ${tenant}`, () => client.list<EnvironmentInfo>(paths.environments(tenant)), EVERY);
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<EnvironmentInfo | null>(null);
  const { run, busy, error, clear } = useRun(async () => {
    setRemoving(null);
    await environments.reload();
  });
  const now = useNow(MINUTE);
  const may = (e: EnvironmentInfo): boolean => session.admin || session.tenant_admin.includes(tenant) || e.user === session.username;
  const columns: Column<EnvironmentInfo>[] = [
    { title: t("Name"), kind: "name", cell: (e) => <Link to={href("environments", tenant, e.name)}>{e.name}</Link> },
    { title: t("State"), kind: "tight", cell: (e) => <State of={e} /> },
    {
      title: session.images ? t("Image") : t("Packages"),
      kind: "grow",
      cell: (e) => <span class="mlp-clip" title={e.message || e.image || packagesTold(e.packages, 100)}>{e.message ? e.message.split("\n")[0] : e.image || packagesTold(e.packages)}</span>,
    },
    ...(session.images ? [] : [{ title: t("Size"), kind: "num", cell: (e: EnvironmentInfo) => bytes(e.size) } as const]),
    { title: t("Made by"), kind: "low", cell: (e) => e.user },
    { title: t("Made"), kind: "num", cell: (e) => clock(e.created_at, now) },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (e) =>
        may(e) && e.state !== "deleting" ? (
          <button type="button" class="mlp-button mlp-small mlp-quiet-danger" disabled={busy} onClick={() => setRemoving(e)} aria-label={t("Delete environment {name}", { name: e.name })}>
            {t("Delete")}
          </button>
        ) : null,
    },
  ];
  const items = environments.data?.items ?? [];
  const offers = !session.images && environments.data !== null && !items.some(hasTorch);
  return (
    <OwnList
      title={t("Environments of {tenant}", { tenant })}
      about={session.images ? t("The same image for everybody in the team; uses none of its storage") : t("Made once, and the same for everybody in the team; charged to the team's storage")}
      load={environments}
      words={{ loading: t("Loading environments"), none: t("This team has no environments yet"), caption: t("Environments of {tenant}", { tenant }) }}
      add={{ label: t("Create an environment"), open: () => setAdding(true) }}
      form={
        adding ? (
          <EnvironmentForm
            tenant={tenant}
            names={items.map((e) => e.name)}
            done={(made) => {
              setAdding(false);
              say(made.image ? t("Environment {name} is made", { name: made.name }) : t("Environment {name} is being made", { name: made.name }));
              void environments.reload();
            }}
            cancel={() => setAdding(false)}
          />
        ) : null
      }
      columns={columns}
      busy={busy}
      error={error}
      removing={
        removing && {
          title: t("Delete environment {name}?", { name: removing.name }),
          text: removing.jobs.length
            ? t("Jobs that have not ended use it: {jobs}. It stays until they end.", { jobs: removing.jobs.join(t(", ")) })
            : removing.servers.length && !removing.image
              ? t("Running notebook servers were started with it: {servers}. It stays until they end.", { servers: removing.servers.join(t(", ")) })
              : removing.image
                ? t("Jobs and notebook servers can no longer use it. Running servers keep it; the image stays in its registry.")
                : t("Jobs and notebook servers can no longer use it. Notebooks that run on it can fail."),
          yes: t("Delete"),
          onYes: () => void run(() => client.delete(paths.environment(tenant, removing.name)), t("Environment {name} is being deleted", { name: removing.name })),
          onNo: () => {
            setRemoving(null);
            clear();
          },
        }
      }
    >
      <p class="mlp-dim">{rich(t("Jobs use one with the option {command}, notebook servers with the field Environment of their start page"), { command: <code>%mlp submit train.py --env-name NAME</code> })}</p>
      {offers ? (
        <p class="mlp-dim">
          {t("PyTorch takes several GB, charged to the team's storage once")}{" "}
          <button
            type="button"
            class="mlp-button mlp-small"
            disabled={busy}
            onClick={() => void run(() => client.post<EnvironmentInfo>(paths.environments(tenant), TORCH), t("Environment {name} is being made", { name: TORCH.name }))}
          >
            {t("Create one with PyTorch")}
          </button>
        </p>
      ) : null}
    </OwnList>
  );
}

function EnvironmentForm({ tenant, names, done, cancel }: {
  tenant: string;
  names: string[];
  done: (made: EnvironmentInfo) => void;
  cancel: () => void;
}): JSX.Element {
  const { client, session } = useHub();
  const form = useForm({
    begin: () => ({ name: "", requirements: "", image: "" }),
    read: (texts) => readEnvironment(texts, names, session.images),
    send: async (read) => done(await client.post<EnvironmentInfo>(paths.environments(tenant), read.asked)),
    order: ENVIRONMENT_FIELDS,
    fieldOf: environmentFieldOf,
  });
  return (
    <OwnForm form={form} label={t("Create an environment for {tenant}", { tenant })} yes={t("Create")} doing={t("Creating")} cancel={cancel}>
      <Field {...form.given("name")} label={t("Name")} hint={t("The NAME in --env-name NAME")} autofocus />
      {session.images ? (
        <Field {...form.given("image")} label={t("Image")} hint={t("With its registry, and a tag or a digest: registry.example.org/team/train:1")} />
      ) : (
        <Lines {...form.given("requirements")} label={t("Requirements")} hint={t("Packages, one per line, such as pandas>=2.2; paste a requirements.txt")} />
      )}
    </OwnForm>
  );
}

export function EnvironmentPage({ tenant, name }: { tenant: string; name: string }): JSX.Element {
  const { client } = useHub();
  const path = paths.environment(tenant, name);
  const found = useLoad(path, () => client.get<EnvironmentDetail>(path), EVERY);
  const now = useNow(MINUTE);
  if (!found.data) return found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : <Loading what={t("Loading the environment")} lines={6} />;
  const { environment: e, requirements, lock, log } = found.data;
  const packages = Object.entries(e.packages);
  return (
    <>
      <PageHead title={e.name} sub={[t("Team {name}", { name: e.tenant }), packages.length ? n("1 package", "{n} packages", packages.length) : "", e.size ? bytes(e.size) : ""].filter(Boolean).join(" · ")} />
      {found.error ? <ErrorBox error={found.error} /> : null}
      <p>
        <State of={e} /> {t("By {user}, {time}", { user: e.user, time: clock(e.created_at, now) })}
      </p>
      {e.message ? <Tail text={e.message} label={t("Cause of the failure")} /> : null}
      {e.state === "ready" ? <p>{rich(t("Use it: {command}"), { command: <code>{`%mlp submit train.py --env-name ${e.name}`}</code> })}</p> : null}
      {e.shared_with.length ? <p>{t("The same files as {names}; charged once", { names: e.shared_with.join(t(", ")) })}</p> : null}
      {e.jobs.length || e.servers.length ? <p>{t("Used by {names}", { names: [...e.jobs, ...e.servers].join(t(", ")) })}</p> : null}
      <section class="mlp-card" aria-label={t("Composition")}>
        {e.image ? <Text title={t("Image")} text={e.image} /> : <Text title={t("Requirements")} text={requirements} />}
        {log ? <Text title={t("How it was made")} text={log} /> : null}
        {lock ? <Text title={t("Lock")} text={lock} closed /> : null}
      </section>
    </>
  );
}

function Text({ title, text, closed }: { title: string; text: string; closed?: boolean }): JSX.Element {
  return (
    <details class="mlp-fold" open={!closed}>
      <summary>{title}</summary>
      <pre class="mlp-tail" tabIndex={0} aria-label={title}>{text}</pre>
    </details>
  );
}
