"""A job's last state as HTML and as plain text, for where no JavaScript runs: GitHub, nbconvert, a terminal.

Both take the snapshot that the widget keeps: `{"job": Job, "why": Why, "curves": {name: {"x": [...], "y": [...]}},
"log": [{"rank", "time", "stream", "text"}], "saved_at": RFC 3339}`; all but `job` may be missing. Whatever a snapshot
holds is text to show, never markup: names, log lines and errors are anybody's words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

LOG_LINES = 12
CURVES = 8
BAR = 24
WIDTH, HEIGHT = 220, 60
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f\x7f]")
_COLORS = {"finished": "#1a6e43", "failed": "#b3261e", "running": "#1f5fbf"}


def picture_text(snapshot: Mapping[str, Any]) -> str:
    """Return the job's state as a few lines of text."""
    job = _job(snapshot)
    lines = [f"Job {_clean(job.get('name'))}: {_state(job)}"]
    if facts := _facts(job):
        lines.append(", ".join(facts))
    if (progress := _number(job.get("progress"))) is not None:
        full = round(BAR * min(max(progress, 0), 100) / 100)
        lines.append(f"[{'#' * full}{'.' * (BAR - full)}] {progress:.0f} %")
    lines += [_clean(text) for text in _notes(snapshot)]
    lines += [f"{name}: {value:.4g}" for name, value in _last_values(snapshot)]
    lines += _log(snapshot)
    return "\n".join(lines)


def picture_html(snapshot: Mapping[str, Any]) -> str:
    """Return the job's state as self-contained HTML, with its curves as inline SVG; every value is escaped."""
    job = _job(snapshot)
    color = _COLORS.get(str(job.get("phase")), "#58616b")
    parts = [
        '<div style="font:13px/1.5 system-ui,sans-serif;border:1px solid #c3c7cc;border-radius:6px;padding:10px 14px">',
        f'<div><b style="font-size:15px">{_html(job.get("name"))}</b>',
        f' <b style="color:{color}">{_html(_state(job))}</b></div>',
    ]
    if facts := _facts(job):
        parts.append(f'<div style="opacity:0.75">{_html(" · ".join(facts))}</div>')
    if (progress := _number(job.get("progress"))) is not None:
        parts.append(f"<div>Progress {progress:.0f} %</div>")
    parts += [f"<div>{_html(text)}</div>" for text in _notes(snapshot)]
    curves = [_svg(name, ys) for name, ys in _curves(snapshot)[:CURVES]]
    if curves:
        parts.append(f"<div>{''.join(curves)}</div>")
    if log := _log(snapshot):
        parts.append(
            '<pre style="font-size:12px;max-height:220px;overflow:auto;white-space:pre-wrap">'
            f"{_html(chr(10).join(log))}</pre>"
        )
    if saved := snapshot.get("saved_at"):
        parts.append(f'<div style="opacity:0.75;font-size:12px">State of {_html(saved)}</div>')
    parts.append("</div>")
    return "".join(parts)


def _job(snapshot: Mapping[str, Any]) -> Mapping[str, Any]:
    job = snapshot.get("job")
    return job if isinstance(job, Mapping) else {}


def _state(job: Mapping[str, Any]) -> str:
    phase = _clean(job.get("phase") or job.get("state") or "unknown")
    return phase[:1].upper() + phase[1:]


def _facts(job: Mapping[str, Any]) -> list[str]:
    facts = []
    if tenant := job.get("tenant"):
        facts.append(f"tenant {_clean(tenant)}")
    if runtime := job.get("runtime"):
        facts.append(_clean(runtime))
    if (workers := job.get("workers")) is not None:
        facts.append(f"{_clean(workers)} {'worker' if str(workers) == '1' else 'workers'}")
    return facts


def _notes(snapshot: Mapping[str, Any]) -> list[str]:
    """Say why it waits, or how it failed."""
    job = _job(snapshot)
    notes = []
    failure = job.get("failure")
    if isinstance(failure, Mapping):
        where = f" (rank {failure['rank']})" if failure.get("rank") is not None else ""
        notes.append(f"{failure.get('cause', 'failed')}{where}: {failure.get('message', '')}")
    elif job.get("message"):
        notes.append(str(job["message"]))
    why = snapshot.get("why")
    if isinstance(why, Mapping) and str(job.get("phase")) in {"queued", "suspended"}:
        reasons = why.get("reasons")
        reasons = reasons if isinstance(reasons, list) else []
        notes += [str(r["message"]) for r in reasons if isinstance(r, Mapping) and r.get("message")]
        if why.get("expected_start"):
            notes.append(f"Expected start {why['expected_start']}")
    return list(dict.fromkeys(notes))


def _curves(snapshot: Mapping[str, Any]) -> list[tuple[str, list[float]]]:
    curves = snapshot.get("curves")
    if not isinstance(curves, Mapping):
        return []
    found = []
    for name, curve in curves.items():
        ys = curve.get("y") if isinstance(curve, Mapping) else None
        if isinstance(ys, Sequence) and not isinstance(ys, str):
            numbers = [number for y in ys if (number := _number(y)) is not None]
            if numbers:
                found.append((str(name), numbers))
    return found


def _last_values(snapshot: Mapping[str, Any]) -> list[tuple[str, float]]:
    return [(_clean(name), ys[-1]) for name, ys in _curves(snapshot)]


def _svg(name: str, ys: Sequence[float]) -> str:
    low, high = min(ys), max(ys)
    span = (high - low) or 1.0
    step = WIDTH / max(len(ys) - 1, 1)
    points = " ".join(
        f"{i * step:.1f},{HEIGHT - 4 - (y - low) / span * (HEIGHT - 8):.1f}" for i, y in enumerate(ys)
    )
    return (
        '<span style="display:inline-block;margin:6px 18px 0 0">'
        f'<span style="font-size:12px">{_html(name)} <b>{ys[-1]:.4g}</b></span><br>'
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
        f'<polyline points="{points}" fill="none" stroke="#2a6fdb" stroke-width="1.5"/></svg></span>'
    )


def _log(snapshot: Mapping[str, Any]) -> list[str]:
    log = snapshot.get("log")
    if not isinstance(log, Sequence) or isinstance(log, str):
        return []
    lines = [line for line in log[-LOG_LINES:] if isinstance(line, Mapping)]
    return [f"{_clean(line.get('rank', 0))}| {_clean(line.get('text'))}" for line in lines]


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _clean(value: object) -> str:
    """Text without what would steer a terminal."""
    return _CONTROL.sub("", "" if value is None else str(value))


def _html(value: object) -> str:
    return escape(_clean(value), quote=True)
