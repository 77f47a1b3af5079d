"""One metric's curve as a small SVG that reads on light and on dark ground, or as a line of characters."""

from __future__ import annotations

import base64
import math
from html import escape
from typing import Any

from mlp.rendering.format import number

WIDTH, HEIGHT = 300, 150
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 24, 20
COLOUR = "#2a6fdb"
"""Of a curve: the first of the widget's palette (`widgets/src/components/charts/chart.ts`)."""

_BARS = "▁▂▃▄▅▆▇█"

LARGEST = 1e300
"""Beyond this, scaling would overflow: such a value is left out as infinity is."""


def ticks(low: float, high: float, count: int = 3) -> list[float]:
    """Return round numbers between two bounds."""
    if high <= low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(s for s in (power, 2 * power, 5 * power, 10 * power) if s >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [i * step for i in range(first, math.floor(high / step + 1e-9) + 1)]


def spark(ys: list[float], width: int = 24) -> str:
    """Draw a curve in one line of characters, for where there is only text."""
    values = [y for y in ys if math.isfinite(y) and abs(y) <= LARGEST]
    if not values:
        return ""
    size = max(1, -(-len(values) // width))
    groups = [values[i : i + size] for i in range(0, len(values), size)]
    means = [sum(y / len(group) for y in group) for group in groups]
    low, high = min(means), max(means)
    top = len(_BARS) - 1
    return "".join(
        _BARS[round((y / 2 - low / 2) / (high / 2 - low / 2) * top) if high > low else 0] for y in means
    )


PALETTE = ("#2a6fdb", "#d9622b", "#23895b", "#a34fc4", "#b08900", "#c2375f", "#3b8ea5", "#6f6f6f")
"""Of several curves: the widget's."""
Points = list[tuple[float, float]]


def curve(name: str, xs: list[float], ys: list[Any], colour: str = COLOUR) -> str:
    """Draw a curve; a title on top, the last value beside it."""
    points = _points(xs, ys)
    return _drawn(name, [(points, colour)], number(points[-1][1]) if points else "")


def overlay(name: str, curves: list[tuple[list[float], list[Any]]]) -> str:
    """Draw curves over each other, each in the colour of its place."""
    lines = [(_points(xs, ys), PALETTE[i % len(PALETTE)]) for i, (xs, ys) in enumerate(curves)]
    return _drawn(name, lines, "")


def _points(xs: list[float], ys: list[Any]) -> Points:
    return [
        (x, float(y))
        for x, y in zip(xs, ys, strict=False)
        if isinstance(y, (int, float)) and abs(y) <= LARGEST
    ]


def _drawn(name: str, lines: list[tuple[Points, str]], last: str) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui,sans-serif" font-size="11" fill="#848484">'
    )
    shown = escape(name if len(name) <= 28 else name[:27] + "…")
    title = f'<text x="{LEFT}" y="15" font-weight="600">{shown}</text>'
    every = [p for points, _ in lines for p in points]
    if not every:
        return f"{head}{title}</svg>"
    x0, x1 = min(p[0] for p in every), max(p[0] for p in every)
    y0, y1 = min(p[1] for p in every), max(p[1] for p in every)
    if y1 - y0 < 1e-12 * max(abs(y0), abs(y1), 1e-300):
        pad = abs(y0) * 0.1 or 1.0
        y0, y1 = y0 - pad, y1 + pad

    def px(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((x - x0) / (x1 - x0) if x1 > x0 else 0.5)

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - y0) / (y1 - y0)

    parts = [head, title]
    if last:
        parts.append(f'<text x="{WIDTH - RIGHT}" y="15" text-anchor="end" fill="{lines[0][1]}">{last}</text>')
    for tick in ticks(y0, y1):
        at = f"{py(tick):.1f}"
        parts.append(f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" stroke="#848484" stroke-opacity=".25"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{py(tick) + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    for tick, anchor in ((x0, "start"), (x1, "end")) if x1 > x0 else ((x0, "middle"),):
        parts.append(
            f'<text x="{px(tick):.1f}" y="{HEIGHT - 5}" text-anchor="{anchor}">{number(tick)}</text>'
        )
    parts += [_line([(px(x), py(y)) for x, y in points], colour) for points, colour in lines if points]
    return "".join([*parts, "</svg>"])


def _line(points: Points, colour: str) -> str:
    if len(points) == 1:
        return f'<circle cx="{points[0][0]:.1f}" cy="{points[0][1]:.1f}" r="3" fill="{colour}"/>'
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round"/>'


def data_uri(svg: str) -> str:
    """Return an SVG as the address of an image."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
