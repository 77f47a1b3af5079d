/** What was held and used, and its cost: by day as a chart, by owner and kind of work as a table, and as files. */
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { BudgetBars } from "../../components/basics/BudgetBars";
import { Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { useLoad, useNow } from "../../components/basics/hooks";
import { PageHead, Select } from "../../components/basics/form";
import { trim } from "../../core/format/format";
import { t } from "../../core/format/language";
import { amountOf, barsOf, fileName, filePath, HOUR_S, linesPath, monthsUntil, shownOf, splitsOf, usedOf, type Shown, type Whose } from "../../core/teams/accounting";
import { column } from "../../core/teams/money";
import { paths, type Client } from "../../core/service/api";
import type { BudgetState, Session, UsageLine, UsageLines } from "../../core/service/wire";
import { useHub } from "../shared/context";

const EVERY = 60_000;
const MONTHS = 12;
const HIGH = 120;
const WIDE = 10;

const TITLES: Record<Shown, () => string> = {
  core: () => t("core-hours"),
  memory: () => t("GiB-hours of memory"),
  gpu: () => t("GPU-hours"),
  storage: () => t("GiB-days of storage"),
  cost: () => t("cost"),
};
const SPLITS: Record<string, () => string> = {
  tenant: () => t("Team"),
  user: () => t("User"),
  work: () => t("Kind of work"),
  gpu_kind: () => t("GPU kind"),
};
const WORK: Record<string, () => string> = {
  job: () => t("jobs"),
  app: () => t("apps"),
  notebook: () => t("notebooks"),
  storage: () => t("storage"),
  other: () => t("other"),
};

const shown = (line: UsageLine, split: string): string => {
  const value = line[split as "tenant" | "user" | "work" | "gpu_kind"] ?? "";
  if (split === "work") return WORK[value]?.() ?? value;
  return split === "user" && !value ? t("former members") : value;
};

/** The budget of a team; null where it has none. Of a list, which a person without any may ask for too: a single one would be refused. */
export async function budgetOf(client: Client, session: Session, tenant: string): Promise<BudgetState | null> {
  const { items } = await client.list<BudgetState>(session.admin ? paths.allBudgets : paths.budgets(session.username));
  return items.find((one) => one.tenant === tenant) ?? null;
}

/** The budgets that belong to a page of usage: of one's teams, of one team, or of all. */
async function budgetsOf(client: Client, session: Session, whose: Whose): Promise<BudgetState[]> {
  if (whose === "all") return (await client.list<BudgetState>(paths.allBudgets)).items;
  if ("user" in whose) return (await client.list<BudgetState>(paths.budgets(whose.user))).items;
  const found = await budgetOf(client, session, whose.tenant);
  return found ? [found] : [];
}

export function AccountingPage({ whose }: { whose: Whose }): JSX.Element {
  const { client, session } = useHub();
  const now = useNow(EVERY);
  const [month, setMonth] = useState("");
  const by = splitsOf(whose);
  const reported = month || (monthsUntil(now, 1)[0] ?? "");
  const key = typeof whose === "string" ? whose : JSON.stringify(whose);
  const days = useLoad(`accounting days ${key} ${month}`, () => client.get<UsageLines>(linesPath(whose, month, ["day"])), EVERY);
  const owners = useLoad(`accounting ${key} ${month}`, () => client.get<UsageLines>(linesPath(whose, month, by)), EVERY);
  const budgets = useLoad(`budgets ${key}`, () => budgetsOf(client, session, whose), EVERY);
  const title = typeof whose === "string" ? t("Usage of all") : "tenant" in whose ? t("Usage of {tenant}", { tenant: whose.tenant }) : t("Usage");
  const error = days.error ?? owners.error;
  const found = owners.data;
  return (
    <>
      <PageHead title={title} sub={t("Held, used and idle amounts, exactly as the quota was charged.")}>
        <Select name="month" label={t("Span")} value={month} onChange={setMonth} options={[["", t("Last 30 days")], ...monthsUntil(now, MONTHS).map((each): [string, string] => [each, each])]} />
        <a class="mlp-button" href={client.base + filePath(whose, month, "csv", ["day", ...by])} download={fileName(whose, month, "csv")}>{t("Download as CSV")}</a>
        {typeof whose !== "string" && "user" in whose ? null : (
          <a class="mlp-button" href={client.base + filePath(whose, reported, "report")} download={fileName(whose, reported, "md")}>{t("Report of the month")}</a>
        )}
      </PageHead>
      {error ? <ErrorBox error={error} retry={() => {
        void days.reload();
        void owners.reload();
      }} /> : null}
      {!found && !error ? <Loading what={t("Loading the usage")} /> : null}
      {found && !found.lines.length ? <Empty title={t("Nothing was held in this span")} /> : null}
      {budgets.data?.length ? (
        <section class="mlp-card" aria-label={t("Budgets")}>
          <div class="mlp-card-head"><h2>{t("Budgets")}</h2></div>
          <BudgetBars budgets={budgets.data} named={typeof whose === "string" || "user" in whose} />
        </section>
      ) : null}
      {session.admin && found && budgets.data ? <HowToSet base={client.base} whose={whose} priced={found.currency !== null} any={budgets.data.length > 0} /> : null}
      {found?.lines.length && days.data ? <Days found={days.data} /> : null}
      {found?.lines.length ? <Owners found={found} by={by} /> : null}
      {found?.nodes ? <NodesUse found={found} /> : null}
    </>
  );
}

/** How a platform admin sets prices and budgets, where some are missing. */
function HowToSet({ base, whose, priced, any }: { base: string; whose: Whose; priced: boolean; any: boolean }): JSX.Element | null {
  if (priced && any) return null;
  const tenant = typeof whose !== "string" && "tenant" in whose ? whose.tenant : "TEAM";
  const page = (anchor: string, text: string): JSX.Element => <a href={`${base}docs/how-to/costs#${anchor}`}>{text}</a>;
  return (
    <section class="mlp-card" aria-label={t("Set up costs")}>
      <div class="mlp-card-head"><h2>{t("Set up costs")}</h2></div>
      {priced ? null : (
        <>
          <p>{t("This hub has no price list, so it shows no costs and counts no budget. Write one, then set it on the hub's machine:")}</p>
          <pre class="mlp-diff" tabIndex={0}>mlp-hub prices put prices.json</pre>
          <p>{page("set-prices", t("Format of the price list"))}</p>
        </>
      )}
      {any ? null : (
        <>
          <p>{priced ? t("No budget is set. Set what a team may spend each month:") : t("With a price list, set what a team may spend each month:")}</p>
          <pre class="mlp-diff" tabIndex={0}>{`mlp-hub budget set ${tenant} 500`}</pre>
          <p>{page("set-budgets", t("More about budgets"))}</p>
        </>
      )}
    </section>
  );
}

export function OwnAccounting(): JSX.Element {
  const { session } = useHub();
  return <AccountingPage whose={{ user: session.username }} />;
}

function Days({ found }: { found: UsageLines }): JSX.Element {
  const [of, setOf] = useState<Shown>("core");
  const bars = barsOf(found, of);
  const top = Math.max(...bars.map((bar) => Math.max(bar.held, bar.used)), 0) || 1;
  const high = (amount: number): number => (amount / top) * (HIGH - 2);
  const total = amountOf(found.total, of);
  const words = t("{amount} {unit}, at most {most} in a day", { amount: trim(total, 2), unit: unitOf(found, of), most: trim(top === 1 && !total ? 0 : top, 2) });
  return (
    <section class="mlp-card" aria-label={t("By day")}>
      <div class="mlp-card-head">
        <h2>{t("By day")}</h2>
        <select class="mlp-select mlp-head-end" aria-label={t("Shown amount")} value={of} onChange={(event) => setOf(event.currentTarget.value as Shown)}>
          {shownOf(found).map((each) => <option key={each} value={each}>{TITLES[each]()}</option>)}
        </select>
      </div>
      <figure class="mlp-chart mlp-usage">
        <figcaption><span class="mlp-chart-name">{words}</span></figcaption>
        <svg viewBox={`0 0 ${bars.length * WIDE} ${HIGH}`} width="100%" height={HIGH} preserveAspectRatio="none" role="img" aria-label={words}>
          {bars.map((bar, at) => (
            <g key={bar.day}>
              <rect x={at * WIDE} y={HIGH - high(bar.held)} width={WIDE - 1} height={high(bar.held)} fill="var(--mlp-accent)" opacity={usedOf(found.total, of) ? 0.45 : 1}>
                <title>{t("{day}: held {held}, used {used}", { day: bar.day, held: trim(bar.held, 2), used: trim(bar.used, 2) })}</title>
              </rect>
              {bar.used ? <rect x={at * WIDE} y={HIGH - high(bar.used)} width={WIDE - 1} height={high(bar.used)} fill="var(--mlp-accent)" /> : null}
            </g>
          ))}
        </svg>
        <div class="mlp-usage-ends mlp-dim">
          <span>{found.since}</span>
          {usedOf(found.total, of) ? (
            <ul class="mlp-legend">
              <li><i class="mlp-used-part" />{t("used, as far as it was measured")}</li>
              <li><i class="mlp-held-part" />{t("held")}</li>
            </ul>
          ) : null}
          <span>{bars.at(-1)?.day ?? ""}</span>
        </div>
      </figure>
    </section>
  );
}

const unitOf = (found: UsageLines, of: Shown): string => (of === "cost" ? (found.currency ?? "") : TITLES[of]());

function Owners({ found, by }: { found: UsageLines; by: string[] }): JSX.Element {
  /** A column whose written lines add up to its total. */
  const summed = (title: string, amount: (line: UsageLine) => number): Column<UsageLine> => {
    const { parts, total } = column(found.lines.map(amount), amount(found.total));
    const texts = new Map(found.lines.map((line, at) => [line, parts[at] ?? ""]));
    return { title, kind: "num", cell: (line) => texts.get(line) ?? total };
  };
  const numbers: Column<UsageLine>[] = [
    summed(t("Core-hours"), (line) => line.core_s / HOUR_S),
    summed(t("used"), (line) => line.core_used_s / HOUR_S),
    summed(t("idle"), (line) => line.core_idle_s / HOUR_S),
    summed(t("not measured"), (line) => line.core_unmeasured_s / HOUR_S),
    ...(found.total.core_reported_s ? [summed(t("by own report"), (line) => line.core_reported_s / HOUR_S)] : []),
    ...(found.total.core_unknown_s ? [summed(t("of unknown source"), (line) => line.core_unknown_s / HOUR_S)] : []),
    summed(t("GiB-hours"), (line) => line.memory_gib_s / HOUR_S),
    summed(t("GPU-hours"), (line) => line.gpu_s / HOUR_S),
    summed(t("GiB-days"), (line) => line.storage_gib_days),
  ];
  if (found.currency !== null) {
    const cost = summed(t("Cost in {currency}", { currency: found.currency }), (line) => Number(line.cost ?? 0));
    numbers.push({ ...cost, cell: (line) => (line.cost === null ? "" : cost.cell(line)) });
  }
  const columns: Column<UsageLine>[] = [
    ...by.map((split, at): Column<UsageLine> => ({ title: SPLITS[split]?.() ?? split, kind: at ? "tight" : "name", cell: (line) => (line === found.total ? (at ? "" : t("Total")) : shown(line, split)) })),
    ...numbers,
  ];
  return (
    <section class="mlp-card" aria-label={t("By owner and kind of work")}>
      <div class="mlp-card-head">
        <h2>{t("By owner and kind of work")}</h2>
        <span class="mlp-dim">{t("Amounts of the quota times the time for which they were held, in UTC.")}</span>
      </div>
      <Table stack caption={t("Usage")} columns={columns} rows={[...found.lines, found.total]} rowKey={(line) => (line === found.total ? "total" : by.map((split) => line[split as "tenant"]).join("/"))} />
      {sourcesOf(found.total).map((words) => <p key={words} class="mlp-dim">{words}</p>)}
      {found.next === null ? null : <p class="mlp-dim">{t("There are more lines; the CSV file has all.")}</p>}
    </section>
  );
}

/** What is to be said of use that the cluster did not measure. */
function sourcesOf(total: UsageLine): string[] {
  const words = [];
  if (total.core_reported_s || total.memory_reported_gib_s)
    words.push(t("The use of {cores} core-hours and {memory} GiB-hours of memory is known by the jobs' own reports alone. These used and idle amounts can be wrong. Costs are for held amounts.", { cores: trim(total.core_reported_s / HOUR_S, 2), memory: trim(total.memory_reported_gib_s / HOUR_S, 2) }));
  if (total.core_unknown_s || total.memory_unknown_gib_s)
    words.push(t("The use of {cores} core-hours and {memory} GiB-hours of memory was recorded by an older version, which did not store whether it was measured.", { cores: trim(total.core_unknown_s / HOUR_S, 2), memory: trim(total.memory_unknown_gib_s / HOUR_S, 2) }));
  return words;
}

function NodesUse({ found }: { found: UsageLines }): JSX.Element {
  const rows = [
    { title: t("Nodes"), line: found.nodes },
    { title: t("Held by nobody"), line: found.free },
    { title: t("Kept by the systems of the nodes"), line: found.platform },
  ].flatMap(({ title, line }) => (line ? [{ title, line }] : []));
  const columns: Column<{ title: string; line: UsageLine }>[] = [
    { title: t("Part"), kind: "name", cell: (row) => row.title },
    { title: t("Core-hours"), kind: "num", cell: (row) => trim(row.line.core_s / HOUR_S, 2) },
    { title: t("GiB-hours"), kind: "num", cell: (row) => trim(row.line.memory_gib_s / HOUR_S, 2) },
    { title: t("GPU-hours"), kind: "num", cell: (row) => trim(row.line.gpu_s / HOUR_S, 2) },
  ];
  return (
    <section class="mlp-card" aria-label={t("Nodes")}>
      <div class="mlp-card-head"><h2>{t("Nodes")}</h2></div>
      <Table stack caption={t("Use of the nodes")} columns={columns} rows={rows} rowKey={(row) => row.title} />
    </section>
  );
}
