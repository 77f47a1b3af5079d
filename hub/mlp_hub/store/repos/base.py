"""What all repositories share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite


class Repo:
    """A repository on an open transaction; make it through `Tx`."""

    __slots__ = ("_c",)

    def __init__(self, connection: Connection) -> None:
        self._c = connection

    def _insert(self, table: Table) -> Any:
        """Return the dialect's INSERT, which knows ON CONFLICT.

        Conflicts are asked for in SQL and never caught: on PostgreSQL an error would end the transaction
        that other queued work shares.
        """
        return sqlite.insert(table) if self._c.dialect.name == "sqlite" else postgresql.insert(table)
