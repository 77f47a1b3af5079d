"""Who borrows is known without looking at all tenants, and is what looking at all of them would find."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.fairness.overshare import Overshare
from mlp_hub.scheduler.model.types import (
    AdmittedWorkload,
    Node,
    PendingWorkload,
    SchedulingPolicy,
    TenantQueue,
)

NAMES = ("a", "b", "c", "d")
steps = st.lists(
    st.tuples(
        st.sampled_from(("start", "end", "quota", "used", "cohort", "fork", "gone")),
        st.sampled_from(NAMES),
        st.integers(0, 4),
    ),
    max_size=25,
)


def borrowers(state: ClusterState, root: str, dimension: str) -> list[str]:
    return sorted(t for t in state.quotas.tenants(root) if state.quotas.borrows(t, (dimension,)))


@given(steps)
def test_borrowers_are_found_after_any_sequence_of_changes(told) -> None:
    tenants = {n: TenantQueue(n, Quota(cpu=2000, ram=10), cohort="main") for n in NAMES}
    node = Node("n", Resources(cpu=10**6, ram=10**6))
    state = ClusterState(SchedulingPolicy(), (node,), tenants.values())
    running: list[tuple[str, str]] = []
    for i, (what, name, n) in enumerate(told):
        before = tenants.get(name)
        if what == "start" and before is not None:
            job = PendingWorkload(f"j{i}", "j", "u", name, Resources(cpu=1000 * n + 1, ram=n), 1, 1, 0.0)
            state.hold(AdmittedWorkload(job, ("n",), 0.0), force=True)
            running.append((job.uid, name))
        elif what == "end" and running:
            state.give_back(running.pop(n % len(running))[0])
        elif what == "gone" and before is not None and name not in [t for _, t in running]:
            state.remove_tenant(name)
            del tenants[name]
        elif what == "fork":
            state = state.fork()
        else:
            change = {
                "quota": {"quota": Quota(cpu=1000 * n, ram=10)},
                "used": {"used": Resources(cpu=1500 * n, ram=4 * n)},
                "cohort": {"cohort": "main" if n % 2 else "other"},
            }.get(what)
            if change is None:
                continue
            old = before or TenantQueue(name, Quota(cpu=2000, ram=10), cohort="main")
            kept = {"quota": old.quota, "used": old.used, "cohort": old.cohort, **change}
            tenants[name] = TenantQueue(name, **kept)
            state.set_tenants((tenants[name],))
        if i % 2:
            for root in ("main", "other"):
                for dimension in ("cpu", "ram"):
                    assert state.borrowers(root, dimension) == borrowers(state, root, dimension)
    for root in ("main", "other"):
        assert state.borrowers(root, "cpu") == borrowers(state, root, "cpu")
    holders = state.running.preemptible
    anew = Overshare(state.quotas, state.meter, state.queues)
    assert state.fork().overshare.line(holders) == state.overshare.line(holders) == anew.line(holders)
