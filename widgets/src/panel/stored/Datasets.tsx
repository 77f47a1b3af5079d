/** My datasets, and the page of one: its files, uploaded, fetched and removed. */
import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { useLoad, useNow } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { paths, type Client } from "../../core/service/api";
import { dataUrl, listData, nameFor, removeData, withoutTop, type DataEntry, type Upload } from "../../core/stored/data";
import { capital } from "../../core/format/reasons";
import { bytes, clock } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import type { Dataset, Secret } from "../../core/service/wire";
import { go, href, Link } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { Field, PageHead, Select } from "../../components/basics/form";
import { Secrets } from "./Secrets";
import { Drop, GoingUp, upload, type Going } from "./Upload";

const EVERY = 4000;
const PAGE = 100;
const MINUTE = 60_000;
const NAMED = /^[a-z][a-z0-9.-]{0,49}$/;

const isThrough = (of: Dataset): boolean => of.source?.mode === "read-through";

function State({ of }: { of: Dataset }): JSX.Element {
  const progress = { progress: of.progress };
  const coming = of.source ? t("being copied, {progress} %", progress) : t("being uploaded, {progress} %", progress);
  const [kind, text] = {
    creating: ["busy", isThrough(of) ? t("being examined") : coming],
    ready: ["good", isThrough(of) ? t("read through") : t("ready")],
    error: ["bad", isThrough(of) ? t("cannot be read") : t("incomplete, {progress} %", progress)],
    deleting: ["idle", t("being deleted")],
  }[of.state] as [string, string];
  return <Chip kind={kind}>{text}</Chip>;
}

/** What there is to know of it: what the hub says, else that its owner has left its team. */
function noteOf(of: Dataset, left: boolean): string {
  if (of.message || !left) return of.message;
  return t("You left team {name}. It still counts in the storage of that team, and your jobs in other teams cannot use it: delete it, or push it again.", { name: of.tenant });
}

/** Delete a dataset, also one whose upload nobody ended. */
async function remove(client: Client, of: Dataset): Promise<void> {
  const path = paths.dataset(of.user, of.name);
  if (of.state === "creating") await client.put(`${path}:heartbeat`, { state: "error", progress: of.progress });
  await client.delete(path);
}

function Question({ title, children, busy, yes, no }: { title: string; children: ComponentChildren; busy: boolean; yes: () => void; no: () => void }): JSX.Element {
  return (
    <Dialog title={title} onClose={no}>
      <p class="mlp-dialog-text">{children}</p>
      <div class="mlp-dialog-buttons">
        <button type="button" class="mlp-button" data-autofocus onClick={no}>
          {t("Cancel")}
        </button>
        <button type="button" class="mlp-button mlp-danger" disabled={busy} onClick={yes}>
          {t("Delete")}
        </button>
      </div>
    </Dialog>
  );
}

