"""Turns of the members of one tenant, where its queue is ordered by members: present and past holdings.

Members take turns as tenants do. The member with the smallest share of the machines is next. The
share is that of its jobs' present holdings (`maxmin`), or also of recent ones (`fair`). A member's
own jobs go by priority, then age.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.fairness.usage import UsageMeter
from mlp_hub.scheduler.model.resources import Vector, resources_of
from mlp_hub.scheduler.model.types import TenantQueue
from mlp_hub.scheduler.policy import ORDERS, JobKey, dominant_share
from mlp_hub.scheduler.workloads.admitted import Held
from mlp_hub.scheduler.workloads.pending import Entry, Queue

MemberKey = tuple[float, float, float, str]
ALL_ALIKE: MemberKey = (0.0, 0.0, 0.0, "")
"""Turn of everybody where members take none."""
SEPARATOR = "/"
"""Character between tenant and user in the name of an account; no name of a tenant holds it."""


def account_of(tenant: str, user: str) -> str:
    """Return the name under which the share of a member is metered and stored."""
    return f"{tenant}{SEPARATOR}{user}"


def usage_of_members(meter: UsageMeter, tenant: str, now: float) -> tuple[tuple[str, float], ...]:
    """Return what a meter remembers of the members of a tenant, in share-seconds, by name."""
    prefix = f"{tenant}{SEPARATOR}"
    accounts = sorted(account for account in meter.accounts() if account.startswith(prefix))
    return tuple((account[len(prefix) :], meter.value(account, now)) for account in accounts)


class MemberTurns:
    """Shares that the members of a tenant hold, for tenants whose queue goes by its members."""

    def __init__(self, meter: UsageMeter) -> None:
        """`meter` is the one of the tenants; here it takes an account for each member as well."""
        self.meter = meter
        self._held: dict[str, dict[str, dict[str, int]]] = {}  # by tenant and user

    def __contains__(self, tenant: str) -> bool:
        """Whether the members of this tenant take turns."""
        return tenant in self._held

    def open(self, tenant: TenantQueue, running: Iterable[Held], total: Resources, now: float) -> None:
        """Let the members of a tenant take turns from `now` on; `running` is what they have."""
        self._held[tenant.name] = {}
        for user, value in tenant.member_usage:
            self.meter.load(account_of(tenant.name, user), value, now)
        for held in running:
            self.charge(held, 1, total, now)

    def close(self, tenant: str) -> None:
        """Forget the members of a tenant whose queue does not go by them any more."""
        if self._held.pop(tenant, None) is not None:
            for user, _ in usage_of_members(self.meter, tenant, 0.0):
                self.meter.forget(account_of(tenant, user))

    def charge(self, held: Held, sign: int, total: Resources, now: float) -> None:
        """Note that a member holds what this job takes (`sign` 1), or not any more (-1), from `now` on."""
        tenant, user = held.run.job.tenant, held.run.job.user
        mine = self._held[tenant].setdefault(user, {})
        for dimension, value in held.vector.items():
            left = mine.get(dimension, 0) + sign * value
            if left:
                mine[dimension] = left
            else:
                mine.pop(dimension, None)
        self._note(tenant, user, total, now)
        if not mine:
            del self._held[tenant][user]

    def capacity_changed(self, total: Resources, now: float) -> None:
        """Compute the shares again: the machines have changed."""
        for tenant, users in self._held.items():
            for user in users:
                self._note(tenant, user, total, now)

    def share_with(self, tenant: str, user: str, vector: Vector, total: Resources) -> float:
        """Return the share that a member would hold with this vector more."""
        used = dict(self._held[tenant].get(user, {}))
        for dimension, value in vector.items():
            used[dimension] = used.get(dimension, 0) + value
        return dominant_share(resources_of(used), total)

    def share(self, tenant: str, user: str) -> float:
        """Return the share that a member's jobs hold."""
        return self.meter.share(account_of(tenant, user))

    def turn(
        self, tenant: TenantQueue, user: str, head: JobKey, now: float, promised: str | None
    ) -> MemberKey:
        """Return the sort key of a member whose next job has the key `head`; smallest first.

        Of equal shares the one for which room is kept goes first, then who held least lately: where one job fills the
        quota, nobody holds anything when it ends, and it is not its owner's turn again. Then the job that waits longest.
        """
        account = account_of(tenant.name, user)
        share, lately = self.meter.share(account), self.meter.average(account, now)
        standing = share + lately if ORDERS[tenant.queue_order].remembers else share
        return (standing, -1.0 if head[2] == promised else lately, head[1], user)

    def first_of(self, queue: Queue, now: float, promised: str | None) -> JobKey:
        """Return the key of the job of a queue that is next; IndexError or ValueError when nobody waits."""
        if not queue.by_members:
            return queue.first
        firsts = ((user, heads[0][0][0]) for user, heads in queue.lanes.items())
        return min(firsts, key=lambda first: self.turn(queue.tenant, first[0], first[1], now, promised))[1]

    def usage(self, tenant: str, now: float) -> tuple[tuple[str, float], ...]:
        """Return what is remembered of the members, in share-seconds, by name; nothing where they take no turns."""
        return usage_of_members(self.meter, tenant, now) if tenant in self._held else ()

    def fork(self, meter: UsageMeter) -> MemberTurns:
        """Return an independent copy that goes by this copy of the meter."""
        other = MemberTurns(meter)
        other._held = {
            tenant: {user: dict(vector) for user, vector in users.items()}
            for tenant, users in self._held.items()
        }
        return other

    def _note(self, tenant: str, user: str, total: Resources, now: float) -> None:
        share = dominant_share(resources_of(self._held[tenant][user]), total)
        self.meter.set_share(account_of(tenant, user), share, now)


class Places:
    """The places of the jobs of one queue, from 1; members who take turns are taken to do so job by job."""

    def __init__(self, queue: Queue, members: MemberTurns, now: float, promised: str | None) -> None:
        self._queue = queue
        self._turns = {
            user: members.turn(queue.tenant, user, heads[0][0][0], now, promised)
            for user, heads in queue.lanes.items()
        }
        self._waiting = {user: queue.waiting_of(user) for user in queue.lanes}
        self._rounds: dict[int, tuple[int, list[MemberKey]]] = {}

    def place_of(self, entry: Entry) -> int:
        """Return the place of a job that waits in the queue."""
        place = self._queue.position(entry)
        if not self._queue.by_members:
            return place
        before, turns = self._round(place)
        return before + bisect_left(turns, self._turns[entry.cls.user]) + 1

    def _round(self, number: int) -> tuple[int, list[MemberKey]]:
        """Count the jobs of all rounds before this one, and return the turns of the members who have a job in it."""
        known = self._rounds.get(number)
        if known is None:
            before = sum(min(waiting, number - 1) for waiting in self._waiting.values())
            turns = sorted(turn for user, turn in self._turns.items() if self._waiting[user] >= number)
            known = self._rounds[number] = (before, turns)
        return known
