/** Runs over each other: curves with one legend and one zoom; what of parameters, program and environment differs. */
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { Empty, ErrorBox, Loading } from "../../components/basics/basics";
import { onThemeChange, useLoad } from "../../components/basics/hooks";
import { colorOf, Overlay, type OverlayRead } from "../../components/charts/overlay";
import { Plot } from "../../components/charts/Plot";
import { paths, type Client } from "../../core/service/api";
import type { RunCurve } from "../../core/charts/compare";
import type { Range } from "../../core/charts/decimate";
import { metric as show, trim } from "../../core/format/format";
import { n, t } from "../../core/format/language";
import { named, ofSeveral, reference, runsIn, title, type RunOf } from "../../core/jobs/runs";
import { elapsed } from "../../core/format/timeaxis";
import type { ListedRun, RunCurves, RunDetail, RunPage } from "../../core/service/wire";
import { href, Link } from "../shared/address";
import { useHub } from "../shared/context";
import { Differences } from "./Differences";
import { PageHead, Select } from "../../components/basics/form";

type By = "step" | "epoch" | "time";
const BATCH = 25;
const SIDE_BY_SIDE = 6;
const FEW = 20;
const MOST = 200;
const [POINTS_FEW, POINTS_MANY] = [1000, 400];
const SHOWN = 4;
const AXES = new Set(["step", "epoch", "progress"]);
const SMOOTH: [string, () => string][] = [["0", () => t("Not smoothed")], ["0.6", () => t("Smoothed a little")], ["0.9", () => t("Smoothed")], ["0.97", () => t("Smoothed a lot")]];

/** What is asked of many runs, in their order: of my own a batch at a time, of others' one by one, a few side by side. */
async function ofRuns<T>(runs: RunOf[], me: string, mine: (part: string[]) => Promise<T[]>, one: (of: RunOf) => Promise<T>, key: (found: T) => string): Promise<T[]> {
  const own = runs.filter((of) => of.user === me).map((of) => of.run);
  const others = runs.filter((of) => of.user !== me);
  const parts: string[][] = [];
  for (let at = 0; at < own.length; at += BATCH) parts.push(own.slice(at, at + BATCH));
  const found = new Map((await Promise.all(parts.map(mine))).flat().map((each) => [key(each), each]));
  for (let at = 0; at < others.length; at += SIDE_BY_SIDE) {
    for (const each of await Promise.all(others.slice(at, at + SIDE_BY_SIDE).map(one))) found.set(key(each), each);
  }
  const order = new Map(runs.map((of, i) => [`${of.user}/${of.run}`, i]));
  const place = (each: T): number => order.get(key(each)) ?? order.get(key(each).replace(/@\d+$/, "")) ?? 0;
  return [...found.values()].sort((a, b) => place(a) - place(b));
}

const keyOf = (run: ListedRun): string => named(run, true);

/** Curves of all runs, by metric. */
async function curvesOf(client: Client, me: string, runs: RunOf[], by: By, metric: string): Promise<RunCurves[]> {
  const points = runs.length > FEW ? POINTS_MANY : POINTS_FEW;
  return ofRuns(
    runs, me, (part) => client.get<RunCurves[]>(paths.runCurves(me, part, by, metric, points)),
    (of) => client.get<RunCurves>(paths.curves(of.user, of.run, by, metric, points)), (found) => keyOf(found.run),
  );
}

async function runsOf(client: Client, me: string, runs: RunOf[]): Promise<ListedRun[]> {
  return ofRuns(
    runs, me, async (part) => (await client.get<RunPage>(paths.runsNamed(me, part))).runs,
    async (of) => (await client.get<RunDetail>(paths.run(of.user, of.run))).run, keyOf,
  );
}

