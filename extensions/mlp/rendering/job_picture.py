"""The static picture of a job, for a saved notebook, GitHub, nbconvert and a terminal, without JavaScript.

The module is pure: it takes the snapshot that `History.snapshot()` and the widget make, `{"job":
Job, "why": Why, "curves": {name: {"x": [...], "y": [...]}}, "log": [{"rank", "time", "stream",
"text"}], "saved_at": RFC 3339}`; all but `job` can be missing. All external data is text to show,
never markup.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any

from mlp.language import say, says
from mlp.rendering import costs, ends, rank_use, stages, svg, times, words
from mlp.rendering.format import amount, amounts_of, memory, number
from mlp.rendering.history import FINAL, POSITIONS
from mlp.rendering.terminal import plain, rows
from mlp.rendering.words import sentences

Json = Mapping[str, Any]
RANKS = 64
LOG_ROWS = 15
TEXT_ROWS = 5
TAIL_CHARACTERS = 4000
UNKNOWN = "–"  # noqa: RUF001 - the widget's sign
TONES = {
    "finished": "#2f9e62",
    "failed": "#d64545",
    "running": "#3b82d6",
    "cancelled": "#848484",
    "suspended": "#848484",
}
_PRE = (
    "margin:4px 0;padding:6px 8px;border:1px solid rgba(128,128,128,.3);border-radius:4px;"
    "white-space:pre-wrap;overflow-wrap:anywhere;font-size:12px;text-align:left"
)
FRAME = "border:1px solid rgba(128,128,128,.35);border-radius:6px;padding:10px 14px;max-width:960px;text-align:left"
_CELL = "padding:1px 12px 1px 0;text-align:left"


def drawn(snapshot: Json) -> list[str]:
    """Return the metrics worth a curve, in the order in which they came."""
    curves = snapshot.get("curves")
    names = list(curves) if isinstance(curves, Mapping) else []
    return [n for n in names if n not in POSITIONS] or [n for n in names if n == "progress"]


def _job(snapshot: Json) -> Json:
    job = snapshot.get("job")
    return job if isinstance(job, Mapping) else {}


def _list(value: object) -> list[Json]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list) else []


def facts(job: Json) -> list[str]:
    """Return what the header says below the name; nothing of a job of which nothing is known."""
    if "workers" not in job:
        return []
    shape = [say("{amount} cpu", amount=amount(job.get("cpu", 1))), memory(job.get("ram", 0))]
    if job.get("gpu"):
        shape.append(say("{amount} gpu", amount=amount(job["gpu"])))
    shape += amounts_of(job)
    restarts = say("restarts: {n}", n=ends.restarts(job)) if ends.restarts(job) else ""
    found = [
        say("team {tenant}", tenant=str(job.get("tenant"))),
        str(job.get("runtime")),
        words.workers(job),
        say(", ").join(shape),
        times.time_limit(job),
        times.age(job),
    ]
    return [f for f in (*found, times.left_or_end(job), restarts) if f]


def html(snapshot: Json) -> str:
    """Draw as HTML without script; styles are additions, the text is whole without them."""
    job = _job(snapshot)
    phase = str(job.get("phase", "unknown"))
    colour = TONES.get(phase, "#b7791f")
    parts = [
        f'<div class="mlp-picture" style="{FRAME}">',
        f'<div><b style="font-size:1.1em">{escape(words.title(job))}</b>',
        f' <span style="color:{colour};font-weight:600">{escape(words.state(job))}</span></div>',
        f'<div style="opacity:.75">{escape(" · ".join(facts(job)))}</div>',
        *(f'<div style="opacity:.75">{escape(line)}</div>' for line in (*_note(job), *_cost(snapshot))),
        *(f"<div>{escape(reason)}</div>" for reason in _reasons(snapshot)),
        _bar(job, colour),
        _failure(job),
        _curves(snapshot),
        _ranks(job),
        *(f"<div>{escape(line)}</div>" for line in _stages(snapshot)),
        _log(snapshot),
        f'<div style="opacity:.6;font-size:12px">{escape(_saved(snapshot))}</div>',
        "</div>",
    ]
    return "".join(parts)


def _saved(snapshot: Json) -> str:
    job = _job(snapshot)
    at = str(snapshot.get("saved_at", ""))[:19].replace("T", " ")
    if not at:
        return ""
    live = say("Live view: {command}", command=f"%mlp watch {words.reference(job)}")
    return sentences(say("As of {time} UTC.", time=at), "" if job.get("phase") in FINAL else live)


def _reasons(snapshot: Json) -> list[str]:
    """Return why it waits, as far as its state does not say so already."""
    why, job = snapshot.get("why"), _job(snapshot)
    if not isinstance(why, Mapping) or str(job.get("phase")) not in {"queued", "suspended"}:
        return []
    said = [str(reason.get("message") or "") for reason in _list(why.get("reasons"))]
    return [
        *(text for text in said if text and text not in str(job.get("message") or "")),
        *ends.stopped(why),
        *words.prospects(why),
    ]


def _cost(snapshot: Json) -> list[str]:
    line = costs.of_run(snapshot.get("cost"))
    return [line] if line else []


def _note(job: Json) -> list[str]:
    line = words.note(job)
    return [line] if line else []


def _stages(snapshot: Json) -> list[str]:
    return [
        say("{text}.", text=words.capital(line)) for line in stages.lines(_list(snapshot.get("attempts")))
    ]


def _bar(job: Json, colour: str) -> str:
    try:
        progress = min(max(float(job.get("progress") or 0), 0.0), 100.0)
    except (TypeError, ValueError):
        progress = 0.0
    if not progress:
        return ""
    return (
        f'<div style="margin:6px 0;height:6px;border-radius:3px;background:rgba(128,128,128,.25)" title="{progress:g} %">'
        f'<div style="width:{progress:g}%;height:6px;border-radius:3px;background:{colour}"></div></div>'
        f'<div style="opacity:.75">{progress:g} %</div>'
    )


def _failure(job: Json) -> str:
    sentence = ends.failure(job)
    if not sentence:
        return ""
    tail = str((job.get("failure") or {}).get("tail") or "")[-TAIL_CHARACTERS:]
    shown = f'<pre style="{_PRE}">{escape(plain(tail))}</pre>' if tail.strip() else ""
    return f'<div style="color:#d64545;margin-top:6px">{escape(sentence)}</div>{shown}'


def _curves(snapshot: Json) -> str:
    images = []
    for name in drawn(snapshot):
        curve = snapshot["curves"][name]
        if not isinstance(curve, Mapping):
            continue
        xs = [x for x in curve.get("x", []) if isinstance(x, (int, float))]
        image = svg.curve(str(name), xs, list(curve.get("y", [])))
        images.append(
            f'<img src="{svg.data_uri(image)}" alt="{escape(str(name))}" width="{svg.WIDTH}" height="{svg.HEIGHT}" '
            'style="display:inline-block;margin:4px 8px 4px 0">'
        )
    return f"<div>{''.join(images)}</div>" if images else ""


def _ranks(job: Json) -> str:
    ranks = _list(job.get("ranks"))
    if not ranks:
        return ""
    head = "".join(
        f'<th style="{_CELL}">{h}</th>'
        for h in (say("rank"), say("role"), say("node"), say("state"), say("cpu"), say("memory"))
    )
    rows = []
    for rank in ranks[:RANKS]:
        cells = _rank_cells(job, rank)
        rows.append("<tr>" + "".join(f'<td style="{_CELL}">{escape(c)}</td>' for c in cells) + "</tr>")
    left = len(ranks) - RANKS
    more = f"<div>{escape(say('and {n} more ranks', n=left))}</div>" if left > 0 else ""
    used = f"<div>{escape(say('{text}.', text=said))}</div>" if (said := rank_use.used(job)) else ""
    return f'<table style="margin:4px 0;border-collapse:collapse;color:inherit;font-size:inherit"><tr>{head}</tr>{"".join(rows)}</table>{more}{used}'


def _rank_cells(job: Json, rank: Json) -> list[str]:
    cpu, ram = rank.get("cpu"), rank.get("ram")
    return [
        str(rank.get("rank", "")),
        str(rank.get("role", "")),
        str(rank.get("node", "")),
        ends.rank_state(job, rank),
        amount(cpu) if isinstance(cpu, (int, float)) else rank_use.cpu_used(rank) or UNKNOWN,
        memory(ram) if isinstance(ram, (int, float)) else rank_use.memory_used(rank) or UNKNOWN,
    ]


def _lines(snapshot: Json) -> list[Json]:
    """Return the log's last lines; of a failed job without the error output that is shown above them already."""
    # ranks' lines arrive in lots, one rank after another
    lines = sorted(_list(snapshot.get("log")), key=lambda line: str(line.get("time", "")))
    failure = _job(snapshot).get("failure")
    if not isinstance(failure, Mapping) or not str(failure.get("tail") or "").strip():
        return lines
    rank = failure.get("rank")
    return [x for x in lines if x.get("stream") != "stderr" or x.get("rank") != rank]


