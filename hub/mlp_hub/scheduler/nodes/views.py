"""Views: how one demand sees the nodes, brought up to date from the index's log when next asked for.

The log has (record before, record after) of each node that changed. A view remembers the position
up to which it has read. One that is too far behind is made again from the present states.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, TypeVar

from mlp_hub.scheduler.model.demand import Rest
from mlp_hub.scheduler.nodes.node import Change, NodeRecord
from mlp_hub.scheduler.nodes.states import Catalog, NodeState, PreparedDemand, Score, slots_of

Key = tuple[int, int, int, Rest, tuple[int, ...]]
ScoredState = tuple[Score, Key, int, NodeState]
Members = Mapping[NodeState, list[int]]

ViewKey = tuple[object, ...]
"""Kind of a view, then what it was made with."""

VIEW_ENTRIES = 200_000
"""Tuning: entries of all views together, at most; the views longest unused go first."""


FAR_BEHIND = 16
"""Tuning: changes of nodes; a view that has to take in more of them is one that the index should have had."""
MOST_MISSED = 256
"""Tuning: views far behind that are remembered until the next fork: work to keep it, for how often it is there when asked
for."""
SHORT_LOG = 64
"""Tuning: changes in a log up to which a fork copies it; of a longer one it keeps the place up to which it was written."""
MOST_PASTS = 8
"""Tuning: places in long logs that are kept; a view last asked for before them is computed again."""

_Past = tuple[list[Change], int, int]
"""Part of a log that a fork can read.