export function ComparePage({ user, runs: asked }: { user: string; runs: string }): JSX.Element {
  const { client, session } = useHub();
  const wanted = useMemo(() => runsIn(asked, user).slice(0, MOST), [asked, user]);
  const [by, setBy] = useState<By>("step");
  const [smooth, setSmooth] = useState("0");
  const [log, setLog] = useState(false);
  const [range, setRange] = useState<Range | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [lit, setLit] = useState<number | null>(null);
  const [picked, setPicked] = useState<string[] | null>(null);
  const runs = useLoad(`compare ${user} ${asked}`, () => runsOf(client, session.username, wanted));
  const listed = runs.data ?? [];
  const several = ofSeveral(listed);
  const found = useMemo(() => listed.map((run): RunOf => ({ user: run.user, run: reference(run) })), [runs.data]);
  const labels = listed.map((run) => named(run, several));
  const metrics = useMemo(() => [...new Set(listed.flatMap((r) => Object.keys(r.metrics)))].filter((m) => !AXES.has(m)), [runs.data]);
  const shown = (picked ?? metrics.slice(0, listed.length > FEW ? 1 : SHOWN)).filter((m) => metrics.includes(m));
  const pick = (metric: string, on: boolean): void => setPicked(metrics.filter((m) => (m === metric ? on : shown.includes(m))));
  const toggle = (run: string): void => {
    const next = new Set(hidden);
    if (!next.delete(run)) next.add(run);
    setHidden(next);
  };
  const zoomBy = (event: KeyboardEvent): void => {
    if (event.key !== "Escape" || !range) return;
    event.preventDefault();
    setRange(null);
  };
  return (
    <div onKeyDown={zoomBy}>
      <p class="mlp-crumbs"><Link to={href("runs")}>{t("Runs")}</Link><span aria-hidden="true"> / </span>{t("Compare")}</p>
      <PageHead title={t("Compare")} sub={n("1 run", "{n} runs", wanted.length)}>
        <Select label={t("X axis")} name="by" hideLabel value={by} onChange={(v) => { setBy(v as By); setRange(null); }} options={[["step", t("By step")], ["epoch", t("By epoch")], ["time", t("By time")]]} />
        <Select label={t("Smoothing")} name="smooth" hideLabel value={smooth} onChange={setSmooth} options={SMOOTH.map(([key, text]) => [key, text()])} />
        <button type="button" class="mlp-toggle" aria-pressed={log} onClick={() => setLog(!log)}>{t("Log scale")}</button>
        {range ? <button type="button" class="mlp-button mlp-small" onClick={() => setRange(null)}>{t("Show all")}</button> : null}
      </PageHead>
      {runs.error ? <ErrorBox error={runs.error} retry={() => void runs.reload()} /> : null}
      {wanted.length < 2 ? <Empty title={t("Select at least two runs on the page Runs")} /> : !runs.data ? (runs.error ? null : <Loading what={t("Loading runs")} lines={6} />) : (
        <>
          <Legend runs={listed} labels={labels} hidden={hidden} onToggle={toggle} onLight={setLit} />
          {metrics.length > 1 ? (
            <fieldset class="mlp-metrics-list">
              <legend class="mlp-hidden">{t("Which metrics are shown")}</legend>
              {metrics.map((m) => <label key={m}><input type="checkbox" checked={shown.includes(m)} onChange={(e) => pick(m, e.currentTarget.checked)} /> {m}</label>)}
            </fieldset>
          ) : null}
          {metrics.length === 0 ? <Empty title={t("None of them has reported anything")} /> : (
            <div class="mlp-charts mlp-overlays">
              {shown.map((m) => <OverlayBox key={m} runs={found} labels={labels} metric={m} by={by} smooth={Number(smooth)} log={log} range={range} onZoom={setRange} hidden={hidden} lit={lit} />)}
            </div>
          )}
          <p class="mlp-dim mlp-chart-note">{t("Drag over a chart to zoom all charts; double-click or press Escape to show everything again.")} {t("By keyboard: arrow keys read single values, + and - zoom.")}</p>
          <Differences runs={listed} of={found} labels={labels} />
        </>
      )}
    </div>
  );
}

