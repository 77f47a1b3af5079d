"""What holds after any events: the core against a ledger of its own decisions, a twin, and a core made from nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mlp_hub.domain.errors import Reason
from mlp_hub.domain.resources import MILLI, Quota
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model import (
    Admit,
    Decision,
    Node,
    Preempt,
    Resize,
    SchedulingPolicy,
    Snapshot,
    TenantQueue,
    Wait,
    WaitingJob,
)
from mlp_hub.scheduler.ordering import POLICIES, is_one_queue, job_key
from mlp_hub.scheduler.queues import Asleep
from mlp_hub.scheduler.quota import QuotaTree
from mlp_hub.scheduler.simulate.engine import Simulation
from mlp_hub.scheduler.simulate.reading import read_value
from scheduler_builders import job, node

MOST_ROUNDS = 8
NAMES = ("a", "b", "c", "d")


def limits(cpu: int | None, gpu: int | None) -> Quota | None:
    if cpu is None and gpu is None:
        return None
    return Quota(
        cpu=None if cpu is None else cpu * MILLI,
        gpu=None if gpu is None else gpu * MILLI,
    )


maybe = st.none() | st.integers(0, 4)


@st.composite
def tenants(draw: st.DrawFn) -> tuple[TenantQueue, ...]:
    """Draw a few tenants in trees; at least one has no quota at all in half of the draws."""
    out: list[TenantQueue] = []
    for name in NAMES[: draw(st.integers(1, len(NAMES)))]:
        quota = limits(draw(maybe), draw(maybe)) or Quota()
        out.append(
            TenantQueue(
                name,
                quota,
                weight=draw(st.sampled_from((1.0, 2.0))),
                parent=draw(st.sampled_from((None, None, *(t.name for t in out)))),
                cohort=draw(st.sampled_from((None, "x", "y"))),
                borrowing_limit=limits(draw(maybe), draw(maybe)),
                lending_limit=limits(draw(maybe), draw(maybe)),
            )
        )
    return tuple(out)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Node, ...]:
    return tuple(
        node(
            f"n-{i}",
            cpu=draw(st.sampled_from((2, 4, 8))),
            gpu=(gpus := draw(st.sampled_from((0, 1, 2, 4)))),
            gpu_kind=draw(st.sampled_from(("a100", "v100"))) if gpus else None,
            labels={"rack": f"r{draw(st.integers(0, 1))}"},
        )
        for i in range(draw(st.integers(1, 4)))
    )


policies = st.builds(
    SchedulingPolicy,
    name=st.sampled_from(POLICIES),
    backfill=st.booleans(),
    preemption=st.sampled_from((True, True, False)),
    min_run_s=st.sampled_from((0.0, 0.0, 5.0)),
    restart_cost_s=st.sampled_from((0.0, 2.0)),
    aging_s=st.sampled_from((600.0, 1.0, 0.0)),
    half_life_s=st.sampled_from((3600.0, 10.0)),
)

shapes: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "tenant": st.sampled_from(NAMES),
        "workers": st.integers(1, 4),
        "more": st.sampled_from((0, 0, 0, 1, 3)),
        "ps": st.sampled_from((0, 0, 0, 1)),
        "cpu": st.sampled_from((0.5, 1, 2)),
        "gpu": st.sampled_from((0, 0, 0, 0.3, 0.5, 1, 2, 1.5)),
        "gpu_kind": st.sampled_from((None, None, "a100", "v100")),
        "priority": st.sampled_from((50, 100, 100, 200)),
        "estimate": st.none() | st.sampled_from((5, 10, 30)),
        "time_limit": st.none() | st.sampled_from((5, 20, 60)),
        "topology": st.sampled_from((None, None, None, "same-node", "same-rack", "preferred:rack", "spread")),
        "preemptible": st.sampled_from((True, True, True, False)),
        "checkpoint_every": st.sampled_from((None, 3.0)),
        "gated": st.sampled_from((None,) * 9 + (Reason.SUSPENDED,)),
    }
)


def a_job(uid: str, at: float, shape: dict[str, Any]) -> WaitingJob:
    shape = dict(shape)
    more = shape.pop("more")
    return job(uid, at=at, workers_max=shape["workers"] + more, **shape)


class Ledger:
    """What the decisions of a core add up to, counted by somebody else."""

    def __init__(self) -> None:
        self.running: dict[str, tuple[WaitingJob, tuple[str, ...], tuple[tuple[int, ...], ...]]] = {}
        self.waiting: dict[str, WaitingJob] = {}

    def on_node(self, name: str) -> tuple[int, int, dict[int, int]]:
        """Add up cpu, ram and the thousandths of each GPU that jobs hold on a node."""
        cpu = ram = 0
        gpus: dict[int, int] = {}
        for held, placement, devices in self.running.values():
            for rank, there in enumerate(placement):
                if there != name:
                    continue
                cpu += held.per_worker.cpu
                ram += held.per_worker.ram
                whole, part = divmod(held.per_worker.gpu, MILLI)
                numbers = devices[rank]
                assert len(numbers) == whole + (part > 0)
                assert len(set(numbers)) == len(numbers)
                for i, number in enumerate(numbers):
                    gpus[number] = gpus.get(number, 0) + (MILLI if i < whole else part)
        return cpu, ram, gpus

    def vector(self, uid: str, nodes: dict[str, Node]) -> dict[str, int]:
        """Return what a running job takes of its tenant's quota."""
        held, placement, _ = self.running[uid]
        out: dict[str, int] = {}
        for name in placement:
            for d, v in held.per_worker.items():
                if v:
                    out[d] = out.get(d, 0) + v
            if held.per_worker.gpu:
                kind = f"gpu:{nodes[name].gpu_kind}"
                out[kind] = out.get(kind, 0) + held.per_worker.gpu
        return out


