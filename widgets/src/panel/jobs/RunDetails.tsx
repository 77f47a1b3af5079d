/** What a run was, on its job's page: parameters, commit, environment, data; its tags and note; and running it again. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ErrorBox } from "../../components/basics/basics";
import { Dialog } from "../../components/basics/Dialog";
import { useLoad } from "../../components/basics/hooks";
import { paths } from "../../core/service/api";
import { dataWords } from "../../core/charts/compare";
import { bytes } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { reference, title } from "../../core/jobs/runs";
import type { Job, ListedRun, RunDetail } from "../../core/service/wire";
import { go, href } from "../shared/address";
import { useHub, useRun } from "../shared/context";
import { Field, Lines } from "../../components/basics/form";

type Value = string | number | boolean;

/** What a person wrote of a parameter, as what it was: a number stays one. */
function valueOf(text: string, before: Value): Value {
  if (typeof before === "boolean") return text.trim().toLowerCase() === "true";
  if (typeof before === "number" && text.trim() && Number.isFinite(Number(text))) return Number(text);
  return text;
}

export function RunDetails({ user, name }: { user: string; name: string }): JSX.Element | null {
  const { client, session, say } = useHub();
  const of = useLoad(`run ${user} ${name}`, () => client.get<RunDetail>(paths.run(user, name)));
  const [asking, setAsking] = useState<"again" | "write" | null>(null);
  const { run: busyRun, busy, error } = useRun(of.reload);
  if (of.error) return <ErrorBox error={of.error} retry={() => void of.reload()} />;
  const found = of.data;
  if (!found) return null;
  const mine = user === session.username;
  const again = (body: Record<string, unknown>): Promise<void> =>
    busyRun(async () => {
      const job = await client.put<Job>(paths.jobAction(user, reference(found.run), "resubmit"), body);
      setAsking(null);
      say(t("Submitted again as {job}", { job: title(job) }));
      go(href("jobs", job.user, reference(job)));
    });
  const write = (body: Record<string, unknown>): Promise<void> =>
    busyRun(async () => {
      await client.put<ListedRun>(paths.run(user, reference(found.run)), body);
      setAsking(null);
    }, t("Saved"));
  const facts: [string, JSX.Element | string][] = [
    [t("Parameters"), Object.entries(found.run.params).map(([key, value]) => `${key}=${value}`).join(", ")],
    [t("Arguments"), found.args.join(" ")],
    [t("Start directory"), found.workdir ? `~/${found.workdir}` : ""],
    [t("Commit"), found.run.commit ? `${found.run.commit.slice(0, 12)}${found.run.dirty ? t(" and changes") : ""}` : ""],
    [t("Datasets"), found.data.map((d) => `${d.user}/${d.name} (${[bytes(d.size), ...(d.digest ? [dataWords(d)] : [])].join(t(", "))})`).join(", ")],
    [t("Environment of the team"), found.env_name ? `${found.env_name} (${found.env_image ?? `${t("lock")} ${(found.env_lock ?? "").slice(0, 12)}`})` : ""],
    [t("Tags"), found.run.tags.join(" ")],
    [t("Note"), found.run.note],
  ];
  return (
    <section class="mlp-card" aria-label={t("Details of this run")}>
      <div class="mlp-card-head">
        <h2>{t("Details of this run")}</h2>
        {mine ? (
          <span class="mlp-row mlp-head-end">
            <button type="button" class="mlp-button mlp-small" onClick={() => setAsking("write")}>{t("Tags and note")}</button>
            <button type="button" class="mlp-button mlp-small" disabled={busy} onClick={() => void again({ exactly: true })}>{t("Run again exactly")}</button>
            <button type="button" class="mlp-button mlp-small" onClick={() => setAsking("again")}>{t("Run again with …")}</button>
          </span>
        ) : null}
      </div>
      {error && !asking ? <ErrorBox error={error} /> : null}
      <dl class="mlp-run-facts">
        {facts.filter(([, value]) => value).map(([label, value]) => <div key={label}><dt>{label}</dt><dd>{value}</dd></div>)}
      </dl>
      {found.program !== null ? <details class="mlp-fold"><summary>{t("Program")}<span class="mlp-dim">{found.entry ?? ""}</span></summary><pre class="mlp-diff" tabIndex={0}>{found.program}</pre></details> : null}
      {found.environment ? <details class="mlp-fold"><summary>{t("Environment")}<span class="mlp-dim">{n("1 package", "{n} packages", found.environment.trim().split("\n").length)}</span></summary><pre class="mlp-diff" tabIndex={0}>{found.environment}</pre></details> : null}
      {asking === "again" ? <Again of={found} busy={busy} error={error} onDone={(body) => void again(body)} onClose={() => setAsking(null)} /> : null}
      {asking === "write" ? <Write of={found.run} busy={busy} error={error} onDone={(body) => void write(body)} onClose={() => setAsking(null)} /> : null}
    </section>
  );
}

