"""Guarantees of tenants that are idle for long: lowered by policy, restored at once when they ask.

The guarantee in force is stored with the tenant, in one transaction with its audit entry, and
`accounting.owner_of` reads it. So the core, the ledger, admissions, previews and displays agree.
Idleness is derived from holdings and waiting work, never from memory: a review after a crash finds
the same, and a repeated one changes nothing.

There are three occasions for a review. An idle tenant submits a job, or a server of it asks. The
sweep follows a change. The sweep comes when the next guarantee is due.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import replace

from mlp_hub.background import BackgroundTasks
from mlp_hub.domain.jobs.job import Job, Phase
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant import Lowering, Tenant
from mlp_hub.scheduler.quota.idle import IdlePolicy, IdleTenant, Lowered, idle_quota, next_idle
from mlp_hub.store import Database, Tx
from mlp_language.message import NOTHING, Message

log = logging.getLogger(__name__)


class IdleQuota:
    """Lowers and restores. `changed` is called on the event loop after any of it; `on_change` takes a listener to changes of jobs."""

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        policy: IdlePolicy,
        *,
        changed: Callable[[], None] = lambda: None,
        on_change: Callable[[Callable[[Job, Job | None], None]], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._policy = policy
        self._on_change = on_change
        self._changed = changed
        self._one = asyncio.Lock()
        self._tasks = BackgroundTasks()
        self._active: frozenset[str] = (
            frozenset()
        )  # not idle as of the last review, so nothing of theirs is lowered
        self._asked: set[str] = set()  # since the last review
        self._stale = True
        self._next: float | None = None

    @property
    def on(self) -> bool:
        """Whether guarantees are ever lowered."""
        return self._policy.after_s is not None

    async def start(self) -> None:
        """Find out who is idle; restore what a former policy lowered."""
        self._on_change(self.job_changed)
        self._stale = True
        await self.review_idle()

    async def stop(self) -> None:
        """Wait for reviews in progress."""
        await self._tasks.finish()

    # --- what happens

    def job_changed(self, job: Job, before: Job | None) -> None:
        """Hear of a change of a job, as a listener of the board."""
        self._stale = True
        if job.phase is Phase.QUEUED and (before is None or before.phase is not Phase.QUEUED):
            tenant = job.spec.tenant
            if self.on and tenant not in self._active:
                self._asked.add(tenant)
                self._tasks.start(self._review_soon())

    def something_changed(self) -> None:
        """Hear that tenants, or what is held of them, have changed."""
        self._stale = True

    async def asks(self, tenant: str) -> None:
        """Hear that somebody asks for something of a tenant; whatever was lowered for its idleness is restored."""
        if self.on and tenant not in self._active:
            self._asked.add(tenant)
            await self.review(only_if_asked=True)

    async def review_idle(self) -> None:
        """Review if anything has changed since the last time, or if a guarantee is due."""
        if self._stale or (self._next is not None and self._next <= self._clock()):
            await self.review()

    async def _review_soon(self) -> None:
        try:
            await self.review(only_if_asked=True)
        except asyncio.CancelledError:
            raise
        except Exception:  # the next sweep does it
            log.exception("restoring the guarantee of a tenant that is no longer idle failed")

    # --- reviews

    async def review(self, *, only_if_asked: bool = False) -> None:
        """Look at all tenants, store who is idle since when, and lower and restore what is due.

        `only_if_asked`: not when another review, waited for, has taken up what was asked.
        """
        async with self._one:
            asked, self._asked = self._asked, set()
            if only_if_asked and not asked:
                return
            self._stale = False
            try:
                found = await self._db.write(lambda tx: self._review(tx, asked))
            except BaseException:
                # whether it is stored is not known: whoever asks makes the next review
                self._asked |= asked
                self._active, self._stale = frozenset(), True
                raise
            self._active = frozenset(t.name for _, t in found if t.idle_since is None)
            self._next = next_idle([_as_seen(t) for _, t in found], self._policy)
        if any(before.lowered != after.lowered for before, after in found):
            self._changed()

    def review_in(self, tx: Tx) -> None:
        """Review inside the transaction of a change of a tenant."""
        idle = {t.name for _, t in self._review(tx, ()) if t.idle_since is not None}
        self._active -= idle  # right also if the transaction fails: at worst one review too many is made

    def _review(self, tx: Tx, asked: Iterable[str]) -> list[tuple[Tenant, Tenant]]:
        """Return the tenants before and after.

        `asked`: tenants that are not idle since they made a request, even if they got nothing or have given
        it back.
        """
        now = self._clock()
        tenants = tx.tenants.all()
        if not self.on and not any(t.lowered or t.idle_since is not None for t in tenants):
            return []
        by_name = {t.name: t for t in tenants}
        busy, wanted = with_parents(self._busy(tx, now), by_name), with_parents(asked, by_name)
        found = []
        for tenant in tenants:
            since = tenant.idle_since
            if tenant.name in busy or not self.on:
                since = None
            elif since is None or tenant.name in wanted:
                since = now
            found.append((tenant, self._decided(tx, tenant, since, now)))
        return found

    def _busy(self, tx: Tx, now: float) -> set[str]:
        """Return tenants that hold node resources or have a job waiting; stored bytes alone are not activity."""
        held = tx.ledger.in_use_by_tenant(now)
        names = {name for name, amount in held.items() if not amount.on_nodes.is_zero}
        return names | {name for name, (running, waiting) in tx.jobs.counts().items() if running or waiting}

    def _decided(self, tx: Tx, tenant: Tenant, since: float | None, now: float) -> Tenant:
        """Return a tenant with its present guarantee; store and log changes."""
        seen = replace(tenant, idle_since=since)
        new, message = decide(seen, now, self._policy)
        if new.idle_since != tenant.idle_since or new.lowered != tenant.lowered:
            tx.tenants.set_idle(tenant.name, new.idle_since, new.lowered)
        if new.lowered != tenant.lowered:
            action = "quota.restore" if new.lowered is None else "quota.lower"
            detail: dict[str, object] = {"message": message}
            if new.lowered is not None:
                detail["share"] = new.lowered.share
            tx.audit.add(now, THE_HUB, action, tenant.name, tenant=tenant.name, detail=detail)
        return new


def decide(tenant: Tenant, now: float, policy: IdlePolicy) -> tuple[Tenant, Message]:
    """Return a tenant with the guarantee that holds for it now, and the sentence that says what changed, if anything."""
    for decision in idle_quota([_as_seen(tenant)], now, policy):
        if isinstance(decision, Lowered):
            since = now if tenant.lowered is None else tenant.lowered.since
            lowering = Lowering(
                since, decision.share, decision.lending_limit, decision.reserved, decision.message
            )
            return replace(tenant, lowered=lowering), decision.message
        return replace(tenant, lowered=None), decision.message
    return tenant, NOTHING


def with_parents(names: Iterable[str], tenants: dict[str, Tenant]) -> set[str]:
    """Return the tenants and all above them."""
    found: set[str] = set()
    for name in names:
        at: str | None = name
        while at is not None and at not in found and at in tenants:
            found.add(at)
            at = tenants[at].parent
    return found


def _as_seen(tenant: Tenant) -> IdleTenant:
    lowered = tenant.lowered
    return IdleTenant(
        tenant.name,
        tenant.quota,
        tenant.lending_limit,
        tenant.reserved,
        tenant.idle_since,
        None
        if lowered is None
        else Lowered(tenant.name, lowered.share, lowered.lending_limit, lowered.reserved, lowered.message),
    )
