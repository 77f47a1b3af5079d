"""Worker of the queue that tells the executor which tenants there are: level-triggered, all of them each time."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from mlp_hub.domain.dimensions import DIMENSIONS
from mlp_hub.domain.errors import MessageError
from mlp_hub.domain.resources import ZERO, Quota, Resources, quota_of
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, Tenant
from mlp_hub.executors.base import Executor, Superseded, TenantPlace
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.quota.accounting import tree_of
from mlp_hub.service.state.leadership import Leadership, LeaseLost
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
KIND = "tenants"
"""Kind of the one key in the work queue that stands for all tenants."""
ALL = (KIND, "all")
SOON_S = 0.5
"""Tuning: seconds after a change until tenants are told, with all that changes meanwhile: all are read for it, and of a
thousand that are made at once each would have the others read again."""
AGAIN_S = 300.0
"""Tuning: seconds between two updates of all tenants without a change.

After that time, state that an executor forgot, or holdings beyond a lowered quota, are right again.
"""


class TenantPlaces:
    """Tells the executor the tenants whenever they may have changed, and every few minutes."""

    def __init__(
        self,
        queue: WorkQueue,
        db: Database,
        executor: Executor,
        lease: Leadership,
        clock: Callable[[], float],
    ) -> None:
        self._queue, self._db, self._executor, self._lease, self._clock = queue, db, executor, lease, clock
        queue.serve(KIND, self._report)

    def look_soon(self) -> None:
        """Tell them soon: a tenant, or who is in one, has changed."""
        if self._executor.keeps_tenants:
            self._queue.add_after(ALL, SOON_S)

    async def _report(self, _: str) -> bool:
        now = self._clock()
        places = await self._db.read(lambda tx: places_of(tx, now))
        try:
            await self._lease.ensure_held()
            await self._executor.keep_tenants(places, self._lease.epoch)
        except (LeaseLost, Superseded):
            return False
        except MessageError as error:
            log.warning("tenants do not have all that they need where jobs run: %s", error)
            raise
        self._queue.add_after(ALL, AGAIN_S)
        return False


def places_of(tx: Tx, now: float) -> list[TenantPlace]:
    """Return all tenants as an executor needs them."""
    tenants, in_use = tx.tenants.all(), tx.ledger.in_use_by_tenant(now)
    tree = tree_of(map(_lending_all, tenants), {})
    members: dict[str, list[str]] = {tenant.name: [] for tenant in tenants}
    for member in tx.members.all():
        members[member.tenant].append(member.user)
    members[DEFAULT_TENANT] += tx.users.without_tenant()
    return [
        TenantPlace(
            tenant.name,
            most_of(tree, tenant.name, in_use.get(tenant.name, ZERO)),
            tuple(sorted(members[tenant.name])),
        )
        for tenant in tenants
    ]


def most_of(tree: QuotaTree, name: str, held: Resources) -> Quota:
    """Return the most that a tenant may hold, all others idle, and not less than it holds: quotas may be lowered below that."""

    def most(dimension: str, used: int) -> int | None:
        limit = tree.limit_of_quota(name, dimension)
        return None if limit is None else max(limit, used)

    return quota_of({d: most(d, held.part(d)) for d in DIMENSIONS})


def _lending_all(tenant: Tenant) -> Tenant:
    """Return a tenant that keeps nothing from others: their limits then do not depend on idle tenants."""
    return replace(tenant, lending_limit=None, reserved=None, lowered=None)
