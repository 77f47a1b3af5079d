/** My models, and the page of one version: staged, deployed as an app, deleted. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Chip, Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { Confirm } from "../../components/basics/Dialog";
import { useLoad, useNow } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { paths } from "../../core/service/api";
import { capital } from "../../core/format/reasons";
import { bytes, clock } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import type { Model } from "../../core/service/wire";
import { go, href, Link } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { Files } from "../../components/monitor/Files";
import { DeployForm } from "../apps/DeployForm";
import { PageHead, Select } from "../../components/basics/form";

type ModelUse = Model["stage"];

const EVERY = 4000;
const PAGE = 100;
const MINUTE = 60_000;

const version = (m: Model): string => `${m.name}@${m.version}`;
const stages = (): [ModelUse, string][] => [["none", t("no stage")], ["staging", t("staging")], ["production", t("production")], ["archived", t("archived")]];
const stageWords = (stage: ModelUse): string => stages().find(([value]) => value === stage)?.[1] ?? stage;

function State({ of }: { of: Model }): JSX.Element {
  const [kind, text] = {
    creating: ["busy", t("being copied")],
    ready: ["good", t("ready")],
    error: ["bad", t("error")],
    deleting: ["idle", t("being deleted")],
  }[of.state] as [string, string];
  return <Chip kind={kind}>{text}</Chip>;
}

export function ModelsPage(): JSX.Element {
  const { client, session } = useHub();
  const models = useLoad("models", () => client.list<Model>(`${paths.models(session.username)}?limit=${PAGE}`), EVERY);
  const now = useNow(MINUTE);
  const columns: Column<Model>[] = [
    { title: t("Name"), kind: "name", cell: (m) => <Link to={href("models", m.user, version(m))}>{version(m)}</Link> },
    { title: t("State"), kind: "tight", cell: (m) => <State of={m} /> },
    { title: t("Stage"), kind: "tight", cell: (m) => (m.stage === "none" ? "" : stageWords(m.stage)) },
    { title: t("Note"), hideTitle: true, kind: "grow", cell: (m) => <span class="mlp-clip" title={m.message}>{m.message || m.src}</span> },
    { title: t("Format"), kind: "low", cell: (m) => m.format },
    { title: t("Size"), kind: "num", cell: (m) => bytes(m.size) },
    { title: t("Registered"), kind: "num", cell: (m) => clock(m.created_at, now) },
  ];
  const items = models.data?.items ?? [];
  return (
    <>
      <PageHead title={t("Models")} sub={models.data ? (models.data.next ? n("1 version (the newest)", "{n} versions (the newest)", items.length) : n("1 version", "{n} versions", items.length)) : undefined} />
      {models.error ? <ErrorBox error={models.error} retry={() => void models.reload()} /> : null}
      {!models.data ? (
        models.error ? null : <Loading what={t("Loading models")} lines={6} />
      ) : items.length === 0 ? (
        <Empty title={t("No models yet")}>
          <p>{rich(t("Register what a job wrote: {command}"), { command: <code>%mlp models register digits jobs/digits-sweep.1/ckpt/model.joblib</code> })}</p>
        </Empty>
      ) : (
        <Table stack caption={t("My models, newest first")} columns={columns} rows={items} rowKey={(m) => m.uid} />
      )}
    </>
  );
}

export function ModelPage({ user, name }: { user: string; name: string }): JSX.Element {
  const { client, session } = useHub();
  const path = paths.model(user, name);
  const model = useLoad(path, () => client.get<Model>(path), EVERY);
  const [moved, setMoved] = useState<ModelUse | null>(null);
  const { run, busy, error } = useRun(async () => {
    await model.reload();
    setMoved(null);
  });
  const [asking, setAsking] = useState<"deploy" | "delete" | null>(null);
  const removing = useRun(async () => {
    setAsking(null);
    go(href("models"));
  });
  const now = useNow(MINUTE);
  const m = model.data;
  if (!m) return model.error ? <ErrorBox error={model.error} retry={() => void model.reload()} /> : <Loading what={t("Loading the model")} lines={6} />;
  const mine = user === session.username;
  const metrics = Object.entries(m.lineage.metrics);
  const change = (stage: string): void => {
    setMoved(stage as ModelUse);
    void run(() => client.put<Model>(`${path}:stage`, { stage }), t("{name}: {stage}", { name: version(m), stage: stageWords(stage as ModelUse) }));
  };
  return (
    <>
      <PageHead title={version(m)} sub={[m.format, bytes(m.size), n("1 file", "{n} files", m.files)].filter(Boolean).join(" · ")}>
        {mine && m.state === "ready" ? <Select label={t("Stage")} name="stage" value={moved ?? m.stage} onChange={change} options={stages()} /> : null}
        {mine && m.state === "ready" && asking !== "deploy" ? (
          <button type="button" class="mlp-button mlp-primary" onClick={() => setAsking("deploy")}>
            {t("Deploy")}
          </button>
        ) : null}
        {mine && m.state !== "deleting" ? (
          <button type="button" class="mlp-button mlp-quiet-danger" onClick={() => setAsking("delete")}>
            {t("Delete")}
          </button>
        ) : null}
      </PageHead>
      {model.error || error ? <ErrorBox error={model.error ?? error} /> : null}
      {asking === "deploy" ? <DeployForm model={m} cancel={() => setAsking(null)} /> : null}
      <p class="mlp-standing">
        <State of={m} /> {capital(m.message)}
      </p>
      <p class="mlp-standing">{t("From {src}, {time}", { src: m.src, time: clock(m.created_at, now) })}</p>
      {metrics.length ? <p class="mlp-standing">{t("Metrics: {metrics}", { metrics: metrics.map(([key, value]) => `${key} ${value}`).join(t(", ")) })}</p> : null}
      {m.pickled ? <p class="mlp-dim mlp-standing">{t("Loading it runs code that is in it: load only models that you trust.")}</p> : null}
      {busy || m.state !== "ready" ? null : <Files client={client} of={path} />}
      {asking === "delete" ? (
        <Confirm
          title={t("Delete model {name}?", { name: version(m) })}
          text={<p>{t("This version's files, {size}, are removed for good. Other versions stay.", { size: bytes(m.size) })}</p>}
          yes={t("Delete")}
          busy={removing.busy}
          error={removing.error ? <ErrorBox error={removing.error} /> : null}
          onYes={() => void removing.run(() => client.delete(paths.model(user, version(m))), t("{name} is being deleted", { name: version(m) }))}
          onNo={() => {
            setAsking(null);
            removing.clear();
          }}
        />
      ) : null}
    </>
  );
}
