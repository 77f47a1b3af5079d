"""Whether this program can work with the tables that a database has.

A revision that only adds (ADDS_ONLY in its module) leaves programs of the revision before it all that they read and write. So the
database stores the oldest revision whose program works with its tables. While pods of two versions run side by side, and after a
rollback, the older program works on.
"""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import Connection, inspect, select

from mlp_hub.store import codec
from mlp_hub.store.errors import WrongSchema
from mlp_hub.store.tables import REVISION, WORKS_FROM, schema_version, setting
from mlp_language.message import msg

KEY = "tables.works_from"
"""Contract: setting with the oldest revision whose program works with these tables."""


class Standing(NamedTuple):
    """Revision of a database's tables, None without any, and the oldest whose program works with them; None: no other than it."""

    revision: str | None
    works_from: str | None

    @property
    def fits(self) -> bool:
        """Whether this program works with them."""
        later = self.revision is not None and self.revision > REVISION
        return self.revision == REVISION or (
            later and (self.works_from or "") <= REVISION and bool(self.works_from)
        )


def standing_of(connection: Connection) -> Standing:
    """Read it; a database without tables has none."""
    if not inspect(connection).has_table(schema_version.name):
        return Standing(None, None)
    found = connection.scalar(select(schema_version.c.version_num))
    text = connection.scalar(select(setting.c.value).where(setting.c.key == KEY)) if found else None
    return Standing(found, None if text is None else codec.loads(text))


def note_works_from(connection: Connection, revision: str = WORKS_FROM) -> None:
    """Store the oldest revision whose program works with these tables."""
    connection.execute(setting.delete().where(setting.c.key == KEY))
    connection.execute(setting.insert().values(key=KEY, value=codec.dumps(revision)))


def check_fits(connection: Connection) -> None:
    """Raise `WrongSchema` unless this program works with the tables."""
    found = standing_of(connection)
    if not found.fits:
        raise WrongSchema(
            msg(
                "the tables are of revision {found}, and this version works with {revision}",
                found=found.revision or msg("none"),
                revision=REVISION,
            )
        )
