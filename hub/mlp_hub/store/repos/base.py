"""Code that all repositories share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from operator import itemgetter
from typing import Any, ClassVar, Generic, TypeVar

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    CursorResult,
    Dialect,
    Select,
    Table,
    bindparam,
    delete,
    func,
    or_,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DBAPIError

from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.store.rows import Rows

T = TypeVar("T")


LOTS = (64, 32, 16, 8, 4, 2, 1)
"""Rows that one statement takes.

Between two runs the driver lets other threads run, and waits for its turn again. For rows that
every job writes, that would cost more than the writes.
"""
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


def within(query: Select[Any], context: TenantContext, user: Any, tenant: Any) -> Select[Any]:
    """Return a query of owned objects with those alone that are within a context; `user` and `tenant` are their columns."""
    if context.tenants is None:
        return query
    own = user == context.user
    return query.where(or_(own, tenant.in_(sorted(context.tenants))) if context.tenants else own)


class Repo:
    """A repository on an open transaction; make it through `Tx`."""

    __slots__ = ("_c",)

    def __init__(self, connection: Connection) -> None:
        self._c = connection

    def _one(self, rows: Rows[T], query: Any, asked: Mapping[str, Any] | None = None) -> T | None:
        """Return the value of the first row that a query finds."""
        row = self._c.execute(query, asked).first()
        return None if row is None else rows.of(row)

    def _list(self, rows: Rows[T], query: Any, asked: Mapping[str, Any] | None = None) -> list[T]:
        """Return the values of all rows that a query finds, in its order."""
        return [rows.of(row) for row in self._c.execute(query, asked)]

    def _store(self, rows: Rows[T], value: T, **beside: Any) -> None:
        """Store a value, new or changed by the key of its table, with these columns that are not of the value."""
        statement = self._upsert(rows.table, _key_of(rows.table))
        self._insert_quickly(statement, **{**beside, **rows.row(value)})

    def _insert_row(self, rows: Rows[T], value: T, **beside: Any) -> None:
        """Store a new value; an error where its key is there."""
        self._insert_quickly(_insert_of(rows.table), **{**beside, **rows.row(value)})

    def _insert_if_new(self, rows: Rows[T], value: T) -> bool:
        """Store a value unless its key is there; return whether it was stored."""
        statement = self._insert_new(rows.table, _key_of(rows.table))
        return self._c.execute(statement, rows.row(value)).first() is not None

    def _delete(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        """Delete the rows under these conditions; return their number."""
        return int(self._c.execute(delete(table).where(*conditions)).rowcount)

    def _count(self, table: Table, *conditions: ColumnElement[bool]) -> int:
        """Count the rows under these conditions."""
        return int(self._c.scalar(select(func.count()).select_from(table).where(*conditions)) or 0)

    def _many(self, statement: Any, rows: Sequence[dict[str, Any]]) -> int:
        """Run a statement that returns nothing with each of these rows of parameters; return how many rows it touched.

        For the statements that every job comes by: the driver gets the text made once, and SQLAlchemy looks at no row.
        All rows have the same keys; the columns' types must need no conversion, and the statement no list of values.
        """
        sql, given = _driver_sql(self._c.dialect, statement, tuple(rows[0]))
        parameters = [given(row) for row in rows]
        done: Any = self._by_driver(sql, parameters, many=True)
        if done is None:
            done = self._c.exec_driver_sql(sql, parameters)
        return int(done.rowcount)

    def _in_lots(
        self, statement: Callable[[int], Any], rows: Sequence[Sequence[Any]]
    ) -> Iterator[CursorResult[Any]]:
        """Run a query that takes several rows at once with all of these, the largest lots first; yield the results.

        `statement(n)` makes the one for n rows, whose parameters are named by the field of a row and the row, `f1_0` for the
        second field of the first; it is asked once for each n. Under the conditions of `_many`.
        """
        for sql, parameters in self._lots(statement, rows):
            yield self._c.exec_driver_sql(sql, parameters)

    def _store_lots(self, statement: Callable[[int], Any], rows: Sequence[Sequence[Any]]) -> int:
        """Run such a statement that returns nothing; return how many rows it touched."""
        touched = 0
        for sql, parameters in self._lots(statement, rows):
            done: Any = self._by_driver(sql, parameters)
            touched += (self._c.exec_driver_sql(sql, parameters) if done is None else done).rowcount
        return touched

    def _lots(
        self, statement: Callable[[int], Any], rows: Sequence[Sequence[Any]]
    ) -> Iterator[tuple[str, Any]]:
        at = 0
        for size in LOTS:
            while len(rows) - at >= size:
                sql, given = _lot_sql(self._c.dialect, statement, size)
                yield sql, given(rows[at : at + size])
                at += size

    def _few(self, statement: Any, **asked: Any) -> CursorResult[Any]:
        """Run a query with these parameters; for the queries of every transaction, and under the conditions of `_many`."""
        sql, given = _driver_sql(self._c.dialect, statement, tuple(asked))
        return self._c.exec_driver_sql(sql, given(asked))

    def _insert_quickly(self, statement: Any, **asked: Any) -> None:
        """Run a statement that returns nothing, under the conditions of `_many`; for those beside each change."""
        self._first_quickly(statement, **asked)

    def _first_quickly(self, statement: Any, **asked: Any) -> Sequence[Any] | None:
        """Run a statement that returns at most one row; return that row's values as the driver has them, None without one.

        For the statements of every transaction, and under the conditions of `_many`.
        """
        sql, given = _driver_sql(self._c.dialect, statement, tuple(asked))
        parameters = given(asked)
        done = self._by_driver(sql, parameters)
        if done is not None:
            row: Sequence[Any] | None = done.fetchone()
            done.close()  # an unfinished statement would keep its transaction from ending
            return row
        found = self._c.exec_driver_sql(sql, parameters)
        return found.first() if found.returns_rows else None

    def _by_driver(self, sql: str, parameters: Any, *, many: bool = False) -> sqlite3.Cursor | None:
        """Have SQLite's own driver run a statement, with `many` for each of the parameters; None with another database.

        Making SQLAlchemy's cursor takes five times as long as the statement itself.
        """
        driver: Any = self._c.connection.dbapi_connection
        if not isinstance(driver, sqlite3.Connection):
            return None
        try:
            return driver.executemany(sql, parameters) if many else driver.execute(sql, parameters)
        except sqlite3.Error as error:
            raise DBAPIError.instance(
                sql, parameters, error, sqlite3.Error, dialect=self._c.dialect
            ) from error

    def _insert_all(
        self,
        table: Table,
        rows: Sequence[Mapping[str, Any]],
        keys: Sequence[str] = (),
        *,
        replaces: bool = False,
    ) -> int:
        """Store rows, all of the same columns, under the conditions of `_many`; return how many were stored.

        Not stored is a row whose `keys` are there; with `replaces` it takes the other's place, and none may come twice.
        """
        if not rows:
            return 0
        statement = _inserts(self._c.dialect.name, table, tuple(rows[0]), tuple(keys), replaces)
        return self._store_lots(statement, [tuple(row.values()) for row in rows])

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


class KeyedRepo(Repo, Generic[T]):
    """The values of one table, stored and found by its primary key. A subclass gives their `rows`."""

    __slots__ = ()
    rows: ClassVar[Rows[Any]]

    def get(self, *key: str) -> T | None:
        """Return the value of this key."""
        found: T | None = self._one(self.rows, *_by_key(self.rows.table, key))
        return found

    def put(self, value: T, **beside: Any) -> None:
        """Store a value, new or changed, with the columns that are not of the value."""
        self._store(self.rows, value, **beside)

    def remove(self, *key: str) -> bool:
        """Delete the value of this key; return whether it was there."""
        return bool(self._c.execute(*_delete_by_key(self.rows.table, key)).rowcount)


class OwnedRepo(Repo, Generic[T]):
    """Objects that users own within a tenant, by uid. A subclass gives their `rows`.

    Its methods that return objects take a `TenantContext` first. `found_in` is the query of all their rows, and `owners` the table with their
    columns `uid`, `user`, `name` and `tenant`.
    """

    __slots__ = ()
    rows: ClassVar[Rows[Any]]
    found_in: ClassVar[Select[Any]]
    owners: ClassVar[Table]

    def get(self, context: TenantContext, uid: str) -> T | None:
        """Return the object of this uid."""
        return self._first(context, self.found_in.where(self.owners.c.uid == uid))

    def put(self, value: T) -> None:
        """Store an object, new or changed."""
        self._store(self.rows, value)

    def remove(self, uid: str) -> None:
        """Delete the object of this uid."""
        self._delete(self.rows.table, self.rows.table.c.uid == uid)

    def _value(self, row: Any) -> T:
        """Return the object of a row of `found_in`."""
        value: T = self.rows.of(row)
        return value

    def _within(self, context: TenantContext, query: Select[Any]) -> Select[Any]:
        return within(query, context, self.owners.c.user, self.owners.c.tenant)

    def _first(self, context: TenantContext, query: Select[Any]) -> T | None:
        row = self._c.execute(self._within(context, query)).first()
        return None if row is None else self._value(row)

    def _listed(self, context: TenantContext, query: Select[Any]) -> list[T]:
        return [self._value(row) for row in self._c.execute(self._within(context, query))]

    def _of_user(self, user: str, *equal: tuple[Column[Any], str | None]) -> Select[Any]:
        """Return the query of a user's objects, those with these values of columns; None lets everything through."""
        chosen = [column == str(value) for column, value in equal if value is not None]
        return self.found_in.where(self.owners.c.user == user, *chosen)

    def _newest(self, context: TenantContext, query: Select[Any], before: str | None, limit: int) -> list[T]:
        """Return a page of a query, the newest first, those older than `before`, a uid."""
        uid = self.owners.c.uid
        older = query if before is None else query.where(uid < before)
        return self._listed(context, older.order_by(uid.desc()).limit(limit))


