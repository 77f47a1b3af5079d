"""Places up to which points of jobs were handed on to programs outside of the hub."""

from __future__ import annotations

from sqlalchemy import bindparam, select, update

from mlp_hub.store.records import ExportCursor
from mlp_hub.store.repos.base import KeyedRepo
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import point_export as t

_OPEN = (
    select(t)
    .where(t.c.exporter == bindparam("exporter"), t.c.done.is_(False), t.c.job > bindparam("after"))
    .order_by(t.c.job)
)
_REOPEN = update(t).where(t.c.job == bindparam("of"), t.c.exporter == bindparam("by")).values(done=False)


class PointExports(KeyedRepo[ExportCursor]):
    """The cursors by job and exporter. The database deletes them with their job."""

    __slots__ = ()
    rows = Rows(ExportCursor, t)

    def begin(self, job: str, exporter: str) -> None:
        """Store that points of the job are to be handed on; one that was done continues where it was."""
        if not self._insert_if_new(self.rows, ExportCursor(job, exporter)):
            self._c.execute(_REOPEN, {"of": job, "by": exporter})

    def open(self, exporter: str, after: str, most: int) -> list[ExportCursor]:
        """Return cursors that are not done, by job and behind the job `after`, `most` of them at most."""
        return self._list(self.rows, _OPEN.limit(most), {"exporter": exporter, "after": after})

    def advance(self, cursor: ExportCursor) -> None:
        """Store a cursor, unless its job is gone."""
        row = self.rows.row(cursor)
        of = (t.c.job == cursor.job, t.c.exporter == cursor.exporter)
        self._c.execute(update(t).where(*of).values({name: row[name] for name in ("seq", "target", "done")}))