export function DatasetsPage(): JSX.Element {
  const { client, session } = useHub();
  const found = useLoad("datasets", () => client.list<Dataset>(`${paths.datasets(session.username)}?limit=${PAGE}`), EVERY);
  const [fresh, setFresh] = useState<Upload[] | null>(null);
  const [copied, setCopied] = useState(false);
  const [asked, setAsked] = useState<Dataset | null>(null);
  const { run, busy, error } = useRun(async () => {
    setAsked(null);
    await found.reload();
  });
  const now = useNow(MINUTE);
  const isLeft = (d: Dataset): boolean => !session.tenants.includes(d.tenant);
  const columns: Column<Dataset>[] = [
    { title: t("Name"), kind: "name", cell: (d) => (d.state === "deleting" ? d.name : <Link to={href("datasets", d.user, d.name)}>{d.name}</Link>) },
    { title: t("State"), kind: "tight", cell: (d) => <State of={d} /> },
    { title: t("Note"), hideTitle: true, kind: "grow", cell: (d) => <span class="mlp-clip" title={noteOf(d, isLeft(d))}>{noteOf(d, isLeft(d))}</span> },
    { title: t("Team"), kind: "low", cell: (d) => <>{d.tenant} {isLeft(d) ? <Chip kind="wait">{t("you left")}</Chip> : null}</> },
    { title: t("Size"), kind: "num", cell: (d) => bytes(d.used) },
    { title: t("Made"), kind: "num", cell: (d) => clock(d.made_at, now) },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (d) =>
        d.state === "deleting" ? null : (
          <button type="button" class="mlp-button mlp-small mlp-quiet-danger" disabled={busy} onClick={() => setAsked(d)} aria-label={t("Delete {name}", { name: d.name })}>
            {t("Delete")}
          </button>
        ),
    },
  ];
  const items = found.data?.items ?? [];
  return (
    <>
      <PageHead title={t("Datasets")} sub={found.data ? n("1 dataset", "{n} datasets", items.length) : undefined} />
      {found.error || error ? <ErrorBox error={found.error ?? error} retry={() => void found.reload()} /> : null}
      {!found.data ? (
        found.error ? null : <Loading what={t("Loading datasets")} lines={6} />
      ) : items.length === 0 ? (
        <Empty title={t("No datasets yet")}>
          <p>{rich(t("Drop files below, or upload them from the machine that has them: {command}"), { command: <code>%mlp data push photos</code> })}</p>
        </Empty>
      ) : (
        <Table stack caption={t("My datasets, by name")} columns={columns} rows={items} rowKey={(d) => d.name} />
      )}
      {copied ? (
        <CopiedDataset taken={items.map((d) => d.name)} close={() => setCopied(false)} done={found.reload} />
      ) : (
        <p class="mlp-tools">
          <button type="button" class="mlp-button" onClick={() => setCopied(true)}>
            {t("Use an object store")}
          </button>
        </p>
      )}
      {fresh ? (
        <NewDataset uploads={fresh} taken={items.map((d) => d.name)} close={() => setFresh(null)} done={found.reload} />
      ) : (
        <Drop chosen={setFresh}>{t("Drop files or a directory here: they become a dataset")}</Drop>
      )}
      <Secrets of={{ user: session.username }} />
      {asked ? (
        <Question title={t("Delete dataset {name}?", { name: asked.name })} busy={busy} no={() => setAsked(null)} yes={() => void run(() => remove(client, asked), t("{name} is being deleted", { name: asked.name }))}>
          {t("Its files, {size}, are removed for good.", { size: bytes(asked.used) })}
        </Question>
      ) : null}
    </>
  );
}

function NewDataset({ uploads, taken, close, done }: { uploads: Upload[]; taken: string[]; close: () => void; done: () => Promise<void> }): JSX.Element {
  const { client, session, say } = useHub();
  const [name, setName] = useState(nameFor(uploads));
  const [tenant, setTenant] = useState(session.tenants[0] ?? "");
  const [going, setGoing] = useState<Going | null>(null);
  const [error, setError] = useState<unknown>(null);
  const size = uploads.reduce((sum, u) => sum + u.file.size, 0);
  const clash = taken.includes(name) ? t("A dataset of this name exists; open it to add files to it") : null;
  const wrong = clash ?? (NAMED.test(name) ? null : t("a-z, 0-9, - and ., beginning with a letter, 50 characters at most"));
  const start = async (): Promise<void> => {
    setError(null);
    try {
      await client.post<Dataset>(paths.datasets(session.username), { name, size, tenant: tenant || null });
      await done();
      await upload(client, session.username, name, "", withoutTop(uploads), setGoing);
      say(t("{name} is complete", { name }));
      close();
      go(href("datasets", session.username, name));
    } catch (e) {
      setError(e);
      setGoing(null);
    }
    await done();
  };
  if (going) return <GoingUp of={going} all={uploads.length} />;
  return (
    <section class="mlp-section mlp-upload" aria-label={t("New dataset")}>
      <h2>{t("New dataset")}</h2>
      <p>{n("1 file, {size}", "{n} files, {size}", uploads.length, { size: bytes(size) })}</p>
      {error ? <ErrorBox error={error} /> : null}
      <Field label={t("Name")} name="name" value={name} onInput={setName} error={wrong} autofocus />
      {session.tenants.length > 1 ? <Select label={t("Team")} name="tenant" value={tenant} onChange={setTenant} options={session.tenants.map((one) => [one, one])} /> : null}
      <p class="mlp-tools">
        <button type="button" class="mlp-button mlp-primary" disabled={wrong !== null} onClick={() => void start()}>
          {t("Upload")}
        </button>
        <button type="button" class="mlp-button" onClick={close}>
          {t("Cancel")}
        </button>
      </p>
    </section>
  );
}

