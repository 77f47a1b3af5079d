/** Small parts: icons, badges, bars, states of a page. */
import { createContext, type ComponentChildren, type JSX } from "preact";
import { useContext } from "preact/hooks";
import { ApiError, sentence } from "../../core/service/api";
import { tone, word } from "../../core/jobs/phase";
import { legend, segments, standingWords, type Standing } from "../../core/teams/sharing";
import { n, t } from "../../core/format/language";
import { reasonPage } from "../../core/format/reasons";

const ICONS: Record<string, string> = {
  wait: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M8 5v3.2l2 1.6",
  busy: "M8 2.5a5.5 5.5 0 1 1-5.5 5.5",
  run: "M5.5 3.5v9l7-4.5z",
  good: "M3 8.5l3.2 3.2L13 5",
  bad: "M4 4l8 8M12 4l-8 8",
  idle: "M5.5 4v8M10.5 4v8",
  help: "M8 2.5a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11M6.2 6.5a1.8 1.8 0 1 1 2.5 1.6q-.7.3-.7 1.1M8 11.1v.2",
  warn: "M8 2.5l6 11H2zM8 6.5v3.2M8 11.6v.2",
};

/** The level of the monitor's inner headings: one below its title, which is the page's heading or the cell's. */
export const HeadingLevel = createContext<"h2" | "h3">("h3");

export function Heading({ children }: { children: ComponentChildren }): JSX.Element {
  const Tag = useContext(HeadingLevel);
  return <Tag class="mlp-heading">{children}</Tag>;
}

/** What stands below is of attempts that ended; the job waits for its next one. */
export function Earlier({ attempts }: { attempts: number }): JSX.Element {
  return (
    <p class="mlp-earlier">
      <Icon name="wait" />
      {n("From its earlier attempt; it waits to continue", "From its earlier attempts; it waits to continue", attempts)}
    </p>
  );
}

