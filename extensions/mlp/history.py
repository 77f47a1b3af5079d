"""What has been seen of a job so far, bounded, and the picture of it that a saved notebook keeps.

A snapshot is `{"job", "why", "events", "curves": {metric: {"x", "y"}}, "log": [{"rank", "time", "stream", "text"}],
"saved_at"}`: the widget reads and writes the same shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Json = dict[str, Any]
FINAL = frozenset({"finished", "failed", "cancelled"})
POSITIONS = ("progress", "epoch", "step")
"""Metrics that say where the training is; they are drawn only when there is nothing else."""
TRACK_MAX = 4096
CURVE_POINTS = 120
LOG_LINES = 400
SAVED_LINES = 40
SAVED_EVENTS = 40


@dataclass(slots=True)
class Track:
    """One metric of one rank; when full, each second point goes."""

    x: list[float] = field(default_factory=list)
    y: list[float] = field(default_factory=list)
    stride: int = 1
    seen: int = 0
    last: float | None = None

    def add(self, step: float | None, value: float) -> None:
        """Take in a point; without a step its number is its place."""
        self.last = value
        if self.seen % self.stride == 0:
            self.x.append(float(self.seen) if step is None else step)
            self.y.append(value)
            if len(self.x) > TRACK_MAX:
                del self.x[1::2], self.y[1::2]
                self.stride *= 2
        self.seen += 1


class History:
    """Takes frames of the job's stream in."""

    def __init__(self, job: Json | None = None) -> None:
        self.job: Json = job or {}
        self.why: Json | None = None
        self.events: list[Json] = []
        self.tracks: dict[str, dict[int, Track]] = {}
        self.log: list[Json] = []
        self.points: list[Json] | None = None  # all of them, where somebody asked to keep them
        self.seq = 0
        self._newest: dict[int, tuple[str, set[str]]] = {}

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
        elif kind == "metrics":
            self.add_points(frame.get("points", ()))
        elif kind == "log":
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
        """Add log lines; a replay after a lost connection adds nothing twice."""
        fresh = []
        known = self._newest.get(rank)
        newest = known
        for line in lines:
            time, text = str(line.get("time", "")), str(line.get("text", ""))
            if replay and known and (time < known[0] or (time == known[0] and text in known[1])):
                continue
            fresh.append(
                {"rank": rank, "time": time, "stream": str(line.get("stream", "stdout")), "text": text}
            )
            if newest is None or time > newest[0]:
                newest = (time, {text})
            elif time == newest[0]:
                newest[1].add(text)
        if newest is not None:
            self._newest[rank] = newest
        self.log.extend(fresh)
        if len(self.log) > 2 * LOG_LINES:
            self.log = self.last_lines(LOG_LINES)
        return fresh

    def last_lines(self, count: int) -> list[Json]:
        """Return the lines written last, whichever rank wrote them: they come in lots, one rank after another."""
        return sorted(self.log, key=lambda line: str(line["time"]))[-count:]

    def latest(self) -> dict[str, float]:
        """Return each metric's last value: the mean over the ranks that reported it, without those that the job gave up."""
        found = {}
        now = {rank.get("rank") for rank in self.job.get("ranks") or ()}
        for name, ranks in self.tracks.items():
            kept = [t for rank, t in ranks.items() if rank in now] or ranks.values()
            values = [t.last for t in kept if t.last is not None]
            if values:
                found[name] = sum(values) / len(values)
        return found

    def curve(self, name: str) -> Json:
        """Return one metric as at most 120 points: the mean over ranks and over neighbours."""
        ranks = list(self.tracks[name].values())
        if len(ranks) == 1:
            pairs = sorted(zip(ranks[0].x, ranks[0].y, strict=True), key=lambda p: p[0])
        else:
            sums: dict[float, list[float]] = {}
            for track in ranks:
                for x, y in zip(track.x, track.y, strict=True):
                    sums.setdefault(x, []).append(y)
            pairs = [(x, sum(ys) / len(ys)) for x, ys in sorted(sums.items())]
        size = -(-len(pairs) // CURVE_POINTS) or 1
        groups = [pairs[i : i + size] for i in range(0, len(pairs), size)]
        return {
            "x": [g[-1][0] for g in groups],
            "y": [sum(y for _, y in g) / len(g) for g in groups],
        }

    def snapshot(self, now: datetime | None = None) -> Json:
        """Return the picture of the present state as JSON."""
        return {
            "job": self.job,
            "why": self.why,
            "events": self.events[-SAVED_EVENTS:],
            "curves": {name: self.curve(name) for name in self.tracks},
            "log": self.last_lines(SAVED_LINES),
            "saved_at": (now or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
