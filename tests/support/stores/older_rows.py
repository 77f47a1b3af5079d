"""Rows of tables in their older form, with required columns filled in."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Boolean, Connection, Float, Integer, MetaData, Table
from sqlalchemy import types as sql_types


def value(column: Any) -> Any:
    """Something of a column's type that says nothing."""
    kind = column.type
    if isinstance(kind, Boolean):
        return False
    if isinstance(kind, (Integer, Float, sql_types.Numeric)):
        return 0
    return "[]" if isinstance(kind, sql_types.Text) else ""


def row(table: Table, **values: Any) -> dict[str, Any]:
    needed = {c.name: value(c) for c in table.columns if not c.nullable and c.server_default is None}
    return {k: v for k, v in {**needed, **values}.items() if k in table.columns}


def table_of(connection: Connection, name: str) -> Table:
    """Return a table as it is in the database now."""
    metadata = MetaData()
    metadata.reflect(connection, only=[name])
    return metadata.tables[name]
