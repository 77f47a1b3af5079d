/** What a sweep's trials reported, and their parameters as parallel coordinates: drawn as SVG, anew when there is news. */
import type { JSX } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";
import { metric as show } from "../../core/format/format";
import { t } from "../../core/format/language";
import { axes, roundTicks, spanOf, trialWord, paramWords } from "../../core/jobs/sweep";
import type { Sweep, SweepCurve, SweepTrial } from "../../core/service/wire";
import { Heading } from "../basics/basics";

const H = 220;
/** A plot is no wider than this: lines would be too flat to be told apart. */
const WIDEST = 900;
const DIM: ReadonlySet<string> = new Set(["stopped", "failed", "cancelled"]);

export interface Pointed {
  /** The trial that somebody points at. */
  trial: number | null;
  point: (trial: number | null) => void;
}

/** How wide the box is in which a plot is drawn: its text is of one size in wide and in narrow ones. */
function useWidth(): [(host: HTMLElement | null) => void, number] {
  // a box that comes later than its component, with the first values, is measured as well
  const [host, setHost] = useState<HTMLElement | null>(null);
  const [width, setWidth] = useState(640);
  useLayoutEffect(() => {
    if (!host) return undefined;
    const measure = (): void => setWidth(Math.max(240, Math.min(host.clientWidth || 640, WIDEST)));
    const seen = new ResizeObserver(measure);
    seen.observe(host);
    measure();
    return () => seen.disconnect();
  }, [host]);
  return [setHost, width];
}

const classOf = (sweep: Sweep, trial: SweepTrial | undefined, pointed: number | null): string => {
  const best = trial && sweep.best?.number === trial.number;
  const kind = best ? "best" : trial && DIM.has(trial.state) ? "dim" : "plain";
  return `mlp-trial-line mlp-trial-${kind}${trial && pointed === trial.number ? " mlp-trial-pointed" : ""}`;
};

/** Who is best is drawn last, and so above all others; whom somebody points at above that. */
const drawn = (sweep: Sweep, pointed: number | null) => (a: { number: number; state: string }, b: { number: number; state: string }): number => {
  const rank = (x: { number: number; state: string }): number => (x.number === pointed ? 3 : x.number === sweep.best?.number ? 2 : DIM.has(x.state) ? 0 : 1);
  return rank(a) - rank(b);
};

export function SweepCurves({ sweep, curves, pointed }: { sweep: Sweep; curves: SweepCurve[]; pointed: Pointed }): JSX.Element | null {
  const [box, W] = useWidth();
  const every = curves.flatMap((c) => c.points);
  if (!sweep.metric || !every.length) return null;
  const [x0, x1] = [Math.min(...every.map(([x = 0]) => x)), Math.max(...every.map(([x = 0]) => x))];
  const [y0, y1] = spanOf(every.map(([, y = 0]) => y));
  const px = (x: number): number => 52 + (W - 62) * (x1 > x0 ? (x - x0) / (x1 - x0) : 0.5);
  const py = (y: number): number => H - 24 - (H - 36) * ((y - y0) / (y1 - y0));
  const byNumber = new Map(curves.map((c) => [c.trial, c.points]));
  const lines = sweep.trials.filter((x) => byNumber.get(x.number)?.length).sort(drawn(sweep, pointed.trial));
  return (
    <section ref={box} class="mlp-section" role="group" aria-label={t("Curves of all trials")}>
      <div class="mlp-section-head">
        <Heading>{t("{metric} of all trials", { metric: sweep.metric })}</Heading>
        <span class="mlp-dim">{t("stopped trials are dimmed, the best one is bold")}</span>
      </div>
      <svg class="mlp-sweep-plot" width={W} height={H} role="img" aria-label={t("Curves of {n} trials by step", { n: lines.length })} onMouseLeave={() => pointed.point(null)}>
        {roundTicks(y0, y1, 4).map((tick) => (
          <g key={tick}>
            <path class="mlp-sweep-grid" d={`M52 ${py(tick)}H${W - 10}`} />
            <text class="mlp-sweep-tick" x={46} y={py(tick) + 4} text-anchor="end">{show(tick)}</text>
          </g>
        ))}
        {(x1 > x0 ? [x0, x1] : [x0]).map((x) => (
          <text key={x} class="mlp-sweep-tick" x={px(x)} y={H - 6} text-anchor={x === x0 && x1 > x0 ? "start" : x1 > x0 ? "end" : "middle"}>{show(x)}</text>
        ))}
        {lines.map((trial) => {
          const points = byNumber.get(trial.number) ?? [];
          const [first] = points;
          const told = { class: classOf(sweep, trial, pointed.trial), onMouseEnter: () => pointed.point(trial.number), "data-trial": trial.number };
          return points.length === 1 && first ? (
            <circle key={trial.number} {...told} cx={px(first[0] ?? 0)} cy={py(first[1] ?? 0)} r={3} />
          ) : (
            <path key={trial.number} {...told} d={`M${points.map(([x = 0, y = 0]) => `${px(x).toFixed(1)} ${py(y).toFixed(1)}`).join("L")}`} />
          );
        })}
      </svg>
      <PointedWords sweep={sweep} pointed={pointed.trial} />
    </section>
  );
}

