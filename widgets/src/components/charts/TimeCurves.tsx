/** One chart of the page "Over time", with what is read of it in words. */
import type { JSX } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { t } from "../../core/format/language";
import { stepText, type TimeCurves } from "../../core/platform/overtime";
import { onThemeChange } from "../basics/hooks";
import { Plot } from "./Plot";
import { colorOf, TimeChart, type TimeRead } from "./timechart";

export function TimeCurvesChart({ curves, times, known, step, now }: {
  curves: TimeCurves;
  times: number[];
  /** Whether the service ran in each step. */
  known: boolean[];
  step: number;
  now: number;
}): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const chart = useRef<TimeChart | null>(null);
  const [read, setRead] = useState<TimeRead>({ at: null, most: 0, values: [] });
  const [, setTheme] = useState(0);
  useLayoutEffect(() => {
    const host = box.current;
    if (!host) return undefined;
    const made = new TimeChart(host, setRead);
    chart.current = made;
    const undo = onThemeChange(() => setTheme((count) => count + 1));
    return () => {
      undo();
      chart.current = null;
      made.destroy();
    };
  }, []);
  useLayoutEffect(() => chart.current?.show(curves, times, known), [curves, times, known]);
  const at = read.at === null ? null : times[read.at];
  const words = (value: number | null | undefined): string => (value === null || value === undefined ? "–" : curves.show(value));
  const when = at === undefined || at === null ? "" : stepText(at, step, now);
  const spoken = curves.lines.map((line, i) => `${line.label} ${words(read.values[i])}`).join(t(", "));
  const isEmpty = !curves.lines.some((line) => line.values.some((value) => value !== null));
  return (
    <figure class="mlp-chart mlp-time-chart" data-chart={curves.key}>
      <figcaption>
        <span class="mlp-chart-name">{curves.title}</span>
        <span class="mlp-chart-at">{when}</span>
      </figcaption>
      <Plot
        box={box}
        chart={chart}
        label={t("Curve of {name}", { name: curves.title })}
        at={read.at ?? read.most}
        most={read.most}
        text={when ? `${when}: ${spoken}` : t("last values: {values}; arrow keys read single values", { values: spoken })}
      />
      {isEmpty ? <p class="mlp-dim mlp-chart-note">{t("Nothing was measured in this span.")}</p> : (
        <ul class="mlp-legend">
          {curves.lines.map((line, i) => (
            <li key={line.label}>
              <i class={line.look === "dashed" ? "mlp-dashed" : ""} style={box.current && line.look !== "dashed" ? { background: colorOf(box.current, i) } : {}} />
              {line.label} <b>{words(read.values[i])}</b>
            </li>
          ))}
        </ul>
      )}
    </figure>
  );
}
