"""Storing of points, by whichever way they came: within the job's limit, then shown to who watches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mlp_hub.domain.job import HOLDING, Phase
from mlp_hub.service.state.board import Board, Changes, PointsStored
from mlp_hub.service.state.bus import job_topic
from mlp_hub.service.state.frames import Shared
from mlp_hub.service.state.moves import Step
from mlp_hub.store.records import Appended, Sample, StoredPoint
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

REPORTING = HOLDING - {Phase.ADMITTED}
"""Phases of a job whose points are taken in."""


class PointStore:
    """Store of points of which each job has `points_max` at most; `progress` is told of what jobs report of it."""

    def __init__(
        self,
        board: Board,
        clock: Callable[[], float],
        points_max: int,
        progress: Callable[[str, int], None],
    ) -> None:
        self._board = board
        self._clock = clock
        self._points_max = points_max
        self._progress = progress
        self.listeners: list[Callable[[str], None]] = []
        """Called with the uid of a job whose points were stored."""

    def store(self, tx: Tx, changes: Changes, uid: str, source: str, points: Sequence[Sample]) -> Appended:
        """Store those that follow without a gap; the timeline says when the job has all that it may have."""
        most = self._points_max
        done = tx.metrics.append(uid, source, points, most)
        if done.accepted and done.seq_first + len(done.accepted) > most:
            text = msg(
                "{n} metric points are stored, which is the limit of a job; later ones are dropped", n=most
            )
            changes.add_event(tx, uid, self._clock(), Step("metrics-full", text))
        return done

    def show(self, uid: str, done: Appended) -> None:
        """Send points that are stored to who watches the job."""
        if not done.accepted:
            return
        for listener in self.listeners:
            listener(uid)
        topic = job_topic(uid)
        if self._board.broker.watched(topic):
            points = done.points()
            frame = Shared(type="metrics", points=[frame_of(p) for p in points])
            self._board.broker.publish(topic, PointsStored(points, frame))
        for point in reversed(done.accepted):
            progress = point.v.get("progress")
            if progress is not None and math.isfinite(progress):
                self._progress(uid, round(max(0.0, min(100.0, progress))))
                break


def frame_of(point: StoredPoint) -> dict[str, object]:
    """Return a point as the streams show it; JSON makes null of what is not finite."""
    return {
        "seq": point.seq,
        "time": point.time,
        "rank": point.rank,
        "step": point.values.get("step"),
        "values": point.values,
    }
