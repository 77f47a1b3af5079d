"""Jobs that ended: since when, and how much is stored of each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from sqlalchemy import ColumnElement, LargeBinary, Table, cast, delete, func, select

from mlp_hub.domain.jobs.job import FINAL
from mlp_hub.store.records import EndedSize
from mlp_hub.store.repos.base import Repo
from mlp_hub.store.tables import decision, job, job_event, metric_source, metric_total, run_origin
from mlp_hub.store.tables import ended_job as t

_FINAL = [p.value for p in sorted(FINAL)]
ROW_BYTES = 64
"""Approximate bytes of a row in addition to its texts: so that very many short ones count too."""


class EndedJobs(Repo):
    """A job is here once it ended and was measured, until it is being deleted."""

    __slots__ = ()

    def unmeasured(self, most: int) -> list[str]:
        """Return jobs that ended and were not measured, `most` of them at most."""
        query = (
            select(job.c.uid)
            .outerjoin(t, t.c.job == job.c.uid)
            .where(job.c.phase.in_(_FINAL), t.c.job.is_(None))
            .limit(most)
        )
        return list(self._c.scalars(query))

    def measure(self, uids: Sequence[str]) -> list[EndedSize]:
        """Add up what is stored of those of these jobs that ended: program, timeline, decisions, metrics, texts."""
        j = job.c
        texts = (j.spec, j.message, j.placement, j.failure, j.ranks)
        own = sum((func.coalesce(self._bytes(c), 0) for c in texts[1:]), self._bytes(texts[0]))
        ended = func.coalesce(j.finished_at, j.submitted_at).label("ended_at")
        query = select(j.uid, j.user, ended, own.label("bytes")).where(
            j.uid.in_(list(uids)), j.phase.in_(_FINAL)
        )
        more = [
            self._of_each(uids, job_event, self._bytes(job_event.c.message)),
            self._of_each(uids, decision, self._bytes(decision.c.text)),
            self._of_each(uids, metric_total, metric_total.c.bytes),
            self._of_each(uids, metric_source, self._bytes(metric_source.c.source)),
            self._of_each(uids, run_origin, run_origin.c.bytes),
        ]
        return [
            EndedSize(
                row.uid, row.user, row.ended_at, int(row.bytes) + sum(part.get(row.uid, 0) for part in more)
            )
            for row in self._c.execute(query)
        ]

    def _of_each(self, uids: Sequence[str], table: Table, size: ColumnElement[Any]) -> dict[str, int]:
        total = func.sum(size + ROW_BYTES)
        query = select(table.c.job, total).where(table.c.job.in_(list(uids))).group_by(table.c.job)
        return {uid: int(n) for uid, n in self._c.execute(query)}

    def _bytes(self, column: ColumnElement[Any]) -> ColumnElement[Any]:
        """Return how many bytes a text has: not letters, of which one may have four."""
        if self._c.dialect.name == "sqlite":
            return func.length(cast(column, LargeBinary))
        return func.octet_length(column)

    def put(self, kept: Iterable[EndedSize]) -> None:
        """Store what was measured, of jobs that are still there and ended."""
        found = {k.job: k for k in kept}
        query = select(job.c.uid).where(job.c.uid.in_(list(found)), job.c.phase.in_(_FINAL))
        rows = [
            {"job": k.job, "user": k.user, "ended_at": k.ended_at, "bytes": k.bytes}
            for k in (found[uid] for uid in self._c.scalars(query))
        ]
        if rows:
            self._c.execute(self._upsert(t, ("job",)), rows)

    def forget(self, uid: str) -> None:
        """Count a job no more: it is being deleted."""
        self._c.execute(delete(t).where(t.c.job == uid))

    def first(self) -> float | None:
        """Return when the job ended that did so first; None when there is none."""
        found: float | None = self._c.scalar(select(func.min(t.c.ended_at)))
        return found

    def before(self, time: float, most: int, but: Collection[str] = ()) -> list[EndedSize]:
        """Return jobs that ended before a time, the oldest first; none of the users `but`."""
        query = select(t).where(t.c.ended_at < time).order_by(t.c.ended_at, t.c.job).limit(most)
        if but:
            query = query.where(t.c.user.not_in(list(but)))
        return [_kept(row) for row in self._c.execute(query)]

    def over(self, jobs: int | None, size: int | None) -> list[str]:
        """Return the users of whom more jobs, or more bytes, than these are stored; None: any number."""
        query = select(t.c.user).group_by(t.c.user)
        limits = [func.count() > jobs] if jobs is not None else []
        if size is not None:
            limits.append(func.sum(t.c.bytes) > size)
        if not limits:
            return []
        either = limits[0] if len(limits) == 1 else limits[0] | limits[1]
        return list(self._c.scalars(query.having(either)))

    def total(self, user: str) -> tuple[int, int]:
        """Return how many of the user's jobs ended, and how many bytes are stored of them."""
        query = select(func.count(), func.coalesce(func.sum(t.c.bytes), 0)).where(t.c.user == user)
        count, size = self._c.execute(query).one()
        return int(count), int(size)

    def oldest(self, user: str, most: int) -> list[EndedSize]:
        """Return the user's jobs that ended first, the first one first."""
        query = select(t).where(t.c.user == user).order_by(t.c.ended_at, t.c.job).limit(most)
        return [_kept(row) for row in self._c.execute(query)]


def _kept(row: Any) -> EndedSize:
    return EndedSize(row.job, row.user, row.ended_at, int(row.bytes))
