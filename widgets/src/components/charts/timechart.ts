/** Lines over the time of day: uPlot in the reader's zone. A gap is a time of which nothing is known, and no line crosses it. */
import uPlot from "uplot";
import { tickText, type TimeCurves, type TimeLine } from "../../core/platform/overtime";
import { onThemeChange } from "../basics/hooks";
import { calm, colors, near, PADDING, readAt, readOn, zoomOf } from "./chart";
import type { Keyed } from "./Plot";

const HEIGHT = 180;
/** Given: pixels of the y axis: sizes of memory are longer than numbers. */
const Y_AXIS = 64;
/** Charts with one key have one cursor. */
const TOGETHER = "mlp-over-time";

/** What is read at one step: its place, the number of the last one, and the values of all lines. */
export interface TimeRead {
  at: number | null;
  most: number;
  values: (number | null)[];
}

export const colorOf = (host: Element, line: number): string => {
  const { palette } = colors(host);
  return palette[line % palette.length] as string;
};

export class TimeChart implements Keyed {
  private plot: uPlot | null = null;
  private curves: TimeCurves | null = null;
  private times: number[] = [];
  private known: boolean[] = [];
  private range: { min: number; max: number } | null = null;
  private readonly undo: (() => void)[] = [];

  constructor(private readonly host: HTMLElement, private readonly read: (found: TimeRead) => void) {
    const size = new ResizeObserver(() => this.fit());
    size.observe(host);
    this.undo.push(() => size.disconnect(), onThemeChange(() => this.draw()));
  }

  destroy(): void {
    for (const fn of this.undo) fn();
    this.plot?.destroy();
    this.plot = null;
  }

  /** Show these curves; the same ones with new values keep what is read and shown. */
  show(curves: TimeCurves, times: number[], known: boolean[]): void {
    const same = this.plot && this.curves && this.curves.lines.map((line) => line.label).join() === curves.lines.map((line) => line.label).join();
    const first = this.times[0];
    this.curves = curves;
    this.times = times;
    this.known = known;
    if (first !== times[0]) this.range = null;
    if (same && this.plot) {
      this.plot.setData(this.data(), false);
      this.scale();
      this.tell();
    } else this.draw();
  }

  moveCursor(by: number): void {
    if (this.plot) readOn(this.plot, readAt(this.plot), by);
  }

  zoomBy(factor: number): void {
    const all = { min: this.times[0] ?? 0, max: this.times.at(-1) ?? 0 };
    const found = this.plot ? zoomOf(this.plot, all, readAt(this.plot), factor) : undefined;
    if (found === undefined) return;
    this.range = found;
    this.scale();
  }

  resetView(): void {
    this.range = null;
    this.leave();
    this.scale();
  }

  leave(): void {
    this.plot?.setCursor({ left: -10, top: -10 });
  }

  private data(): uPlot.AlignedData {
    // a line runs over undefined ones, and stops at null
    const valuesOf = (line: TimeLine): (number | null | undefined)[] =>
      line.sparse ? line.values.map((value, at) => value ?? (this.known[at] ? undefined : null)) : [...line.values];
    return [this.times, ...(this.curves?.lines ?? []).map(valuesOf)] as uPlot.AlignedData;
  }

  private scale(): void {
    const all = { min: this.times[0] ?? 0, max: this.times.at(-1) ?? 1 };
    this.plot?.setScale("x", this.range ?? (all.min < all.max ? all : { min: all.min - 1, max: all.max + 1 }));
  }

  private fit(): void {
    const width = this.host.clientWidth;
    if (this.plot && width > 40 && this.plot.width !== width) this.plot.setSize({ width, height: HEIGHT });
    else if (!this.plot) this.draw();
  }

  private draw(): void {
    const width = this.host.clientWidth;
    if (!this.curves || width < 40) return;
    this.plot?.destroy();
    this.plot = new uPlot(this.options(this.curves, width), this.data(), this.host);
    this.scale();
    this.tell();
  }

  private options(curves: TimeCurves, width: number): uPlot.Options {
    const c = colors(this.host);
    const tick = curves.tick ?? curves.show;
    const axis = { stroke: c.text, font: c.font, grid: { stroke: c.grid, width: 1 }, ticks: { show: false }, gap: 4 };
    const stepped = uPlot.paths.stepped?.({ align: 1 });
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      padding: PADDING,
      // nothing of these can be below 0, and amounts compare from there
      scales: { x: { time: true }, y: { range: (u, min, max) => [0, Math.max(calm(u, min, max)[1], Number.MIN_VALUE)] } },
      series: [
        {},
        ...curves.lines.map((line, at): uPlot.Series => {
          const color = c.palette[at % c.palette.length] as string;
          return {
            stroke: line.look === "dashed" ? c.text : color, width: 1.5, spanGaps: false, pxAlign: 0,
            ...(line.look === "filled" ? { fill: `${color}2e` } : {}),
            ...(line.look === "dashed" ? { dash: [6, 4] } : {}),
            ...(line.stepped && stepped ? { paths: stepped } : {}),
            points: { show: false, size: 4, fill: color, filter: (u, series) => dots(u, series, line.sparse === true) },
          };
        }),
      ],
      axes: [
        { ...axis, size: 22, space: 64, values: (_u, splits, _axis, _space, step) => splits.map((at) => tickText(at, step)) },
        { ...axis, size: Y_AXIS, space: 32, ...(curves.ticks ? { incrs: [...curves.ticks] } : {}), values: (_u, splits) => splits.map((value) => tick(value)) },
      ],
      cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false }, sync: { key: TOGETHER } },
      hooks: {
        setCursor: [() => this.tell()],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          this.range = { min: u.posToVal(u.select.left, "x"), max: u.posToVal(u.select.left + u.select.width, "x") };
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          this.scale();
        }],
        ready: [(u) => u.over.addEventListener("dblclick", () => this.resetView())],
      },
    };
  }

  private tell(): void {
    const at = this.plot ? readAt(this.plot) : null;
    const read = (values: readonly (number | null)[]): number | null => (at === null ? near([...values], values.length - 1) : (values[at] ?? null));
    this.read({ at, most: Math.max(0, this.times.length - 1), values: (this.curves?.lines ?? []).map((line) => read(line.values)) });
  }
}

/** Points that are dots: those without a neighbour, which would be no line, and all of a sparse line. */
function dots(u: uPlot, series: number, sparse: boolean): number[] {
  const values = Array.from(u.data[series] ?? [], (value) => value ?? null);
  const lone = (at: number): boolean => (values[at - 1] ?? null) === null && (values[at + 1] ?? null) === null;
  return values.flatMap((value, at) => (value !== null && (sparse || lone(at)) ? [at] : []));
}
