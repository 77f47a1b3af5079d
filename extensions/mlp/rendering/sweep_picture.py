"""The static picture of a sweep for a saved notebook, GitHub, nbconvert and terminals; no JavaScript.

The module is pure: it takes `{"sweep": Sweep, "curves": [{"trial", "points"}]}`. All external data
is text to show, never markup.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Any

from mlp.language import say, says
from mlp.rendering import svg, words
from mlp.rendering.format import clock_time, core_hours, number
from mlp.rendering.job_picture import FRAME, TONES, bar
from mlp.rendering.terminal import plain
from mlp.terms import REASONS

Json = Mapping[str, Any]
BEST_ROWS = 10
MOST_REASONS = 3
"""Tuning: different reasons that a summary shows."""
WIDTH, HEIGHT = 620, 200
GREY = "#848484"


def state(sweep: Json) -> str:
    """Return the state of a sweep, in words."""
    told: dict[str, Callable[[], str]] = {
        "running": lambda: say("running"),
        "ending": lambda: say("ending"),
        "finished": lambda: say("finished"),
        "failed": lambda: say("failed"),
        "cancelled": lambda: say("cancelled"),
        "deleting": lambda: say("being deleted"),
    }
    found = str(sweep.get("state"))
    return told[found]() if found in told else found


def trial_state(trial: Json) -> str:
    """Return the state of a trial, in words."""
    told: dict[str, Callable[[], str]] = {
        "planned": lambda: say("waiting"),
        "running": lambda: words.phase_word(trial["phase"]) if trial.get("phase") else say("running"),
        "finished": lambda: say("finished"),
        "stopped": REASONS["StoppedEarly"],
        "failed": lambda: say("failed"),
        "cancelled": lambda: say("cancelled"),
    }
    found = str(trial.get("state"))
    return told[found]() if found in told else found


def done(sweep: Json) -> int:
    """Count the trials that have ended."""
    counts = sweep["counts"]
    return int(counts["finished"] + counts["stopped"] + counts["failed"] + counts["cancelled"])


def progress(sweep: Json) -> str:
    """Say how many trials have ended of how many: 12/40."""
    return f"{done(sweep)}/{sweep['budget_trials']}"


def best(sweep: Json) -> str:
    """Say the best value so far; empty where there is none."""
    found = sweep.get("best")
    return f"{sweep['metric']} {number(found['value'])}" if found and sweep.get("metric") else ""


def params(trial: Json) -> str:
    """Write the parameters of a trial."""
    return " ".join(f"{name}={_short(value)}" for name, value in trial["params"].items())


def _short(value: object) -> str:
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else str(value).lower()
        if isinstance(value, bool)
        else str(value)
    )


def in_order(sweep: Json) -> list[Json]:
    """Return the trials, the best first; those without a value by number."""
    trials = list(sweep.get("trials") or ())
    if not sweep.get("metric"):
        return trials
    sign = -1.0 if sweep.get("goal") == "max" else 1.0
    return sorted(
        trials,
        key=lambda t: (t["value"] is None or t["state"] == "failed", sign * (t["value"] or 0.0), t["number"]),
    )


def summary(sweep: Json) -> list[str]:
    """Return the state of a sweep in a few lines."""
    c = sweep["counts"]
    parts = [
        say("{done} of {n} trials have ended", done=done(sweep), n=sweep["budget_trials"]),
        *([says("1 running", "{n} running", c["running"])] if c["running"] else []),
        *([says("1 waiting", "{n} waiting", c["waiting"])] if c["waiting"] else []),
        *([says("1 was stopped early", "{n} were stopped early", c["stopped"])] if c["stopped"] else []),
        *([says("1 failed", "{n} failed", c["failed"])] if c["failed"] else []),
    ]
    took = say("{n} core-hours", n=core_hours(sweep["core_hours"]))
    if sweep.get("budget_core_hours") is not None:
        took = say(
            "{n} of {most} core-hours",
            n=core_hours(sweep["core_hours"]),
            most=core_hours(sweep["budget_core_hours"]),
        )
    lines = [say(", ").join(parts), took]
    if until := clock_time(sweep.get("deadline")):
        lines.append(say("Deadline: {time}", time=until))
    found = sweep.get("best")
    if found and best(sweep):
        lines.append(
            say(
                "Best: {what}, trial {n} ({params})",
                what=best(sweep),
                n=found["number"],
                params=params(found),
            )
        )
    if sweep.get("message"):
        lines.append(str(sweep["message"]))
    return [*lines, *waiting(sweep)]


def waits(trial: Json) -> bool:
    """Tell whether a trial waits for room, while the sweep continues."""
    return trial["state"] == "planned" or (trial["state"] == "running" and trial.get("phase") == "queued")


def waiting(sweep: Json) -> list[str]:
    """Say what its trials wait for, each reason once: 2 trials wait: Waits for nodes."""
    found = Counter(str(t["message"]) for t in sweep.get("trials") or () if waits(t) and t.get("message"))
    return [
        says("1 trial waits: {why}", "{n} trials wait: {why}", n, why=why)
        for why, n in found.most_common(MOST_REASONS)
    ]


def text(snapshot: Json, rows: int = 5) -> str:
    """Draw as text."""
    sweep = snapshot["sweep"]
    share = 100 * done(sweep) / max(sweep["budget_trials"], 1)
    lines = [f"{words.title(sweep)}  {state(sweep)}  {bar(share)} {progress(sweep)}", *summary(sweep)]
    shown = [t for t in in_order(sweep) if t["value"] is not None][:rows]
    lines += [
        f"  {t['number']:>4}  {number(t['value']):>10}  {trial_state(t):<14}  {params(t)}" for t in shown
    ]
    return "\n".join(plain(line).replace("\n", " ") for line in lines)


def html(snapshot: Json) -> str:
    """Draw as HTML without script; styles are additions, the text is whole without them."""
    sweep = snapshot["sweep"]
    colour = TONES.get(str(sweep.get("state")), "#b7791f")
    share = 100 * done(sweep) / max(sweep["budget_trials"], 1)
    curves = {int(c["trial"]): c["points"] for c in snapshot.get("curves") or ()}
    pictures = [picture for picture in (drawn_curves(sweep, curves), parallel(sweep)) if picture]
    parts = [
        f'<div class="mlp-picture" style="{FRAME}">',
        f'<div><b style="font-size:1.1em">{escape(words.title(sweep))}</b>',
        f' <span style="color:{colour};font-weight:600">{escape(state(sweep))}</span></div>',
        *(f"<div>{escape(line)}</div>" for line in summary(sweep)),
        (
            f'<div style="height:6px;border-radius:3px;background:rgba(128,128,128,.25);margin:6px 0">'
            f'<div style="height:6px;border-radius:3px;background:{colour};width:{share:.0f}%"></div></div>'
        ),
        *(
            f'<div><img alt="{escape(name)}" src="{svg.data_uri(picture)}"/></div>'
            for name, picture in pictures
        ),
        _table(sweep),
        "</div>",
    ]
    return "".join(parts)


def _table(sweep: Json) -> str:
    shown = [t for t in in_order(sweep) if t["value"] is not None][:BEST_ROWS]
    if not shown:
        return ""
    cell = "padding:1px 12px 1px 0;text-align:left"
    head = "".join(
        f'<th style="{cell}">{escape(w)}</th>'
        for w in (say("trial"), str(sweep["metric"] or ""), say("state"), say("parameters"))
    )
    rows = "".join(
        "<tr>" + "".join(f'<td style="{cell}">{escape(str(w))}</td>' for w in (t["job"] or t["number"], number(t["value"]), trial_state(t), params(t))) + "</tr>"
        for t in shown
    )  # fmt: skip
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _best_number(sweep: Json) -> int | None:
    found = sweep.get("best")
    return int(found["number"]) if found else None


def drawn_curves(sweep: Json, curves: Mapping[int, Sequence[Sequence[float]]]) -> tuple[str, str] | None:
    """Draw what all trials reported: those that were stopped dimmed, the best one strong."""
    lines = {n: [(x, y) for x, y in points if _finite(y)] for n, points in curves.items()}
    every = [p for points in lines.values() for p in points]
    if not every:
        return None
    (x0, x1), (y0, y1) = _span([p[0] for p in every]), _span([p[1] for p in every])
    left, right, top, bottom = 48.0, 8.0, 24.0, 20.0

    def at(x: float, y: float) -> str:
        px = left + (WIDTH - left - right) * (x - x0) / (x1 - x0)
        py = HEIGHT - bottom - (HEIGHT - top - bottom) * (y - y0) / (y1 - y0)
        return f"{px:.1f} {py:.1f}"

    stopped = {
        t["number"] for t in sweep.get("trials") or () if t["state"] in {"stopped", "failed", "cancelled"}
    }
    name = str(sweep.get("metric") or "")
    parts = [_head(), f'<text x="{left:g}" y="15" font-weight="600">{escape(name[:28])}</text>']
    for tick in svg.ticks(y0, y1):
        y = at(x0, tick).split()[1]
        parts.append(f'<path d="M{left:g} {y}H{WIDTH - right:g}" stroke="{GREY}" stroke-opacity=".25"/>')
        parts.append(f'<text x="{left - 6:g}" y="{float(y) + 4:.1f}" text-anchor="end">{number(tick)}</text>')
    best_one = _best_number(sweep)
    for n, points in sorted(lines.items(), key=lambda item: (item[0] == best_one, item[0] not in stopped)):
        if points:
            parts.append(_line([at(x, y) for x, y in points], strong=n == best_one, dim=n in stopped))
    return name, "".join([*parts, "</svg>"])


def parallel(sweep: Json) -> tuple[str, str] | None:
    """Draw parallel coordinates: an axis for each parameter, the last one the metric, a line for each trial that has a value."""
    trials = [t for t in sweep.get("trials") or () if t["value"] is not None]
    names = list((sweep.get("grid") or {}) | (sweep.get("search") or {}))[:8]
    if len(trials) < 2 or not names or not sweep.get("metric"):
        return None
    axes = [*names, str(sweep["metric"])]
    columns = [[t["params"].get(n) for t in trials] for n in names] + [[t["value"] for t in trials]]
    logs = [str((sweep.get("search") or {}).get(n, "")).startswith("log") for n in axes]
    shares = [_shares(values, log=log) for values, log in zip(columns, logs, strict=True)]
    left, right, top, bottom = 60.0, 60.0, 30.0, 20.0
    step = (WIDTH - left - right) / (len(axes) - 1)
    parts = [_head()]
    for i, (name, (low, high, _)) in enumerate(zip(axes, shares, strict=True)):
        x = left + i * step
        parts.append(f'<path d="M{x:.1f} {top:g}V{HEIGHT - bottom:g}" stroke="{GREY}"/>')
        parts.append(
            f'<text x="{x:.1f}" y="12" text-anchor="middle" font-weight="600">{escape(name[:14])}</text>'
        )
        parts.append(f'<text x="{x:.1f}" y="25" text-anchor="middle">{escape(high[:12])}</text>')
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 5}" text-anchor="middle">{escape(low[:12])}</text>')
    best_one = _best_number(sweep)
    for k, trial in sorted(enumerate(trials), key=lambda item: item[1]["number"] == best_one):
        points = [
            f"{left + i * step:.1f} {HEIGHT - bottom - (HEIGHT - top - bottom) * share[2][k]:.1f}"
            for i, share in enumerate(shares)
        ]
        parts.append(_line(points, strong=trial["number"] == best_one, dim=trial["state"] == "stopped"))
    return say("parameters"), "".join([*parts, "</svg>"])


def _shares(values: Sequence[Any], *, log: bool) -> tuple[str, str, list[float]]:
    """Return the labels below and above an axis, and the place of each value on it, from 0 to 1."""
    numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
    if len(numbers) == len(values):
        placed = [math.log(v) if log and v > 0 else float(v) for v in numbers]
        low, high = min(placed), max(placed)
        return (
            _short(float(min(numbers))),
            _short(float(max(numbers))),
            [(p - low) / (high - low) if high > low else 0.5 for p in placed],
        )
    words_ = sorted({str(v) for v in values})
    most = max(len(words_) - 1, 1)
    return words_[0], words_[-1], [words_.index(str(v)) / most for v in values]


def _head() -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'font-family="system-ui,sans-serif" font-size="11" fill="{GREY}">'
    )


def _line(points: Sequence[str], *, strong: bool, dim: bool) -> str:
    opacity, width = (1.0, 2.4) if strong else (0.18, 1.2) if dim else (0.55, 1.2)
    colour = svg.COLOUR if not dim or strong else GREY
    if len(points) == 1:
        x, y = points[0].split()
        return f'<circle cx="{x}" cy="{y}" r="2.5" fill="{colour}" fill-opacity="{opacity}"/>'
    return f'<path d="M{"L".join(points)}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-opacity="{opacity}" stroke-linejoin="round"/>'


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value) and abs(value) <= svg.LARGEST


def _span(values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if high - low < 1e-12 * max(abs(low), abs(high), 1e-300):
        pad = abs(low) * 0.1 or 1.0
        return low - pad, high + pad
    return low, high
