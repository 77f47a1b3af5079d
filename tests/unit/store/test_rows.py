"""Each type that has rows comes back equal from its row, as SQLite gives it back; `Rows` refuses a type that differs from its table."""

from __future__ import annotations

import importlib
import pkgutil
import string
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from enum import StrEnum
from functools import cache
from typing import Any, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Double,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    select,
)

from mlp_hub.domain.jobs.job import AS_SUBMITTED, Failure, Job
from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.domain.runtime.runtime import Runtime
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.store import repos
from mlp_hub.store.records import StoredRuntime, UsageSample
from mlp_hub.store.repos.jobs import job_rows
from mlp_hub.store.rows import Rows
from mlp_hub.store.tables import metadata
from mlp_language.message import NOTHING, Message, msg

words = st.text(string.printable + "äß€", max_size=12)
counts = st.integers(0, 2**62)
moments = st.floats(0, 4e9, allow_nan=False)
maybe = st.none() | counts
pairs = st.lists(st.tuples(words, counts), max_size=2).map(tuple)
messages = st.just(NOTHING) | st.builds(
    lambda name, n: msg("{name} waits for {n}", name=name, n=n), words, counts
)
quotas = st.builds(
    Quota, maybe, maybe, maybe, maybe, *[st.dictionaries(words, counts, max_size=2) for _ in range(2)]
)
st.register_type_strategy(Resources, st.builds(Resources, counts, counts, counts, counts, pairs, pairs))
st.register_type_strategy(Quota, quotas)
st.register_type_strategy(Message, messages)
st.register_type_strategy(str, words)
st.register_type_strategy(float, moments)
st.register_type_strategy(int, counts)
GIVEN: Mapping[type, Mapping[str, Any]] = {
    UsageSample: {"amount": st.builds(Resources, counts, counts, counts, counts, st.just(()), pairs)},
    StoredRuntime: {"runtime": st.builds(Runtime, tenant=words)},
    Job: {"steered": st.just(AS_SUBMITTED), "failure": st.none() | st.builds(Failure)},
}
"""Fields whose values are not any: use over time has no kinds of gpu, and a stored runtime has a tenant. A job that was changed is below."""


def all_rows() -> dict[str, Rows[Any]]:
    """All `Rows` of the repositories, by what they are of."""
    found: dict[str, Rows[Any]] = {}
    for module in pkgutil.walk_packages(repos.__path__, f"{repos.__name__}."):
        there = vars(importlib.import_module(module.name))
        classes = [vars(value) for value in there.values() if isinstance(value, type)]
        for names in (there, *classes):
            found |= {rows.kind.__name__: rows for rows in names.values() if isinstance(rows, Rows)}
    return found


ROWS = all_rows()


def every_field(kind: type) -> st.SearchStrategy[Any]:
    """Values of a dataclass with something in each field, also in those that have a default."""
    hints = get_type_hints(kind)
    given = GIVEN.get(kind, {})
    return st.builds(kind, **{f.name: given.get(f.name, st.from_type(hints[f.name])) for f in fields(kind)})


@cache
def kept_in(rows: Rows[Any]) -> tuple[Table, Connection]:
    """The table in a database of its own, without what it refers to."""
    table = rows.table.to_metadata(MetaData())
    for constraint in set(table.foreign_key_constraints):
        table.constraints.remove(constraint)
    connection = create_engine("sqlite://").connect()
    table.create(connection)
    return table, connection


def as_read(rows: Rows[Any], row: Mapping[str, Any]) -> Any:
    """The row as the database gives it back once it is stored."""
    table, connection = kept_in(rows)
    beside = {c.name: filler(c) for c in table.columns if c.name not in row and not c.nullable}
    labels = [column.label(rows.label + column.name) for column in table.columns]
    with connection.begin_nested() as savepoint:
        connection.execute(table.insert(), {**beside, **row})
        found = connection.execute(select(*labels)).one()
        savepoint.rollback()
    return found


def filler(column: Column[Any]) -> Any:
    return 7 if column.type.python_type in (int, float) else column.type.python_type()


def test_there_are_rows_of_most_tables() -> None:
    named = {rows.table.name for rows in ROWS.values()}
    assert len(named) > len(metadata.tables) * 0.6
    assert all(is_dataclass(rows.kind) for rows in ROWS.values())