It has the log, to which others continue to write; the number of its first change; and the number of
the first change that the fork must not read.
"""


class View(Protocol):
    """Interface of a view to the index."""

    at: int

    def __len__(self) -> int:
        """Return its size, in entries."""

    def make(self, members: Members, records: Iterable[NodeRecord], /) -> None:
        """Work it out from nothing."""

    def follow(self, log: Iterable[Change], members: Members, /) -> None:
        """Apply the changes."""

    def copy(self) -> View:
        """Return an independent copy."""


class Totals:
    """Ranks that fit, in all and per node."""

    __slots__ = ("ask", "at", "by_slots", "total")

    def __init__(self, ask: PreparedDemand) -> None:
        self.ask = ask
        self.at = 0
        self.total = 0
        self.by_slots: dict[int, int] = {}  # ranks that fit on a node -> how many such nodes

    def __len__(self) -> int:
        return len(self.by_slots)

    def make(self, members: Members, _records: Iterable[NodeRecord], /) -> None:
        """Work it out from nothing."""
        self.total = 0
        self.by_slots = {}
        for state, numbers in members.items():
            k = slots_of(state, self.ask)
            if k:
                self.total += k * len(numbers)
                self.by_slots[k] = self.by_slots.get(k, 0) + len(numbers)

    def follow(self, log: Iterable[Change], _members: Members, /) -> None:
        """Apply the changes."""
        by_slots = self.by_slots
        for old, new in log:
            before = slots_of(old.state, self.ask) if old is not None and old.state is not None else 0
            after = slots_of(new.state, self.ask) if new is not None and new.state is not None else 0
            if before == after:
                continue
            self.total += after - before
            if before:
                if by_slots[before] == 1:
                    del by_slots[before]
                else:
                    by_slots[before] -= 1
            if after:
                by_slots[after] = by_slots.get(after, 0) + 1

    def copy(self) -> Totals:
        """Return an independent copy."""
        other = Totals(self.ask)
        other.at, other.total, other.by_slots = self.at, self.total, dict(self.by_slots)
        return other


class PlaceOrder:
    """The states that hold `ranks` ranks (or exactly that many), the best place for them first."""

    __slots__ = ("ask", "at", "catalog", "entries", "exact", "ranks", "rule", "where")

    def __init__(self, catalog: Catalog, ask: PreparedDemand, ranks: int, rule: str, *, exact: bool) -> None:
        self.catalog = catalog
        self.ask = ask
        self.ranks = ranks
        self.rule = rule
        self.exact = exact
        self.at = 0
        self.entries: list[ScoredState] = []
        self.where: dict[NodeState, ScoredState] = {}

    def __len__(self) -> int:
        return len(self.entries)

    def make(self, members: Members, _records: Iterable[NodeRecord], /) -> None:
        """Work it out from nothing."""
        self.where = {}
        for state in members:
            entry = self._entry(state)
            if entry is not None:
                self.where[state] = entry
        self.entries = sorted(self.where.values())

    def follow(self, log: Iterable[Change], members: Members, /) -> None:
        """Apply the changes."""
        where, entries = self.where, self.entries
        for old, new in log:
            # what counts is which states there are now, not how often they came and went
            if (
                old is not None
                and (state := old.state) is not None
                and state in where
                and state not in members
            ):
                entry = where.pop(state)
                del entries[bisect_left(entries, entry)]
            if (
                new is not None
                and (state := new.state) is not None
                and state not in where
                and state in members
            ):
                made = self._entry(state)
                if made is not None:
                    where[state] = made
                    insort(entries, made)

    def copy(self) -> PlaceOrder:
        """Return an independent copy."""
        other = PlaceOrder(self.catalog, self.ask, self.ranks, self.rule, exact=self.exact)
        other.at, other.entries, other.where = self.at, list(self.entries), dict(self.where)
        return other

    def _entry(self, state: NodeState) -> ScoredState | None:
        fit = slots_of(state, self.ask)
        if fit < self.ranks or (self.exact and fit != self.ranks):
            return None
        # the serial tells apart two equal states of which one is about to leave
        return (self.catalog.score(state, self.ask, self.ranks, self.rule), state.key, state.serial, state)


class Domains:
    """Ranks that fit per value of a label, and on which nodes."""

    __slots__ = ("ask", "at", "label", "nodes", "totals")

    def __init__(self, ask: PreparedDemand, label: str) -> None:
        self.ask = ask
        self.label = label
        self.at = 0
        self.totals: dict[str, int] = {}
        self.nodes: dict[str, dict[int, tuple[int, NodeState]]] = {}  # value -> number -> slots, state

    def __len__(self) -> int:
        return sum(map(len, self.nodes.values()))

    def make(self, _members: Members, records: Iterable[NodeRecord], /) -> None:
        """Work it out from nothing."""
        self.totals = {}
        self.nodes = {}
        for record in records:
            self._add(record)

    def follow(self, log: Iterable[Change], _members: Members, /) -> None:
        """Apply the changes."""
        for old, new in log:
            self._drop(old)
            self._add(new)

    def copy(self) -> Domains:
        """Return an independent copy."""
        other = Domains(self.ask, self.label)
        other.at, other.totals = self.at, dict(self.totals)
        other.nodes = {value: dict(nodes) for value, nodes in self.nodes.items()}
        return other

    def _add(self, record: NodeRecord | None) -> None:
        if record is None or record.state is None:
            return
        value = record.node.labels.get(self.label)
        k = slots_of(record.state, self.ask) if value is not None else 0
        if value is not None and k:
            self.totals[value] = self.totals.get(value, 0) + k
            self.nodes.setdefault(value, {})[record.number] = (k, record.state)

    def _drop(self, record: NodeRecord | None) -> None:
        if record is None or record.state is None:
            return
        value = record.node.labels.get(self.label)
        if value is None or record.number not in self.nodes.get(value, ()):
            return
        k, _ = self.nodes[value].pop(record.number)
        self.totals[value] -= k
        if not self.totals[value]:
            del self.totals[value], self.nodes[value]


V = TypeVar("V", bound=View)


class Views:
    """The views of one index, and the log of changes that they catch up from."""

    def __init__(self) -> None:
        self._log: list[Change] = []
        self._base = 0  # the number of the log's first change
        self._pasts: tuple[_Past, ...] = ()  # what came before that, in the logs that this was forked from
        self._views: dict[ViewKey, View] = {}
        self._mine: set[ViewKey] = set()  # those that no fork shares
        self._entries = 0  # of all views together
        self._missed: dict[ViewKey, None] = {}  # what forks had to work out by themselves; they share it

    def note(self, old: NodeRecord | None, new: NodeRecord | None, room: int) -> bool:
        """Log a change; of so many as there is `room` for the older half is dropped. Returns whether it was."""
        log = self._log
        log.append((old, new))
        if len(log) <= room:
            return False
        drop = len(log) - room // 2
        self._log = log[drop:]  # a new one, since forks may read the old one
        self._base += drop
        self._pasts = ()
        return True

    def is_near(self, key: ViewKey) -> bool:
        """Whether there is such a view that has little to take in."""
        view = self._views.get(key)
        return view is not None and self.end - view.at <= FAR_BEHIND

    def fresh(self, key: ViewKey, kind: type[V]) -> V | None:
        """Return the view of a key if it is up to date; it is left as it is, to be read at once."""
        view = self._views.get(key)
        return view if isinstance(view, kind) and view.at == self.end else None

    @property
    def end(self) -> int:
        """Return the number that the next change will have."""
        return self._base + len(self._log)

    def since(self, at: int) -> list[Change] | None:
        """Return the changes from this number on, None where they are not all known any more."""
        if at >= self._base:
            return self._log[at - self._base :]
        changes: list[Change] = []
        for log, first, end in self._pasts:
            if at < end:
                if at < first:
                    return None
                changes += log[at - first : end - first]
                at = end
        return changes + self._log if at == self._base else None

    def get(
        self,
        key: ViewKey,
        make: Callable[[], V],
        kind: type[V],
        members: Members,
        records: Callable[[], Iterable[NodeRecord]],
    ) -> V:
        """Return the view of a key, up to date; `make` makes an empty one if there is none yet."""
        view: View | None = self._views.pop(key, None)
        now = self.end
        if view is None:
            view = make()
            behind = -1
        else:
            behind = now - view.at
            if behind and key not in self._mine:
                self._entries -= len(view)
                view = view.copy()
                self._entries += len(view)
        if not isinstance(view, kind):
            raise TypeError(f"{key} is no {kind.__name__}")
        if behind:
            if (behind < 0 or behind > FAR_BEHIND) and len(self._missed) < MOST_MISSED:
                self._missed[key] = None
            self._entries -= len(view)
            far = behind < 0 or behind > 2 * len(members) + 16
            changes = None if far else self.since(view.at)
            if changes is None:
                view.make(members, records())
            else:
                view.follow(changes, members)
            view.at = now
            self._mine.add(key)
            self._entries += len(view)
            while self._entries > VIEW_ENTRIES and self._views:
                oldest = next(iter(self._views))
                self._mine.discard(oldest)
                self._entries -= len(self._views.pop(oldest))
        self._views[key] = view  # the last used is the last to go
        return view

    def take_missed(self) -> list[ViewKey]:
        """Return the views that this index or its forks computed again, or from far behind, since the last call."""
        missed = list(self._missed)
        self._missed.clear()
        return missed

    def fork(self) -> Views:
        """Return an independent copy; the views themselves are shared until either changes."""
        self._mine = set()
        other = Views()
        if len(self._log) <= SHORT_LOG:
            other._log, other._base, other._pasts = self._log[:], self._base, self._pasts
        else:
            other._base = end = self._base + len(self._log)
            other._pasts = (*self._pasts[1 - MOST_PASTS :], (self._log, self._base, end))
        other._views, other._entries = dict(self._views), self._entries
        other._missed = self._missed
        return other
