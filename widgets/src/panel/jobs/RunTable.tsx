/** The rows of the table of runs: only those in view are drawn, so that ten thousand are as quick as ten. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { StateBadge } from "../../components/basics/basics";
import { clock } from "../../core/format/format";
import { t } from "../../core/format/language";
import { title } from "../../core/jobs/runs";
import { cardHeight, isWide, windowOf, type RunColumn } from "../../core/jobs/runtable";
import type { ListedRun } from "../../core/service/wire";
import { Named } from "./Jobs";

const ROW = 38;
/** Where it is narrow a row is a card, as high as its columns need. */
const NARROW = "(max-width: 640px)";

function useNarrow(): boolean {
  const query = matchMedia(NARROW);
  const [narrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const hear = (): void => setNarrow(query.matches);
    query.addEventListener("change", hear);
    return () => query.removeEventListener("change", hear);
  }, []);
  return narrow;
}

export function RunTable({ caption, of, columns, total, rowAt, need, sort, onSort, selected, keyOf, onSelect, onSelectAll }: {
  caption: string;
  /** What was searched, and the order: another one is looked at from its top. */
  of: string;
  columns: RunColumn[];
  total: number;
  /** undefined: not loaded yet. */
  rowAt: (at: number) => ListedRun | undefined;
  /** Called with the rows that are drawn. */
  need: (from: number, to: number) => void;
  sort: string;
  onSort: (key: string) => void;
  selected: ReadonlySet<string>;
  /** By what a selected run is told from others. */
  keyOf: (run: ListedRun) => string;
  onSelect: (run: ListedRun, on: boolean) => void;
  onSelectAll: (on: boolean) => void;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const narrow = useNarrow();
  const row = narrow ? cardHeight(columns) : ROW;
  const high = narrow ? { height: `${row}px` } : {};
  const [view, setView] = useState({ top: 0, height: 600 });
  useLayoutEffect(() => {
    const host = box.current;
    if (!host) return undefined;
    const look = (): void => setView({ top: host.scrollTop, height: host.clientHeight });
    const size = new ResizeObserver(look);
    size.observe(host);
    host.addEventListener("scroll", look, { passive: true });
    look();
    return () => {
      size.disconnect();
      host.removeEventListener("scroll", look);
    };
  }, []);
  useLayoutEffect(() => {
    if (box.current) box.current.scrollTop = 0;
  }, [of]);
  const { from, to } = windowOf(view.top, view.height, row, total);
  useEffect(() => need(from, to), [from, to, need]);
  // up and down go from box to box, as in a list
  const keys = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const at = Number((event.target as HTMLElement).closest("tr")?.dataset["at"] ?? Number.NaN);
    if (!step || Number.isNaN(at)) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(total - 1, at + step));
    const host = box.current;
    if (!host) return;
    const head = host.querySelector("thead")?.clientHeight ?? 0;
    if (next * row < host.scrollTop) host.scrollTop = next * row;
    if ((next + 1) * row + head > host.scrollTop + host.clientHeight) host.scrollTop = (next + 1) * row + head - host.clientHeight;
    requestAnimationFrame(() => host.querySelector<HTMLInputElement>(`tr[data-at="${next}"] input`)?.focus({ preventScroll: true }));
  };
  const sortKey = sort.replace(/^-/, "");
  const arrow = (key: string): string => (sortKey === key ? (sort.startsWith("-") ? " ↓" : " ↑") : "");
  const head = (key: string, text: string, sorts: boolean, numeric: boolean): JSX.Element => (
    <th key={key} scope="col" class={numeric ? "mlp-col-num" : ""} aria-sort={sortKey === key ? (sort.startsWith("-") ? "descending" : "ascending") : sorts ? "none" : undefined}>
      {sorts ? <button type="button" class="mlp-sort" onClick={() => onSort(key)}>{text}{arrow(key)}</button> : text}
    </th>
  );
  const rows = Array.from({ length: Math.max(0, to - from) }, (_, i) => from + i);
  const all = total > 0 && selected.size >= total;
  return (
    <div class="mlp-runs-box" ref={box} onKeyDown={keys} tabIndex={-1}>
      <table class="mlp-table mlp-runs-table" aria-rowcount={total + 1}>
        <caption class="mlp-hidden">{caption}</caption>
        <thead>
          <tr>
            <th scope="col" class="mlp-col-tight"><input type="checkbox" checked={all} aria-label={t("Select all {n} runs", { n: total })} onChange={(e) => onSelectAll(e.currentTarget.checked)} /></th>
            {head("name", t("Run"), true, false)}
            {columns.map((c) => head(c.key, c.title(), c.sorts, c.numeric))}
            {head("submitted", t("Submitted"), true, true)}
          </tr>
        </thead>
        <tbody>
          {from > 0 ? <tr aria-hidden="true" class="mlp-runs-gap" style={{ height: `${from * row}px` }} /> : null}
          {rows.map((at) => {
            const run = rowAt(at);
            if (!run) {
              return <tr key={at} data-at={at} aria-rowindex={at + 2} class="mlp-run-row" style={high}><td colSpan={columns.length + 3}><span class={`mlp-skeleton mlp-skeleton-${at % 3}`} /></td></tr>;
            }
            return (
              <tr key={at} data-at={at} aria-rowindex={at + 2} class={selected.has(keyOf(run)) ? "mlp-run-row mlp-selected" : "mlp-run-row"} style={high}>
                <td class="mlp-col-tight"><input type="checkbox" checked={selected.has(keyOf(run))} aria-label={t("Select {run}", { run: title(run) })} onChange={(e) => onSelect(run, e.currentTarget.checked)} /></td>
                <td class="mlp-col-name"><Named job={run} /></td>
                {columns.map((c) => (
                  <td key={c.key} class={c.numeric ? "mlp-col-num" : isWide(c) ? `mlp-run-wide mlp-run-${c.key}` : ""} data-title={c.title()} title={t("{name}: {value}", { name: c.title(), value: c.text(run) })}>
                    {c.key === "state" ? <StateBadge phase={run.phase} reason={run.reason} /> : c.text(run) ? <span>{c.text(run)}</span> : null}
                  </td>
                ))}
                <td class="mlp-col-num mlp-run-wide" data-title={t("Submitted")}><span>{clock(run.submitted_at, Date.now())}</span></td>
              </tr>
            );
          })}
          {to < total ? <tr aria-hidden="true" class="mlp-runs-gap" style={{ height: `${(total - to) * row}px` }} /> : null}
        </tbody>
      </table>
    </div>
  );
}
