/** uPlot fed from a job's metric store; follows size and theme, draws at most once a frame. */
import uPlot from "uplot";
import { attemptEnds, breaks, latest } from "../../core/charts/attempts";
import { mean, nearer, perRank, positive, whole, type Aligned, type Range } from "../../core/charts/decimate";
import { metric as show, trim } from "../../core/format/format";
import { t } from "../../core/format/language";
import { elapsed, placesOf, STEPS, stepsOf, tickWords } from "../../core/format/timeaxis";
import type { JobStore } from "../../core/stream/jobstore";
import type { Track, XMode } from "../../core/charts/series";
import { onThemeChange } from "../basics/hooks";
import type { Keyed } from "./Plot";

export interface CurveOptions {
  ranks: boolean;
  log: boolean;
  x: XMode;
}

export interface Readout {
  last: number | null;
  xLabel?: string;
  x: string | null;
  /** Which of the drawn points is read, counted from 0: the last one where none was asked for. */
  at: number;
  /** The number of the last drawn point. */
  most: number;
  values: { label: string; value: number | null; color: string }[];
  note: string;
}

/** Most ranks drawn one by one. */
const RANKS_MAX = 32;
const HEIGHT = 150;
/** Given: pixels of the y axis, and Tuning: beside the plot, where half of the last label of the x axis stands, as of "100" or "1h 30m". */
const [Y_AXIS, BESIDE] = [48, 22];
/** What is around a plot. */
export const PADDING: [number, number, number, number] = [8, BESIDE, 0, 0];
/** Pixels of a chart's width that are no plot. */
export const NO_PLOT = Y_AXIS + BESIDE;
/**
 * A chart that is not in view is drawn this often at most, in milliseconds: a notebook may hold many, and one that is
 * scrolled to should not be found far behind the log beside it.
 */
const UNSEEN_MS = 500;
/** A chart this near to the view is drawn as one in view. */
const NEAR = "300px";
const LIGHT = ["#2a6fdb", "#d9622b", "#23895b", "#a34fc4", "#b08900", "#c2375f", "#3b8ea5", "#6f6f6f"];
const DARK = ["#78aaff", "#ff9c66", "#5fd0a0", "#d79bf0", "#e6c34a", "#ff8aa9", "#6fcbe3", "#b8b8b8"];

interface Colors {
  text: string;
  grid: string;
  palette: string[];
  dark: boolean;
  font: string;
}

export function colors(host: Element): Colors {
  const style = getComputedStyle(host);
  const get = (name: string, other: string): string => style.getPropertyValue(name).trim() || other;
  return {
    text: get("--mlp-dim", "#666"),
    grid: get("--mlp-grid", "#ddd"),
    palette: get("--mlp-dark", "0") === "1" ? DARK : LIGHT,
    dark: get("--mlp-dark", "0") === "1",
    font: `11px ${get("--mlp-font", "sans-serif")}`,
  };
}

/** "#rrggbb" with an alpha. */
const faint = (color: string): string => `${color}2e`;

export class Chart implements Keyed {
  private plot: uPlot | null = null;
  private shapeKey = "";
  private range: Range | null = null;
  private visible = true;
  private stale = true;
  private later: number | undefined;
  /** The newest point that the plot was given: number, and report time in seconds. */
  private newest = { seq: 0, time: 0 };
  private base = 0;
  /** Where new attempts begin, on the x axis. */
  private breaks: number[] = [];
  private readonly undo: (() => void)[] = [];
  private cursor: number | null = null;
  private shown: [number, Track][] = [];
  /** Of which points and attempts `shown` was made. */
  private tracksKey = "";

