"""Runs as tables, and side by side: curves over each other, and differences of their data.

The differences are of parameters, program and environment. All external data is text to show, never
markup. The display is a picture: a saved notebook keeps it.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from html import escape
from importlib import import_module
from typing import Any

from mlp.client.rest import Client
from mlp.errors import Refused, UsageError
from mlp.language import say, says
from mlp.rendering import svg, tables, words
from mlp.rendering.format import core_hours, memory, number, span
from mlp.rendering.terminal import plain

Json = dict[str, Any]
MOST_COMPARED = 50
"""Runs in one picture: more are for the page, which is not kept in a notebook."""
SHOWN_PARAMS, SHOWN_METRICS = 6, 4
"""Columns of a table on a terminal."""
SHOWN_LINES = 200
"""Lines of a difference that are shown."""
POINTS = 300
AXES = frozenset({"step", "epoch", "progress"})
"""Values of a point that are not metrics."""
_PRE = "font-size:12px;overflow:auto;max-height:300px;margin:4px 0"
_COLOURS = {"+": "#23895b", "-": "#c2375f"}


def value(one: object) -> str:
    """Write a parameter or a value of a metric."""
    if isinstance(one, bool):
        return "true" if one else "false"
    if isinstance(one, (int, float)):
        return number(float(one))
    return "" if one is None else plain(str(one))


class RunsTable(tables.Table):
    """Runs that were found; shows as a table, `data` is the list of them, `to_frame()` a pandas DataFrame."""

    def __init__(self, found: Json, *, asked: str = "", of_team: bool = False) -> None:
        runs, total = list(found.get("runs") or ()), int(found.get("total") or 0)
        params = list(found.get("params") or ())[:SHOWN_PARAMS]
        metrics = list(found.get("metrics") or ())
        metrics = [m for m in metrics if m not in AXES][:SHOWN_METRICS]
        rows = [
            [
                _told_apart(r, several=of_team),
                words.state_word(r),
                *(value(r["params"].get(name)) for name in params),
                *(value((r["metrics"].get(name) or {}).get("best")) for name in metrics),
                span(r["duration_s"]) if r.get("duration_s") is not None else "",
                core_hours(r.get("core_hours")),
                memory(r["ram_peak"]) if r.get("ram_peak") is not None else "",
                " ".join(r.get("tags") or ()),
                str(r.get("note") or ""),
            ]
            for r in runs
        ]
        best = [say("best {metric}", metric=name) for name in metrics]
        columns = (
            say("run"), say("state"), *params, *best, say("time"), say("core-hours"), say("peak memory"), say("tags"),
            say("note"),
        )  # fmt: skip
        none = say("No run matches {asked}", asked=asked) if asked else say("No runs yet")
        of_params = range(2, 2 + len(params))
        of_metrics = range(of_params.stop, of_params.stop + len(metrics))
        time, hours, peak, tags, note = range(of_metrics.stop, of_metrics.stop + 5)
        # the first metric and the state stay
        least = (note, peak, hours, tags, *of_metrics[:0:-1], *of_params[::-1], time)
        shown = [says("1 run", "{n} runs", total)]
        super().__init__(columns, rows, runs, empty=none, notes=shown, least_first=least)
        self.names = {"params": list(found.get("params") or ()), "metrics": list(found.get("metrics") or ())}

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Any:
        return iter(self.data)

    def __getitem__(self, at: int) -> Json:
        found: Json = self.data[at]
        return found

    def to_frame(self) -> Any:
        """Return a pandas DataFrame with a column for each parameter and metric; without pandas a list of flat dicts."""
        rows = [_flat(run) for run in self.data]
        try:
            pd = import_module("pandas")  # optional
        except ImportError:
            return rows
        frame = pd.DataFrame(rows)
        for column in ("submitted_at", "started_at", "finished_at"):
            if column in frame:
                frame[column] = pd.to_datetime(frame[column], utc=True, format="ISO8601")
        return frame


def _flat(run: Json) -> Json:
    flat = {k: v for k, v in run.items() if k not in {"params", "metrics"}}
    flat |= {f"param.{name}": each for name, each in run["params"].items()}
    for name, metric in run["metrics"].items():
        flat |= {f"metric.{name}": metric["last"], f"best.{name}": metric["best"]}
    return flat


class Csv:
    """Runs as CSV; shows as that text."""

    def __init__(self, text: bytes) -> None:
        self.data = text.decode("utf-8", "replace")

    def __repr__(self) -> str:
        # notes, tags and parameters are what anybody of a team has written
        return plain(self.data.replace("\r\n", "\n")).rstrip("\n")


class RunPicture(tables.Sentences):
    """All that is kept of a run."""

    def __init__(self, found: Json) -> None:
        run = found["run"]
        lines = [say("{job} is {state}.", job=words.reference(run), state=words.state_word(run))]
        named = [
            (say("parameters"), ", ".join(f"{k}={value(v)}" for k, v in run["params"].items())),
            (
                say("best"),
                ", ".join(f"{k}={value(m['best'])}" for k, m in run["metrics"].items() if k not in AXES),
            ),
            (say("core-hours"), core_hours(run.get("core_hours"))),
            (say("tags"), " ".join(run["tags"])),
            (say("note"), run["note"]),
            (say("script"), found.get("entry") or ""),
            (say("arguments"), " ".join(found.get("args") or ())),
            (say("starts in"), f"~/{found['workdir']}" if found.get("workdir") else ""),
            (say("commit"), _commit(run)),
            (
                say("datasets"),
                ", ".join(f"{d['user']}/{d['name']} ({_content(d)})" for d in found.get("data") or ()),
            ),
        ]
        lines += [say("{what}: {why}", what=what, why=text) for what, text in named if text]
        lines.append(say("Its files: {command}", command=words.command(f"files {words.reference(run)}")))
        super().__init__(lines, found)


def _content(used: Mapping[str, Any]) -> str:
    """Write what of a dataset a run read: by the checksum of its files where that is known, else which one it was."""
    if not used.get("digest"):
        return str(used["uid"])
    return says(
        "1 file, checksum {digest}",
        "{n} files, checksum {digest}",
        int(used["files"]),
        digest=used["digest"][:12],
    )


def _commit(run: Mapping[str, Any]) -> str:
    at = str(run.get("commit") or "")[:12]
    return say("{commit} and changes since", commit=at) if at and run.get("dirty") else at


def written(run: Json) -> tables.Sentences:
    """Say what a run's note is now."""
    return tables.Sentences(
        [say("{job}: {note}", job=words.reference(run), note=run["note"] or say("no note"))], run
    )