function CopiedDataset({ taken, close, done }: { taken: string[]; close: () => void; done: () => Promise<void> }): JSX.Element {
  const { client, session } = useHub();
  const [name, setName] = useState("");
  const [url, setUrl] = useState("s3://");
  const [endpoint, setEndpoint] = useState("");
  const [secret, setSecret] = useState("");
  const [mode, setMode] = useState("copy");
  const [region, setRegion] = useState("");
  const [tenant, setTenant] = useState(session.tenants[0] ?? "");
  const { run, busy, error } = useRun(done);
  const known = useLoad(`secrets ${tenant}`, async () => {
    const of = [paths.ownSecrets(session.username), ...(tenant ? [paths.teamSecrets(tenant)] : [])];
    const lists = await Promise.all(of.map((path) => client.list<Secret>(path)));
    return [...new Set(lists.flatMap((list) => list.items.map((one) => one.name)))].sort();
  });
  const clash = taken.includes(name) ? t("This name is already used; choose another one") : null;
  const wrong = clash ?? (!name || NAMED.test(name) ? null : t("a-z, 0-9, - and ., beginning with a letter, 50 characters at most"));
  const start = async (): Promise<void> => {
    const source = { url, endpoint: endpoint || null, secret: secret || null, region: region || null, mode };
    await client.post<Dataset>(paths.datasets(session.username), { name, size: 0, tenant: tenant || null, source });
    close();
  };
  return (
    <section class="mlp-section mlp-upload" aria-label={t("Use an object store")}>
      <h2>{t("Use an object store")}</h2>
      {error ? <ErrorBox error={error} /> : null}
      <Field label={t("Name")} name="name" value={name} onInput={setName} error={wrong} autofocus />
      <Field label={t("Source, such as s3://BUCKET/PREFIX")} name="url" value={url} onInput={setUrl} />
      <Field label={t("Endpoint; empty: Amazon's")} name="endpoint" value={endpoint} onInput={setEndpoint} />
      <Field label={t("Secret that opens it, yours or your team's; empty: open to everybody")} name="secret" value={secret} onInput={setSecret} choices={known.data ?? []} />
      <Select
        label={t("Files stored here")}
        name="mode"
        value={mode}
        onChange={setMode}
        options={[
          ["copy", t("all: it is copied")],
          ["read-through", t("only files that jobs name: it is read through")],
        ]}
      />
      {mode === "copy" ? null : <Field label={t("Region of the bucket; empty: us-east-1")} name="region" value={region} onInput={setRegion} />}
      {session.tenants.length > 1 ? <Select label={t("Team")} name="tenant" value={tenant} onChange={setTenant} options={session.tenants.map((one) => [one, one])} /> : null}
      <p class="mlp-tools">
        <button type="button" class="mlp-button mlp-primary" disabled={busy || wrong !== null || !name} onClick={() => void run(start, mode === "copy" ? t("{name} is being copied", { name }) : t("{name} is being examined", { name }))}>
          {mode === "copy" ? t("Copy") : t("Add")}
        </button>
        <button type="button" class="mlp-button" onClick={close}>
          {t("Cancel")}
        </button>
      </p>
    </section>
  );
}

export function DatasetPage({ user, name }: { user: string; name: string }): JSX.Element {
  const { client, session } = useHub();
  const path = paths.dataset(user, name);
  const found = useLoad(path, () => client.get<Dataset>(path), EVERY);
  const [asked, setAsked] = useState(false);
  const { run, busy, error } = useRun(async () => go(href("datasets")));
  const again = useRun(found.reload);
  const now = useNow(MINUTE);
  const d = found.data;
  if (!d) return found.error ? <ErrorBox error={found.error} retry={() => void found.reload()} /> : <Loading what={t("Loading the dataset")} lines={6} />;
  const mine = user === session.username && d.state !== "deleting";
  return (
    <>
      <PageHead title={name} sub={[d.tenant, bytes(d.used), t("made {time}", { time: clock(d.made_at, now) })].join(" · ")}>
        {mine && d.source && d.state !== "creating" && !(isThrough(d) && d.state === "ready") ? (
          <button type="button" class="mlp-button" disabled={again.busy} onClick={() => void again.run(() => client.put(`${path}:sync`), isThrough(d) ? t("{name} is being examined", { name }) : t("{name} is being copied", { name }))}>
            {isThrough(d) ? t("Check again") : t("Fetch what changed")}
          </button>
        ) : null}
        {mine ? (
          <button type="button" class="mlp-button mlp-quiet-danger" disabled={busy} onClick={() => setAsked(true)}>
            {t("Delete")}
          </button>
        ) : null}
      </PageHead>
      {found.error || error || again.error ? <ErrorBox error={found.error ?? error ?? again.error} /> : null}
      <p class="mlp-standing">
        <State of={d} /> {capital(d.message)}
      </p>
      {d.source ? <p class="mlp-standing">{isThrough(d) ? t("Read through from {url}; its size counts only the files that jobs use now", { url: d.source.url }) : t("A copy of {url}", { url: d.source.url })}</p> : null}
      {d.state === "deleting" || (isThrough(d) && d.state !== "ready") ? null : <DataFiles of={d} writes={mine && !isThrough(d) && !(d.source && d.state === "creating")} changed={found.reload} />}
      {asked ? (
        <Question title={t("Delete dataset {name}?", { name })} busy={busy} no={() => setAsked(false)} yes={() => void run(() => remove(client, d), t("{name} is being deleted", { name }))}>
          {t("Its files, {size}, are removed for good.", { size: bytes(d.used) })}
        </Question>
      ) : null}
    </>
  );
}