@cache
def _key_of(table: Table) -> tuple[str, ...]:
    return tuple(column.name for column in table.primary_key.columns)


def _by_key(table: Table, key: Sequence[str]) -> tuple[Any, dict[str, str]]:
    """Return the query of the row of a key, and its parameters."""
    return _select_by_key(table), dict(zip(_key_of(table), key, strict=True))


def _delete_by_key(table: Table, key: Sequence[str]) -> tuple[Any, dict[str, str]]:
    names = _key_of(table)
    of = [column == bindparam(f"of_{column.name}") for column in table.primary_key.columns]
    return delete(table).where(*of), {f"of_{n}": value for n, value in zip(names, key, strict=True)}


@cache
def _select_by_key(table: Table) -> Any:
    return select(table).where(*(column == bindparam(column.name) for column in table.primary_key.columns))


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
def _lot_sql(
    dialect: Dialect, statement: Callable[[int], Any], size: int
) -> tuple[str, Callable[[Sequence[Sequence[Any]]], Any]]:
    """Return the text for the driver, and the function that makes its parameters of `size` rows."""
    compiled = statement(size).compile(dialect=dialect)
    if compiled.positiontup is None:  # it takes them by name
        return str(compiled), lambda rows: {
            f"f{k}_{i}": value for i, row in enumerate(rows) for k, value in enumerate(row)
        }
    places = [name[1:].split("_") for name in compiled.positiontup]
    fields = [int(k) for k, i in places if i == "0"]
    if [(int(k), int(i)) for k, i in places] != [(k, i) for i in range(size) for k in fields]:
        raise ValueError(f"the statement does not take row after row: {compiled}")
    pick = itemgetter(*fields)
    return str(compiled), lambda rows: tuple(chain.from_iterable(map(pick, rows)))


@cache
def _inserts(
    dialect: str, table: Table, names: tuple[str, ...], keys: tuple[str, ...], replaces: bool
) -> Callable[[int], Any]:
    """Return the maker of the statement that stores a number of rows of these columns, for `_in_lots`."""
    insert = sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)

    def statement(rows: int) -> Any:
        every = insert.values(
            [{name: bindparam(f"f{k}_{i}") for k, name in enumerate(names)} for i in range(rows)]
        )
        if not keys:
            return every
        if not replaces:
            return every.on_conflict_do_nothing(index_elements=list(keys))
        changed = {name: insert.excluded[name] for name in names if name not in keys}
        return every.on_conflict_do_update(index_elements=list(keys), set_=changed)

    return statement


@cache
def _insert_of(table: Table) -> Any:
    return table.insert()


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