/** What a monitor says of its job or sweep below the title: a name and a value each. */
export function Facts({ facts }: { facts: [string, string][] }): JSX.Element {
  return (
    <dl class="mlp-facts">
      {facts.map(([key, value]) => (
        <div key={key}>
          <dt>{key}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Icon({ name }: { name: string }): JSX.Element {
  const filled = name === "run";
  return (
    <svg class={`mlp-icon mlp-icon-${name}`} viewBox="0 0 16 16" width="14" height="14" aria-hidden="true">
      <path d={ICONS[name] ?? ICONS["idle"] ?? ""} class={filled ? "mlp-fill" : "mlp-stroke"} />
    </svg>
  );
}

export function StateBadge({ phase, reason }: { phase: string; reason?: string | null }): JSX.Element {
  const kind = tone(phase);
  return (
    <span class={`mlp-badge mlp-tone-${kind}`} data-phase={phase}>
      <Icon name={phase === "cancelled" ? "bad" : kind} />
      {word(phase, reason)}
    </span>
  );
}

export function Chip({ kind = "idle", children }: { kind?: string; children: ComponentChildren }): JSX.Element {
  return <span class={`mlp-badge mlp-tone-${kind}`}>{children}</span>;
}

/**
 * A bar of how much of something is in use; above the limit it turns to the warning colour.
 * Only for the eye: the text beside it says the same.
 */
export function Bar({ value, of, calm = false }: {
  value: number;
  of: number;
  /** Being full is as it should be: no warning colour. */
  calm?: boolean;
}): JSX.Element {
  const part = of <= 0 ? (value > 0 ? 1 : 0) : value / of;
  const kind = calm ? "fine" : part > 1.0001 ? "over" : part >= 0.9 ? "high" : "fine";
  return (
    <span class={`mlp-bar mlp-bar-${kind}`} aria-hidden="true">
      <span class="mlp-bar-fill" style={{ width: `${Math.min(100, part * 100)}%` }} />
    </span>
  );
}

/** The bar of a quota: its own use, what it borrowed in another colour, what it lent at the far end. */
export function StandingBar({ of }: { of: Standing }): JSX.Element {
  const { own, borrowed, over, lent } = segments(of);
  const kind = !of.borrowed && !over && own >= 90 ? "high" : "fine";
  return (
    <span class={`mlp-bar mlp-bar-parts mlp-bar-${kind}`} aria-hidden="true">
      {own ? <span class="mlp-bar-fill" style={{ width: `${own}%` }} /> : null}
      {borrowed ? <span class="mlp-bar-borrowed" style={{ width: `${borrowed}%` }} /> : null}
      {over ? <span class="mlp-bar-beyond" style={{ width: `${over}%` }} /> : null}
      {lent ? <span class="mlp-bar-lent" style={{ width: `${lent}%` }} /> : null}
    </span>
  );
}

/** What the colours of some bars mean, where they show more than plain use. */
export function BarLegend({ bars }: { bars: Standing[] }): JSX.Element | null {
  const parts = legend(bars);
  if (!parts.length) return null;
  return (
    <ul class="mlp-bar-legend" aria-label={t("Meaning of the bars' colours")}>
      {parts.map(([part, text]) => (
        <li key={part}>
          <span class={`mlp-bar-key mlp-bar-${part === "own" ? "fill" : part === "over" ? "beyond" : part}`} aria-hidden="true" />
          {text}
        </li>
      ))}
    </ul>
  );
}

/** One dimension of a quota: name, bar, "3 of 8 · 5 free". */
export function QuotaBar({ name, of, show }: {
  name: string;
  of: Standing;
  show: (n: number) => string;
}): JSX.Element {
  const { used, limit } = of;
  const text = limit !== null ? t("{some} of {all}", { some: show(used), all: show(limit) }) : of.free === null ? t("{amount} used, no limit", { amount: show(used) }) : t("{amount} used", { amount: show(used) });
  const more = standingWords(of, show);
  return (
    <div class="mlp-quota">
      <span class="mlp-quota-name">{name}</span>
      {limit === null ? <span class="mlp-bar-none" aria-hidden="true">–</span> : <StandingBar of={of} />}
      <span class="mlp-quota-text">
        {text}
        {more.length ? <span class="mlp-dim">{` · ${more.join(" · ")}`}</span> : null}
      </span>
    </div>
  );
}

/** Leads to the row of the documentation about a reason. */
function ReasonLink({ reason }: { reason: string }): JSX.Element | null {
  const href = reasonPage(reason);
  if (!href) return null;
  return (
    <a class="mlp-link mlp-help" href={href} target="_blank" rel="noopener" aria-label={t("What this means")} title={t("What this means")}>
      <Icon name="help" />
    </a>
  );
}

export function ErrorBox({ error, retry }: {
  /** What was thrown, or a sentence with elements in it. */
  error: unknown;
  retry?: () => void;
}): JSX.Element {
  return (
    <div class="mlp-note mlp-note-bad" role="alert">
      <Icon name="warn" />
      <div class="mlp-note-text">
        {Array.isArray(error) ? (error as ComponentChildren[]) : sentence(error)}
        {error instanceof ApiError && error.way ? (
          <>
            {" "}
            <a class="mlp-link" href={error.way.href} target="_blank" rel="noopener">
              {error.way.text}
            </a>
          </>
        ) : null}
        {error instanceof ApiError ? <ReasonLink reason={error.reason} /> : null}
        {error instanceof ApiError && error.request ? <span class="mlp-dim mlp-request"> {t("Request {id}", { id: error.request })}</span> : null}
      </div>
      {retry ? (
        <button type="button" class="mlp-button mlp-small" onClick={retry}>
          {t("Try again")}
        </button>
      ) : null}
    </div>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }): JSX.Element {
  return (
    <div class="mlp-empty">
      <p class="mlp-empty-title">{title}</p>
      {children}
    </div>
  );
}

/** Grey lines in the place of what is being loaded; `what` says so: "Loading jobs". */
export function Loading({ lines = 4, what }: { lines?: number; what: string }): JSX.Element {
  return (
    <div class="mlp-loading" role="status" aria-label={what}>
      {Array.from({ length: lines }, (_, i) => (
        <span key={i} class={`mlp-skeleton mlp-skeleton-${i % 3}`} />
      ))}
    </div>
  );
}

/** Below a table whose list goes on. */
export function ShowMore({ more }: { more: () => void }): JSX.Element {
  return (
    <p class="mlp-more">
      <button type="button" class="mlp-button" onClick={more}>
        {t("Show more")}
      </button>
    </p>
  );
}

export interface Column<T> {
  title: string;
  /** The title is only spoken. */
  hideTitle?: boolean;
  cell: (row: T) => ComponentChildren;
  /** "num": right-aligned figures; "grow": takes the room that is left; "low": hidden where it is narrow. */
  kind?: string;
}

export function Table<T>({ columns, rows, rowKey, caption, stack, selected }: {
  columns: Column<T>[];
  rows: T[];
  rowKey: (row: T) => string;
  caption: string;
  /** Where it is narrow each row becomes a small card: for rows that hold sentences. */
  stack?: boolean;
  selected?: (row: T) => boolean;
}): JSX.Element {
  const cls = (c: Column<T>): string => (c.kind ?? "").split(" ").map((k) => (k ? `mlp-col-${k}` : "")).join(" ");
  return (
    <div class="mlp-table-box">
      <table class={stack ? "mlp-table mlp-stack" : "mlp-table"}>
        <caption class="mlp-hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.title} scope="col" class={cls(c)}>
                {c.hideTitle ? <span class="mlp-hidden">{c.title}</span> : c.title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={rowKey(row)} class={selected?.(row) ? "mlp-selected" : ""}>
              {columns.map((c) => (
                <td key={c.title} class={cls(c)} data-title={c.hideTitle ? "" : c.title}>
                  {c.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