function Again({ of, busy, error, onDone, onClose }: { of: RunDetail; busy: boolean; error: unknown; onDone: (body: Record<string, unknown>) => void; onClose: () => void }): JSX.Element {
  const before = of.run.params as Record<string, Value>;
  const [params, setParams] = useState<Record<string, string>>(Object.fromEntries(Object.entries(before).map(([k, v]) => [k, String(v)])));
  const [workers, setWorkers] = useState(String(of.workers));
  const [args, setArgs] = useState(of.args.join("\n"));
  const send = (): void => {
    const changed = Object.entries(params).filter(([key, text]) => text !== String(before[key]));
    const lines = args.split("\n").filter((line) => line !== "");
    onDone({
      ...(changed.length ? { params: Object.fromEntries(changed.map(([key, text]) => [key, valueOf(text, before[key] as Value)])) } : {}),
      ...(workers !== String(of.workers) ? { workers: /^\d+$/.test(workers.trim()) ? Number(workers) : workers.trim() } : {}),
      ...(lines.join("\n") !== of.args.join("\n") ? { args: lines } : {}),
    });
  };
  return (
    <Dialog title={t("Run {job} again with", { job: title(of.run) })} onClose={onClose}>
      <form class="mlp-form" onSubmit={(e) => {
        e.preventDefault();
        send();
      }}>
        <div class="mlp-form-grid">
          {Object.keys(params).map((key, i) => <Field key={key} label={key} name={`param-${key}`} value={params[key] ?? ""} autofocus={i === 0} onInput={(v) => setParams({ ...params, [key]: v })} />)}
          <Field label={t("Workers")} name="workers" value={workers} onInput={setWorkers} />
        </div>
        <Lines label={t("Arguments")} name="args" value={args} onInput={setArgs} hint={t("One per line")} />
        {error ? <ErrorBox error={error} /> : null}
        <div class="mlp-dialog-buttons">
          <button type="button" class="mlp-button" onClick={onClose}>{t("Close")}</button>
          <button type="submit" class="mlp-button mlp-primary" disabled={busy}>{t("Run again")}</button>
        </div>
      </form>
    </Dialog>
  );
}

function Write({ of, busy, error, onDone, onClose }: { of: ListedRun; busy: boolean; error: unknown; onDone: (body: Record<string, unknown>) => void; onClose: () => void }): JSX.Element {
  const [tags, setTags] = useState(of.tags.join(" "));
  const [note, setNote] = useState(of.note);
  return (
    <Dialog title={t("Tags and note")} onClose={onClose}>
      <form class="mlp-form" onSubmit={(e) => {
        e.preventDefault();
        onDone({ tags: tags.split(/[\s,]+/).filter(Boolean), note });
      }}>
        <Field label={t("Tags")} name="tags" value={tags} onInput={setTags} autofocus hint={t("Words, separated by spaces")} />
        <Lines label={t("Note")} name="note" value={note} onInput={setNote} />
        {error ? <ErrorBox error={error} /> : null}
        <div class="mlp-dialog-buttons">
          <button type="button" class="mlp-button" onClick={onClose}>{t("Close")}</button>
          <button type="submit" class="mlp-button mlp-primary" disabled={busy}>{t("Save")}</button>
        </div>
      </form>
    </Dialog>
  );
}
