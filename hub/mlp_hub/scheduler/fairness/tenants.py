"""Order of the tenants, kept from cycle to cycle: its cost follows the changes, not the waiting jobs.

Under `fair` the share that decides a turn moves by itself, as past holdings are forgotten. It never
moves faster than a known bound. So the tenants keep their places in the line. The first is looked
for only among the tenants that could have moved to the front since. Most tenants hold nothing and
held nothing lately: their shares are all the same and stay so. They are in their own line, ordered
by the longest wait. That is exact: the resulting keys are the ones that all of them would have.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from heapq import nsmallest
from operator import itemgetter

from mlp_hub.scheduler.fairness.members import MemberTurns
from mlp_hub.scheduler.model.types import SchedulingPolicy
from mlp_hub.scheduler.policy import POLICIES, JobKey, goes_first, is_one_queue, shared_key
from mlp_hub.scheduler.workloads.pending import Queue

TenantKey = tuple[float, float, str]
FIRST_TENANTS = 16
"""Tuning: tenants that are looked at for a job to be reserved for, whether or not anything of theirs could start: time of a
cycle, for how much is tried in it."""
MOST_NEAR = 64
"""Tuning: tenants near the front, beyond the number requested, before the lines are made again.

It trades the work to keep the front for its availability when asked for.
"""
ROUNDING = 1e-9
"""Given: relative error by which a share may seem to have moved, for the way it is worked out."""

_SHARE = itemgetter(0)


class TenantTurns:
    """Order of the tenants with waiting jobs. `changes` has to be called before anything that a key is made of changes."""

    def __init__(self, policy: SchedulingPolicy, members: MemberTurns, queues: Mapping[str, Queue]) -> None:
        self._together = is_one_queue(policy)
        self._remembers = POLICIES[policy.name].remembers
        self._meter = members.meter
        self._members = members
        self._queues = queues
        # each with its weighted share when it was entered and when the first of its jobs was queued
        self._still: list[TenantKey] = []  # those whose share does not move by itself
        self._moving: list[TenantKey] = []
        self._entered: dict[str, tuple[TenantKey, tuple[str, ...]]] = {}  # and the jobs that may be its next
        self._heads: dict[str, str] = {}  # the tenants by these jobs
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
        """Look up all keys again."""
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
            return self._in_line(name, head)
        share = self._share_of(name, now) / self._weight(name)
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
        """Return at most `most` tenants with waiting jobs, those that are next as the cycle began."""
        if self._together:
            near: Iterable[str] = self._waiting()
            new = (
                (name, self._in_line(name, self._queues[name].first))
                for name in near
                if name not in self._keys
            )
            self._keys.update(new)
        elif self._began is not None and self._changed:
            near = self._waiting()  # the line is not as the cycle began any more
        else:
            self._began = self._began or (now, promised)
            near = self._front(most, *self._began)
        return nsmallest(most, near, key=lambda name: self.key_of(name, now, promised))

    def _in_line(self, name: str, head: JobKey) -> JobKey:
        """Return the place in the line of all tenants of one whose next job has the key `head`.

        What goes first takes that of the first other job of its tenant, if that comes sooner than its own: nobody else is passed.
        """
        if not goes_first(head):
            return head
        other = self._queues[name].first_of_jobs
        return shared_key(head) if other is None else min(shared_key(head), other)

    def _waiting(self) -> list[str]:
        return [name for name, queue in self._queues.items() if queue.length]

    def _weight(self, name: str) -> float:
        return max(self._queues[name].tenant.weight, 1e-9)

    def _share_of(self, name: str, now: float) -> float:
        """Return the share that a tenant's turn goes by; asked for after each job that is looked at."""
        known = self._standings.get(name)
        if known is None or known[0] != now:
            share = self._meter.share(name)
            if self._remembers:
                share += self._meter.average(name, now)
            known = self._standings[name] = (now, share)
        return known[1]

    def _front(self, most: int, now: float, promised: str | None) -> Iterable[str]:
        """Return the `most` tenants that are next, and also those that might be."""
        if self._stale or now < self._since:
            self._make(now)
        else:
            self._keep_up(now)
        still, moving = self._ends(most, now, promised)
        if moving > 2 * most + MOST_NEAR + self._alike(most) and now > self._since:
            self._make(now)
            still, moving = self._ends(most, now, promised)
        near = dict.fromkeys(name for _, _, name in (*self._still[:still], *self._moving[:moving]))
        if promised in self._heads:
            near[self._heads[promised]] = None  # whatever the time of its job
        return near

    def _ends(self, most: int, now: float, promised: str | None) -> tuple[int, int]:
        """Return how many at the front of each line may be among so many that are next."""
        likely = sorted(self._still[:most] + self._moving[:most])[:most]
        if len(likely) == len(self._entered):
            return len(self._still), len(self._moving)
        last = max(self.key_of(name, now, promised) for _, _, name in likely)
        share, elapsed = last[0], now - self._since
        # who stands at most there now was so much further back at most: nobody forgets faster than by the half-life
        reach = share + self._drift * elapsed
        if elapsed < self._meter.half_life:
            reach = min(reach, share * math.exp2(elapsed / self._meter.half_life))
        return bisect_right(self._still, last), bisect_right(self._moving, reach * (1 + ROUNDING), key=_SHARE)

    def _alike(self, most: int) -> int:
        """Return how many of equal share are near the front for that alone: a new line would have them there as well."""
        if len(self._moving) < most:
            return 0
        share = self._moving[most - 1][0]
        return bisect_right(self._moving, share, key=_SHARE) - bisect_left(self._moving, share, key=_SHARE)

    def _make(self, now: float) -> None:
        self._drift, self._since, self._stale = 0.0, now, False
        for kept in (self._changed, self._still, self._moving, self._entered, self._heads):
            kept.clear()
        standings = self._meter.standings(self._waiting(), now, remembers=self._remembers)
        for name, standing in standings.items():
            place = self._note(name, standing)
            self._line(place).append(place)
        self._still.sort()
        self._moving.sort()

    def _keep_up(self, now: float) -> None:
        """Enter the changed tenants again."""
        for name in self._changed:
            place, heads = self._entered.pop(name, (None, ()))
            if place is not None:
                line = self._line(place)
                del line[bisect_left(line, place)]
            for uid in heads:
                del self._heads[uid]
        for name in self._changed:
            if name in self._queues and self._queues[name].length:
                place = self._note(name, self._share_of(name, now))
                insort(self._line(place), place)
        self._changed.clear()

    def _line(self, place: TenantKey) -> list[TenantKey]:
        """Return the line of a place: a share of nothing stays nothing over time."""
        return self._moving if self._remembers and place[0] else self._still

    def _note(self, name: str, standing: float) -> TenantKey:
        """Return the place of a tenant of this standing, with the earliest time that its key may have."""
        queue, weight = self._queues[name], self._weight(name)
        if self._remembers and standing:
            self._drift = max(self._drift, self._meter.drift(standing, self._meter.share(name)) / weight)
        if queue.by_members:
            # which of them is next may change as time passes
            firsts = [heads[0][0][0] for heads in queue.lanes.values()]
            at, heads = min(first[1] for first in firsts), tuple(first[2] for first in firsts)
        else:
            _, at, uid = queue.first
            heads = (uid,)
        place = (standing / weight, at, name)
        self._entered[name] = place, heads
        for uid in heads:
            self._heads[uid] = name
        return place