function Legend({ runs, labels, hidden, onToggle, onLight }: { runs: ListedRun[]; labels: string[]; hidden: ReadonlySet<string>; onToggle: (run: string) => void; onLight: (at: number | null) => void }): JSX.Element {
  const box = useRef<HTMLUListElement>(null);
  const [host, setHost] = useState<Element | null>(null);
  const [, setTheme] = useState(0);
  useLayoutEffect(() => {
    setHost(box.current);
    return onThemeChange(() => setTheme((times) => times + 1));
  }, []);
  return (
    <ul class="mlp-compare-legend" ref={box} aria-label={t("Runs that are compared")}>
      {runs.map((run, i) => (
        <li key={run.uid}>
          <button
            type="button" aria-pressed={!hidden.has(labels[i] ?? "")} title={t("Show or hide {run}", { run: title(run) })} onClick={() => onToggle(labels[i] ?? "")}
            onMouseEnter={() => onLight(i)} onMouseLeave={() => onLight(null)} onFocus={() => onLight(i)} onBlur={() => onLight(null)}
          >
            <i style={{ background: host ? colorOf(i, host) : "" }} /> {labels[i]}
          </button>
        </li>
      ))}
    </ul>
  );
}

function OverlayBox({ runs, labels, metric, by, smooth, log, range, onZoom, hidden, lit }: {
  runs: RunOf[]; labels: string[]; metric: string; by: By; smooth: number; log: boolean; range: Range | null; onZoom: (range: Range | null) => void;
  hidden: ReadonlySet<string>; lit: number | null;
}): JSX.Element {
  const { client, session } = useHub();
  const several = ofSeveral(runs);
  const loaded = useLoad(`curves ${runs.map((of) => `${of.user}/${of.run}`).join()} ${metric} ${by}`, () => curvesOf(client, session.username, runs, by, metric));
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<Overlay | null>(null);
  const [read, setRead] = useState<OverlayRead>({ values: [], x: null, at: 0, most: 0 });
  useEffect(() => {
    if (!host.current || !loaded.data) return undefined;
    const curves = loaded.data.map((c): RunCurve | null => (hidden.has(named(c.run, several)) ? null : c.curves.find((one) => one.metric === metric) ?? null));
    const made = new Overlay(host.current, curves, { log, smooth, time: by === "time", group: "mlp-compare" }, onZoom, setRead);
    chart.current = made;
    made.zoom(range);
    return () => {
      chart.current = null;
      made.destroy();
    };
  }, [loaded.data, metric, by, smooth, log, hidden]);
  useEffect(() => chart.current?.zoom(range), [range]);
  useEffect(() => chart.current?.light(lit), [lit]);
  const none = loaded.data?.every((c) => !c.curves.some((one) => one.metric === metric && one.x.length));
  const where = read.x === null ? "" : by === "time" ? t("after {span}", { span: elapsed(read.x) }) : `${by === "epoch" ? t("epoch") : t("step")} ${trim(read.x, 4)}`;
  const values = read.values.map((value, i) => ({ value, run: labels[i] ?? "" })).filter((v) => v.value !== null).slice(0, FEW);
  return (
    <figure class="mlp-chart mlp-overlay" data-metric={metric}>
      <figcaption>
        <span class="mlp-chart-name" title={metric}>{metric}</span>
        <span class="mlp-chart-at">{where}</span>
      </figcaption>
      {loaded.error ? <ErrorBox error={loaded.error} retry={() => void loaded.reload()} /> : null}
      {!loaded.data && !loaded.error ? <Loading what={t("Loading curves")} lines={3} /> : null}
      {none ? <p class="mlp-dim">{by === "epoch" ? t("None of them reports epochs") : t("No curve of this metric")}</p> : null}
      <Plot
        box={host}
        chart={chart}
        label={t("Curves of {name} of {n} runs", { name: metric, n: runs.length })}
        at={read.at}
        most={read.most}
        text={where ? `${where}: ${values.map((v) => `${v.run} ${show(v.value)}`).join(", ") || t("no values")}` : none ? t("no values") : t("arrow keys read single values, + and - zoom")}
      />
      {values.length ? <ul class="mlp-legend">{values.map((v) => <li key={v.run}>{v.run} <b>{show(v.value)}</b></li>)}</ul> : null}
    </figure>
  );
}
