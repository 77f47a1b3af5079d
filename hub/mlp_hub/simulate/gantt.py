"""Picture of a run: the work on each node and the holdings of each tenant over time, as one SVG file.

It is readable for three jobs and for many thousands. A row with few bars shows every job with its
name. Bars thinner than a pixel are drawn together with their neighbours of the same tenant. A row
with very many shows each tenant's part of it instead. If there is not enough room for all nodes,
they share rows. Colours follow the reader's light or dark theme.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model.resources import placed
from mlp_hub.simulate.report import seconds
from mlp_hub.simulate.scenario import JobLine, Scenario

WIDTH = 960
LEFT = 120
CHART = WIDTH - LEFT - 20
ROW = 28
GAP = 4
TENANTS = 120
"""Height of the part that shows the tenants."""
MOST_ROWS = 60
MOST_BARS = 400
"""A row with more bars than this shows shares instead, and beside such a row those with a quarter of it do too."""
COLOURS = 8
"""Tenants with their own colour; the rest is grey together."""
BINS = CHART // 2
LEAST_STEP = 0.3

_STYLE = """
text{font:12px system-ui,sans-serif;fill:#1f2328}.t{font-size:16px;font-weight:600}.s{fill:#59636e}
.bg{fill:#fff}.row{fill:#f3f5f7}.down{fill:#b4232a;opacity:.25}.axis{stroke:#c5ccd3;stroke-width:1}
.n{font-size:10px;fill:#fff;pointer-events:none}.b{stroke:#fff;stroke-width:.5}
.c0{fill:#2f6fb5}.c1{fill:#b35900}.c2{fill:#2a7d4f}.c3{fill:#8a4bb0}.c4{fill:#b03060}.c5{fill:#007f8c}.c6{fill:#6f6a00}
.c7{fill:#7a4a2b}.c8{fill:#6e7781}
@media (prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9aa5b1}.bg{fill:#0d1117}.row{fill:#1a2028}
.down{fill:#ff6b70}.axis{stroke:#3a434d}.b{stroke:#0d1117}.n{fill:#0d1117}
.c0{fill:#6cb0f5}.c1{fill:#f0a050}.c2{fill:#5cc98c}.c3{fill:#c792ea}.c4{fill:#f08cb0}.c5{fill:#4fd0dc}.c6{fill:#d4cc50}
.c7{fill:#d0a080}.c8{fill:#9aa5b1}}
"""


@dataclass(slots=True)
class _Bar:
    """A job on a row: from when to when, and how much of the row's capacity (0 to 1)."""

    start: float
    end: float
    share: float
    job: str
    tenant: str
    ranks: int


@dataclass(slots=True)
class _Row:
    """A node, or some nodes that share a row."""

    label: str
    nodes: int
    capacity: Resources
    bars: list[_Bar] = field(default_factory=list)
    down: list[tuple[float, float]] = field(default_factory=list)


class Gantt:
    """Takes note of a run and draws it."""

    def __init__(self, scenario: Scenario, title: str) -> None:
        self.title = title
        self._row_of: dict[str, _Row] = {}
        self._rows: list[_Row] = []
        self._since: dict[str, float] = {}
        self._held: dict[str, list[tuple[float, float, int]]] = {}
        self._dimension = "gpu" if any(line.per_worker.gpu for line in scenario.jobs) else "cpu"
        self._there = sum(getattr(n.capacity, self._dimension) for n in scenario.nodes)
        each = -(-len(scenario.nodes) // MOST_ROWS)
        for i in range(0, len(scenario.nodes), max(each, 1)):
            group = scenario.nodes[i : i + each]
            capacity = sum((n.capacity for n in group), Resources())
            label = group[0].name if len(group) == 1 else f"{group[0].name} … {group[-1].name}"
            self._rows.append(row := _Row(label, len(group), capacity))
            self._row_of.update((n.name, row) for n in group)

    # --- told by the engine

    def holds(self, job: str, line: JobLine, placement: tuple[str, ...], start: float, end: float) -> None:
        """Note that a job had these nodes, one entry for each rank, from start to end."""
        each = line.per_worker
        ranks: dict[int, tuple[_Row, int]] = {}
        for node in placement:
            row = self._row_of[node]
            ranks[id(row)] = (row, ranks.get(id(row), (row, 0))[1] + 1)
        for row, n in ranks.values():
            share = max(
                (n * need / have if have else 0.0)
                for dimension, need in placed(each)
                for have in (row.capacity.part(dimension),)
            )
            row.bars.append(_Bar(start, end, min(share, 1.0), job, line.tenant, n))
        amount = each.part(self._dimension) * len(placement)
        self._held.setdefault(line.tenant, []).append((start, end, amount))

    def capacity(self, node: str, *, up: bool, at: float) -> None:
        """Note that a node went down or came back."""
        if not up:
            self._since[node] = at
        elif node in self._since:
            self._row_of[node].down.append((self._since.pop(node), at))

    # --- drawing

    def svg(self) -> str:
        """Return the picture."""
        spans = [(b.start, b.end) for row in self._rows for b in row.bars]
        begin = min((s for s, _ in spans), default=0.0)
        end = max((e for _, e in spans), default=1.0)
        for node, since in self._since.items():
            self._row_of[node].down.append((since, max(end, since)))
        self._since.clear()
        scale = _Scale(begin, max(end - begin, 1e-9))
        weight = {
            t: sum((e - s) * a for s, e, a in held) or sum(e - s for s, e, _ in held)
            for t, held in self._held.items()
        }
        ranked = sorted(weight, key=lambda t: (-weight[t], t))
        colours = {t: min(i, COLOURS) for i, t in enumerate(ranked)}
        legend = _legend(ranked, colours)
        nodes_at = 66 + 18 * len(legend)
        tenants_at = nodes_at + len(self._rows) * (ROW + GAP) + 30
        height = tenants_at + TENANTS + 50
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style>",
            f'<rect class="bg" width="{WIDTH}" height="{height}"/>',
            f'<text class="t" x="20" y="28">{escape(self.title)}</text>',
            *(
                f'<circle class="c{colour}" cx="{x + 5}" cy="{46 + 18 * i}" r="5"/>'
                f'<text x="{x + 15}" y="{50 + 18 * i}">{name}</text>'
                for i, line in enumerate(legend)
                for x, colour, name in line
            ),
            f'<text class="s" x="20" y="{nodes_at - 8}">nodes</text>',
        ]
        for i, row in enumerate(self._rows):
            parts += self._row(row, nodes_at + i * (ROW + GAP), scale, colours)
        parts.append(f'<text class="s" x="20" y="{tenants_at - 8}">{self._dimension} held by tenants</text>')
        parts += self._tenants(tenants_at, scale, ranked, colours)
        parts += _axis(nodes_at, tenants_at + TENANTS, scale)
        return "\n".join([*parts, "</svg>"]) + "\n"

    def _row(self, row: _Row, y: float, scale: _Scale, colours: dict[str, int]) -> Iterator[str]:
        yield f'<text x="{LEFT - 8}" y="{y + 18}" text-anchor="end">{_short(row.label, 16)}<title>{escape(row.label)}</title></text>'
        yield f'<rect class="row" x="{LEFT}" y="{y}" width="{CHART}" height="{ROW}"/>'
        for start, end in row.down:
            x, w = scale.x(start), max(scale.x(end) - scale.x(start), 1)
            one = escape(row.label) if row.nodes == 1 else "a node"
            yield (
                f'<rect class="down" x="{x:.1f}" y="{y}" width="{w:.1f}" height="{ROW}">'
                f"<title>{one} down from {seconds(start)} to {seconds(end)}</title></rect>"
            )
        crowded = any(len(r.bars) > MOST_BARS for r in self._rows)
        if crowded and len(row.bars) > MOST_BARS // 4:
            tenants = sorted({b.tenant for b in row.bars}, key=lambda t: (colours[t], t))
            held = {t: [(b.start, b.end, b.share) for b in row.bars if b.tenant == t] for t in tenants}
            yield from _areas(held, _Strip(y, ROW, 1.0, f" on {row.label}"), scale, colours)
            return
        yield from _bars(row, y, scale, colours)

    def _tenants(
        self, y: float, scale: _Scale, ranked: Sequence[str], colours: dict[str, int]
    ) -> Iterator[str]:
        yield f'<rect class="row" x="{LEFT}" y="{y}" width="{CHART}" height="{TENANTS}"/>'
        total = f"{self._there / 1000:g}"
        yield f'<text x="{LEFT - 8}" y="{y + 12}" text-anchor="end">{total} {self._dimension}</text>'
        yield f'<text x="{LEFT - 8}" y="{y + TENANTS}" text-anchor="end">0</text>'
        held = {t: [(s, e, float(a)) for s, e, a in self._held[t]] for t in ranked}
        yield from _areas(held, _Strip(y, TENANTS, float(self._there or 1)), scale, colours)


@dataclass(slots=True)
class _Scale:
    begin: float
    span: float

    def x(self, time: float) -> float:
        """Return where a time is."""
        return LEFT + CHART * (min(max(time, self.begin), self.begin + self.span) - self.begin) / self.span


def _bars(row: _Row, y: float, scale: _Scale, colours: dict[str, int]) -> Iterator[str]:
    """Draw each bar where the row is free at its start; those below a pixel together with their neighbours."""
    busy: list[tuple[float, float, float]] = []  # (until, from, to) of the row's height
    thin: list[_Bar] = []
    for bar in sorted(row.bars, key=lambda b: (b.start, b.job)):
        width = scale.x(bar.end) - scale.x(bar.start)
        if width < 1:
            if thin and (bar.tenant != thin[0].tenant or scale.x(bar.start) - scale.x(thin[-1].end) > 1):
                yield _thin(thin, y, scale, colours)
                thin = []
            thin.append(bar)
            continue
        busy = [b for b in busy if b[0] > bar.start]
        for low, high in _free(busy, max(bar.share, 0.04)):
            busy.append((bar.end, low, high))
            x, top, h = scale.x(bar.start), y + low * ROW, (high - low) * ROW
            ranks = "1 rank" if bar.ranks == 1 else f"{bar.ranks} ranks"
            yield (
                f'<rect class="b c{colours[bar.tenant]}" x="{x:.1f}" y="{top:.1f}" width="{width:.1f}" height="{h:.1f}">'
                f"<title>{escape(bar.job)} of {escape(bar.tenant)}: {ranks} on {escape(row.label)}, "
                f"from {seconds(bar.start)} to {seconds(bar.end)}</title></rect>"
            )
            if h >= 10 and width >= 7 * len(bar.job) + 6:
                yield f'<text class="n" x="{x + 3:.1f}" y="{top + h / 2 + 3.5:.1f}">{escape(bar.job)}</text>'
    if thin:
        yield _thin(thin, y, scale, colours)


def _thin(bars: Sequence[_Bar], y: float, scale: _Scale, colours: dict[str, int]) -> str:
    x, end = scale.x(bars[0].start), scale.x(max(b.end for b in bars))
    height = min(max(0.1, *(b.share for b in bars)), 1.0) * ROW
    what = f"{bars[0].job}" if len(bars) == 1 else f"{len(bars)} short jobs"
    return (
        f'<rect class="c{colours[bars[0].tenant]}" x="{x:.1f}" y="{y + ROW - height:.1f}" '
        f'width="{max(end - x, 0.6):.1f}" height="{height:.1f}"><title>{escape(what)} of {escape(bars[0].tenant)} '
        f"from {seconds(bars[0].start)} on</title></rect>"
    )


def _free(busy: Sequence[tuple[float, float, float]], share: float) -> list[tuple[float, float]]:
    """Find room for a share of the row: in one piece if there is one, else in several, else over others at the top."""
    taken = sorted((low, high) for _, low, high in busy)
    gaps: list[tuple[float, float]] = []
    at = 0.0
    for low, high in [*taken, (1.0, 1.0)]:
        if low - at > 1e-6:
            gaps.append((at, low))
        at = max(at, high)
    for low, high in gaps:
        if high - low >= share - 1e-6:
            return [(low, low + share)]
    pieces: list[tuple[float, float]] = []
    for low, high in gaps:
        size = min(high - low, share)
        pieces.append((low, low + size))
        share -= size
        if share <= 1e-6:
            break
    return pieces or [(0.0, min(share, 1.0))]


@dataclass(frozen=True, slots=True)
class _Strip:
    """Where shares are drawn: `total` is as high as the strip."""

    y: float
    height: float
    total: float
    where: str = ""


def _areas(
    held: dict[str, list[tuple[float, float, float]]], strip: _Strip, scale: _Scale, colours: dict[str, int]
) -> Iterator[str]:
    """Draw what each tenant held over time, one upon the other; each step is the average of two pixels."""
    below = [0.0] * BINS
    for tenant, spans in held.items():
        top = [b + v / strip.total for b, v in zip(below, _average(spans, scale), strict=True)]
        share = sum((e - s) * a for s, e, a in spans) / (scale.span * strip.total)
        yield (
            f'<path class="c{colours[tenant]}" d="{_outline(_steps(top, strip), _steps(below, strip))}">'
            f"<title>{escape(tenant)}{escape(strip.where)}: "
            f"{len(spans)} times, {share:.1%} of all on average</title></path>"
        )
        below = top


def _average(spans: Iterable[tuple[float, float, float]], scale: _Scale) -> list[float]:
    """Return the average held in each bin, by sums of differences: the cost is that of the spans, not of their length."""
    edges = [scale.begin + scale.span * i / BINS for i in range(BINS + 1)]
    width = scale.span / BINS
    level = [0.0] * (BINS + 1)  # whole bins, as differences
    part = [0.0] * BINS
    for start, end, amount in spans:
        first = min(max(bisect_right(edges, start) - 1, 0), BINS - 1)
        last = min(max(bisect_left(edges, end) - 1, 0), BINS - 1)
        if first == last:
            part[first] += amount * (end - start) / width
            continue
        part[first] += amount * (edges[first + 1] - start) / width
        part[last] += amount * (end - edges[last]) / width
        level[first + 1] += amount
        level[last] -= amount
    now = 0.0
    out: list[float] = []
    for i in range(BINS):
        now += level[i]
        out.append(max(now + part[i], 0.0))
    return out


def _steps(values: Sequence[float], strip: _Strip) -> list[tuple[int, float]]:
    """Return where a line of steps begins and where it changes: (x, y). Steps that nobody can tell apart are one."""
    steps: list[tuple[int, float]] = []
    for i, value in enumerate(values):
        y = round(strip.y + strip.height * (1 - min(value, 1.0)), 1)
        if not steps or abs(y - steps[-1][1]) >= LEAST_STEP:
            steps.append((LEFT + CHART * i // BINS, y))
    return steps


def _outline(top: Sequence[tuple[int, float]], below: Sequence[tuple[int, float]]) -> str:
    """Return the path along one line of steps and back along the other."""
    parts = [f"M{LEFT} {top[0][1]:g}"]
    parts += [f"H{x}V{y:g}" for x, y in top[1:]]
    parts.append(f"H{LEFT + CHART}V{below[-1][1]:g}")
    for (x, _), (_, y) in zip(reversed(below), [*reversed(below[:-1]), below[0]], strict=True):
        parts.append(f"H{x}V{y:g}")
    return "".join([*parts, "Z"])


def _axis(top: float, bottom: float, scale: _Scale) -> Iterator[str]:
    step = _step(scale.span / 6)
    first = math.ceil(scale.begin / step - 1e-9)
    last = math.floor((scale.begin + scale.span) / step + 1e-9)
    for i in range(first, last + 1):
        x = scale.x(i * step)
        anchor = "end" if x > LEFT + CHART - 30 else "middle"
        yield f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{bottom + 6}"/>'
        # who knows what time of day a run began at writes that instead of the time since
        at = f'x="{x:.1f}" y="{bottom + 22}" text-anchor="{anchor}" data-t="{i * step:g}"'
        yield f'<text class="s" {at}>{_tick(i * step, step)}</text>'


def _tick(at: float, step: float) -> str:
    """Write a time on the axis: in the largest unit of which a step has one or more, and the next larger one."""
    units = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
    n = next((i for i, (size, _) in enumerate(units) if step >= size), 3)
    size, unit = units[n]
    larger, name = units[max(n - 1, 0)]
    whole = int(at // larger) if n and step == int(step) and at >= 2 * larger else 0
    rest = (at - whole * larger) / size
    return " ".join(
        [*([f"{whole} {name}"] if whole else []), *([f"{rest:g} {unit}"] if rest or not whole else [])]
    )


def _step(least: float) -> float:
    """Return the next round span of time: 1, 2 or 5 with zeroes, and beyond a minute what clocks show."""
    round_ones = (60, 120, 300, 600, 1200, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
    if 50 < least <= round_ones[-1]:
        return next(float(step) for step in round_ones if step >= least)
    unit = 86400.0 if least > round_ones[-1] else 1.0
    power = unit * 10.0 ** math.floor(math.log10(least / unit))
    return next(power * n for n in (1, 2, 5, 10) if power * n >= least)


def _legend(ranked: Sequence[str], colours: dict[str, int]) -> list[list[tuple[int, int, str]]]:
    """Set the legend in lines of (x, colour, name)."""
    entries = [(colours[t], _short(t, 28)) for t in ranked[:COLOURS]]
    if len(ranked) > COLOURS:
        entries.append((COLOURS, f"{len(ranked) - COLOURS} other tenants"))
    lines: list[list[tuple[int, int, str]]] = [[]]
    x = 20
    for colour, name in entries:
        width = 30 + 7 * len(name)
        if lines[-1] and x + width > WIDTH - 20:
            lines.append([])
            x = 20
        lines[-1].append((x, colour, name))
        x += width
    return lines


def _short(text: str, most: int) -> str:
    return escape(text if len(text) <= most else f"{text[: most - 1]}…")
