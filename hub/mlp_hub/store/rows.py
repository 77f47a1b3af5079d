"""Rows: how the values of a type are kept in a table, worked out from the fields' types and the columns.

    _rows = Rows(Environment, table, computed={"folded": "folded"})
    _rows.row(environment)      the columns, for a statement
    _rows.of(row)               the value of a row

A field is kept in the column of its name. Strings, numbers and bytes are kept as they are, members of an enumeration by their
value, messages as `codec.message_text` writes them, all else as JSON. A column that may be null, of a field that may not be None,
is null for the field's default. The two functions are made once, at import, as `dataclasses` makes `__init__`, so they are as fast
as written by hand. A field without a column, or a column without a field, is a `TypeError` at import.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from sqlalchemy import Table

from mlp_hub.store import codec
from mlp_language.message import Message

T = TypeVar("T")
Values = dict[str, Any]
Converters = tuple[Callable[[Any], Any] | None, Callable[[Any], Any] | None]
"""Functions that make a column of a field, and a field of a column; None: they are the same."""


class Rows(Generic[T]):
    """Values of a frozen dataclass as rows of a table.

    `columns` are the fields whose column has another name. `computed` are columns made of the whole value, which are not read: a
    path of attributes, or a function.
    `beside` are columns that are not of the value: the repository adds them. `numbered` is the column of a field whose number the
    database gives: it is read and never written. `embedded` are fields whose own fields have columns, with a prefix of these.
    `packed` is a column with a JSON object of all fields that have no column; `packs_defaults`: also of those with their default.
    `given` are fields without a column that the reader passes to `of`. `converted` are fields with their own converters. `omitted`
    are fields of embedded types that are not kept: they are read as their default. Rows are read from queries whose
    columns have `label` before their names.
    """

    def __init__(
        self,
        kind: type[T],
        table: Table,
        *,
        columns: Mapping[str, str] | None = None,
        computed: Mapping[str, str | Callable[[T], Any]] | None = None,
        beside: Collection[str] = (),
        numbered: str | None = None,
        embedded: Mapping[str, str] | None = None,
        packed: str | None = None,
        packs_defaults: bool = False,
        given: Collection[str] = (),
        converted: Mapping[str, Converters] | None = None,
        omitted: Collection[str] = (),
        label: str = "",
    ) -> None:
        self.kind, self.table = kind, table
        self.given, self.numbered, self.label = tuple(given), numbered, label
        self._known: Values = {"kind": kind, "dumps": codec.dumps, "message_text": codec.message_text}
        self._known["message_of"] = codec.message_of
        self._renamed, self._embedded = columns or {}, embedded or {}
        self._converted, self._omitted = converted or {}, omitted
        self._stores: dict[str, str] = {}
        self._reads: list[str] = []
        in_columns = set(table.c.keys()) - set(beside) - ({packed} if packed else set())
        packs = [
            f
            for f in dataclasses.fields(kind)  # type: ignore[arg-type]  # a dataclass
            if packed is not None
            and f.name not in self._embedded
            and f.name not in self.given
            and self._renamed.get(f.name, f.name) not in in_columns
        ]
        self._take_fields(kind, "x", self._reads, but={f.name for f in packs})
        if packed is not None:
            self._pack(packed, packs, packs_defaults)
        for column, make in (computed or {}).items():
            self._known[f"make_{column}"] = make
            self._stores[column] = f"x.{make}" if isinstance(make, str) else f"make_{column}(x)"
        there, wanted = self._stores.keys() | set(beside), set(table.c.keys())
        if there != wanted or self._stores.keys() & set(beside):
            raise TypeError(f"{kind.__name__} and {table.name} differ in {sorted(there ^ wanted)}")
        if numbered is not None:
            del self._stores[numbered]
        asked = f", *, {', '.join(self.given)}" if self.given else ""
        first = "p = unpack(r)\n    " if packed is not None else ""
        body = f"    {first}return kind({', '.join(self._reads)})"
        self.of: Callable[..., T] = self._made("of", f"def of(r{asked}):\n{body}")
        self.row: Callable[[T], Values] = self.part(self._stores)

    def part(self, names: Collection[str]) -> Callable[[T], Values]:
        """Return the function that makes these columns only."""
        pairs = ", ".join(f"{name!r}: {self._stores[name]}" for name in names)
        return self._made("row", f"def row(x):\n    return {{{pairs}}}")  # type: ignore[no-any-return]

    def without(self, *names: str) -> Callable[[T], Values]:
        """Return the function that makes all columns except these."""
        return self.part([name for name in self._stores if name not in names])

    def _made(self, name: str, source: str) -> Any:
        made: Values = {}
        exec(source, self._known, made)  # noqa: S102 - names of fields and columns only, as `dataclasses` does
        return made[name]

    def _take_fields(self, kind: Any, at: str, reads: list[str], *, but: Collection[str] = ()) -> None:
        hints = get_type_hints(kind)
        for field in dataclasses.fields(kind):
            name = field.name
            if name in but:
                continue
            if at == "x" and name in self.given:
                reads.append(f"{name}={name}")
            elif at == "x" and name in self._embedded:
                reads.append(f"{name}={self._embed(name, hints[name])}")
            else:
                self._take(field, hints[name], at, reads)

    def _take(
        self,
        field: dataclasses.Field[Any],
        hint: Any,
        at: str,
        reads: list[str],
        prefix: str = "",
        *,
        may_be_none: bool = False,
    ) -> None:
        """Note how a field is kept in its column; `may_be_none`: the value that it is a field of."""
        name = field.name
        column = prefix + (self._renamed.get(name, name) if at == "x" else name)
        if column in self._omitted:
            return
        if column not in self.table.c:
            raise TypeError(f"{self.table.name} has no column {column} for {self.kind.__name__}.{name}")
        value, cell = f"{at}.{name}", f"r.{self.label}{column}"
        to, back = self._way(name, hint, value, cell, column)
        if self.table.c[column].nullable and not _optional(hint) and not may_be_none:
            to, back = self._null_for_default(field, column, (value, to), (cell, back))
        self._stores[column] = to
        reads.append(f"{name}={back}")

    def _embed(self, name: str, hint: Any) -> str:
        """Note how the fields of a field are kept; return the expression that makes it of a row."""
        inner = _inner(hint)
        made, prefix, reads = f"embedded_{name}", self._embedded[name], []  # type: str, str, list[str]
        self._known[made] = inner
        hints, before = get_type_hints(inner), set(self._stores)
        for field in dataclasses.fields(inner):
            self._take(field, hints[field.name], f"x.{name}", reads, prefix, may_be_none=_optional(hint))
        value = f"{made}({', '.join(reads)})"
        if not _optional(hint):
            return value
        mine = [column for column in self._stores if column not in before]
        for column in mine:
            self._stores[column] = f"None if x.{name} is None else {self._stores[column]}"
        return f"None if r.{self.label}{mine[0]} is None else {value}"

    def _pack(self, column: str, fields: list[dataclasses.Field[Any]], defaults: bool) -> None:
        hints = get_type_hints(self.kind)
        described: list[Any] = []
        for f in fields:
            if f.default is not dataclasses.MISSING:
                described.append((f.name, hints[f.name], f.default))
            elif f.default_factory is not dataclasses.MISSING:
                described.append((f.name, hints[f.name], msgspec.field(default_factory=f.default_factory)))
            else:
                described.append((f.name, hints[f.name]))
        struct = msgspec.defstruct(f"{self.kind.__name__}_{column}", described, omit_defaults=not defaults)
        decode = msgspec.json.Decoder(struct).decode
        self._known["packs"] = struct
        self._known["unpack"] = lambda row: decode(getattr(row, self.label + column) or "{}")
        self._stores[column] = f"dumps(packs({', '.join(f'{f.name}=x.{f.name}' for f in fields)}))"
        self._reads += [f"{f.name}=p.{f.name}" for f in fields]

    def _null_for_default(
        self, field: dataclasses.Field[Any], column: str, to: tuple[str, str], back: tuple[str, str]
    ) -> tuple[str, str]:
        """Return the two ways of a column that is null while its field has its default."""
        default = f"default_{column}"
        if field.default is not dataclasses.MISSING:
            self._known[default], read = field.default, default
        elif field.default_factory is not dataclasses.MISSING:
            self._known[default], read = field.default_factory(), f"new_{column}()"
            self._known[f"new_{column}"] = field.default_factory
        else:
            raise TypeError(
                f"{self.table.name}.{column} may be null, {self.kind.__name__}.{field.name} may not"
            )
        value, made = to
        cell, read_back = back
        return f"None if {value} == {default} else {made}", f"{read} if {cell} is None else {read_back}"

    def _way(self, name: str, hint: Any, value: str, cell: str, key: str) -> tuple[str, str]:
        """Return the expressions that make a column of a value, and a value of a column."""
        if name in self._converted and value == f"x.{name}":
            to, back = self._converted[name]
            self._known[f"to_{key}"], self._known[f"back_{key}"] = to, back
            return _guarded(
                hint,
                (value, value if to is None else f"to_{key}({value})"),
                (cell, cell if back is None else f"back_{key}({cell})"),
            )
        kind = _inner(hint)
        if kind in (str, int, float, bytes):
            return value, cell
        if kind is bool:
            return _guarded(hint, (value, value), (cell, f"bool({cell})"))
        if kind is Message:
            return _guarded(hint, (value, f"message_text({value})"), (cell, f"message_of({cell})"))
        if isinstance(kind, type) and issubclass(kind, Enum):
            self._known[f"of_{key}"] = kind
            return _guarded(hint, (value, f"{value}.value"), (cell, f"of_{key}({cell})"))
        self._known[f"of_{key}"] = msgspec.json.Decoder(kind).decode
        made = f"dumps({value})"
        if get_origin(kind) is tuple and get_args(kind)[-1] is Ellipsis:  # mostly there is nothing in it
            made = f"{made} if {value} else '[]'"
        return _guarded(hint, (value, made), (cell, f"of_{key}({cell})"))


def _optional(hint: Any) -> bool:
    return get_origin(hint) in (UnionType, Union) and NoneType in get_args(hint)


def _inner(hint: Any) -> Any:
    """Return the type of a field's values other than None."""
    if not _optional(hint):
        return hint
    (inner,) = [kind for kind in get_args(hint) if kind is not NoneType]
    return inner


def _guarded(hint: Any, to: tuple[str, str], back: tuple[str, str]) -> tuple[str, str]:
    """Return the expressions of a conversion, for a type that may be None: null stays null."""
    if not _optional(hint):
        return to[1], back[1]
    return tuple(  # type: ignore[return-value]
        made if made == plain else f"None if {plain} is None else {made}" for plain, made in (to, back)
    )