def to_first_stop(decisions: list[Decision]) -> list[Decision]:
    """Leave out who is only told why it waits, and what comes after somebody was stopped.

    What that frees wakes others in the next plan, which follows at once, while a new core never slept.
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
        self.ledger = Ledger()

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

    def check_those_before(self, gone: WaitingJob, before: Snapshot) -> None:
        """Without a waiting job, those that stand before it start as they did with it."""
        if self.policy.preemption or self.policy.name == "finish":
            return
        key = job_key(gone, self.policy)
        ahead = {
            j.uid
            for j in self.ledger.waiting.values()
            if job_key(j, self.policy) < key and (j.tenant == gone.tenant or is_one_queue(self.policy))
        }
        after = replace(before, waiting=tuple(j for j in before.waiting if j.uid != gone.uid))
        plans = [Core.of(s, self.now).plan(self.now) for s in (before, after)]
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

    @rule(data=st.data(), cpu=maybe, gpu=maybe)
    def quota(self, data: st.DataObject, cpu: int | None, gpu: int | None) -> None:
        name = data.draw(st.sampled_from(list(self.tenants)))
        self.tenants[name] = replace(self.tenants[name], quota=limits(cpu, gpu) or Quota())
        self.core.set_tenant(self.tenants[name])
        self.settle()

    @rule(seconds=st.sampled_from((0.5, 1, 3, 10, 100)))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        wake = self.core.next_wake()
        if wake is not None and wake <= self.now:
            self.settle()

    @rule(policy=policies)
    def other_policy(self, policy: SchedulingPolicy) -> None:
        self.policy = policy
        self.core.set_policy(policy)
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
        rebuilt = Core.of(self.core.snapshot(self.now), self.now)
        decisions = self.core.plan(self.now)
        assert twins[0].plan(self.now) == decisions
        assert twins[1].plan(self.now) == decisions
        if self.policy.name != "finish":  # it keeps in mind whom it sent ahead
            self.compare(to_first_stop(rebuilt.plan(self.now)), to_first_stop(decisions))
        self.apply(decisions)
        return decisions

    def compare(self, rebuilt: list[Decision], decisions: list[Decision]) -> None:
        """A core made from nothing decides the same: what slept could really not start.

        But for those that could, or could make room, and were held back for one ahead of them: they are looked at again
        when something comes free, not when the one ahead waits for something else now. And those for whom a start of
        this very plan made the difference have their turn in the next one.
        """
        if rebuilt == decisions:
            return
        at = next(i for i, d in enumerate([*rebuilt, None]) if d != dict(enumerate(decisions)).get(i))
        held_back = {u for u, e in self.core.state.waiting.items() if e.cls.asleep is Asleep.ANYTHING}
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
        before = self.totals()
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
                assert new.gated is None
                assert new.workers_min <= d.workers <= new.workers_max
                assert len(d.placement) == d.workers + new.ps
                stopped_for = {p.uid: p.preemptor for p in decisions if isinstance(p, Preempt)}
                assert {u for u, by in stopped_for.items() if by == d.uid} <= set(d.after) <= set(stopped_for)
                grown = True
                running[d.uid] = (new, d.placement, d.devices)
            self.check_topology(d.uid)
            if grown:
                taken[d.uid] = None
        stopped = {d.uid: running.pop(d.uid) for d in decisions if isinstance(d, Preempt)}
        self.check_nodes(taken)
        self.check_quota(taken, before)
        running.update(stopped)
        assert {u: (r.placement, r.devices) for u, r in self.core.running.items()} == {
            u: held[1:] for u, held in running.items() if u not in stopped
        }

    def check_topology(self, uid: str) -> None:
        held, placement, _ = self.ledger.running[uid]
        if held.topology == "same-node":
            assert len(set(placement)) == 1
        if held.topology == "same-rack":
            assert len({self.nodes[name].labels["rack"] for name in placement}) == 1
        if held.gpu_kind and held.per_worker.gpu:
            assert {self.nodes[name].gpu_kind for name in placement} == {held.gpu_kind}

    def check_nodes(self, taken: dict[str, None]) -> None:
        for name, n in self.nodes.items():
            cpu, ram, gpus = self.ledger.on_node(name)
            assert cpu <= n.capacity.cpu
            assert ram <= n.capacity.ram
            assert all(v <= MILLI for v in gpus.values())
            assert all(number < n.capacity.gpu // MILLI for number in gpus)
        for uid in taken:
            if uid in self.ledger.running:
                assert all(self.nodes[name].up for name in self.ledger.running[uid][1])

    def tree(self) -> QuotaTree:
        tree = QuotaTree(self.tenants.values())
        for uid, (held, _, _) in self.ledger.running.items():
            tree.charge(held.tenant, self.ledger.vector(uid, self.nodes))
        return tree

    def totals(self) -> dict[tuple[str, str], int]:
        """Add up what each cohort without parents in it holds, by dimension."""
        out: dict[tuple[str, str], int] = {}
        for uid, (held, _, _) in self.ledger.running.items():
            for d, v in self.ledger.vector(uid, self.nodes).items():
                out["tenant " + held.tenant, d] = out.get(("tenant " + held.tenant, d), 0) + v
                cohort = self.tenants[held.tenant].cohort
                if cohort and getattr(self.tenants[held.tenant].quota, d, None) is not None:
                    out["cohort " + cohort, d] = out.get(("cohort " + cohort, d), 0) + v
        return out

    def check_quota(self, taken: dict[str, None], before: dict[tuple[str, str], int]) -> None:
        tree = self.tree()
        for uid in taken:
            if uid in self.ledger.running:
                tenant, vector = self.ledger.running[uid][0].tenant, self.ledger.vector(uid, self.nodes)
                tree.release(tenant, vector)
                assert not tree.excess(tenant, vector)
                tree.charge(tenant, vector)
        if any(t.parent for t in self.tenants.values()):
            return
        # in plain words, where there are no trees of parents
        for (who, d), now in self.totals().items():
            if now <= before.get((who, d), 0) or d.startswith("gpu:"):
                continue
            kind, name = who.split()
            if kind == "cohort":
                members = [t for t in self.tenants.values() if t.cohort == name]
                assert now <= sum(getattr(t.quota, d) or 0 for t in members)
                continue
            tenant = self.tenants[name]
            nominal = getattr(tenant.quota, d)
            if nominal is None:
                continue
            if tenant.cohort is None:
                assert now <= nominal
            elif tenant.borrowing_limit is not None and getattr(tenant.borrowing_limit, d) is not None:
                assert now <= nominal + getattr(tenant.borrowing_limit, d)

    @invariant()
    def the_queue_is_known(self) -> None:
        if hasattr(self, "ledger"):
            assert all(self.core.is_waiting(uid) for uid in self.ledger.waiting)


TestCore = CoreMachine.TestCase
TestCore.settings = settings(max_examples=100, stateful_step_count=25, deadline=None, derandomize=True)


# --- a tenant inside its nominal quota gets it back

CORES = 12

owners = st.lists(
    st.tuples(
        st.none() | st.integers(0, 6),  # nominal
        st.sampled_from((None, "x", "x")),
        st.none() | st.integers(0, 6),  # borrowing limit
        st.none() | st.integers(0, 3),  # lending limit
    ),
    min_size=2,
    max_size=4,
)
asks = st.lists(
    st.tuples(
        st.integers(0, 3),  # tenant
        st.integers(1, 6),  # workers of one core
        st.sampled_from((50, 100, 200)),
        st.integers(0, 3),  # more workers, if there is room
        st.booleans(),  # whether something ends first
    ),
    min_size=1,
    max_size=14,
)


@given(owners, asks, st.sampled_from(POLICIES), st.booleans())
@settings(deadline=None)
def test_a_tenant_inside_its_nominal_quota_always_gets_it_back(
    owners: list[tuple[Any, ...]], asks: list[tuple[Any, ...]], name: str, backfill: bool
) -> None:
    assume(sum(nominal or 0 for nominal, _, _, _ in owners) <= CORES)
    tenants = [
        TenantQueue(
            NAMES[i],
            limits(nominal, None) or Quota(),
            cohort=cohort,
            borrowing_limit=limits(borrowing, None),
            lending_limit=limits(lending, None),
        )
        for i, (nominal, cohort, borrowing, lending) in enumerate(owners)
    ]
    nominal = {t.name: t.quota.cpu for t in tenants}
    policy = SchedulingPolicy(name=name, backfill=backfill)
    core = Core(policy, (node(cpu=CORES, ram=99_999),), tenants)
    known: dict[str, WaitingJob] = {}
    waiting: dict[str, WaitingJob] = {}
    for now, (i, workers, priority, more, ends) in enumerate(asks):
        if ends and core.running:
            core.end(next(iter(core.running)), now)
        new = job(
            f"{now:02d}",
            workers,
            at=float(now),
            tenant=tenants[i % len(tenants)].name,
            priority=priority,
            workers_max=workers + more,
        )
        core.submit(new)
        known[new.uid] = waiting[new.uid] = new
        while True:
            decisions = core.plan(float(now))
            stopped = [d.uid for d in decisions if isinstance(d, Preempt)]
            for d in decisions:
                if isinstance(d, Admit):
                    del waiting[d.uid]
            for uid in stopped:
                waiting[uid] = known[uid]
                core.submit(known[uid])
            if not stopped:
                break
        for t in tenants:
            used = sum(r.workers * MILLI for r in core.running.values() if r.job.tenant == t.name)
            line = [j for j in waiting.values() if j.tenant == t.name]
            first = min(line, key=lambda j: job_key(j, policy), default=None)
            own = nominal[t.name]
            if first is not None and own is not None:
                assert used + first.workers_min * MILLI > own, (t.name, first.uid)


# --- nobody waits for ever

backlogs = st.lists(
    st.fixed_dictionaries(
        {
            "tenant": st.sampled_from(("a", "b", "c")),
            "workers": st.integers(1, 8).map(lambda n: 2 * n),
            "duration": st.integers(1, 15),
            "priority": st.sampled_from(("low", "normal", "high")),
            "estimate": st.none() | st.integers(1, 30),
            "topology": st.sampled_from((None, None, "preferred:rack")),
            "submit": st.integers(0, 40),
        }
    ),
    min_size=1,
    max_size=5,
)


@given(
    backlogs,
    st.sampled_from(POLICIES),
    st.booleans(),
    st.booleans(),
    st.none() | st.sampled_from((5, 10, 20)),
    st.sampled_from(("low", "high")),
)
@settings(max_examples=10, deadline=None, derandomize=True)
def test_nobody_waits_for_ever_beside_an_endless_stream_of_small_jobs(
    backlog: list[dict[str, Any]],
    name: str,
    backfill: bool,
    preemption: bool,
    estimate: float | None,
    priority: str,
) -> None:
    """The stream asks for a quarter more than there is, all the time, and the backlog ends all the same."""
    stream = {"name": "s", "tenant": "a", "duration": 10, "count": 1200, "every": 0.5}
    scenario = {
        "version": 1,
        "policy": {"name": name, "backfill": backfill, "preemption": preemption, "aging_s": 0.2},
        "nodes": [{"name": "n", "count": 2, "cpu": 8}],
        "tenants": [{"name": t} for t in "abc"],
        "jobs": [
            {**stream, "estimate": estimate, "priority": priority},
            *({"name": f"large-{i}", **job} for i, job in enumerate(backlog)),
        ],
        "until": 600,
    }
    lines = list(Simulation(read_value(scenario)).lines())
    ended = {line["job"] for line in lines[:-1] if line["event"] == "finished"}
    assert {f"large-{i}" for i in range(len(backlog))} <= ended