class ActedOn(tables.Sentences):
    """Results of an action on several runs; `failed` is the first refusal."""

    def __init__(self, found: Sequence[Json]) -> None:
        lines = [say("{what}: {why}", what=o["run"], why=o["msg"] or say("done")) for o in found]
        super().__init__(lines, list(found))
        wrong = next((o for o in found if o.get("reason")), None)
        self.failed = None if wrong is None else Refused(wrong["reason"], wrong["msg"])


def compare(
    client: Client, names: Sequence[str], *, by: str = "step", metric: str | None = None
) -> Comparison:
    """Ask for the runs and their curves, side by side."""
    names = list(dict.fromkeys(names))
    if not 2 <= len(names) <= MOST_COMPARED:
        raise UsageError(
            say(
                "{n} runs: at least two, at most {most}; compare more on the page Runs",
                n=len(names),
                most=MOST_COMPARED,
            )
        )

    def asked(name: str) -> tuple[Json, Json]:
        user, run = whose(name)
        return client.run(run, user), client.curves(run, user, by=by, points=POINTS, metric=metric)

    _ = client.user  # asked once, before threads do
    with ThreadPoolExecutor(min(8, len(names))) as pool:
        found = list(pool.map(asked, names))
    return Comparison([one for one, _ in found], [curves for _, curves in found], by)


def whose(name: str) -> tuple[str | None, str]:
    """Return the user and the run of `ann/digits@1`; without a user, None for one's own."""
    user, _, run = name.rpartition("/")
    return user or None, run


def _told_apart(run: Mapping[str, Any], *, several: bool) -> str:
    """Name a run, with its user where there are those of several."""
    named = words.reference(run)
    return f"{run['user']}/{named}" if several else named


