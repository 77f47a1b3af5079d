"""Metric points: rows hold batches, so that storing is cheap; each point is stored exactly once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import bindparam, func, select, update

from mlp_hub.store.point_form import MetricNames, packed, points_in
from mlp_hub.store.records import Appended, Sample, StoredPoint
from mlp_hub.store.repos.base import Repo, chunks
from mlp_hub.store.tables import job_metrics as t
from mlp_hub.store.tables import metric_source as s
from mlp_hub.store.tables import metric_total as total

PAGE_BYTES = 512 * 1024
"""Tuning: stored bytes of points that are read at a time, or one row: some ten times as much memory while they are used."""
ROW_BYTES = 64
"""Approximate bytes of a row in addition to its points."""

CLOSED = ""
"""Name of the source, which no process has, that stands for a job's points being deleted."""

# built once: building a statement costs more than running it
_ADD = t.insert()
_LAST = select(s.c.last).where(s.c.job == bindparam("job"), s.c.source == bindparam("source"))
_LAST_OF_ALL = select(s.c.source, s.c.last).where(s.c.job == bindparam("job"))
_REPORTED = select(s.c.job).where(s.c.job.in_(bindparam("jobs", expanding=True))).distinct()
_CLOSED = select(s.c.job).where(s.c.source == CLOSED, s.c.job.in_(bindparam("jobs", expanding=True)))
_GROWN = update(total).where(total.c.job == bindparam("of")).values(bytes=bindparam("bytes"))
_TOTAL = select(total.c.bytes, total.c.names).where(total.c.job == bindparam("job"))
_BEHIND = (t.c.job == bindparam("job"), t.c.seq_last > bindparam("seq"))
_SIZES = select(t.c.seq_first, t.c.seq_last, func.length(t.c.payload)).where(*_BEHIND).order_by(t.c.seq_last)
_ROWS = (
    select(t.c.seq_first, t.c.source, t.c.payload)
    .where(*_BEHIND, t.c.seq_last <= bindparam("upto"))
    .order_by(t.c.seq_last)
)
_LAST_SEQ = select(func.max(t.c.seq_last)).where(t.c.job == bindparam("job"))


def rank_of(source: str) -> int:
    """Return the rank in a source's name (`RANK.RESTART.RANDOM`)."""
    return int(source.partition(".")[0])


class Metrics(Repo):
    """The reported points of all jobs.

    A source is one reporting process. It numbers its points from 1 on without gaps. The highest number
    stored is kept per source, in the same transaction as the points. So a batch that is sent again adds
    nothing. One that starts too far ahead adds nothing either, and the sender gets the number to
    continue from.
    """

    __slots__ = ()

    def append(
        self,
        job: str,
        source: str,
        points: Sequence[Sample],
        most: int | None = None,
        most_bytes: int | None = None,
    ) -> Appended:
        """Store the points of the batch that follow the last stored one of the source without a gap.

        With `most`, only until the job has that number of points. With `most_bytes`, up to the batch with
        which it reaches that number of bytes. A batch for a job at its limit is answered as if it were
        stored, and is dropped.
        """
        last = self.last(job, source)
        first = self.last_seq(job) + 1
        size, names = self._total(job)
        if (most is not None and first > most) or (most_bytes is not None and size >= most_bytes):
            return Appended(max(last, points[-1].n if points else 0), first, rank_of(source), size=size)
        fresh = following(points, last)
        if most is not None:
            fresh = fresh[: most - first + 1]
        if not fresh:
            return Appended(last, first, rank_of(source), size=size)
        new_last = last + len(fresh)
        rows = []
        done = 0
        for count, payload in packed(fresh, names):
            rows.append(
                {
                    "job": job,
                    "seq_first": first + done,
                    "seq_last": first + done + count - 1,
                    "source": source,
                    "source_last": last + done + count,
                    "payload": payload,
                }
            )
            done += count
            size += len(payload) + ROW_BYTES
        self._c.execute(_ADD, rows)
        self._c.execute(self._upsert(s, ("job", "source")), {"job": job, "source": source, "last": new_last})
        if names.grew:
            size += names.grown
            self._c.execute(
                self._upsert(total, ("job",)), {"job": job, "bytes": size, "names": names.stored()}
            )
        else:
            self._c.execute(_GROWN, {"of": job, "bytes": size})
        return Appended(new_last, first, rank_of(source), fresh, size, left_out=names.left_out)

    def _total(self, job: str) -> tuple[int, MetricNames]:
        row = self._c.execute(_TOTAL, {"job": job}).first()
        return (0, MetricNames()) if row is None else (row.bytes, MetricNames(row.names))

    def sizes(self, jobs: Iterable[str]) -> dict[str, int]:
        """Return how many bytes the points of these jobs take, of those that have any."""
        found: dict[str, int] = {}
        for part in chunks(jobs):
            rows = self._c.execute(select(total.c.job, total.c.bytes).where(total.c.job.in_(part)))
            found |= {row.job: row.bytes for row in rows}
        return found

    def reported(self, jobs: Iterable[str]) -> set[str]:
        """Return those of these jobs of which any process has reported points."""
        return {job for part in chunks(jobs) for job in self._c.scalars(_REPORTED, {"jobs": part})}

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

    def since(
        self, job: str, seq: int = 0, limit: int = 5000, most_bytes: int = PAGE_BYTES
    ) -> list[StoredPoint]:
        """Return a page of the points with a number above `seq`, in order; none where there are no more."""
        return self.page(job, seq, limit, most_bytes)[0]

    def page(
        self, job: str, seq: int, limit: int, most_bytes: int = PAGE_BYTES
    ) -> tuple[list[StoredPoint], bool]:
        """Return a page of the points with a number above `seq`, in order, and whether those are all.

        It has at most `limit` points, and of `most_bytes` stored bytes those of one row more than fit.
        """
        upto, size, count, whole = seq, 0, 0, True
        with self._c.execute(_SIZES, {"job": job, "seq": seq}, execution_options={"yield_per": 256}) as sizes:
            for first, last, length in sizes:
                if count >= limit or (size and size + length > most_bytes):
                    whole = False
                    break
                upto, size, count = last, size + length, last - max(first - 1, seq) + count
        if upto == seq:
            return [], True
        names = self._total(job)[1].names
        points: list[StoredPoint] = []
        for row in self._c.execute(_ROWS, {"job": job, "seq": seq, "upto": upto}):
            points.extend(points_in(row.payload, names, row.seq_first, rank_of(row.source), seq))
        return points[:limit], whole and len(points) <= limit

    def close(self, job: str) -> None:
        """Note that no point of the job is stored any more, not even one that was taken in before."""
        self._c.execute(self._upsert(s, ("job", "source")), {"job": job, "source": CLOSED, "last": 0})

    def is_closed(self, job: str) -> bool:
        """Return whether `close` was called for it."""
        return self._c.scalar(_LAST, {"job": job, "source": CLOSED}) is not None

    def closed(self, jobs: Iterable[str]) -> set[str]:
        """Return those of the jobs for which `close` was called."""
        return {job for part in chunks(jobs) for job in self._c.scalars(_CLOSED, {"jobs": part})}

    def delete(self, job: str) -> None:
        """Forget the points of the job, not how far its sources came: a late batch adds nothing twice."""
        self._delete(t, t.c.job == job)
        self._delete(total, total.c.job == job)


def following(points: Sequence[Sample], last: int) -> Sequence[Sample]:
    """Return the run of points numbered last+1, last+2, ... in the batch; points after a gap are left."""
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
