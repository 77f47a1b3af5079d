/** A chart as who works without a mouse has it: one Tab stop, whose keys read single values and zoom. */
import type { JSX, RefObject } from "preact";

/** What a chart can do by keys. */
export interface Keyed {
  /** Read the point so many further on. */
  moveCursor: (by: number) => void;
  /** Show so much of the x axis, of what is shown, around the point that is read. */
  zoomBy: (factor: number) => void;
  /** Show all, and read nothing. */
  resetView: () => void;
  /** Read nothing. */
  leave: () => void;
}

const STEPS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: Number.NEGATIVE_INFINITY, End: Number.POSITIVE_INFINITY };
const ZOOMS: Readonly<Record<string, number>> = { "+": 0.5, "=": 0.5, "-": 2, "_": 2 };

export function Plot({ box, chart, label, at, most, text }: {
  box: RefObject<HTMLDivElement | null>;
  chart: RefObject<Keyed | null>;
  label: string;
  /** Which of the drawn points is read, and the number of the last one. */
  at: number;
  most: number;
  /** What is read, in words. */
  text: string;
}): JSX.Element {
  const keys = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return; // the browser's own, as Control and + are
    const [by, factor] = [STEPS[event.key], ZOOMS[event.key]];
    if (by !== undefined) chart.current?.moveCursor(by);
    else if (factor !== undefined) chart.current?.zoomBy(factor);
    else if (event.key === "Escape") chart.current?.resetView();
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <div
      ref={box}
      class="mlp-plot"
      tabIndex={0}
      role="slider"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={most}
      aria-valuenow={at}
      aria-valuetext={text}
      onKeyDown={keys}
      onBlur={() => chart.current?.leave()}
    />
  );
}