  constructor(
    private readonly host: HTMLElement,
    private readonly store: JobStore,
    private readonly name: string,
    private readonly options: CurveOptions,
    private readonly tell: (r: Readout) => void,
  ) {
    this.undo.push(store.subscribe((changes) => {
      if (changes.has("metrics")) this.renew();
    }));
    const size = new ResizeObserver(() => this.resize());
    size.observe(host);
    const seen = new IntersectionObserver((entries) => {
      this.visible = entries.at(-1)?.isIntersecting ?? true;
      if (this.visible && this.stale) this.draw();
    }, { rootMargin: NEAR, scrollMargin: NEAR });
    seen.observe(host);
    this.undo.push(
      () => size.disconnect(), () => seen.disconnect(), () => clearTimeout(this.later),
      onThemeChange(() => this.rebuild()),
    );
    this.draw();
  }

  destroy(): void {
    for (const fn of this.undo) fn();
    this.plot?.destroy();
    this.plot = null;
  }

  resetView(): void {
    this.range = null;
    this.leave();
    this.draw();
  }

  leave(): void {
    this.plot?.setCursor({ left: -10, top: -10 });
  }

  moveCursor(by: number): void {
    if (this.plot) readOn(this.plot, this.cursor, by);
  }

  zoomBy(factor: number): void {
    if (!this.plot) return;
    const base = this.options.x === "time" ? this.base : 0;
    const all = whole(this.tracks().map(([, track]) => track), this.options.x);
    const found = zoomOf(this.plot, { min: all.min - base, max: all.max - base }, this.cursor, factor);
    if (found === undefined) return;
    this.range = found && { min: found.min + base, max: found.max + base };
    this.draw();
  }

  private tracks(): [number, Track][] {
    const { metrics, view } = this.store;
    const ends = attemptEnds(view.events);
    const key = `${metrics.version}/${metrics.shape}/${ends.length}`;
    if (key !== this.tracksKey) {
      this.tracksKey = key;
      const ranks = [...(metrics.tracks.get(this.name) ?? new Map<number, Track>())].sort((a, b) => a[0] - b[0]);
      const shown = this.options.x === "time" ? ranks.map(([, track]) => track) : latest(ranks.map(([, track]) => track), ends);
      this.shown = ranks.map(([rank], i) => [rank, shown[i] as Track]);
    }
    return this.shown;
  }

  private data(tracks: [number, Track][], width: number): Aligned {
    const list = tracks.map(([, t]) => t);
    const { ranks, x, log } = this.options;
    const data = ranks ? perRank(list, x, width, this.range) : mean(list, x, width, this.range);
    if (x === "time") {
      this.base = this.base || (data[0][0] ?? 0);
      data[0] = data[0].map((t) => t - this.base);
    }
    return log ? positive(data) : data;
  }

  /** There are new points. */
  private renew(): void {
    this.stale = true;
    if (this.visible) this.draw();
    else this.later ??= window.setTimeout(() => this.draw(), UNSEEN_MS);
  }

  private draw(): void {
    clearTimeout(this.later);
    this.later = undefined;
    const all = this.tracks();
    const tracks = this.options.ranks ? all.slice(0, RANKS_MAX) : all;
    const width = this.host.clientWidth;
    // taken out of the page for now (a notebook keeps only cells near the view): it is drawn when it comes back
    if (!tracks.length || width < 20) return;
    this.stale = false;
    const { lastSeq: seq, lastTime: time } = this.store.metrics;
    this.newest = { seq, time };
    const data = this.data(tracks, Math.max(50, width - NO_PLOT));
    const base = this.options.x === "time" ? this.base : 0;
    this.breaks = breaks(tracks.map(([, t]) => t), this.options.x, attemptEnds(this.store.view.events)).map((x) => x - base);
    this.host.dataset["breaks"] = String(this.breaks.length);
    const key = `${data.length}/${tracks.map(([r]) => r).join()}/${tracks.some(([, t]) => !t.ascends)}`;
    if (!this.plot || key !== this.shapeKey) {
      this.plot?.destroy();
      this.shapeKey = key;
      this.plot = new uPlot(this.plotOptions(tracks, width, data.length), data as uPlot.AlignedData, this.host);
    } else {
      this.plot.setData(data as uPlot.AlignedData, true);
    }
    this.report();
  }

