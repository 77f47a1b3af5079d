"""Bounded history of a job, and the picture of it that a saved notebook keeps.

A snapshot is `{"job", "why", "events", "attempts", "curves": {metric: {"x", "y"}}, "log": [{"rank",
"time", "stream", "text"}], "missing": [{"rank", "bytes", "lines"}], "saved_at"}`. The live monitor
begins with it, and `mlp.rendering.job_picture` draws it where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mlp.rendering.terminal import LINE_MAX, as_shown, joined

Json = dict[str, Any]
FINAL = frozenset({"finished", "failed", "cancelled"})
POSITIONS = ("progress", "epoch", "step")
"""Metrics that say where the training is; they are drawn only when there is nothing else."""
TRACK_MAX = 4096
CURVE_POINTS = 120
LOG_LINES = 400
SAVED_LINES = 40
SAVED_EVENTS = 40
SAVED_ATTEMPTS = 5


Point = tuple[float, float]


@dataclass(slots=True)
class Track:
    """One metric of one rank. When it is full, each second point goes, but never the last, lowest and highest one."""

    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    stride: int = 1
    seen: int = 0
    last: Point | None = None
    low: Point | None = None
    high: Point | None = None

    def add(self, step: float | None, value: float) -> None:
        """Take in a point; without a step its number is its place."""
        at = float(self.seen) if step is None else step
        self.last = (at, value)
        if self.low is None or value < self.low[1]:
            self.low = self.last
        if self.high is None or value >= self.high[1]:
            self.high = self.last
        if self.seen % self.stride == 0:
            self.x.append(at)
            self.y.append(value)
            if len(self.x) > TRACK_MAX:
                del self.x[1::2], self.y[1::2]
                self.stride *= 2
        self.seen += 1

    def points(self, *, extremes: bool) -> list[Point]:
        """Return the points that are still known, by x; the lowest and highest of all that went only where asked for."""
        found = list(zip(self.x, self.y, strict=True))
        known = {self.last, self.low, self.high} if extremes else {self.last}
        found += [p for p in known if p is not None and p not in found[-1:]]
        return sorted(dict.fromkeys(found), key=lambda p: p[0])


class History:
    """Takes frames of the job's stream in."""

    def __init__(self, job: Json | None = None) -> None:
        self.job: Json = job or {}
        self.why: Json | None = None
        self.events: list[Json] = []
        self.attempts: list[Json] = []
        self.tracks: dict[str, dict[int, Track]] = {}
        self.log: list[Json] = []
        self.points: list[Json] | None = None  # all of them, where somebody asked to keep them
        self.missing: dict[int, Json] = {}  # of each rank's log, `bytes` and `lines`
        self.seq = 0
        self._newest: dict[int, tuple[str, set[str]]] = {}
        self._open: dict[tuple[int, str], Json] = {}  # lines without an end, by rank and stream

    @property
    def phase(self) -> str:
        """Phase as last seen."""
        return str(self.job.get("phase", ""))

    def take(self, frame: Mapping[str, Any], *, replay: bool = False) -> list[Json]:
        """Take a frame in; returns the log lines that are new with it."""
        kind = frame.get("type")
        if kind == "job" and isinstance(frame.get("job"), dict):
            self.job = frame["job"]
        elif kind == "why":
            self.why = frame.get("why")
        elif kind == "events":
            self.add_events(frame.get("events", ()))
        elif kind == "attempts":
            self.attempts = [a for a in frame.get("attempts") or () if isinstance(a, dict)]
        elif kind == "metrics":
            self.add_points(frame.get("points", ()))
        elif kind == "log":
            if frame.get("dropped"):
                lost = {"bytes": frame["dropped"], "lines": frame.get("dropped_lines")}
                self.missing[int(frame.get("rank", 0))] = lost
            return self.add_lines(int(frame.get("rank", 0)), frame.get("lines", ()), replay=replay)
        return []

    def add_events(self, events: Iterable[Json]) -> None:
        """Add those events that are new."""
        last = self.events[-1]["seq"] if self.events else -1
        self.events.extend(e for e in events if e.get("seq", 0) > last)

    def add_points(self, points: Iterable[Json]) -> None:
        """Add those points that are new."""
        for point in points:
            seq = int(point.get("seq", 0))
            if seq <= self.seq:
                continue
            self.seq = seq
            values = {k: v for k, v in point.get("values", {}).items() if isinstance(v, (int, float))}
            if self.points is not None:
                self.points.append(point)
            step = point.get("step")
            if step is None:
                step = values.get("step", values.get("epoch"))
            rank = int(point.get("rank", 0))
            for name, value in values.items():
                track = self.tracks.setdefault(str(name), {}).setdefault(rank, Track())
                track.add(None if step is None else float(step), float(value))

    def add_lines(self, rank: int, lines: Iterable[Json], *, replay: bool) -> list[Json]:
        """Add log lines; a replay after a lost connection adds nothing twice.

        A text that continues a line without an end returns the whole line again.
        """
        fresh = []
        known = self._newest.get(rank)
        newest = known
        for line in lines:
            time, text = str(line.get("time", "")), as_shown(str(line.get("text", "")))
            if replay and known and (time < known[0] or (time == known[0] and text in known[1])):
                continue
            fresh.append(self._add_line(rank, line, replay=replay))
            if newest is None or time > newest[0]:
                newest = (time, {text})
            elif time == newest[0]:
                newest[1].add(text)
        if newest is not None:
            self._newest[rank] = newest
        if len(self.log) > 2 * LOG_LINES:
            self.log = self.last_lines(LOG_LINES)
        return fresh

    def _add_line(self, rank: int, line: Json, *, replay: bool) -> Json:
        key = (rank, str(line.get("stream", "stdout")))
        text = str(line.get("text", ""))
        begun = self._open.pop(key, None)
        if begun is None:
            added = {"rank": rank, "time": str(line.get("time", "")), "stream": key[1], "text": text}
            self.log.append(added)
        else:
            added = begun
            # a replay gives a line whole, with what is here already of it
            added["text"] = text[-LINE_MAX:] if replay else joined(begun["text"], text)
        if line.get("partial"):
            self._open[key] = added
        return {**added, "partial": bool(line.get("partial"))}

    def last_lines(self, count: int) -> list[Json]:
        """Return the lines written last, whichever rank wrote them: they come in lots, one rank after another."""
        return sorted(self.log, key=lambda line: str(line["time"]))[-count:]

    def latest(self) -> dict[str, float]:
        """Return each metric's last value: the mean over the ranks that reported it, without those that the job gave up."""
        found = {}
        now = {rank.get("rank") for rank in self.job.get("ranks") or ()}
        for name, ranks in self.tracks.items():
            kept = [t for rank, t in ranks.items() if rank in now] or ranks.values()
            values = [t.last[1] for t in kept if t.last is not None]
            if values:
                found[name] = sum(values) / len(values)
        return found

    def curve(self, name: str) -> Json:
        """Return one metric as at most 120 points, each one that was reported; of several ranks their mean at that step.

        The first, the last, the lowest and the highest are among them.
        """
        ranks = list(self.tracks[name].values())
        if len(ranks) == 1:
            pairs = ranks[0].points(extremes=True)
        else:
            # what one rank alone has of a step is no mean: of the points that went, none comes back
            sums: dict[float, list[float]] = {}
            for track in ranks:
                for x, y in track.points(extremes=False):
                    sums.setdefault(x, []).append(y)
            pairs = [(x, sum(ys) / len(ys)) for x, ys in sorted(sums.items())]
        pairs = _thinned(pairs, CURVE_POINTS)
        return {"x": [x for x, _ in pairs], "y": [y for _, y in pairs]}

    def snapshot(self, now: datetime | None = None) -> Json:
        """Return the picture of the present state as JSON."""
        return {
            "job": self.job,
            "why": self.why,
            "events": self.events[-SAVED_EVENTS:],
            "attempts": self.attempts[-SAVED_ATTEMPTS:],
            "curves": {name: self.curve(name) for name in self.tracks},
            "log": self.last_lines(SAVED_LINES),
            "missing": [{"rank": rank, **lost} for rank, lost in sorted(self.missing.items())],
            "saved_at": (now or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }


def _thinned(points: list[Point], most: int) -> list[Point]:
    """Keep at most `most` points: first, last, and of each part between the lowest and the highest."""
    if len(points) <= most:
        return points
    parts = (most - 2) // 2
    inner = points[1:-1]
    kept = [points[0]]
    for part in range(parts):
        group = inner[part * len(inner) // parts : (part + 1) * len(inner) // parts]
        low, high = (pick(range(len(group)), key=lambda i: group[i][1]) for pick in (min, max))
        kept += [group[i] for i in sorted({low, high})]
    return [*kept, points[-1]]
