"""Storage of points, from any way: within the job's limit, then shown to watchers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlp_hub.domain.jobs.job import HOLDING, Phase
from mlp_hub.service.config import MIB
from mlp_hub.service.state.board import Board, Changes, PointsStored
from mlp_hub.service.state.bus import job_topic
from mlp_hub.service.state.frames import Shared
from mlp_hub.service.state.moves import Step
from mlp_hub.store.point_form import MOST_NAMES
from mlp_hub.store.records import Appended, Sample, StoredPoint
from mlp_hub.store.tx import Tx
from mlp_language.message import Quantity, msg

MOST_SHOWN = 1000
"""Safety: values of the points of one batch that are sent to watchers directly.

For a larger batch watchers read the store, page by page. So the backlog for a slow one stays small.
"""
REPORTING = HOLDING - {Phase.ADMITTED}
"""Phases of a job whose points are taken in."""
TOO_MANY_NAMES = "metrics-names"
"""Kind of the step in the timeline of a job that reports metrics under more names than are kept."""


class PointStore:
    """Store of points, with at most `points_max` points and about `bytes_max` bytes for each job.

    `progress` gets the progress that jobs report.
    """

    def __init__(
        self,
        board: Board,
        clock: Callable[[], float],
        points_max: int,
        bytes_max: int,
        progress: Callable[[str, int], None],
    ) -> None:
        self._board = board
        self._clock = clock
        self._points_max, self._bytes_max = points_max, bytes_max
        self._progress = progress
        self.listeners: list[Callable[[str], None]] = []
        """Called with the uid of a job whose points were stored."""
        self.beginners: list[Callable[[Tx, str], None]] = []
        """Called in the transaction that stores points, with the uid of their job."""
        self.exporters: list[Callable[[str, Appended], None]] = []
        """Called with the uid of a job and its points that were stored."""

    def store(self, tx: Tx, changes: Changes, uid: str, source: str, points: Sequence[Sample]) -> Appended:
        """Store those that follow without a gap; the timeline says when the job has all that it may have."""
        most = self._points_max
        done = tx.metrics.append(uid, source, points, most, self._bytes_max)
        if done.accepted:
            for begin in self.beginners:
                begin(tx, uid)
        if done.accepted and done.seq_first + len(done.accepted) > most:
            text = msg(
                "{n} metric points are stored, which is the limit of a job; later ones are dropped", n=most
            )
            changes.add_event(tx, uid, self._clock(), Step("metrics-full", text))
        elif done.accepted and done.size >= self._bytes_max:
            text = msg(
                "{size} of metric points are stored, which is the limit of a job; later ones are dropped. Report fewer metrics, "
                "or less often",
                size=Quantity(self._bytes_max // MIB, "MiB"),
            )
            changes.add_event(tx, uid, self._clock(), Step("metrics-full", text))
        if done.left_out and not any(tx.events.of_kinds([uid], [TOO_MANY_NAMES])):
            text = msg(
                "this job has {n} metric names, which is the limit; values of further names are dropped",
                n=MOST_NAMES,
            )
            changes.add_event(tx, uid, self._clock(), Step(TOO_MANY_NAMES, text))
        return done

    def show(self, uid: str, done: Appended) -> None:
        """Send stored points to the watchers of the job."""
        if not done.accepted:
            return
        for listener in self.listeners:
            listener(uid)
        for export in self.exporters:
            export(uid, done)
        topic = job_topic(uid)
        if not self._board.bus.watched(topic):
            pass
        elif done.left_out or sum(len(p.v) for p in done.accepted) > MOST_SHOWN:
            self._board.bus.publish(topic, PointsStored([], None))
        else:
            points = done.points()
            frame = Shared(type="metrics", points=[frame_of(p) for p in points])
            self._board.bus.publish(topic, PointsStored(points, frame))
        for point in reversed(done.accepted):
            progress = point.v.get("progress")
            if progress is not None and math.isfinite(progress):
                self._progress(uid, round(max(0.0, min(100.0, progress))))
                break


def frame_of(point: StoredPoint) -> dict[str, object]:
    """Return a point as the streams show it; values that are not finite become null in JSON."""
    return {
        "seq": point.seq,
        "time": point.time,
        "rank": point.rank,
        "step": point.values.get("step"),
        "values": point.values,
    }
