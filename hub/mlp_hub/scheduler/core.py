"""The scheduling core: events in, decisions out; free of clocks and of I/O. `cycle` describes a plan."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.cycle.cycle import Cycle
from mlp_hub.scheduler.cycle.grounds import Grounds
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.types import (
    AdmittedWorkload,
    CapacityWindow,
    Decision,
    Node,
    PendingWorkload,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
    Wait,
)
from mlp_hub.scheduler.reasons import verdicts
from mlp_hub.scheduler.reasons.verdicts import WantsReason


def plan_cycle(snapshot: Snapshot, now: float) -> list[Decision]:
    """Decide about every waiting job of a snapshot, in the order in which the decisions were taken.

    Pure: the same snapshot and time give the same plan.
    """
    return Core.from_snapshot(snapshot, now).plan(now)


class Core:
    """Scheduling core: keeps the state of a cluster by events, and plans in proportion to the changes.

    A plan applies itself: an admitted job runs from then on, and a preempted one is gone. Where victims
    are given time to stop, `Admit.after` names those that must have ended before the job is really
    started.
    """

    def __init__(
        self,
        policy: SchedulingPolicy,
        nodes: Iterable[Node] = (),
        tenants: Iterable[TenantQueue] = (),
        typical: tuple[tuple[Demand, float], ...] = (),
    ) -> None:
        self.state = ClusterState(policy, nodes, tenants, typical)
        self.cycles = 0
        self.grounds: Mapping[str, Grounds] = {}
        """Why the last plan decided as it did about each job that it admitted, preempted or resized."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot, now: float) -> Core:
        """Make the core of a snapshot taken at `now`."""
        core = cls(snapshot.policy, snapshot.nodes, (), snapshot.typical)
        core.state.now = now
        core.state.set_tenants(snapshot.tenants)
        for running in snapshot.running:
            core.start(running)
        for job in snapshot.waiting:
            core.submit(job)
        core.state.promised = snapshot.promised
        core.state.set_bookings(snapshot.bookings)
        return core

    # --- events

    def submit(self, job: PendingWorkload) -> None:
        """Let a new or requeued job wait. Raises `ValueError` when its uid is known."""
        self.state.submit(job)

    def withdraw(self, uid: str) -> PendingWorkload:
        """Take a waiting job out of the queue. Raises `KeyError` when it does not wait."""
        return self.state.withdraw(uid)

    def start(self, running: AdmittedWorkload) -> None:
        """Tell of a job that already runs, whatever quotas and nodes say."""
        self.state.hold(running, force=True)
        self.state.news.ended.pop(running.job.uid, None)

    def end(self, uid: str, now: float) -> AdmittedWorkload:
        """Tell that a running job gave back all it held. Raises `KeyError` when it does not run."""
        self.state.now = max(self.state.now, now)
        run = self.state.give_back(uid)
        self.state.news.note_end(run.job)
        return run

    def set_tenants(self, tenants: Iterable[TenantQueue]) -> None:
        """Add tenants, or change quotas, weights and what others than jobs hold of them."""
        self.state.set_tenants(tenants)

    def set_tenant(self, tenant: TenantQueue) -> None:
        """Add or change one tenant."""
        self.state.set_tenants((tenant,))

    def remove_tenant(self, name: str) -> None:
        """Drop a tenant. Raises `ValueError` while it has running jobs; waiting ones stay, and wait for one of that name."""
        self.state.remove_tenant(name)

    def add_node(self, node: Node) -> None:
        """Add a node, or change one of the same name."""
        self.state.set_nodes((node,))

    def set_nodes(self, nodes: Iterable[Node], gone: Iterable[str] = ()) -> None:
        """Add nodes or change those of the same names, and forget those that are gone: dearest is that something changed at all."""
        self.state.set_nodes(nodes, gone)

    def set_node(self, name: str, *, up: bool) -> None:
        """Take a node out of service or back; its jobs are the caller's to end."""
        self.state.set_node(name, up=up)

    def remove_node(self, name: str) -> None:
        """Forget a node."""
        self.state.set_nodes((), (name,))

    def set_bookings(self, bookings: Iterable[CapacityWindow]) -> None:
        """Say which windows are booked; those that are not named are given up."""
        self.state.set_bookings(bookings)

    def snapshot(self, now: float) -> Snapshot:
        """Return the data that a new core needs to continue from `now` as this one would."""
        return self.state.snapshot(now)

    def fork(self) -> Core:
        """Return an independent copy, for questions that begin with "what if"."""
        other = Core.__new__(Core)
        other.state = self.state.fork()
        other.cycles, other.grounds = self.cycles, self.grounds
        return other

    # --- what it knows

    def verdict(self, uid: str, now: float | None = None) -> Wait | None:
        """Return why a job waits as the last cycle found it, with the numbers of `now`; None when it does not."""
        return self.verdicts((uid,), now).get(uid)

    def verdicts(self, uids: Iterable[str], now: float | None = None) -> dict[str, Wait]:
        """Return the verdicts of those of these jobs that wait; equals share one."""
        return {wait.uid: wait for wait in verdicts.waits(self.state, uids, now=now)}

    @property
    def running(self) -> dict[str, AdmittedWorkload]:
        """Return what runs, by uid."""
        return {uid: held.run for uid, held in self.state.running.items()}

    def is_waiting(self, uid: str) -> bool:
        """Whether a job waits here."""
        return uid in self.state.waiting or uid in self.state.orphaned

    def next_wake(self) -> float | None:
        """Return the next time at which something could be decided without an event."""
        state = self.state
        if state.inadmissible.owed:
            return state.now
        timers = state.inadmissible.timers
        times = [
            timers[0][0] if timers else None,
            state.inadmissible.resume_at,
            state.bookings.next_change(state.windows_at),
        ]
        return min((at for at in times if at is not None), default=None)

    # --- decisions

    def plan(self, now: float, wants: WantsReason | None = None) -> list[Decision]:
        """Decide, and apply the decisions to this core: admitted jobs run from now on.

        With `wants`, a job is given the reason for its wait only if `wants` accepts its uid and the reason.
        """
        return self._run(Cycle(self.state, now, wants=wants))

    def plan_unheard(self, now: float) -> list[Decision]:
        """Plan as `plan` does, for those who do not care why others wait: that costs the words."""
        return self._run(Cycle(self.state, now, tells=False))

    def _run(self, cycle: Cycle) -> list[Decision]:
        self.cycles += 1
        decisions = cycle.run()
        self.grounds = cycle.plan.grounds
        return decisions
