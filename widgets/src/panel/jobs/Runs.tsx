/** All my runs: searched while one types, sorted, columns chosen and kept, many acted on at once. */
import type { JSX } from "preact";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading } from "../../components/basics/basics";
import { Confirm, Dialog } from "../../components/basics/Dialog";
import { useLoad, useSettled } from "../../components/basics/hooks";
import { rich } from "../../components/basics/language";
import { paths } from "../../core/service/api";
import { n, t } from "../../core/format/language";
import { reference } from "../../core/jobs/runs";
import { columnsFor, OWNER, turned, usual } from "../../core/jobs/runtable";
import type { ListedRun, RunOutcome, RunPage } from "../../core/service/wire";
import { go, href, Link } from "../shared/address";
import { useHub } from "../shared/context";
import { Field, PageHead } from "../../components/basics/form";
import { RunTable } from "./RunTable";

const EVERY = 5000;
const BLOCK = 100;
const MOST_AT_ONCE = 1000;
const MOST_COMPARED = 200;
const KEPT = "mlp-runs-columns";
type Act = "cancel" | "delete" | "tag" | "untag";

function kept(): string[] | null {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEPT) ?? "null");
    return Array.isArray(found) && found.every((one) => typeof one === "string") ? (found as string[]) : null;
  } catch {
    return null;
  }
}

/** Rows of a search, loaded block by block as they come into view. */
function useRows(tenant: string | null, search: string, sort: string): { page: RunPage | null; error: unknown; reload: () => Promise<void>; rowAt: (at: number) => ListedRun | undefined; need: (from: number, to: number) => void } {
  const { client, session } = useHub();
  const key = `${search}\n${sort}`;
  const path = (start: number): string => (tenant === null ? paths.runs(session.username, search, sort, start, BLOCK) : paths.tenantRuns(tenant, search, sort, start, BLOCK));
  const first = useLoad(`runs ${tenant ?? ""} ${key}`, () => client.get<RunPage>(path(0)), EVERY);
  const [, drawn] = useState(0);
  const blocks = useRef({ key, rows: new Map<number, ListedRun[]>(), asked: new Set<number>() });
  if (blocks.current.key !== key) blocks.current = { key, rows: new Map(), asked: new Set() };
  // what is shown stays until the answer to another search is there
  const last = useRef<RunPage | null>(null);
  if (first.data) last.current = first.data;
  const page = first.data ?? (first.error ? null : last.current);
  const need = useCallback((from: number, to: number): void => {
    const mine = blocks.current;
    for (let b = Math.max(1, Math.floor(from / BLOCK)); b * BLOCK < to; b += 1) {
      if (mine.asked.has(b)) continue;
      mine.asked.add(b);
      client.get<RunPage>(path(b * BLOCK)).then(
        (found) => {
          mine.rows.set(b, found.runs);
          drawn((k) => k + 1);
        },
        () => mine.asked.delete(b),
      );
    }
  }, [client, session.username, tenant, search, sort]);
  const rowAt = (at: number): ListedRun | undefined => (at < BLOCK ? page?.runs[at] : blocks.current.rows.get(Math.floor(at / BLOCK))?.[at % BLOCK]);
  const reload = async (): Promise<void> => {
    blocks.current = { key, rows: new Map(), asked: new Set() };
    await first.reload();
  };
  return { page, error: first.error, reload, rowAt, need };
}

