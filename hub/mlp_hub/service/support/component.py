"""A row of the table of components: how one is made, started, kept in order and stopped.

A class body with rows is the table. Its order is the order of starts. Stops go by stage, and within a
stage in the opposite order. An attribute of an instance is the component itself, made at the first look.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, overload

if TYPE_CHECKING:
    from mlp_hub.store.tx import Tx

R = TypeVar("R")
T = TypeVar("T")


class StopStage(IntEnum):
    """Stages of a stop, first to last: each stage still finds all that the later ones stop."""

    INTAKE = 1
    """Components that bring new work by themselves."""
    DECISIONS = 2
    QUEUE = 3
    """The work queue: after it, no worker is at anything."""
    WORKERS = 4
    """Components whose objects the queue worked on."""
    STATE = 5
    COMMITS = 6
    """Commits in progress, which earlier stages may have begun."""
    LAST = 7
    """Parts that commits in progress still need."""


class StagedStop(NamedTuple):
    """A verb that stops a component, and the stage in which it is called."""

    stage: StopStage
    verb: Callable[[Any], Awaitable[object] | None]


class ServiceComponent(Generic[R, T]):
    """A component `T` of a root `R`. Every verb is optional and may be async.

    `start`: the root leads from now on. `stand_by`: it leads no more, or ends. `close`: it ends.
    `tidy`: called now and then while the root leads. `put_off`: the wall clock was set by some seconds.
    `problems` lists the present problems of the component. `purge(root, tx, now)` deletes old rows.
    """

    def __init__(
        self,
        make: Callable[[R], T],
        *,
        start: Callable[[T], Awaitable[object] | None] | None = None,
        stand_by: tuple[StopStage, Callable[[T], Awaitable[object] | None]] | None = None,
        close: tuple[StopStage, Callable[[T], Awaitable[object] | None]] | None = None,
        tidy: Callable[[T], Awaitable[object] | None] | None = None,
        put_off: Callable[[T, float], Awaitable[object] | None] | None = None,
        problems: Callable[[T], Awaitable[Any]] | None = None,
        purge: Callable[[R, Tx, float], object] | None = None,
    ) -> None:
        self.name = ""
        self.make = make
        self.start, self.tidy, self.put_off = start, tidy, put_off
        self.stand_by = None if stand_by is None else StagedStop(*stand_by)
        self.close = None if close is None else StagedStop(*close)
        self.problems, self.purge = problems, purge

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, root: None, owner: type) -> ServiceComponent[R, T]: ...
    @overload
    def __get__(self, root: object, owner: type) -> T: ...
    def __get__(self, root: Any, owner: type) -> Any:
        """Return the component of a root; it is made at the first look. A circle of makers raises `RuntimeError`."""
        if root is None:
            return self
        making = root.__dict__.setdefault("_making", [])
        if self.name in making:
            raise RuntimeError(f"a circle of components: {' -> '.join((*making, self.name))}")
        making.append(self.name)
        try:
            made = self.make(root)
        finally:
            making.remove(self.name)
        root.__dict__[self.name] = made  # from now on Python finds it there, and asks no more
        return made


def rows(root: type[R]) -> list[ServiceComponent[R, Any]]:
    """Return the rows of a class and its bases, in the order of their lines."""
    return [
        row
        for one in reversed(root.__mro__)
        for row in vars(one).values()
        if isinstance(row, ServiceComponent)
    ]


def stops(root: type[R], *, close: bool) -> Iterator[tuple[str, StagedStop]]:
    """Yield the stops of a root's components in their order, with the names: to stand by, or also to `close`."""
    found = [
        (row.name, stop)
        for row in reversed(rows(root))
        for stop in (row.stand_by, row.close if close else None)
        if stop is not None
    ]
    yield from sorted(found, key=lambda each: each[1].stage)  # stable: the opposite order within a stage


def bound(verb: Callable[..., Any], component: object) -> Callable[..., Any]:
    """Return a verb of a row for its component: its own method of that name, where the verb is a method."""
    method: Callable[..., Any] | None = getattr(component, verb.__name__, None)
    return partial(verb, component) if method is None else method


async def call(verb: Callable[..., Awaitable[object] | None], component: object, *given: object) -> None:
    """Call a verb for its component, and await it if it is async."""
    result = bound(verb, component)(*given)
    if inspect.isawaitable(result):
        await result
