/** One chart per metric; points are drawn straight from the store, once a frame, without rendering components. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { JobStore } from "../../core/stream/jobstore";
import { Earlier, Heading } from "../basics/basics";
import { Chart, type CurveOptions, type Readout } from "./chart";
import { Plot } from "./Plot";
import { clock, metric as show } from "../../core/format/format";
import { t } from "../../core/format/language";

function ChartBox({ store, name, options }: { store: JobStore; name: string; options: CurveOptions }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  const [readout, setReadout] = useState<Readout>({ last: null, x: null, at: 0, most: 0, values: [], note: "" });
  // with the rest of the page, not after it is painted: a key that follows is for the curve that is there to be seen
  useLayoutEffect(() => {
    const host = box.current;
    if (!host) return undefined;
    const made = new Chart(host, store, name, options, setReadout);
    chart.current = made;
    return () => {
      chart.current = null;
      made.destroy();
    };
  }, [store, name, options.ranks, options.log, options.x]);
  const hovered = readout.x !== null;
  const spoken = readout.values.map((v) => `${v.label} ${show(v.value)}`).join(", ");
  return (
    <figure class="mlp-chart" data-metric={name}>
      <figcaption>
        <span class="mlp-chart-name" title={name}>{name}</span>
        <span class="mlp-chart-at">{hovered ? `${readout.xLabel} ${readout.x}` : ""}</span>
        <span class="mlp-chart-value">{readout.values.length === 1 || !hovered ? show(hovered ? readout.values[0]?.value : readout.last) : ""}</span>
      </figcaption>
      <Plot
        box={box}
        chart={chart}
        label={t("Curve of {name}", { name })}
        at={readout.at}
        most={readout.most}
        text={hovered ? `${readout.xLabel} ${readout.x}: ${spoken}` : t("last value {value}; arrow keys read single values", { value: show(readout.last) })}
      />
      {readout.values.length > 1 ? (
        <ul class="mlp-legend">
          {readout.values.map((v) => (
            <li key={v.label}>
              <i style={{ background: v.color }} />
              {v.label} <b>{show(v.value)}</b>
            </li>
          ))}
        </ul>
      ) : null}
      {readout.note ? <p class="mlp-dim mlp-chart-note">{readout.note}</p> : null}
    </figure>
  );
}

export function Curves({ store, names, ends, earlier, now }: {
  store: JobStore;
  names: string[];
  /** When earlier attempts ended, in milliseconds. */
  ends: number[];
  /** The job waits: all that is here is of earlier attempts. */
  earlier: boolean;
  now: number;
}): JSX.Element {
  const [options, setOptions] = useState<CurveOptions>({ ranks: false, log: false, x: "step" });
  const many = Math.max(0, ...names.map((n) => store.metrics.tracks.get(n)?.size ?? 0)) > 1;
  const followed = ends.filter((end) => store.metrics.lastTime * 1000 > end);
  const repeated = names.some((name) => [...(store.metrics.tracks.get(name)?.values() ?? [])].some((track) => !track.ascends));
  const toggle = (label: string, on: boolean, change: Partial<CurveOptions>): JSX.Element => (
    <button type="button" class="mlp-toggle" aria-pressed={on} onClick={() => setOptions({ ...options, ...change })}>
      {label}
    </button>
  );
  return (
    <section role="group" class="mlp-section" aria-label={t("Curves")}>
      <div class="mlp-section-head">
        <Heading>{t("Curves")}</Heading>
        <div class="mlp-tools">
          {many ? toggle(t("All ranks"), options.ranks, { ranks: !options.ranks }) : null}
          {toggle(t("Log scale"), options.log, { log: !options.log })}
          {toggle(t("By time"), options.x === "time", { x: options.x === "time" ? "step" : "time" })}
        </div>
      </div>
      {earlier ? <Earlier attempts={ends.length} /> : null}
      {followed.length ? (
        <p class="mlp-dim mlp-attempts">
          {t("A dashed line shows where another attempt began to report. The attempts before it ended {times}.", { times: followed.slice(-3).map((end) => clock(end, now)).join(t(", ")) })}
          {repeated && options.x === "step" ? <> {t("Repeated steps show the newest attempt; By time shows all attempts.")}</> : null}
        </p>
      ) : null}
      <div class="mlp-charts">
        {names.map((name) => (
          <ChartBox key={name} store={store} name={name} options={options} />
        ))}
      </div>
    </section>
  );
}
