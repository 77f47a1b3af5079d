"""Turns of the members of one tenant: what each holds and held, where the tenant's queue goes by its members.

Between members it is as between tenants: who holds the smallest share of the machines is next, by what its jobs hold now
(`maxmin`) or with what they held lately (`fair`). A member's own jobs go by priority, then age.
"""

from __future__ import annotations

from collections.abc import Iterable

from mlp_hub.domain.resources import Resources
from mlp_hub.scheduler.model import TenantQueue
from mlp_hub.scheduler.ordering import JobKey, dominant_share
from mlp_hub.scheduler.queues import Queue
from mlp_hub.scheduler.running import Held
from mlp_hub.scheduler.usage import UsageMeter
from mlp_hub.scheduler.vectors import Vector, resources_of

ALL_ALIKE: JobKey = (0.0, 0.0, "")
"""The turn of everybody where members take none."""
SEPARATOR = "/"
"""Between tenant and user in the name of an account; no name of a tenant holds it."""


def account_of(tenant: str, user: str) -> str:
    """Return the name under which the share of a member is metered and stored."""
    return f"{tenant}{SEPARATOR}{user}"


def usage_of_members(meter: UsageMeter, tenant: str, now: float) -> tuple[tuple[str, float], ...]:
    """Return what a meter remembers of the members of a tenant, in share-seconds, by name."""
    prefix = f"{tenant}{SEPARATOR}"
    accounts = sorted(account for account in meter.accounts() if account.startswith(prefix))
    return tuple((account[len(prefix) :], meter.value(account, now)) for account in accounts)


class Members:
    """What the jobs of each member hold, for tenants whose queue goes by its members."""

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
        """Work the shares out anew: the machines are others."""
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

    def turn(self, tenant: TenantQueue, user: str, head: JobKey, now: float, promised: str | None) -> JobKey:
        """Return the sort key of a member whose next job has the key `head`; smallest first.

        Of equal shares the job that waits longest goes first, and before it the one for which room is kept.
        """
        account = account_of(tenant.name, user)
        standing = self.meter.share(account)
        if tenant.queue_order == "fair":
            standing += self.meter.average(account, now)
        return (standing, float("-inf") if head[2] == promised else head[1], user)

    def first_of(self, queue: Queue, now: float, promised: str | None) -> JobKey:
        """Return the key of the job of a queue that is next; IndexError or ValueError when nobody waits."""
        if not queue.by_members:
            return queue.first
        firsts = ((user, heads[0][0][0]) for user, heads in queue.lanes.items())
        return min(firsts, key=lambda first: self.turn(queue.tenant, first[0], first[1], now, promised))[1]

    def before(self, queue: Queue, user: str, place: int, now: float, promised: str | None) -> int:
        """Count the jobs of others that start before the `place`th of a member, if all take turns job by job."""
        if not queue.by_members:
            return 0
        turns = {
            other: self.turn(queue.tenant, other, heads[0][0][0], now, promised)
            for other, heads in queue.lanes.items()
        }
        mine = turns.pop(user)
        return sum(
            min(queue.waiting_of(other), place if turn < mine else place - 1) for other, turn in turns.items()
        )

    def usage(self, tenant: str, now: float) -> tuple[tuple[str, float], ...]:
        """Return what is remembered of the members, in share-seconds, by name; nothing where they take no turns."""
        return usage_of_members(self.meter, tenant, now) if tenant in self._held else ()

    def fork(self, meter: UsageMeter) -> Members:
        """Return an independent copy that goes by this copy of the meter."""
        other = Members(meter)
        other._held = {
            tenant: {user: dict(vector) for user, vector in users.items()}
            for tenant, users in self._held.items()
        }
        return other

    def _note(self, tenant: str, user: str, total: Resources, now: float) -> None:
        share = dominant_share(resources_of(self._held[tenant][user]), total)
        self.meter.set_share(account_of(tenant, user), share, now)
