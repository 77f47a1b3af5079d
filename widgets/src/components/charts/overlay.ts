/** One metric of many runs over each other: uPlot, thinned to its width, drawn at most once a frame. */
import uPlot from "uplot";
import { smoothed, trackOf, type RunCurve } from "../../core/charts/compare";
import { perRank, positive, whole, type Aligned, type Range } from "../../core/charts/decimate";
import type { Track } from "../../core/charts/series";
import { axes, calm, colors, few, near, NO_PLOT, PADDING, readAt, readOn, zoomOf } from "./chart";
import { onThemeChange } from "../basics/hooks";
import type { Keyed } from "./Plot";

export interface OverlayOptions {
  log: boolean;
  /** From 0, as reported, to below 1. */
  smooth: number;
  time: boolean;
  /** Charts with one key have one cursor. */
  group: string;
}

const HEIGHT = 240;
/** Runs up to which the one under the cursor is marked by points: each costs an element. */
const MARKED = 20;
const GOLDEN = 137.508;

/** The colour of a run by its place: the palette's first, then hues that lie far apart. */
export function colorOf(at: number, host: Element): string {
  const c = colors(host);
  return c.palette[at] ?? `hsl(${Math.round(at * GOLDEN) % 360}, 60%, ${c.dark ? 68 : 42}%)`;
}

/** What is read of all runs at one point. */
export interface OverlayRead {
  values: (number | null)[];
  x: number | null;
  /** Which of the drawn points is read, and the number of the last one. */
  at: number;
  most: number;
}

export class Overlay implements Keyed {
  private plot: uPlot | null = null;
  private raw: Track[] = [];
  private smooth: Track[] = [];
  private frame = 0;
  private range: Range | null = null;
  private lit: number | null = null;
  private readonly undo: (() => void)[] = [];

  constructor(
    private readonly host: HTMLElement,
    /** null: this run has no such metric. */
    curves: (RunCurve | null)[],
    private readonly options: OverlayOptions,
    private readonly zoomed: (range: Range | null) => void,
    private readonly read: (found: OverlayRead) => void,
  ) {
    const empty: RunCurve = { x: [], y: [] };
    this.raw = curves.map((c) => trackOf(c ?? empty));
    if (options.smooth > 0) this.smooth = curves.map((c) => trackOf(smoothed(c ?? empty, options.smooth)));
    const size = new ResizeObserver(() => this.rebuild());
    size.observe(host);
    this.undo.push(() => size.disconnect(), onThemeChange(() => this.rebuild(true)), () => cancelAnimationFrame(this.frame));
  }

  destroy(): void {
    for (const fn of this.undo) fn();
    this.plot?.destroy();
    this.plot = null;
  }

  /** Show a part of the x axis; null: all. */
  zoom(range: Range | null): void {
    this.range = range;
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  moveCursor(by: number): void {
    if (this.plot) readOn(this.plot, readAt(this.plot), by);
  }

  zoomBy(factor: number): void {
    const found = this.plot ? zoomOf(this.plot, whole(this.raw, "time"), readAt(this.plot), factor) : undefined;
    if (found !== undefined) this.zoomed(found);
  }

  resetView(): void {
    this.leave();
    this.zoomed(null);
  }

  leave(): void {
    this.plot?.setCursor({ left: -10, top: -10 });
  }

  /** Have one run stand out. */
  light(at: number | null): void {
    if (at === this.lit) return;
    this.lit = at;
    this.plot?.redraw(false);
  }

  /** Draw now; for who measures. */
  draw(): void {
    const width = this.host.clientWidth;
    if (width < 40) return;
    const data = this.data(width);
    if (!this.plot) this.plot = new uPlot(this.plotOptions(width), data as uPlot.AlignedData, this.host);
    else this.plot.setData(data as uPlot.AlignedData, true);
    this.host.dataset["points"] = String(data[0].length);
    this.told(this.plot);
  }

  private data(width: number): Aligned {
    // both at once: they share their x values
    const tracks = [...this.raw, ...this.smooth];
    const data = perRank(tracks, "time", Math.max(50, Math.min(width - NO_PLOT, 600)), this.range);
    return this.options.log ? positive(data) : data;
  }

  /** Begin anew where the width is another, or in any case: a plot keeps the colours that it was made with. */
  private rebuild(anyhow = false): void {
    const width = this.host.clientWidth;
    if (width < 40 || (!anyhow && this.plot?.width === width)) return;
    this.plot?.destroy();
    this.plot = null;
    this.draw();
  }

  private plotOptions(width: number): uPlot.Options {
    const c = colors(this.host);
    const n = this.raw.length;
    const faint = this.smooth.length > 0;
    const color = this.raw.map((_, at) => colorOf(at, this.host)); // once: each is asked for with every frame
    const line = (at: number, behind: boolean): uPlot.Series => ({
      stroke: (): string => (this.lit !== null && this.lit !== at ? c.grid : color[at] ?? c.grid),
      width: behind ? 1 : n > 50 ? 1 : 1.5, alpha: behind ? 0.3 : 1, spanGaps: true, pxAlign: 0,
      points: { show: few, size: 4 },
    });
    const series = [{}, ...this.raw.map((_, i) => line(i, faint)), ...this.smooth.map((_, i) => line(i, false))];
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      padding: PADDING,
      scales: { x: { time: false }, y: this.options.log ? { distr: 3 } : { range: calm } },
      series,
      axes: axes(c, this.options.time),
      cursor: {
        y: false, points: { show: n <= MARKED, size: 6 }, drag: { x: true, y: false, setScale: false },
        sync: { key: this.options.group },
      },
      hooks: {
        setCursor: [(u) => this.told(u)],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const range = { min: u.posToVal(u.select.left, "x"), max: u.posToVal(u.select.left + u.select.width, "x") };
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          this.zoomed(range);
        }],
        ready: [(u) => u.over.addEventListener("dblclick", () => this.zoomed(null))],
      },
    };
  }

  private told(u: uPlot): void {
    const at = readAt(u);
    const most = Math.max(0, u.data[0].length - 1);
    if (at === null) return this.read({ values: [], x: null, at: most, most });
    const first = 1 + (this.smooth.length ? this.raw.length : 0);
    const values = this.raw.map((_, i) => near(u.data[first + i] as (number | null)[] | undefined, at));
    this.read({ values, x: u.data[0][at] ?? null, at, most });
  }
}
