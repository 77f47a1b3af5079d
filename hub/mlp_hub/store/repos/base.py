"""What all repositories share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from operator import itemgetter
from typing import Any, TypeVar

from sqlalchemy import Connection, CursorResult, Dialect, Table, bindparam
from sqlalchemy.dialects import postgresql, sqlite

T = TypeVar("T")


MOST_NAMES = 500
"""Values of one IN; SQLite and drivers have limits."""


def chunks(values: Iterable[T]) -> Iterator[list[T]]:
    """Split into parts that one statement can name."""
    rest = iter(values)
    while part := list(islice(rest, MOST_NAMES)):
        yield part


def bounded(
    rows: Iterable[T], size: Callable[[T], int], limit: int, most_bytes: int | None
) -> tuple[list[T], bool]:
    """Return the rows that one page holds, one at least, and whether there are more; `size` is a row's in bytes."""
    found: list[T] = []
    total = 0
    for row in rows:
        total += size(row)
        if len(found) == limit or (found and most_bytes is not None and total > most_bytes):
            return found, True
        found.append(row)
    return found, False


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
        sql, given = _driver_sql(self._c.dialect, statement, tuple(rows[0]))
        return int(self._c.exec_driver_sql(sql, [given(row) for row in rows]).rowcount)

    def _few(self, statement: Any, **asked: Any) -> CursorResult[Any]:
        """Run a query with these parameters; for the queries of every transaction, and under the conditions of `_many`."""
        sql, given = _driver_sql(self._c.dialect, statement, tuple(asked))
        return self._c.exec_driver_sql(sql, given(asked))

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
) -> tuple[str, Callable[[Mapping[str, Any]], Any]]:
    """Return the text for the driver, and what makes its parameters of those that are given by name."""
    compiled = statement.compile(dialect=dialect, column_keys=list(keys))
    fixed = {n: v for n, v in compiled.params.items() if n not in keys}
    if compiled.positiontup is None:  # it takes them by name
        return str(compiled), lambda row: {**fixed, **row}
    if len(compiled.positiontup) == 1:  # of one name alone `itemgetter` makes no tuple
        (name,) = compiled.positiontup
        return str(compiled), lambda row: ({**fixed, **row}[name],)
    pick = itemgetter(*compiled.positiontup)
    return str(compiled), (lambda row: pick({**fixed, **row})) if fixed else pick


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
