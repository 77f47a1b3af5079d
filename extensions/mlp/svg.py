"""One metric's curve as a small SVG that reads on light and on dark ground, or as a line of characters."""

from __future__ import annotations

import base64
import math
from html import escape
from typing import Any

from mlp.format import number

WIDTH, HEIGHT = 300, 150
LEFT, RIGHT, TOP, BOTTOM = 48, 8, 24, 20
COLOUR = "#2a6fdb"
"""Of a curve: the first of the widget's palette (`widgets/src/components/chart.ts`)."""

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


def curve(name: str, xs: list[float], ys: list[Any], colour: str = COLOUR) -> str:
    """Draw a curve; a title on top, the last value beside it."""
    points = [
        (x, float(y))
        for x, y in zip(xs, ys, strict=False)
        if isinstance(y, (int, float)) and abs(y) <= LARGEST
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="system-ui,sans-serif" font-size="11" fill="#848484">'
    )
    shown = escape(name if len(name) <= 28 else name[:27] + "…")
    title = f'<text x="{LEFT}" y="15" font-weight="600">{shown}</text>'
    if not points:
        return f"{head}{title}</svg>"
    x0, x1 = min(p[0] for p in points), max(p[0] for p in points)
    y0, y1 = min(p[1] for p in points), max(p[1] for p in points)
    if y1 - y0 < 1e-12 * max(abs(y0), abs(y1), 1e-300):
        pad = abs(y0) * 0.1 or 1.0
        y0, y1 = y0 - pad, y1 + pad

    def px(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * ((x - x0) / (x1 - x0) if x1 > x0 else 0.5)

    def py(y: float) -> float:
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - y0) / (y1 - y0)

    parts = [head, title]
    parts.append(
        f'<text x="{WIDTH - RIGHT}" y="15" text-anchor="end" fill="{colour}">{number(points[-1][1])}</text>'
    )
    for tick in ticks(y0, y1):
        at = f"{py(tick):.1f}"
        parts.append(f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" stroke="#848484" stroke-opacity=".25"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{py(tick) + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    for tick, anchor in ((x0, "start"), (x1, "end")) if x1 > x0 else ((x0, "middle"),):
        parts.append(
            f'<text x="{px(tick):.1f}" y="{HEIGHT - 5}" text-anchor="{anchor}">{number(tick)}</text>'
        )
    if len(points) == 1:
        parts.append(
            f'<circle cx="{px(points[0][0]):.1f}" cy="{py(points[0][1]):.1f}" r="3" fill="{colour}"/>'
        )
    else:
        path = "L".join(f"{px(x):.1f} {py(y):.1f}" for x, y in points)
        parts.append(
            f'<path d="M{path}" fill="none" stroke="{colour}" stroke-width="1.6" stroke-linejoin="round"/>'
        )
    return "".join([*parts, "</svg>"])


def data_uri(svg: str) -> str:
    """Return an SVG as the address of an image."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
