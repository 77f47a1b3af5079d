"""Places up to which points of jobs were handed on to programs outside of the hub."""

from __future__ import annotations

from sqlalchemy import bindparam, exists, or_, select, update

from mlp_hub.domain.jobs.job import FINAL
from mlp_hub.store.records import ExportCursor
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import job
from mlp_hub.store.tables import job_metrics as points
from mlp_hub.store.tables import point_export as t

_MORE = exists().where(points.c.job == t.c.job, points.c.seq_last > t.c.seq)
_BEHIND = (
    select(t)
    .join(job, job.c.uid == t.c.job)
    .where(t.c.exporter == bindparam("exporter"), t.c.done.is_(False), t.c.job > bindparam("after"))
    .where(or_(_MORE, job.c.phase.in_([phase.value for phase in sorted(FINAL)])))
    .order_by(t.c.job)
)
_REOPEN = update(t).where(t.c.job == bindparam("of"), t.c.exporter == bindparam("by")).values(done=False)


class PointExports(KeyedRepo[ExportCursor]):
    """The cursors by job and exporter. The database deletes them with their job."""

    __slots__ = ()
    rows = Rows(ExportCursor, t)

    def begin(self, uid: str, exporter: str) -> None:
        """Store that points of the job are exported; a job that was done continues at its cursor."""
        if not self._insert_if_new(self.rows, ExportCursor(uid, exporter)):
            self._c.execute(_REOPEN, {"of": uid, "by": exporter})

    def behind(self, exporter: str, after: str, most: int) -> list[ExportCursor]:
        """Return cursors of jobs with further points, or that ended and are not done, from the job `after` on, `most` at most."""
        return self._list(self.rows, _BEHIND.limit(most), {"exporter": exporter, "after": after})

    def advance(self, cursor: ExportCursor) -> None:
        """Store a cursor, unless its job is gone."""
        row = self.rows.row(cursor)
        of = (t.c.job == cursor.job, t.c.exporter == cursor.exporter)
        self._c.execute(update(t).where(*of).values({name: row[name] for name in ("seq", "target", "done")}))
