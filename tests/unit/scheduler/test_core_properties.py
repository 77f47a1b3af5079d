"""What holds after any events: the core against a ledger of its own decisions, a twin, and a core made from nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mlp_hub.domain.resources import MILLI, Quota, Resources
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import (
    Admit,
    CapacityWindow,
    Decision,
    Node,
    PendingWorkload,
    Preempt,
    Resize,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
    Wait,
)
from mlp_hub.scheduler.policy import DEFAULT_ORDER, goes_by_members, is_one_queue, job_key
from mlp_hub.scheduler.workloads.pending import Awaits
from support.scheduler.core_ledger import Ledger
from support.scheduler.core_strategies import (
    NAMES,
    a_job,
    amounts,
    clusters,
    limits,
    policies,
    reserved,
    shapes,
    tenants,
)
from support.scheduler.scheduler_builders import node

MOST_ROUNDS = 8


def to_first_stop(decisions: list[Decision]) -> list[Decision]:
    """Leave out who is only told why it waits, and what comes after somebody was stopped.

    What that frees requeues others in the next plan, which follows at once, while in a new core all are active.
    """
    out: list[Decision] = []
    for d in decisions:
        if not isinstance(d, Wait):
            out.append(d)
        if isinstance(d, Preempt) or (isinstance(d, Resize) and d.for_uid is not None):
            break
    return out


class CoreMachine(RuleBasedStateMachine):
    """Events of all kinds, a plan after each."""

    @initialize(nodes=clusters(), tenants=tenants(), policy=policies)
    def begin(
        self, nodes: tuple[Node, ...], tenants: tuple[TenantQueue, ...], policy: SchedulingPolicy
    ) -> None:
        self.now = 0.0
        self.serial = 0
        self.policy = policy
        self.nodes = {n.name: n for n in nodes}
        self.tenants = {t.name: t for t in tenants}
        self.core = Core(policy, nodes, tenants)
        self.ledger = Ledger(self.nodes, self.tenants)

    # --- events

    @rule(batch=st.lists(shapes, min_size=1, max_size=4))
    def submit(self, batch: list[dict[str, Any]]) -> None:
        for shape in batch:
            self.serial += 1
            new = a_job(f"{self.serial:04d}", self.now, shape)
            self.core.submit(new)
            self.ledger.waiting[new.uid] = new
        self.settle()

    @precondition(lambda self: self.ledger.running)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(list(self.ledger.running)))
        del self.ledger.running[uid]
        self.core.end(uid, self.now)
        self.settle()

    @precondition(lambda self: self.ledger.waiting)
    @rule(data=st.data())
    def withdraw(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(list(self.ledger.waiting)))
        gone = self.ledger.waiting.pop(uid)
        before = self.core.snapshot(self.now)
        self.core.withdraw(uid)
        self.check_those_before(gone, before)
        self.settle()

    def check_those_before(self, gone: PendingWorkload, before: Snapshot) -> None:
        """Without a waiting job, those that stand before it start as they did with it."""
        if self.policy.preemption or self.policy.name == "finish":
            return
        order = next((t.queue_order for t in before.tenants if t.name == gone.tenant), DEFAULT_ORDER)
        key, in_turns = job_key(gone, self.policy, order), goes_by_members(self.policy, order)
        ahead = {
            j.uid
            for j in self.ledger.waiting.values()
            if job_key(j, self.policy, order) < key
            and (
                is_one_queue(self.policy)
                or (j.tenant == gone.tenant and (j.user == gone.user or not in_turns))
            )
        }
        after = replace(before, waiting=tuple(j for j in before.waiting if j.uid != gone.uid))
        plans = [Core.from_snapshot(s, self.now).plan(self.now) for s in (before, after)]
        begun = [[d.uid for d in plan if isinstance(d, Admit) and d.uid in ahead] for plan in plans]
        assert begun[0] == begun[1]

    @precondition(lambda self: any(n.up for n in self.nodes.values()))
    @rule(data=st.data())
    def node_down(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([n.name for n in self.nodes.values() if n.up]))
        self.nodes[name] = replace(self.nodes[name], up=False)
        self.core.set_node(name, up=False)
        for uid in [u for u, (_, placement, _) in self.ledger.running.items() if name in placement]:
            self.core.end(uid, self.now)
            self.requeue(uid)
        self.settle()

    @precondition(lambda self: not all(n.up for n in self.nodes.values()))
    @rule(data=st.data())
    def node_up(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([n.name for n in self.nodes.values() if not n.up]))
        self.nodes[name] = replace(self.nodes[name], up=True)
        self.core.set_node(name, up=True)
        self.settle()

    @rule(data=st.data(), cpu=amounts, gpu=amounts)
    def quota(self, data: st.DataObject, cpu: int | None, gpu: int | None) -> None:
        name = data.draw(st.sampled_from(list(self.tenants)))
        self.tenants[name] = replace(self.tenants[name], quota=limits(cpu, gpu) or Quota())
        self.core.set_tenant(self.tenants[name])
        self.settle()

    @rule(data=st.data(), keep=reserved)
    def reserve(self, data: st.DataObject, keep: Quota | None) -> None:
        name = data.draw(st.sampled_from(list(self.tenants)))
        self.tenants[name] = replace(self.tenants[name], reserved=keep)
        self.core.set_tenant(self.tenants[name])
        self.settle()

    @rule(data=st.data(), after=st.integers(0, 30), span=st.integers(1, 50), cpu=st.integers(1, 24))
    def book(self, data: st.DataObject, after: int, span: int, cpu: int) -> None:
        name = data.draw(st.sampled_from(list(self.tenants)))
        start = self.now + after
        new = CapacityWindow(name, start, start + span, Quota(cpu=cpu * MILLI, gpu=cpu // 4 * MILLI))
        self.ledger.bookings = (*self.ledger.bookings[-2:], new)
        self.core.set_bookings(self.ledger.bookings)
        self.settle()

    @rule(
        extra=st.sampled_from(
            (
                node("n-new", cpu=4),
                node("n-gpu", cpu=8, gpu=2, gpu_kind="a100"),
                node("n-kept", cpu=8, taints=(f"tenant={NAMES[0]}",)),
            )
        )
    )
    def node_joins(self, extra: Node) -> None:
        new = replace(extra, labels={"rack": "r0"})
        if new.name not in self.nodes:
            self.nodes[new.name] = new
            self.core.add_node(new)
            self.settle()

    @precondition(lambda self: len(self.nodes) > 1)
    @rule(data=st.data())
    def node_leaves(self, data: st.DataObject) -> None:
        used = {name for _, placement, _ in self.ledger.running.values() for name in placement}
        idle = [name for name in self.nodes if name not in used]
        if idle:
            name = data.draw(st.sampled_from(idle))
            del self.nodes[name]
            self.core.remove_node(name)
            self.settle()

    @rule(data=st.data())
    def others_come_and_go(self, data: st.DataObject) -> None:
        """Who is not the hub's takes what is free on a node, or gives it back."""
        now = self.nodes[data.draw(st.sampled_from(list(self.nodes)))]
        room = now.capacity.cpu - self.ledger.on_node(now.name)[0]
        others = Resources(data.draw(st.sampled_from((0, room // 2, room))))
        self.nodes[now.name] = replace(now, used=others, others=others)
        self.core.add_node(self.nodes[now.name])
        self.settle()

    @rule(seconds=st.sampled_from((0.5, 1, 3, 10, 100)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        wake = self.core.next_wake()
        if wake is not None and wake <= self.now:
            self.settle()

    # --- a plan and what holds after it

    def settle(self) -> None:
        """Plan until nothing is stopped any more; who was stopped is queued again at once."""
        stopped_by: set[tuple[str, str]] = set()  # (preemptor, victim) of this instant
        for _ in range(MOST_ROUNDS):
            decisions = self.plan()
            preempted = [d for d in decisions if isinstance(d, Preempt)]
            for d in preempted:
                assert (d.uid, d.preemptor) not in stopped_by, "stopped in turns"
                stopped_by.add((d.preemptor, d.uid))
                self.requeue(d.uid)
            if not preempted:
                return
        raise AssertionError(f"does not settle: {stopped_by}")

    def requeue(self, uid: str) -> None:
        again = self.ledger.running.pop(uid)[0]
        self.ledger.waiting[uid] = again
        self.core.submit(again)

    def plan(self) -> list[Decision]:
        twins = self.core.fork(), self.core.fork()
        rebuilt = Core.from_snapshot(self.core.snapshot(self.now), self.now)
        before = self.claims()
        decisions = self.core.plan(self.now)
        assert twins[0].plan(self.now) == decisions
        assert twins[1].plan(self.now) == decisions
        if self.policy.name != "finish":  # it keeps in mind whom it sent ahead
            self.compare(to_first_stop(rebuilt.plan(self.now)), to_first_stop(decisions))
        self.apply(decisions)
        for at, claims in self.claims().items():
            for d, claimed in claims.items():
                if ":" not in d:
                    assert claimed <= max(self.ledger.capacity(d), before[at].get(d, 0)), (
                        "somebody took what is kept"
                    )
        return decisions

    def claims(self) -> dict[float, dict[str, int]]:
        """Add up what is claimed now and as each booked window opens."""
        running = self.core.running.items()
        ends = {uid: math.inf if r.expected_end is None else r.expected_end for uid, r in running}
        # what runs longer than it was expected to is there still
        ends = {uid: end if end > self.now else math.inf for uid, end in ends.items()}
        times = [self.now, *(b.start for b in self.ledger.bookings if b.start > self.now)]
        return {at: self.ledger.claims(at, ends) for at in times}

    def compare(self, rebuilt: list[Decision], decisions: list[Decision]) -> None:
        """A core made from nothing decides the same: what slept could really not start.

        But for those that could, or could make room, and were held back for one ahead of them: they are looked at again
        when something comes free, not when the one ahead waits for something else now. And those for whom a start of
        this very plan made the difference have their turn in the next one.
        """
        if rebuilt == decisions:
            return
        at = next(i for i, d in enumerate([*rebuilt, None]) if d != dict(enumerate(decisions)).get(i))
        held_back = {u for u, e in self.core.state.waiting.items() if e.cls.awaits is Awaits.ANYTHING}
        if at == len(rebuilt):
            assert held_back  # it lost the room that it had to leave, and is promised other room now
            return
        new = rebuilt[at]
        uid = new.preemptor if isinstance(new, Preempt) else getattr(new, "for_uid", None) or new.uid
        soon = {d.uid for d in self.core.fork().plan(self.now) if isinstance(d, Admit)}
        # one that starts in both with other numbers of workers makes way for one held back, or need not
        resized = held_back and any(getattr(d, "uid", None) == uid for d in decisions)
        assert uid in held_back or uid in soon or resized

    def apply(self, decisions: list[Decision]) -> None:
        before = self.ledger.totals()
        running, waiting = self.ledger.running, self.ledger.waiting
        taken: dict[str, None] = {}
        for d in decisions:
            if isinstance(d, Preempt):
                assert running[d.uid][0].preemptible
                assert d.preemptor in waiting or d.preemptor in running
                assert any(isinstance(a, Admit) and a.uid == d.preemptor for a in decisions)
        for d in decisions:
            if isinstance(d, Preempt):
                continue
            if isinstance(d, Wait):
                continue
            if isinstance(d, Resize):
                assert not any(isinstance(p, Preempt) and p.uid == d.uid for p in decisions)
                held, placement, _ = running[d.uid]
                grown = d.workers > len(placement) - held.ps
                assert held.workers_min <= d.workers <= held.workers_max
                assert d.workers != len(placement) - held.ps
                assert len(d.placement) == d.workers + held.ps
                assert d.for_uid is None or any(
                    isinstance(a, Admit) and a.uid == d.for_uid for a in decisions
                )
                running[d.uid] = (held, d.placement, d.devices)
            else:
                new = waiting.pop(d.uid)
                assert new.workers_min <= d.workers <= new.workers_max
                assert len(d.placement) == d.workers + new.ps
                stopped_for = {p.uid: p.preemptor for p in decisions if isinstance(p, Preempt)}
                assert {u for u, by in stopped_for.items() if by == d.uid} <= set(d.after) <= set(stopped_for)
                grown = True
                running[d.uid] = (new, d.placement, d.devices)
            self.ledger.check_topology(d.uid)
            if grown:
                taken[d.uid] = None
        stopped = {d.uid: running.pop(d.uid) for d in decisions if isinstance(d, Preempt)}
        self.ledger.check_nodes(taken)
        self.ledger.check_quota(taken, before)
        running.update(stopped)
        assert {u: (r.placement, r.devices) for u, r in self.core.running.items()} == {
            u: held[1:] for u, held in running.items() if u not in stopped
        }

    @invariant()
    def the_queue_is_known(self) -> None:
        if hasattr(self, "ledger"):
            assert all(self.core.is_waiting(uid) for uid in self.ledger.waiting)


TestCore = CoreMachine.TestCase
TestCore.settings = settings(max_examples=100, stateful_step_count=25, deadline=None, derandomize=True)
