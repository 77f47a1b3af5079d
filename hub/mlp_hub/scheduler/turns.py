"""Whose turn is next between the tenants, kept from cycle to cycle so that it costs what changed and not who waits.

Under `fair` the share that a turn goes by moves by itself, as what was held lately is forgotten; but never faster than a
known bound. So the tenants stay in the line that they once stood in, and who is first is looked for among those alone
that could have moved to the front since. That is exact: what is found are the very keys that all of them would have.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Mapping
from heapq import nsmallest
from operator import itemgetter

from mlp_hub.scheduler.members import Members
from mlp_hub.scheduler.model import SchedulingPolicy
from mlp_hub.scheduler.ordering import JobKey, is_one_queue
from mlp_hub.scheduler.queues import Queue

TenantKey = tuple[float, float, str]
FIRST_TENANTS = 16
"""Tenants that are looked at for a job to be reserved for, whether or not anything of theirs could start."""
MOST_NEAR = 64
"""So many more than asked for may have come near the front before the line is made anew."""
ROUNDING = 1e-9
"""A part of a share, by which it may seem to have moved for the way it is worked out."""

_SHARE = itemgetter(0)


class Turns:
    """The tenants with waiting jobs by their turns. `changes` has to be called before anything that a key is made of changes."""

    def __init__(self, policy: SchedulingPolicy, members: Members, queues: Mapping[str, Queue]) -> None:
        self._together = is_one_queue(policy)
        self._remembers = policy.name == "fair"
        self._meter = members.meter
        self._members = members
        self._queues = queues
        self._line: list[tuple[float, str]] = []  # each with its weighted share when it was entered
        self._entered: dict[str, float] = {}
        self._changed: dict[str, None] = {}  # have to be entered anew
        self._stale = True  # all have to
        self._since = -math.inf  # when the first of them were entered
        self._drift = 0.0  # the most that any of the shares has moved by in a second since
        # the keys as the cycle began
        self._keys: dict[str, TenantKey] = {}
        self._began: tuple[float, str | None] | None = None  # with this time and promise, once anybody asked
        self._late: dict[str, None] = {}  # did not wait then
        self._first: list[str] | None = None
        self._standings: dict[str, tuple[float, float]] = {}  # and the time for which they hold

    def begin_cycle(self) -> None:
        """Look up all keys anew."""
        self._keys.clear()
        self._late.clear()
        self._began = self._first = None

    def changes(self, name: str) -> None:
        """Note that a tenant's share, weight or first job is about to change; its key stays as the cycle began."""
        if self._began is not None and name not in self._keys and name not in self._late:
            if name in self._queues and self._queues[name].length:
                self.key_of(name, *self._began)
            else:
                self._late[name] = None
        self._changed[name] = None
        self._standings.pop(name, None)

    def key(self, name: str, head: JobKey, now: float, promised: str | None) -> TenantKey:
        """Return the sort key of a tenant whose next job has the key `head`; see `State.tenant_key`."""
        if self._together:
            return head
        share = self._standing(name, now) / self._weight(name)
        if head[2] == promised:
            # room was kept for it: when the last who was in its way ends, an older job of equal share shall not take it
            return (share, -math.inf, name)
        # of equal shares the job that waits longest goes first, lest one tenant's stream holds up another for ever
        return (share, head[1], name)

    def key_of(self, name: str, now: float, promised: str | None) -> TenantKey:
        """Return a tenant's sort key as the cycle began."""
        known = self._keys.get(name)
        if known is None:
            if self._began is not None and name not in self._late:
                now, promised = self._began
            known = self._keys[name] = self.key(
                name, self._members.first_of(self._queues[name], now, promised), now, promised
            )
        return known

    def first(self, now: float, promised: str | None) -> list[str]:
        """Return the tenants with waiting jobs that are next, as the cycle began; all, in their own order, if they are few."""
        if self._first is None:
            waiting = self._waiting()
            many = len(waiting) > FIRST_TENANTS
            self._first = self.next_of(FIRST_TENANTS, now, promised) if many else waiting
        return self._first

    def next_of(self, most: int, now: float, promised: str | None) -> list[str]:
        """Return so many of the tenants with waiting jobs, those that are next as the cycle began."""
        if self._together:
            near = self._waiting()
            new = ((name, self._queues[name].first) for name in near if name not in self._keys)
            self._keys.update(new)
        elif self._began is not None and self._changed:
            near = self._waiting()  # the line is not as the cycle began any more
        else:
            self._began = self._began or (now, promised)
            near = self._front(most, self._began[0])
        return nsmallest(most, near, key=lambda name: self.key_of(name, now, promised))

    def _waiting(self) -> list[str]:
        return [name for name, queue in self._queues.items() if queue.length]

    def _weight(self, name: str) -> float:
        return max(self._queues[name].tenant.weight, 1e-9)

    def _standing(self, name: str, now: float) -> float:
        """Return the share that a tenant's turn goes by; asked for after each job that is looked at."""
        known = self._standings.get(name)
        if known is None or known[0] != now:
            share = self._meter.share(name)
            if self._remembers:
                share += self._meter.average(name, now)
            known = self._standings[name] = (now, share)
        return known[1]

    def _front(self, most: int, now: float) -> list[str]:
        """Return so many tenants that are next, and besides them who may be."""
        if now < self._since:
            self._stale = True
        if not self._stale:
            for name in self._changed:
                self._leave(name)
                if name in self._queues and self._queues[name].length:
                    self._enter(name, now)
            self._changed.clear()
            end = self._end_of_front(most, now)
            self._stale = end > 2 * most + MOST_NEAR
        if self._stale:
            self._make(now)
            end = self._end_of_front(most, now)
        return [name for _, name in self._line[:end]]

    def _end_of_front(self, most: int, now: float) -> int:
        line = self._line
        if len(line) <= most:
            return len(line)
        share = line[most - 1][0]
        # as much as the last of these may have gone back, others may have come forward
        moved = 2 * self._drift * (now - self._since) + ROUNDING * share
        return bisect_right(line, share + moved, key=_SHARE)

    def _make(self, now: float) -> None:
        self._drift, self._since, self._stale = 0.0, now, False
        self._changed.clear()
        standings = self._meter.standings(self._waiting(), now, remembers=self._remembers)
        self._entered = {name: self._weighted(name, standing) for name, standing in standings.items()}
        self._line = sorted((share, name) for name, share in self._entered.items())

    def _enter(self, name: str, now: float) -> None:
        share = self._entered[name] = self._weighted(name, self._standing(name, now))
        insort(self._line, (share, name))

    def _leave(self, name: str) -> None:
        share = self._entered.pop(name, None)
        if share is not None:
            del self._line[bisect_left(self._line, (share, name))]

    def _weighted(self, name: str, standing: float) -> float:
        """Return a weighted share, and mind how fast it moves from now on."""
        weight = self._weight(name)
        if self._remembers:
            self._drift = max(self._drift, self._meter.drift(standing, self._meter.share(name)) / weight)
        return standing / weight