/** Mine, or as its admin those of a team, also ended ones. */
export function RunsPage({ tenant = null }: { tenant?: string | null }): JSX.Element {
  const { client, session, say } = useHub();
  const [typed, setTyped] = useState("");
  const search = useSettled(typed.trim(), 150);
  const [sort, setSort] = useState("-submitted");
  const [chosen, setChosen] = useState<string[] | null>(kept);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [asking, setAsking] = useState<Act | null>(null);
  const [refused, setRefused] = useState<RunOutcome[]>([]);
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const { page, error: failed, reload, rowAt, need } = useRows(tenant, search, sort);
  const columns = useMemo(() => [...(tenant === null ? [] : [OWNER]), ...columnsFor(page?.params ?? [], page?.metrics ?? [])], [tenant, page?.params.join("\n"), page?.metrics.join("\n")]);
  const shown = new Set(chosen ?? [OWNER.key, ...usual(columns)]);
  useEffect(() => setSelected(new Set()), [search]);
  const choose = (key: string, on: boolean): void => {
    const next = columns.filter((c) => (c.key === key ? on : shown.has(c.key))).map((c) => c.key);
    const others = (chosen ?? []).filter((k) => !columns.some((c) => c.key === k));
    setChosen([...next, ...others]);
    localStorage.setItem(KEPT, JSON.stringify([...next, ...others]));
  };
  // of a team several people have runs of one name
  const keyOf = (run: ListedRun): string => (tenant === null || run.user === session.username ? reference(run) : `${run.user}:${reference(run)}`);
  const select = (run: ListedRun, on: boolean): void => {
    const next = new Set(selected);
    if (on) next.add(keyOf(run));
    else next.delete(keyOf(run));
    setSelected(next);
  };
  const selectAll = async (on: boolean): Promise<void> => {
    if (!on) return setSelected(new Set());
    const found = new Set<string>();
    try {
      for (let start = 0; start < (page?.total ?? 0); start += MOST_AT_ONCE) {
        const part = await client.get<RunPage>(tenant === null ? paths.runs(session.username, search, sort, start, MOST_AT_ONCE) : paths.tenantRuns(tenant, search, sort, start, MOST_AT_ONCE));
        for (const run of part.runs) found.add(keyOf(run));
      }
      setSelected(found);
    } catch (e) {
      setError(e);
    }
  };
  const act = async (what: Act, tags: string[] = []): Promise<void> => {
    setBusy(true);
    setError(null);
    try {
      const names = [...selected];
      const told: RunOutcome[] = [];
      for (let at = 0; at < names.length; at += MOST_AT_ONCE) {
        const body = { act: what, runs: names.slice(at, at + MOST_AT_ONCE), ...(tags.length ? { tags } : {}) };
        told.push(...(await client.put<RunOutcome[]>(paths.runsAct(session.username), body)));
      }
      const wrong = told.filter((one) => one.reason);
      setRefused(wrong);
      setAsking(null);
      if (told.length > wrong.length) say(n("Done for 1 run", "Done for {n} runs", told.length - wrong.length));
      if (what === "delete") setSelected(new Set());
      await reload();
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  const total = page?.total ?? 0;
  const compare = (): void => go(href("compare", session.username, [...selected].slice(0, MOST_COMPARED).join(",")));
  return (
    <>
      {tenant === null ? null : (
        <p class="mlp-crumbs">
          <Link to={session.admin ? href("admin", "tenants", tenant) : href("tenants", tenant)}>{tenant}</Link>
          <span aria-hidden="true"> / </span>
          {t("Runs")}
        </p>
      )}
      <PageHead title={tenant === null ? t("Runs") : t("Runs of {tenant}", { tenant })} sub={page ? n("1 run", "{n} runs", total) : undefined}>
        <a class="mlp-button mlp-small" href={client.base + (tenant === null ? paths.runsCsv(session.username, search, sort) : paths.tenantRunsCsv(tenant, search, sort))} download="runs.csv">{t("CSV")}</a>
        <details class="mlp-columns">
          <summary class="mlp-button mlp-small">{t("Columns")}</summary>
          <fieldset class="mlp-columns-list">
            <legend class="mlp-hidden">{t("Which columns are shown")}</legend>
            {columns.map((c) => (
              <label key={c.key}>
                <input type="checkbox" checked={shown.has(c.key)} onChange={(e) => choose(c.key, e.currentTarget.checked)} /> {c.title()}
              </label>
            ))}
          </fieldset>
        </details>
      </PageHead>
      <div class="mlp-runs-search">
        <label class="mlp-hidden" for="mlp-runs-search">{t("Search runs")}</label>
        <input
          id="mlp-runs-search" type="search" class="mlp-input" value={typed} spellcheck={false} autocomplete="off" maxLength={1000}
          placeholder={t("Search: lr<0.1 best.accuracy>=0.9 tag=baseline state=finished, or a word")}
          onInput={(e) => setTyped(e.currentTarget.value)}
        />
      </div>
      {selected.size ? (
        <div class="mlp-bulk" role="group" aria-label={t("With the selected runs")}>
          <span>{n("1 selected", "{n} selected", selected.size)}</span>
          <button type="button" class="mlp-button mlp-small" disabled={selected.size < 2} onClick={compare}>{t("Compare")}</button>
          {tenant === null ? (
            <>
              <button type="button" class="mlp-button mlp-small" onClick={() => setAsking("tag")}>{t("Tag")}</button>
              <button type="button" class="mlp-button mlp-small mlp-quiet-danger" onClick={() => setAsking("cancel")}>{t("Cancel jobs")}</button>
              <button type="button" class="mlp-button mlp-small mlp-quiet-danger" onClick={() => setAsking("delete")}>{t("Delete")}</button>
            </>
          ) : null}
          <button type="button" class="mlp-button mlp-small" onClick={() => setSelected(new Set())}>{t("Select none")}</button>
        </div>
      ) : null}
      {error && !asking ? <ErrorBox error={error} /> : null}
      {refused.length ? <Refusals of={refused} close={() => setRefused([])} /> : null}
      {failed ? <ErrorBox error={failed} retry={() => void reload()} /> : null}
      {!page ? (
        failed ? null : <Loading what={t("Loading runs")} lines={8} />
      ) : total === 0 ? (
        <Empty title={search ? t("No run matches this search") : t("No runs yet")}>
          {search || tenant !== null ? null : <p>{rich(t("Submit one from a notebook cell: {command}"), { command: <code>%%mlp submit --param lr=0.1 --name digits</code> })}</p>}
        </Empty>
      ) : (
        <RunTable
          caption={tenant === null ? t("My runs") : t("Runs of {tenant}", { tenant })} 
          of={`${search}\n${sort}`} columns={columns.filter((c) => shown.has(c.key))} total={total} rowAt={rowAt} need={need} sort={sort}
          onSort={(key) => setSort(turned(sort, key))} selected={selected} keyOf={keyOf} onSelect={select} onSelectAll={(on) => void selectAll(on)}
        />
      )}
      {asking === "tag" ? (
        <TagDialog busy={busy} error={error} onDone={(what, tags) => void act(what, tags)} onClose={() => setAsking(null)} />
      ) : asking ? (
        <Confirm
          title={asking === "delete" ? n("Delete 1 run?", "Delete {n} runs?", selected.size) : n("Cancel 1 job?", "Cancel {n} jobs?", selected.size)}
          text={<p>{asking === "delete" ? t("Their records, logs, curves and files are removed. This cannot be undone. Those that have not ended stay.") : t("Their ranks are stopped for good. Their output so far stays.")}</p>}
          yes={asking === "delete" ? t("Delete") : t("Cancel jobs")}
          no={asking === "delete" ? t("Cancel") : t("Let them continue")}
          busy={busy} error={error ? <ErrorBox error={error} /> : null} onYes={() => void act(asking)} onNo={() => setAsking(null)}
        />
      ) : null}
    </>
  );
}

const TOLD = 5;

function Refusals({ of, close }: { of: RunOutcome[]; close: () => void }): JSX.Element {
  return (
    <div class="mlp-note mlp-note-bad" role="alert">
      <div class="mlp-note-text">
        <p>{n("1 run was not changed:", "{n} runs were not changed:", of.length)}</p>
        <ul>{of.slice(0, TOLD).map((one) => <li key={one.run}>{one.run}: {one.msg}</li>)}</ul>
      </div>
      <button type="button" class="mlp-button mlp-small" onClick={close}>{t("Close")}</button>
    </div>
  );
}

function TagDialog({ busy, error, onDone, onClose }: { busy: boolean; error: unknown; onDone: (what: "tag" | "untag", tags: string[]) => void; onClose: () => void }): JSX.Element {
  const [text, setText] = useState("");
  const tags = text.split(/[\s,]+/).filter(Boolean);
  return (
    <Dialog title={t("Tags of the selected runs")} onClose={onClose}>
      <form onSubmit={(e) => {
        e.preventDefault();
        if (tags.length) onDone("tag", tags);
      }}>
        <Field label={t("Tags")} name="tags" value={text} onInput={setText} autofocus hint={t("Words, separated by spaces")} />
        {error ? <ErrorBox error={error} /> : null}
        <div class="mlp-dialog-buttons">
          <button type="button" class="mlp-button" onClick={onClose}>{t("Close")}</button>
          <button type="button" class="mlp-button" disabled={busy || !tags.length} onClick={() => onDone("untag", tags)}>{t("Remove")}</button>
          <button type="submit" class="mlp-button mlp-primary" disabled={busy || !tags.length}>{t("Add")}</button>
        </div>
      </form>
    </Dialog>
  );
}
