"""What every tenant may rely on, whatever the policy: its nominal quota, and that nobody waits for ever."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st

from mlp_hub.domain.resources import MILLI, Quota
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.model.types import Admit, PendingWorkload, Preempt, SchedulingPolicy, TenantQueue
from mlp_hub.scheduler.policy import DEFAULT_ORDER, POLICIES, job_key
from mlp_hub.simulate.engine import Simulation
from mlp_hub.simulate.scenario_reader import read_value
from support.scheduler.core_strategies import NAMES, limits
from support.scheduler.scheduler_builders import job, node

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


@given(owners, asks, st.sampled_from(list(POLICIES)), st.booleans())
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
    known: dict[str, PendingWorkload] = {}
    waiting: dict[str, PendingWorkload] = {}
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
            first = min(line, key=lambda j: job_key(j, policy, DEFAULT_ORDER), default=None)
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


@pytest.mark.parametrize("name", POLICIES)
@given(
    backlogs,
    st.booleans(),
    st.booleans(),
    st.none() | st.sampled_from((5, 10, 20)),
    st.sampled_from(("low", "high")),
)
# not shrunk: that takes minutes, and three lines of a scenario read well enough
@settings(max_examples=3, deadline=None, derandomize=True, phases=[Phase.generate])
def test_nobody_waits_for_ever_beside_an_endless_stream_of_small_jobs(
    name: str,
    backlog: list[dict[str, Any]],
    backfill: bool,
    preemption: bool,
    estimate: float | None,
    priority: str,
) -> None:
    """The stream asks for a quarter more than there is, all the time, and the backlog ends all the same."""
    stream = {"name": "s", "tenant": "a", "duration": 10, "count": 800, "every": 0.5}
    scenario = {
        "version": 1,
        "policy": {"name": name, "backfill": backfill, "preemption": preemption, "aging_s": 0.2},
        "nodes": [{"name": "n", "count": 2, "cpu": 8}],
        "tenants": [{"name": t} for t in "abc"],
        "jobs": [
            {**stream, "estimate": estimate, "priority": priority},
            *({"name": f"large-{i}", **job} for i, job in enumerate(backlog)),
        ],
        "until": 400,
    }
    lines = list(Simulation(read_value(scenario)).lines())
    ended = {line["job"] for line in lines[:-1] if line["event"] == "finished"}
    assert {f"large-{i}" for i in range(len(backlog))} <= ended
