/** Use, waits, queue, failures and answers of apps over time: of the cluster, or of one team. */
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading, Table, type Column } from "../../components/basics/basics";
import { PageHead, Select } from "../../components/basics/form";
import { useLoad, useNow } from "../../components/basics/hooks";
import { TimeCurvesChart } from "../../components/charts/TimeCurves";
import { clock } from "../../core/format/format";
import { t } from "../../core/format/language";
import { zoneName } from "../../core/format/localtime";
import { curvesOf, firstKnown, fromFirstKnown, isKnown, knownOf, numbersOf, overTimePath, SPANS, stepText, timesOf, type Span, type TimeCurves } from "../../core/platform/overtime";
import type { OverTime } from "../../core/service/wire";
import { useHub } from "../shared/context";

const EVERY = 30_000;

const WORDS: Record<Span, () => string> = {
  hour: () => t("Last hour"),
  day: () => t("Last day"),
  week: () => t("Last week"),
  month: () => t("Last month"),
};

export function OverTimePage({ tenant }: { tenant: string | null }): JSX.Element {
  const { client } = useHub();
  const now = useNow(EVERY);
  const [span, setSpan] = useState<Span>("day");
  const state = useLoad(`over time ${tenant ?? ""} ${span}`, () => client.get<OverTime>(overTimePath(tenant, span)), EVERY);
  const found = useMemo(() => (state.data ? fromFirstKnown(state.data) : null), [state.data]);
  const began = state.data ? firstKnown(state.data) : 0;
  const curves = useMemo(() => (found ? curvesOf(found) : []), [found]);
  const known = useMemo(() => (found ? knownOf(found) : []), [found]);
  const times = useMemo(() => (found ? timesOf(found) : []), [found]);
  return (
    <>
      <PageHead
        title={tenant === null ? t("Over time") : t("{tenant} over time", { tenant })}
        sub={t("Times of {zone}. A gap is a time in which the service did not run.", { zone: zoneName() })}
      >
        <Select name="span" label={t("Span")} value={span} onChange={(value) => setSpan(SPANS.find((one) => one === value) ?? "day")} options={SPANS.map((one) => [one, WORDS[one]()])} />
      </PageHead>
      {state.error ? <ErrorBox error={state.error} retry={() => void state.reload()} /> : null}
      {!found && !state.error ? <Loading what={t("Loading the curves")} lines={6} /> : null}
      {found && !isKnown(found) ? <Empty title={t("Nothing is known of this span yet")}><p>{t("The first sample comes within a minute.")}</p></Empty> : null}
      {found && isKnown(found) ? (
        <>
          <section class="mlp-card" aria-label={t("Sums of the span")}>
            <dl class="mlp-numbers">
              {numbersOf(found).map(([word, value]) => (
                <div key={word}>
                  <dt>{word}</dt>
                  <dd>{value}</dd>
                </div>
              ))}
            </dl>
          </section>
          {began && state.data ? <p class="mlp-dim">{t("Nothing was measured before {time}: the service did not run, or the hub is new.", { time: clock((timesOf(state.data)[began] ?? 0) * 1000, now) })}</p> : null}
          <section class="mlp-charts mlp-time-charts" aria-label={t("Curves")}>
            {curves.map((one) => <TimeCurvesChart key={`${one.key} ${span}`} curves={one} times={times} known={known} step={found.step} now={now} />)}
          </section>
          <ValuesTable curves={curves} times={times} step={found.step} now={now} />
        </>
      ) : null}
    </>
  );
}

/** The values of one chart as a table, the newest first. */
function ValuesTable({ curves, times, step, now }: { curves: TimeCurves[]; times: number[]; step: number; now: number }): JSX.Element {
  const [open, setOpen] = useState(false);
  const [key, setKey] = useState("");
  const chosen = curves.find((one) => one.key === key) ?? curves[0];
  const columns: Column<number>[] = chosen ? [
    { title: t("Time"), kind: "name", cell: (at) => stepText(times[at] ?? 0, step, now) },
    ...chosen.lines.map((line): Column<number> => {
      const words = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : chosen.show(value));
      return { title: line.label, kind: "num", cell: (at) => words(line.values[at]) };
    }),
  ] : [];
  return (
    <details class="mlp-card" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{t("Values as a table")}</summary>
      {open && chosen ? (
        <>
          <Select name="chart" label={t("Curves")} value={chosen.key} onChange={setKey} options={curves.map((one) => [one.key, one.title])} />
          <Table stack caption={chosen.title} columns={columns} rows={times.map((_, at) => times.length - 1 - at)} rowKey={(at) => String(at)} />
        </>
      ) : null}
    </details>
  );
}