def _log(snapshot: Json) -> str:
    lines = _lines(snapshot)[-LOG_ROWS:]
    if not lines:
        return ""
    text = "\n".join(rows(str(line.get("text", "")), f"{line.get('rank', 0)}: ") for line in lines)
    cut = _cut(snapshot, LOG_ROWS) or (
        _all(snapshot, say("The end of the log")) if len(text) > TAIL_CHARACTERS else ""
    )
    notes = [*([cut] if cut else []), *_missing(snapshot)]
    note = "".join(f'<div style="opacity:.6;font-size:12px">{escape(one)}</div>' for one in notes)
    return f'{note}<pre style="{_PRE}">{escape(text[-TAIL_CHARACTERS:])}</pre>'


def _missing(snapshot: Json) -> list[str]:
    """Say how much of the logs of which ranks is not kept."""
    kept = say("a log keeps its first 4 MiB and its last 12 MiB")
    said = []
    for lost in _list(snapshot.get("missing")):
        size = memory(max(1, int(lost.get("bytes") or 0) >> 20))
        what = size
        if isinstance(lost.get("lines"), int):
            what = says("{n} line ({size})", "{n} lines ({size})", lost["lines"], size=size)
        said.append(
            say(
                "rank {rank}: {what} missing from its log; {kept}.",
                rank=lost.get("rank", 0),
                what=what,
                kept=kept,
            )
        )
    return said