export function Parallel({ sweep, pointed }: { sweep: Sweep; pointed: Pointed }): JSX.Element | null {
  const [box, W] = useWidth();
  const trials = sweep.trials.filter((x) => x.value !== null);
  const all = axes(sweep, trials);
  if (!all.length) return null;
  const px = (i: number): number => 50 + (i * (W - 100)) / Math.max(all.length - 1, 1);
  const py = (share: number): number => H - 28 - (H - 66) * share;
  const order = trials.map((trial, at) => ({ trial, at })).sort((a, b) => drawn(sweep, pointed.trial)(a.trial, b.trial));
  return (
    <section ref={box} class="mlp-section" role="group" aria-label={t("Parameters of all trials")}>
      <div class="mlp-section-head">
        <Heading>{t("Parameters and results")}</Heading>
      </div>
      <svg class="mlp-sweep-plot" width={W} height={H} role="img" aria-label={t("Parallel coordinates of {n} trials", { n: trials.length })} onMouseLeave={() => pointed.point(null)}>
        {all.map((a, i) => (
          <g key={a.name}>
            <path class="mlp-sweep-axis" d={`M${px(i)} ${py(0)}V${py(1)}`} />
            <text class="mlp-sweep-name" x={px(i)} y={14} text-anchor="middle">{a.name.length > 16 ? `${a.name.slice(0, 15)}…` : a.name}</text>
            <text class="mlp-sweep-tick" x={px(i)} y={30} text-anchor="middle">{a.high.slice(0, 12)}</text>
            <text class="mlp-sweep-tick" x={px(i)} y={H - 10} text-anchor="middle">{a.low.slice(0, 12)}</text>
          </g>
        ))}
        {order.map(({ trial, at }) => (
          <path
            key={trial.number}
            class={classOf(sweep, trial, pointed.trial)}
            data-trial={trial.number}
            onMouseEnter={() => pointed.point(trial.number)}
            d={`M${all.map((a, i) => `${px(i).toFixed(1)} ${py(a.at[at] ?? 0).toFixed(1)}`).join("L")}`}
          />
        ))}
      </svg>
    </section>
  );
}

/** Which trial somebody points at; a line of its own height, so that nothing below moves. */
function PointedWords({ sweep, pointed }: { sweep: Sweep; pointed: number | null }): JSX.Element {
  const trial = sweep.trials.find((x) => x.number === (pointed ?? sweep.best?.number));
  const what = trial ? t("trial {n}: {metric} {value}, {state}, {params}", { n: trial.number, metric: sweep.metric ?? "", value: show(trial.value), state: trialWord(trial), params: paramWords(trial) }) : "";
  return <p class="mlp-dim mlp-sweep-pointed">{what}</p>;
}
