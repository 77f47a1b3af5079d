"""Values that the caller of the platform gives, and that its components are made with."""

from __future__ import annotations

from collections.abc import Callable

from mlp_hub.executors.base import Executor
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.support.component import rows
from mlp_hub.service.tenants.groups import GroupPolicy
from mlp_hub.store.database import Database


class Given:
    """Values that all components of a root share. A subclass has the components as rows; all are made with it.

    `clock` gives seconds since the epoch, `steady` measures durations where the clock can be set; without it,
    `clock` is never set. `alone`: the database lets no other service in. `lost` is called when another platform
    has the lease, and `leads_now` tells whether this one leads. `provider` is the title of who manages people's groups; empty where nobody does.
    """

    def __init__(
        self,
        db: Database,
        executor: Executor,
        clock: Callable[[], float],
        policy: RunPolicy,
        *,
        alone: bool,
        groups: GroupPolicy | None,
        steady: Callable[[], float] | None,
        lost: Callable[[], None],
        leads: Callable[[], bool],
    ) -> None:
        self.db, self.executor, self.clock, self.policy = db, executor, clock, policy
        self.alone, self.groups, self.steady = alone, groups, steady
        self.lost, self.leads_now = lost, leads
        db.clock = clock
        self.provider = "" if groups is None else groups.title
        for row in rows(type(self)):
            getattr(self, row.name)