  private rebuild(): void {
    this.shapeKey = "";
    this.draw();
  }

  private resize(): void {
    const width = this.host.clientWidth;
    if (this.plot && width > 20 && this.plot.width !== width) {
      this.plot.setSize({ width, height: HEIGHT });
      this.draw();
    } else if (!this.plot || this.stale) this.draw();
  }

  private report(): void {
    const all = this.tracks();
    // those that the job has given up stand where they stopped
    const now = new Set(this.store.view.job?.ranks.map((r) => r.rank));
    const kept = all.filter(([r]) => now.has(r));
    const lasts = (kept.length ? kept : all).map(([, t]) => t.last).filter((v): v is number => v !== null);
    const last = lasts.length ? lasts.reduce((a, b) => a + b, 0) / lasts.length : null;
    const c = this.plot;
    const at = this.cursor;
    const pal = c ? colors(this.host).palette : LIGHT;
    const values: Readout["values"] = [];
    const many = this.options.ranks && all.length > 1;
    if (c && (at !== null || many)) {
      const columns = many ? Math.min(all.length, RANKS_MAX) : 1;
      for (let s = 0; s < columns; s += 1) {
        const label = many || all.length === 1 ? t("rank {rank}", { rank: all[s]?.[0] ?? 0 }) : t("mean");
        const value = at === null ? (all[s]?.[1].last ?? null) : near(c.data[s + 1] as (number | null)[], at);
        values.push({ label, value, color: pal[s % pal.length] as string });
      }
    }
    const x = c && at !== null ? (c.data[0][at] ?? null) : null;
    const note = this.options.ranks && all.length > RANKS_MAX ? t("Showing {some} of {all} ranks", { some: RANKS_MAX, all: all.length }) : "";
    const time = this.options.x === "time";
    const xLabel = time ? t("after") : all.some(([, track]) => !track.ascends) ? t("report") : t("step");
    const most = Math.max(0, (c?.data[0].length ?? 0) - 1);
    this.tell({ last, xLabel, x: x === null ? null : time ? elapsed(x) : trim(x, 4), at: at ?? most, most, values, note });
  }

  /** A dashed line at the first point of each attempt but the first. */
  private drawBreaks(u: uPlot, color: string): void {
    const { ctx, bbox } = u;
    const { min, max } = u.scales["x"] ?? {};
    ctx.save();
    ctx.strokeStyle = color;
    ctx.lineWidth = devicePixelRatio;
    ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
    for (const x of this.breaks) {
      if (x < (min ?? x) || x > (max ?? x)) continue;
      const at = Math.round(u.valToPos(x, "x", true)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(at, bbox.top);
      ctx.lineTo(at, bbox.top + bbox.height);
      ctx.stroke();
    }
    ctx.restore();
  }

  private plotOptions(tracks: [number, Track][], width: number, columns: number): uPlot.Options {
    const c = colors(this.host);
    const color = (i: number): string => c.palette[i % c.palette.length] as string;
    const line = (i: number): uPlot.Series => ({
      stroke: color(i), width: 1.5, spanGaps: true, pxAlign: 0, points: { show: few, size: 4 },
      ...(i >= c.palette.length ? { dash: [5, 3] } : {}),
    });
    const band: uPlot.Series = { stroke: "transparent", width: 0, spanGaps: true, points: { show: false } };
    const isMean = !this.options.ranks && columns === 4;
    const series = isMean ? [{}, line(0), band, band] : [{}, ...tracks.slice(0, columns - 1).map((_, i) => line(i))];
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      padding: PADDING,
      scales: { x: { time: false }, y: this.options.log ? { distr: 3 } : { range: calm } },
      series,
      ...(isMean ? { bands: [{ series: [3, 2] as [number, number], fill: faint(color(0)) }] } : {}),
      axes: axes(c, this.options.x === "time"),
      cursor: { y: false, points: { size: 6 }, drag: { x: true, y: false, setScale: false } },
      hooks: {
        setCursor: [(u) => {
          this.cursor = readAt(u);
          this.report();
        }],
        setSelect: [(u) => {
          if (u.select.width < 4) return;
          const base = this.options.x === "time" ? this.base : 0;
          const min = u.posToVal(u.select.left, "x") + base;
          const max = u.posToVal(u.select.left + u.select.width, "x") + base;
          this.range = { min, max };
          u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
          this.draw();
        }],
        draw: [(u) => {
          this.drawBreaks(u, c.text);
          // for who measures: these points are on the canvas now
          window.dispatchEvent(new CustomEvent("mlp-drawn", { detail: { metric: this.name, ...this.newest } }));
        }],
        ready: [(u) => u.over.addEventListener("dblclick", () => this.resetView())],
      },
    };
  }
}