def _cut(snapshot: Json, rows: int) -> str:
    """Say that only the log's last lines are shown, and how to see the rest; empty where these are all."""
    return (
        _all(snapshot, say("The last {n} lines of the log", n=rows)) if len(_lines(snapshot)) > rows else ""
    )


def _all(snapshot: Json, what: str) -> str:
    command = words.command(f"logs {words.reference(_job(snapshot))}")
    return say("{what}; all of it: {command}", what=what, command=command)


def text(snapshot: Json) -> str:
    """Draw as plain text."""
    job = _job(snapshot)
    lines = [f"{words.title(job)}  {words.state(job)}"]
    lines += ["  " + say(", ").join(known)] if (known := facts(job)) else []
    lines += [f"  {line}" for line in (*_note(job), *_cost(snapshot), *_reasons(snapshot))]
    progress = job.get("progress")
    if progress:
        lines.append(f"  {bar(progress)} {progress} %")
    if used := rank_use.used(job):
        lines.append(f"  {used}")
    if by_itself := rank_use.reported(job):
        lines.append(f"  {by_itself}")
    if of_others := rank_use.memory_of_earlier_runs(job):
        lines.append(f"  {of_others}")
    if unused := rank_use.unused_gpus(job):
        lines.append(f"  {unused}")
    lines += [f"  {line}" for line in _stages(snapshot)]
    width = max((len(name) for name in drawn(snapshot)), default=0)
    for name in drawn(snapshot):
        curve = snapshot["curves"][name]
        ys = (
            [y for y in curve.get("y", []) if isinstance(y, (int, float))]
            if isinstance(curve, Mapping)
            else []
        )
        if len(ys) > 1:
            span = say("from {first} to {last}", first=number(ys[0]), last=number(ys[-1]))
            lines.append(f"  {name:<{width}}  {svg.spark(ys)}  {span}")
        elif ys:
            lines.append(f"  {name:<{width}}  {number(ys[-1])}")
    if ends.failure(job):
        lines.append("  " + ends.failure(job))
        tail = str((job.get("failure") or {}).get("tail") or "")[-TAIL_CHARACTERS:]
        lines += [f"    {row}" for row in tail.rstrip().split("\n")[-LOG_ROWS:] if tail.strip()]
    else:
        cut = _cut(snapshot, TEXT_ROWS)
        lines += [f"  {cut}"] if cut else []
        lines += [f"  {one}" for one in _missing(snapshot)]
        lines += [
            rows(str(x.get("text", "")), f"  {x.get('rank', 0)}: ") for x in _lines(snapshot)[-TEXT_ROWS:]
        ]
    return plain("\n".join(lines))


def bar(progress: float, width: int = 24) -> str:
    """Draw a progress bar in characters."""
    full = round(width * min(max(float(progress), 0), 100) / 100)
    return "[" + "#" * full + "-" * (width - full) + "]"