class Comparison:
    """Runs side by side; `data` has them whole, with their curves and their differences."""

    def __init__(self, runs: list[Json], curves: list[Json], by: str) -> None:
        self.runs, self.by = runs, by
        several = len({r["run"]["user"] for r in runs}) > 1
        self.labels = [_told_apart(r["run"], several=several) for r in runs]
        self.curves: dict[str, list[tuple[list[float], list[Any]]]] = {}
        for at, found in enumerate(curves):
            for curve in found["curves"]:
                each = self.curves.setdefault(curve["metric"], [([], []) for _ in runs])
                each[at] = (curve["x"], curve["y"])
        self.params = _differing([r["run"]["params"] for r in runs])
        sizes = ("runtime", "workers", "cpu", "gpu", "ram")
        self.params |= _differing([{k: r[k] for k in sizes} | (r.get("amounts") or {}) for r in runs])
        self.datasets = _differing(
            [{f"{d['user']}/{d['name']}": _content(d) for d in r.get("data") or ()} for r in runs]
        )
        self.packages = _differing([_packages(r.get("environment")) for r in runs])
        self.programs = [
            (label, _difference(runs[0], r, self.labels[0], label))
            for label, r in zip(self.labels[1:], runs[1:], strict=True)
        ]
        self.data = {
            "runs": runs,
            "by": by,
            "curves": {m: [{"x": x, "y": y} for x, y in each] for m, each in self.curves.items()},
            "params": self.params,
            "datasets": self.datasets,
            "packages": self.packages,
            "programs": dict(self.programs),
        }

    def _tables(self) -> list[tables.Table]:
        def table(title: str, rows: Mapping[str, Sequence[Any]], empty: str) -> tables.Table:
            cells = [[name, *map(value, each)] for name, each in rows.items()]
            return tables.Table(("", *self.labels), cells, rows, title=title, empty=empty)

        metrics: dict[str, list[Any]] = {}
        names = dict.fromkeys(m for r in self.runs for m in r["run"]["metrics"] if m not in AXES)
        for name in names:
            each = [r["run"]["metrics"].get(name) or {} for r in self.runs]
            metrics[name] = [m.get("last") for m in each]
            metrics[say("best {metric}", metric=name)] = [m.get("best") for m in each]
        found = [
            table(say("Metrics"), metrics, say("None of them has reported anything.")),
            table(say("Parameters that differ"), self.params, say("Their parameters are the same.")),
            table(
                say("Packages that differ"),
                self.packages,
                self._same(say("Their environments are the same.")),
            ),
        ]
        if any(r.get("data") for r in self.runs):
            same = say("The data that they read was the same.")
            found.append(table(say("Datasets that differ"), self.datasets, same))
        commits = [_commit(r["run"]) for r in self.runs]
        if len(set(commits)) > 1:
            found.append(table(say("Commits"), {say("commit"): commits}, ""))
        return found

    def _same(self, text: str) -> str:
        untold = [label for label, r in zip(self.labels, self.runs, strict=True) if not r.get("environment")]
        return say("The environment of {runs} is not known.", runs=", ".join(untold[:3])) if untold else text

    def __repr__(self) -> str:
        lines = []
        for name, each in self.curves.items():
            lines.append(name)
            lines += [
                f"  {label}  {svg.spark([float(y) for y in ys if y is not None])}"
                for label, (_, ys) in zip(self.labels, each, strict=True)
                if ys
            ]
        lines += [repr(table) for table in self._tables()]
        for label, changes in self.programs:
            lines += changes[:SHOWN_LINES] or [say("The program of {job} is the same.", job=label)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = ['<div class="mlp-compared">', _legend(self.labels)]
        for name, each in self.curves.items():
            image = svg.overlay(name, each)
            parts.append(
                f'<img src="{svg.data_uri(image)}" alt="{escape(name)}" width="{svg.WIDTH}" height="{svg.HEIGHT}" '
                'style="display:inline-block;margin:4px 8px 4px 0">'
            )
        parts += [table._repr_html_() for table in self._tables()]
        for label, changes in self.programs:
            if not changes:
                parts.append(f"<p>{escape(say('The program of {job} is the same.', job=label))}</p>")
                continue
            lines = "\n".join(map(_coloured, changes[:SHOWN_LINES]))
            title = escape(say("Program of {job}", job=label))
            parts.append(f'<details><summary>{title}</summary><pre style="{_PRE}">{lines}</pre></details>')
        return "".join([*parts, "</div>"])


def _legend(labels: Sequence[str]) -> str:
    marks = (
        f'<span style="margin-right:12px"><span style="color:{svg.PALETTE[i % len(svg.PALETTE)]}">&#9632;</span> {escape(label)}</span>'
        for i, label in enumerate(labels)
    )
    return f"<div>{''.join(marks)}</div>"


def _coloured(line: str) -> str:
    colour = _COLOURS.get(line[:1])
    shown = escape(plain(line))
    return f'<span style="color:{colour}">{shown}</span>' if colour else shown


def _differing(each: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return, by name, the values of all where not all are the same."""
    names = dict.fromkeys(name for one in each for name in one)
    rows = {name: [one.get(name) for one in each] for name in names}
    return {
        name: row for name, row in rows.items() if any((v, type(v)) != (row[0], type(row[0])) for v in row)
    }


def _packages(environment: str | None) -> dict[str, str]:
    lines = (line.partition("==") for line in (environment or "").splitlines())
    return {name: version for name, eq, version in lines if eq}


def _difference(one: Json, other: Json, name: str, label: str) -> list[str]:
    before, after = ((r.get("program") or "").splitlines() for r in (one, other))
    return list(difflib.unified_diff(before, after, name, label, lineterm="", n=2))