/** Points between which one can still zoom in. */
const FEWEST = 3;

/** The point that is read, if one is. */
export const readAt = (u: uPlot): number | null => (u.cursor.left !== undefined && u.cursor.left >= 0 ? (u.cursor.idx ?? null) : null);

/** Reads the point so many further on than one; from none, the first or the last. */
export function readOn(u: uPlot, from: number | null, by: number): void {
  const n = u.data[0].length;
  if (!n) return;
  const to = Math.max(0, Math.min(n - 1, (from ?? (by < 0 ? n : -1)) + by));
  u.setCursor({ left: u.valToPos(u.data[0][to] as number, "x"), top: 10 });
}

/** What is shown next, around the point that is read or the middle: null is all, undefined what is shown already. */
export function zoomOf(u: uPlot, all: Range, at: number | null, factor: number): Range | null | undefined {
  const { min, max } = u.scales["x"] ?? {};
  if (typeof min !== "number" || typeof max !== "number") return undefined;
  if (factor < 1 && u.data[0].length <= FEWEST) return undefined;
  return nearer({ min, max }, all, (at === null ? null : u.data[0][at]) ?? (min + max) / 2, factor);
}

/** Single points are shown as dots only while they are few. */
export function few(u: uPlot, s: number): boolean {
  const column = u.data[s];
  return column !== undefined && column.length <= 40;
}

/** Both axes; `time` where seconds run along x. */
export function axes(c: Colors, time: boolean): uPlot.Axis[] {
  const axis = { stroke: c.text, font: c.font, grid: { stroke: c.grid, width: 1 }, ticks: { show: false }, gap: 4 };
  const along: uPlot.Axis = { ...axis, size: 22, space: 70, splits: (_u, _i, min, max, step, space) => placesOf(min, max, step, space) };
  return [
    time
      ? { ...along, incrs: STEPS, values: (_u, v) => tickWords(v) }
      : { ...along, incrs: (u) => stepsOf(u.data[0]), values: (_u, v) => v.map(short) },
    { ...axis, size: Y_AXIS, space: 28, values: (_u, v) => v.map((n) => (n === null ? "" : show(n))) },
  ];
}

/** A y range with a little air, also where all values are the same. */
export function calm(_u: uPlot, min: number | null, max: number | null): [number, number] {
  if (min === null || max === null) return [0, 1];
  const air = (max - min) * 0.06 || Math.abs(max) * 0.1 || 1;
  return [min >= 0 && min - air < 0 ? 0 : min - air, max + air];
}

/** The value at an index, or the nearest one to the left: other ranks' points lie between. */
export function near(column: (number | null)[] | undefined, at: number): number | null {
  for (let i = at; column && i >= 0 && i > at - 50; i -= 1) {
    const value = column[i];
    if (value !== null && value !== undefined) return value;
  }
  return null;
}

function short(n: number | null): string {
  if (n === null) return "";
  if (Math.abs(n) >= 1e6) return `${trim(n / 1e6, 1)}M`;
  return Math.abs(n) >= 1e4 ? `${trim(n / 1e3, 1)}k` : trim(n, 2);
}