@pytest.mark.parametrize("name", sorted(ROWS))
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_value_comes_back_from_its_row(name: str, data: st.DataObject) -> None:
    rows = ROWS[name]
    value = data.draw(every_field(rows.kind))
    found = as_read(rows, rows.row(value))
    if rows.kind is Job:
        assert job_rows.job_of(found) == value
        return
    numbered = {name: 7 for name in ("id",) if rows.numbered == name}
    given = {name: getattr(value, name) for name in rows.given}
    expected = type(value)(**{**{f.name: getattr(value, f.name) for f in fields(value)}, **numbered})
    assert rows.of(found, **given) == expected


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.builds(Job))
def test_a_job_that_was_changed_has_the_specification_that_holds_now(job: Job) -> None:
    found = job_rows.job_of(as_read(job_rows.ROWS, job_rows.ROWS.row(job)))
    assert found.spec == job.steered.effective_spec(job.spec)
    assert found.steered == job.steered


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Size:
    width: int
    height: int = 0


@dataclass(frozen=True, slots=True)
class Box:
    uid: str
    colour: Colour
    size: Size
    inner: Size | None = None
    notes: tuple[str, ...] = ()
    since: float | None = None


def table(*columns: Column[Any]) -> Table:
    return Table("box", MetaData(), *columns)


def of_boxes(*more: Column[Any]) -> Table:
    return table(
        Column("uid", String(8), primary_key=True),
        Column("colour", String(8), nullable=False),
        Column("width", BigInteger, nullable=False),
        Column("height", BigInteger, nullable=False),
        Column("inner_width", BigInteger),
        Column("inner_height", BigInteger),
        Column("notes", Text),
        Column("since", Double),
        *more,
    )


EMBEDDED = {"size": "", "inner": "inner_"}


def test_a_row_has_a_column_for_each_field() -> None:
    rows = Rows(Box, of_boxes(), embedded=EMBEDDED)
    assert rows.row(Box("a", Colour.RED, Size(1, 2), Size(3), ("x",), 4.0)) == {
        "uid": "a", "colour": "red", "width": 1, "height": 2, "inner_width": 3, "inner_height": 0, "notes": '["x"]', "since": 4.0,
    }  # fmt: skip
    nothing = rows.row(Box("a", Colour.RED, Size(1)))
    assert [nothing[name] for name in ("inner_width", "inner_height", "notes", "since")] == [None] * 4
    assert rows.part(("colour", "since"))(Box("a", Colour.RED, Size(1))) == {"colour": "red", "since": None}
    assert "uid" not in rows.without("uid")(Box("a", Colour.RED, Size(1)))


@pytest.mark.parametrize(
    ("made", "what"),
    [
        (lambda: Rows(Box, of_boxes(Column("weight", Double)), embedded=EMBEDDED), "differ in ['weight']"),
        (lambda: Rows(Box, of_boxes()), "box has no column size for Box.size"),
        (lambda: Rows(Box, of_boxes(), embedded=EMBEDDED, beside=("uid",)), "differ in"),
        (lambda: Rows(Box, of_boxes(), embedded=EMBEDDED, beside=("other",)), "differ in ['other']"),
        (lambda: Rows(Size, table(Column("width", BigInteger, nullable=True), Column("height", BigInteger))), "box.width may be null, Size.width may not"),
    ],
)  # fmt: skip
def test_a_type_that_differs_from_its_table_is_refused_at_import(made: Any, what: str) -> None:
    with pytest.raises(TypeError) as refused:
        made()
    assert what in str(refused.value)


def test_a_value_outside_its_enumeration_is_not_read() -> None:
    rows = Rows(Box, of_boxes(), embedded=EMBEDDED)
    row = rows.row(Box("a", Colour.RED, Size(1)))
    with pytest.raises(ValueError, match="blue"):
        rows.of(as_read(rows, {**row, "colour": "blue"}))


def test_a_request_without_kinds_has_null_in_its_columns() -> None:
    rows: Rows[ResourceRequest] = ROWS["ResourceRequest"]
    row = rows.row(ResourceRequest("a", "jm", "red", Resources(1000), RequestPhase.TRIED, 1.0))
    assert [row[name] for name in ("kinds", "amounts", "shares", "expires_at")] == [None] * 4
