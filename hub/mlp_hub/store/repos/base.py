"""What all repositories share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import Connection, Dialect, Table, bindparam
from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")


MOST_NAMES = 500
"""Values of one IN; SQLite and drivers have limits."""


def chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """Split into parts that one statement can name."""
    rest = iter(values)
    while part := list(islice(rest, MOST_NAMES)):
        yield part


class Repo:
    """A repository on an open transaction; make it through `Tx`."""

    __slots__ = ("_c",)

    def __init__(self, connection: Connection) -> None:
        self._c = connection

    def _many(self, statement: Any, rows: Sequence[dict[str, Any]]) -> int:
        """Run a statement that returns nothing with each of these rows of parameters; return how many rows it touched.

        For the statements that every job comes by: the driver gets the text made once, and SQLAlchemy looks at no row.
        All rows have the same keys; the columns' types must need no conversion, and the statement no list of values.
        """
        keys = tuple(rows[0])
        sql, names, fixed = _driver_sql(self._c.dialect, statement, keys)
        if names is None:
            given: Any = [{**fixed, **row} for row in rows] if fixed else list(rows)
        elif fixed:
            given = [tuple([fixed[n] if n in fixed else row[n] for n in names]) for row in rows]
        else:
            given = [tuple([row[n] for n in names]) for row in rows]
        return int(self._c.exec_driver_sql(sql, given).rowcount)

    def _insert(self, table: Table) -> Any:
        """Return the dialect's INSERT, which knows ON CONFLICT.

        Conflicts are asked for in SQL and never caught: on PostgreSQL an error would end the transaction
        that other queued work shares.
        """
        return sqlite.insert(table) if self._c.dialect.name == "sqlite" else postgresql.insert(table)

    def _upsert(self, table: Table, keys: Sequence[str]) -> Any:
        """Return the statement that stores a whole row, new or changed; give it all columns as parameters."""
        return _upsert_of(self._c.dialect.name, table, tuple(keys))

    def _insert_new(self, table: Table, keys: Sequence[str]) -> Any:
        """Return the statement that stores a whole row and gives it back, unless one of these keys is there."""
        return _insert_new_of(self._c.dialect.name, table, tuple(keys))

    def _insert_unless(self, table: Table, keys: Sequence[str]) -> Any:
        """Return the statement that stores whole rows, each unless one of these keys is there; for many at once."""
        return _insert_unless_of(self._c.dialect.name, table, tuple(keys))


@cache
def _driver_sql(
    dialect: Dialect, statement: Any, keys: tuple[str, ...]
) -> tuple[str, tuple[str, ...] | None, dict[str, Any]]:
    """Return the text for the driver, its parameters' names in order (None: it takes them by name), and the fixed ones."""
    compiled = statement.compile(dialect=dialect, column_keys=list(keys))
    names = None if compiled.positiontup is None else tuple(compiled.positiontup)
    return str(compiled), names, {n: v for n, v in compiled.params.items() if n not in keys}


@cache
def _insert_unless_of(dialect: str, table: Table, keys: tuple[str, ...]) -> Any:
    insert = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
    every = insert.values({c.name: bindparam(c.name) for c in table.columns})
    return every.on_conflict_do_nothing(index_elements=list(keys))


@cache
def _insert_new_of(dialect: str, table: Table, keys: tuple[str, ...]) -> Any:
    insert = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
    every = insert.values({c.name: bindparam(c.name) for c in table.columns})
    return every.on_conflict_do_nothing(index_elements=list(keys)).returning(*(table.c[k] for k in keys))


@cache
def _upsert_of(dialect: str, table: Table, keys: tuple[str, ...]) -> Any:
    """Build the statement once: building costs more than running it."""
    insert = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)
    changed = {c.name: insert.excluded[c.name] for c in table.columns if c.name not in keys}
    return insert.on_conflict_do_update(index_elements=list(keys), set_=changed)
