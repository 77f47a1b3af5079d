"""How long jobs waited and ran in all their attempts; what an attempt goes on from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
COLUMNS = (
    ("waiting_since", sa.Double),
    ("waited", sa.Double),
    ("ran", sa.Double),
    ("progress_from", sa.Integer),
    ("progress_since", sa.Double),
)
AT_A_TIME = 1000
_job = sa.table(
    "job",
    sa.column("uid", sa.String),
    sa.column("phase", sa.String),
    sa.column("restarts", sa.Integer),
    *(sa.column(name, sa.Double) for name in ("queued_at", "submitted_at", "admitted_at", "finished_at")),
    *(sa.column(name, kind) for name, kind in COLUMNS),
)
_event = sa.table(
    "job_event",
    sa.column("job", sa.String),
    sa.column("seq", sa.Integer),
    sa.column("time", sa.Double),
    sa.column("kind", sa.String),
)


def upgrade() -> None:
    """Add the columns. Those of jobs that are there are filled in: from their timelines, where they had more than one wait."""
    for name, kind in COLUMNS:
        op.add_column("job", sa.Column(name, kind(), nullable=True))
    c, connection = _job.c, op.get_bind()
    since = sa.func.coalesce(c.queued_at, c.submitted_at)
    connection.execute(sa.update(_job).where(c.phase == "queued").values(waiting_since=since))
    until = sa.func.coalesce(c.admitted_at, sa.case((c.phase == "cancelled", c.finished_at)))
    first = sa.update(_job).where(c.restarts == 0, c.phase != "queued", until > since)
    connection.execute(first.values(waited=until - since))
    more = sa.select(_event.c.job).where(_event.c.kind.in_(("suspended", "requeued", "resized", "preempted")))
    uids = list(connection.scalars(more.distinct().order_by(_event.c.job)))
    for at in range(0, len(uids), AT_A_TIME):
        _fill(connection, uids[at : at + AT_A_TIME])


def downgrade() -> None:
    """Take them away."""
    for name, _ in reversed(COLUMNS):
        op.drop_column("job", name)


class Times:
    """What a timeline says of its job, of which the oldest entries may be gone."""

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
    rows = [_row(uid, times) for uid, times in _times(connection.execute(query))]
    phase = _job.c.phase
    change = sa.update(_job).where(_job.c.uid == sa.bindparam("b_uid"))
    values = {
        "waited": sa.bindparam("b_waited"),
        "ran": sa.bindparam("b_ran"),
        "waiting_since": sa.case(
            (phase == "queued", sa.func.coalesce(sa.bindparam("b_since", type_=sa.Double), _job.c.queued_at))
        ),
    }
    connection.execute(change.values(values), rows)


def _times(entries: Iterable[Any]) -> Iterator[tuple[str, Times]]:
    for uid, of_job in groupby(entries, key=lambda entry: entry.job):
        times = Times()
        for entry in of_job:
            times.take(entry.kind, entry.time)
        yield uid, times


def _row(uid: str, times: Times) -> dict[str, object]:
    return {
        "b_uid": uid,
        "b_waited": times.waited or None,
        "b_ran": times.ran or None,
        "b_since": times.since,
    }
