"""Waits and run times of jobs in all their attempts; the point from which an attempt continues."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
SEVERAL = ("suspended", "requeued", "resized", "preempted", "cancelled")
"""Steps in the timelines of jobs that waited or ran more than once, or whose wait did not end with an admission."""
AT_A_TIME = 1000
_job = sa.table("job", sa.column("uid", sa.String), sa.column("past", sa.Text))
_event = sa.table(
    "job_event",
    sa.column("job", sa.String),
    sa.column("seq", sa.Integer),
    sa.column("time", sa.Double),
    sa.column("kind", sa.String),
)


def upgrade() -> None:
    """Add the column. For jobs that are there it is filled in from their timelines."""
    op.add_column("job", sa.Column("past", sa.Text(), nullable=True))
    connection = op.get_bind()
    query = sa.select(_event.c.job).where(_event.c.kind.in_(SEVERAL)).distinct().order_by(_event.c.job)
    uids = list(connection.scalars(query))
    for at in range(0, len(uids), AT_A_TIME):
        _fill(connection, uids[at : at + AT_A_TIME])


def downgrade() -> None:
    """Take it away."""
    op.drop_column("job", "past")


class Times:
    """Times of a job from its timeline, whose oldest entries can be missing."""

    def __init__(self) -> None:
        self.since: float | None = None  # it is in the queue since then
        self.waited = 0.0
        self.ran = 0.0  # in attempts that others followed
        self.began: float | None = None
        self.ended: float | None = None

    def take(self, kind: str, at: float) -> None:
        """Take in one entry."""
        if kind in ("submitted", "resumed") or (kind in ("requeued", "preempted") and self.began is None):
            self.since = at if self.since is None else self.since
        elif kind in ("admitted", "suspended", "cancelled") and self.since is not None:
            self.waited += at - self.since
            self.since = None
        if kind == "running":
            self.began, self.ended = at, None
        elif kind in ("ended", "attempt-failed"):
            self.ended = at
        elif kind in ("requeued", "suspended", "resized") and self.began is not None:
            self.ran += (at if self.ended is None else self.ended) - self.began
            self.began = None
            self.since = at if kind == "requeued" else self.since


def _fill(connection: sa.Connection, uids: list[str]) -> None:
    e = _event.c
    query = sa.select(e.job, e.kind, e.time).where(e.job.in_(uids)).order_by(e.job, e.seq)
    rows = [{"b_uid": uid, "b_past": past} for uid, past in _pasts(connection.execute(query))]
    change = sa.update(_job).where(_job.c.uid == sa.bindparam("b_uid")).values(past=sa.bindparam("b_past"))
    connection.execute(change, rows)


def _pasts(entries: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for uid, of_job in groupby(entries, key=lambda entry: entry.job):
        times = Times()
        for entry in of_job:
            times.take(entry.kind, entry.time)
        yield uid, json.dumps([times.since, times.waited, times.ran, None, None])