function DataFiles({ of, writes, changed }: { of: Dataset; writes: boolean; changed: () => Promise<void> }): JSX.Element {
  const { client, say } = useHub();
  const [way, setWay] = useState<string[]>([]);
  const [going, setGoing] = useState<{ at: Going; all: number } | null>(null);
  const [asked, setAsked] = useState<DataEntry | null>(null);
  const directory = way.join("/");
  const at = (name: string): string => dataUrl(client, of.user, of.name, [...way, name].join("/"));
  const url = dataUrl(client, of.user, of.name, directory);
  const [pages, setPages] = useState(1);
  const files = useLoad(`data ${url} ${pages}`, () => listData(client, url, pages));
  const enter = (to: string[]): void => {
    setPages(1);
    setWay(to);
  };
  const { run, busy, error, clear } = useRun(async () => {
    setAsked(null);
    setGoing(null);
    await Promise.all([files.reload(), changed()]);
  });
  const now = useNow(MINUTE);
  const send = (uploads: Upload[]): void =>
    void run(async () => {
      try {
        await upload(client, of.user, of.name, directory, uploads, (going) => setGoing({ at: going, all: uploads.length }));
      } finally {
        setGoing(null);
        void files.reload();
      }
      say(n("1 file uploaded", "{n} files uploaded", uploads.length));
    });
  const columns: Column<DataEntry>[] = [
    {
      title: t("Name"),
      kind: "name",
      cell: (e) =>
        e.directory ? (
          <button type="button" class="mlp-button mlp-small" onClick={() => enter([...way, e.name])}>
            {`${e.name}/`}
          </button>
        ) : (
          <a class="mlp-link" href={at(e.name)} download={e.name}>
            {e.name}
          </a>
        ),
    },
    { title: t("Size"), kind: "num", cell: (e) => (e.directory ? "" : bytes(e.size)) },
    { title: t("Written"), kind: "num", cell: (e) => clock(e.modified, now) },
    {
      title: t("Actions"),
      hideTitle: true,
      kind: "num",
      cell: (e) =>
        writes ? (
          <button type="button" class="mlp-button mlp-small mlp-quiet-danger" disabled={busy} onClick={() => setAsked(e)} aria-label={t("Delete {name}", { name: e.name })}>
            {t("Delete")}
          </button>
        ) : null,
    },
  ];
  return (
    <section class="mlp-section" aria-label={t("Files")}>
      <h2>{t("Files")}</h2>
      {way.length ? (
        <p class="mlp-crumbs">
          <button type="button" class="mlp-button mlp-small" onClick={() => enter(way.slice(0, -1))}>
            {t("Up")}
          </button>{" "}
          <code>{directory}</code>
        </p>
      ) : null}
      {files.error || error ? <ErrorBox error={files.error ?? error} retry={() => (clear(), void files.reload())} /> : null}
      {!files.data ? (
        files.error ? null : <Loading what={t("Loading files")} lines={3} />
      ) : files.data.entries.length === 0 ? (
        <Empty title={t("No files here")} />
      ) : (
        <Table stack caption={directory ? t("Files in {directory}", { directory }) : t("Files")} columns={columns} rows={files.data.entries} rowKey={(e) => e.name} />
      )}
      {files.data?.next ? (
        <p class="mlp-tools">
          {n("1 file is shown, and there are more.", "{n} files are shown, and there are more.", files.data.entries.length)}{" "}
          <button type="button" class="mlp-button mlp-small" onClick={() => setPages(pages + 1)}>
            {t("Show more")}
          </button>
        </p>
      ) : null}
      {going ? <GoingUp of={going.at} all={going.all} /> : writes ? <Drop chosen={send}>{t("Drop files or directories here")}</Drop> : null}
      {asked ? (
        <Question title={t("Delete {name}?", { name: asked.name })} busy={busy} no={() => setAsked(null)} yes={() => void run(() => removeData(client, at(asked.name)), t("{name} deleted", { name: asked.name }))}>
          {asked.directory ? t("It is removed for good, with all its contents.") : t("It is removed for good.")}
        </Question>
      ) : null}
    </section>
  );
}
