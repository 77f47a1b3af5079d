"""Preview of a tenant's new settings, before they are saved: the scheduling core on the changed snapshot.

Nothing is written. A lower quota never stops the tenant's present work. Other tenants that wait for
their own quota may take back the amounts that it borrows. The core's own decisions name the work
that this would stop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from mlp_api import types as api
from mlp_api.localized import Text
from mlp_api.teams import previews as preview_api
from mlp_hub.domain.dimensions import DIMENSIONS
from mlp_hub.domain.errors import not_found
from mlp_hub.domain.resources import ZERO
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.pools import WorkKind, run_in
from mlp_hub.scheduler.assign.feasible import check_possible
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.forecast.forecast import expected_end
from mlp_hub.scheduler.forecast.why import no_time_limit
from mlp_hub.scheduler.model.resources import Vector, vector_of
from mlp_hub.scheduler.model.types import (
    Admit,
    AdmittedWorkload,
    Decision,
    PendingWorkload,
    Preempt,
    Resize,
    Snapshot,
    TenantQueue,
    Wait,
)
from mlp_hub.scheduler.quota.booked_windows import BookedWindows
from mlp_hub.scheduler.quota.idle import IdlePolicy
from mlp_hub.scheduler.quota.tree import QuotaTree
from mlp_hub.service.bookings.feasibility import Supply, checked
from mlp_hub.service.bookings.wire import booking_to
from mlp_hub.service.quota.accounting import owner_of
from mlp_hub.service.quota.idle import decide
from mlp_hub.service.quota.lending import beyond
from mlp_hub.service.quota.node_shares import shares_of
from mlp_hub.service.support import units
from mlp_hub.service.support.costly import CostlyTurns
from mlp_hub.service.tenants.previews.starts import moved
from mlp_hub.service.tenants.previews.text import MOST_JOBS, Over, PreviewOutcome, PreviewStop, notes
from mlp_hub.service.tenants.validation import check_sharing
from mlp_hub.service.tenants.wire import tenant_from
from mlp_hub.store import Database, Tx
from mlp_language.message import NOTHING, Message, msg, some

_NEVER = IdlePolicy()


class Previews:
    """Answers what an update of a tenant would do. `snapshot` gives what the core would see now, `nodes` those of now."""

    def __init__(
        self,
        db: Database,
        snapshot: Callable[[], Awaitable[Snapshot]],
        clock: Callable[[], float],
        nodes: Callable[[], Sequence[NodeInfo]] = tuple,
        idle: IdlePolicy = _NEVER,
        *,
        isolation: Callable[[Tenant, Tenant], Awaitable[Message | None]] | None = None,
    ) -> None:
        self._isolation = isolation
        self._db = db
        self._snapshot = snapshot
        self._clock = clock
        self._nodes = nodes
        self._idle = idle
        self._turns = CostlyTurns()  # on a large hub each costs seconds: many open forms wait for each other

    async def preview_update(self, name: str, asked: api.TenantUpdate) -> preview_api.TenantPreview:
        """Say what the update would mean; it is refused as the update itself would be."""
        tenant = tenant_from(asked, name)

        before = await self._db.read(lambda tx: tx.tenants.get(name))
        if before is None:
            raise not_found("tenant", name)
        moves = None if self._isolation is None else await self._isolation(before, tenant)

        def check(tx: Tx) -> tuple[Tenant, list[BookedWindow]]:
            before = tx.tenants.get(name)
            if before is None:
                raise not_found("tenant", name)
            check_sharing(tx, tenant)
            # what of its guarantee holds is decided anew with the update
            after = replace(tenant, idle_since=before.idle_since, lowered=before.lowered)
            now = self._clock()
            found = decide(after, now, self._idle)[0]
            others = [t for t in tx.tenants.all() if t.name != name]
            windows = tx.bookings.current(now)
            seen = (
                checked(windows, Supply.from_tenants([*others, found], self._nodes()), now).values()
                if windows
                else ()
            )
            was = {(w.tenant, w.name): w.short for w in windows}
            return found, [w for w in seen if w.short != was[w.tenant, w.name]]

        then, windows = await self._db.read(check)
        async with self._turns.turn(name):
            snapshot = await self._snapshot()
            found = await run_in(WorkKind.EXPLAINING, preview, snapshot, then, self._clock(), windows)
        if moves is not None:
            found.notes.append(preview_api.PreviewNote(tone="wait", text=Text(moves)))
        return found


def preview(
    snapshot: Snapshot, tenant: Tenant, now: float, windows: Sequence[BookedWindow] = ()
) -> preview_api.TenantPreview:
    """Compare the present snapshot with the one in which the tenant is as described.

    `windows` are the booked ones that would no longer fit then, or fit again, as they would be.
    """
    name = tenant.name
    changed = replace(snapshot, tenants=tuple(_changed(snapshot, tenant)))
    cores = Core.from_snapshot(snapshot, now), Core.from_snapshot(changed, now)
    before, after = (core.plan(now) for core in cores)
    waiting = {j.uid: j for j in snapshot.waiting}
    running = {r.job.uid: r for r in snapshot.running}
    started = {d.uid for d in before if isinstance(d, Admit)}
    starts = [waiting[d.uid] for d in after if isinstance(d, Admit) and d.uid not in started]
    waits = [d for d in after if isinstance(d, Wait) and waiting[d.uid].tenant == name]
    never = {j.uid for j in (waiting[d.uid] for d in waits) if check_possible(changed, j) is not None}
    stopped = {d.uid for d in before if isinstance(d, Preempt | Resize)}
    stops = [
        s for s in _stops(after, waiting, running) if s.victim.tenant == name or s.victim.uid not in stopped
    ]
    first = [waiting[d.uid] for d in _first_in_line(before, after) if d.uid not in never]
    use = _Use(snapshot, changed, name, now)
    back, because = use.back_inside(now) if use.is_over else (None, NOTHING)
    outcome = PreviewOutcome(
        tenant=name,
        starts=starts,
        grows=[(running[d.uid].job, d.workers) for d in after if _grows(d) and d.uid not in stopped],
        stops=stops,
        over=use.over,
        own=use.own,
        borrows=use.borrows,
        running=sum(1 for r in snapshot.running if r.job.tenant == name),
        waits=[(waiting[d.uid], d.verdict) for d in waits],
        never=never,
        now={d.uid: d.verdict.reason for d in before if isinstance(d, Wait)},
        since=now,
        windows=windows,
        moved=moved(*cores, first, now),
        same={(d.uid, type(d)) for d in before} == {(d.uid, type(d)) for d in after},
    )
    return preview_api.TenantPreview(
        tenant=name,
        over=[o.to_wire() for o in use.over],
        could_start=[_job(j) for j in starts[:MOST_JOBS]],
        waiting=[
            preview_api.PreviewWait(
                user=waiting[d.uid].user,
                name=waiting[d.uid].name,
                since=units.when(waiting[d.uid].waits_since),
                reason=d.verdict.reason.value,
                message=Text(d.verdict.headline),
            )
            for d in waits[:MOST_JOBS]
        ],
        stopped=[s.to_wire() for s in stops[:MOST_JOBS]],
        back_inside=units.maybe_when(back),
        back_inside_because=Text(because),
        bookings=[_window(w, now) for w in windows[:MOST_JOBS]],
        notes=notes(outcome),
    )


def _first_in_line(before: Sequence[Decision], after: Sequence[Decision]) -> list[Wait]:
    """Return who waits now and then, the first of each tenant before the second ones."""
    still = {d.uid for d in after if isinstance(d, Wait)}
    return sorted((d for d in before if isinstance(d, Wait) and d.uid in still), key=lambda d: d.position)


# ------------------------------------------------------------ who is over


class _Use:
    """Amounts in use, against the quotas as they would be."""

    def __init__(self, snapshot: Snapshot, changed: Snapshot, name: str, now: float) -> None:
        self.name = name
        self._now = now
        self._kinds = {n.name: n.gpu_kind for n in snapshot.nodes}
        self._running = snapshot.running
        self._others = {t.name: t.others for t in snapshot.tenants}
        self._dimensions = _dimensions(snapshot, changed)
        was, self._tree = self._charged(snapshot), self._charged(changed)
        family = {*_family(was, name), *_family(self._tree, name)}
        owed = {(o.tenant, o.dimension): o for t in family for o in self._over(was, t)}
        self.over = [
            o
            for t in sorted(family, key=lambda t: (t != name, t))
            for o in self._over(self._tree, t)
            if t == name or o != owed.get((t, o.dimension))
        ]

    @property
    def is_over(self) -> bool:
        """Whether the tenant itself holds too much then."""
        return any(o.tenant == self.name for o in self.over)

    @property
    def own(self) -> dict[tuple[str, str], int | None]:
        """The quota then of each tenant and dimension that is over."""
        return {(o.tenant, o.dimension): self._tree.nominal(o.tenant, o.dimension) for o in self.over}

    @property
    def borrows(self) -> list[tuple[str, int]]:
        """Amounts that it holds beyond its own then, by dimension."""
        found = []
        for dimension in self._dimensions:
            own = self._tree.nominal(self.name, dimension)
            used = self._tree.used(self.name).get(dimension, 0)
            shares = len(self._tree.tenants(self._tree.root(self.name))) > 1
            if own is not None and used > own and shares:
                found.append((dimension, used - own))
        return found

    def back_inside(self, now: float) -> tuple[float | None, Message]:
        """Return when it holds no more than it may, by the ends that time limits promise, and what says so."""
        tree = self._tree.fork()
        ends = [
            (now if r.stopping else expected_end(r, now), r) for r in self._running if r.job.tenant in tree
        ]
        for end, run in sorted(
            ((e, r) for e, r in ends if e is not None), key=lambda x: (x[0], x[1].job.uid)
        ):
            tree.release(run.job.tenant, self._vector(run))
            if not any(True for _ in self._over(tree, self.name)):
                return end, msg("{job} ends by then at the latest", job=run.job.ref)
        endless = [r.job.ref for e, r in ends if e is None and r.job.tenant == self.name]
        if endless:
            return None, no_time_limit(endless)
        who = some(self._others.get(self.name, ())) or msg("its holder")
        return None, msg("no time can be estimated: {who} ends only when somebody ends it", who=who)

    def _over(self, tree: QuotaTree, name: str) -> Iterator[Over]:
        return (Over(name, dimension, held, most) for dimension, held, most in beyond(tree, name))

    def _charged(self, snapshot: Snapshot) -> QuotaTree:
        tree = QuotaTree(snapshot.tenants)
        for tenant in snapshot.tenants:
            tree.charge(tenant.name, vector_of(tenant.used))
        for run in snapshot.running:
            if run.job.tenant in tree:
                tree.charge(run.job.tenant, self._vector(run))
        total = ZERO
        for node in snapshot.nodes:
            if node.up:
                total += node.counts
        tree.set_capacity(vector_of(total))
        tree.set_booked(BookedWindows(snapshot.bookings).at(self._now))
        return tree

    def _vector(self, run: AdmittedWorkload) -> Vector:
        total: dict[str, int] = {}
        for _, amount in shares_of(run.job.per_worker, run.placement, self._kinds):
            for dimension, value in vector_of(amount).items():
                total[dimension] = total.get(dimension, 0) + value
        return total


def _family(tree: QuotaTree, name: str) -> tuple[str, ...]:
    if name not in tree:
        return ()
    # while something is kept free all tenants share the nodes; those that hold nothing cannot hold too much
    return (
        tuple(t for t in tree if t == name or tree.used(t))
        if tree.reserves
        else tree.tenants(tree.root(name))
    )


def _dimensions(*snapshots: Snapshot) -> list[str]:
    kinds = {f"gpu:{k}" for s in snapshots for t in s.tenants for k in t.quota.kinds}
    return [*DIMENSIONS, *sorted(kinds)]


def _changed(snapshot: Snapshot, tenant: Tenant) -> Iterator[TenantQueue]:
    for queue in snapshot.tenants:
        if queue.name != tenant.name:
            yield queue
            continue
        yield replace(
            owner_of(tenant),
            used=queue.used,
            decayed_usage=queue.decayed_usage,
            member_usage=queue.member_usage,
            others=queue.others,
        )


# ---------------------------------------------------------- who would go


def _grows(decision: Decision) -> TypeGuard[Resize]:
    return isinstance(decision, Resize) and decision.for_uid is None


def _stops(
    plan: Sequence[Decision], waiting: dict[str, PendingWorkload], running: dict[str, AdmittedWorkload]
) -> Iterator[PreviewStop]:
    for d in plan:
        if isinstance(d, Preempt) and d.preemptor in waiting:
            yield PreviewStop(running[d.uid].job, waiting[d.preemptor], d.verdict.headline, shrunk=False)
        elif isinstance(d, Resize) and d.for_uid in waiting and d.verdict is not None:
            yield PreviewStop(running[d.uid].job, waiting[d.for_uid], d.verdict.headline, shrunk=True)


def _window(window: BookedWindow, now: float) -> preview_api.PreviewBooking:
    shown = booking_to(window, now)
    return preview_api.PreviewBooking(
        tenant=shown.tenant, name=shown.name, start=shown.start, end=shown.end, short=shown.short
    )


def _job(job: PendingWorkload) -> preview_api.PreviewJob:
    return preview_api.PreviewJob(user=job.user, name=job.name, tenant=job.tenant)
