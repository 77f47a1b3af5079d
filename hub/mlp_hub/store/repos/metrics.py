"""Metric points: rows hold batches, so that storing is cheap; each point is stored exactly once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import bindparam, delete, func, select

from mlp_hub.domain.points import bounded
from mlp_hub.store.records import Appended, Sample, StoredPoint
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import job_metrics as t
from mlp_hub.store.tables import metric_source as s

_payload = msgspec.msgpack.Decoder(list[tuple[float, dict[str, float | int]]])
_encoder = msgspec.msgpack.Encoder()
ROW_POINTS = 2000
"""Points in one row at most, so that a reader in the middle of a job unpacks little that it drops."""

CLOSED = ""
"""Name of the source, which no process has, that stands for a job's points being deleted."""

# built once: building a statement costs more than running it
_ADD = t.insert()
_LAST = select(s.c.last).where(s.c.job == bindparam("job"), s.c.source == bindparam("source"))
_LAST_OF_ALL = select(s.c.source, s.c.last).where(s.c.job == bindparam("job"))
_LAST_SEQ = select(func.max(t.c.seq_last)).where(t.c.job == bindparam("job"))


def rank_of(source: str) -> int:
    """Return the rank in a source's name (`RANK.RESTART.RANDOM`)."""
    return int(source.partition(".")[0])


class Metrics(Repo):
    """The reported points of all jobs.

    A source is one reporting process. It numbers its points from 1 on without gaps; the highest number
    stored is kept per source, in the same transaction as the points, so a batch that is sent again adds
    nothing, and one that starts too far ahead adds nothing either (the sender learns where to go on).
    """

    __slots__ = ()

    def append(self, job: str, source: str, points: Sequence[Sample], most: int | None = None) -> Appended:
        """Store those points of the batch that follow the last stored one of the source without a gap.

        With `most`, only until the job has so many. A batch for a job that has them is answered as if it were
        stored, and nothing is.
        """
        last = self.last(job, source)
        first = self.last_seq(job) + 1
        if most is not None and first > most:
            return Appended(max(last, points[-1].n if points else 0), first, rank_of(source))
        fresh = following(points, last)
        if most is not None:
            fresh = fresh[: most - first + 1]
        if not fresh:
            return Appended(last, first, rank_of(source))
        new_last = last + len(fresh)
        rows = []
        for i in range(0, len(fresh), ROW_POINTS):
            part = fresh[i : i + ROW_POINTS]
            rows.append(
                {
                    "job": job,
                    "seq_first": first + i,
                    "seq_last": first + i + len(part) - 1,
                    "source": source,
                    "source_last": last + i + len(part),
                    "payload": _pack(part),
                }
            )
        self._c.execute(_ADD, rows)
        self._c.execute(self._upsert(s, ("job", "source")), {"job": job, "source": source, "last": new_last})
        return Appended(new_last, first, rank_of(source), fresh)

    def last(self, job: str, source: str) -> int:
        """Return the highest number of this source that is stored; 0 when there is none."""
        return self._c.scalar(_LAST, {"job": job, "source": source}) or 0

    def last_of_all(self, job: str) -> dict[str, int]:
        """Return the highest numbers of the job's sources that are stored."""
        found = self._c.execute(_LAST_OF_ALL, {"job": job})
        return {row.source: row.last for row in found if row.source != CLOSED}

    def last_seq(self, job: str) -> int:
        """Return how many points of the job are stored; the last one's `seq`."""
        return self._c.scalar(_LAST_SEQ, {"job": job}) or 0

    def since(self, job: str, seq: int = 0, limit: int = 5000) -> list[StoredPoint]:
        """Return the points with a number above `seq`, in order, `limit` of them at most."""
        query = select(t).where(t.c.job == job, t.c.seq_last > seq).order_by(t.c.seq_last)
        # a row holds at least one point, so never more than `limit` rows are needed
        points: list[StoredPoint] = []
        with self._c.execute(query.limit(limit), execution_options={"yield_per": 16}) as rows:
            for row in rows:
                points.extend(_points(row, seq))
                if len(points) >= limit:
                    break
        return points[:limit]

    def close(self, job: str) -> None:
        """Note that no point of the job is stored any more, not even one that was taken in before."""
        self._c.execute(self._upsert(s, ("job", "source")), {"job": job, "source": CLOSED, "last": 0})

    def is_closed(self, job: str) -> bool:
        """Whether `close` was said of it."""
        return self._c.scalar(_LAST, {"job": job, "source": CLOSED}) is not None

    def delete(self, job: str) -> None:
        """Forget the points of the job, not how far its sources came: a late batch adds nothing twice."""
        self._c.execute(delete(t).where(t.c.job == job))


def following(points: Sequence[Sample], last: int) -> Sequence[Sample]:
    """Return the run of points numbered last+1, last+2, ... in the batch; what comes after a gap is left."""
    if points and points[0].n == last + 1 and points[-1].n == last + len(points):
        expected = last
        for p in points:
            expected += 1
            if p.n != expected:
                break
        else:
            return points
    fresh: list[Sample] = []
    expected = last + 1
    for p in points:
        if p.n == expected:
            fresh.append(p)
            expected += 1
        elif p.n > expected:
            break
    return fresh


def _pack(points: Sequence[Sample]) -> bytes:
    try:
        return _encoder.encode([(p.t, p.v) for p in points])
    except OverflowError:  # an integer beyond 64 bits: near enough as a float
        return _encoder.encode([(p.t, {k: bounded(v) for k, v in p.v.items()}) for p in points])


def _points(row: Any, seq: int) -> Iterator[StoredPoint]:
    rank = rank_of(row.source)
    for number, (time, values) in enumerate(_payload.decode(row.payload), row.seq_first):
        if number > seq:
            yield StoredPoint(number, rank, time, values)
