"""Small clusters, tenants, policies and jobs for the core, drawn by hypothesis."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from mlp_hub.domain.resources import MILLI, Quota
from mlp_hub.scheduler.model.types import Node, PendingWorkload, SchedulingPolicy, TenantQueue
from mlp_hub.scheduler.policy import ORDERS, POLICIES
from support.scheduler.scheduler_builders import job, node

NAMES = ("a", "b", "c", "d")


def limits(cpu: int | None, gpu: int | None) -> Quota | None:
    if cpu is None and gpu is None:
        return None
    return Quota(
        cpu=None if cpu is None else cpu * MILLI,
        gpu=None if gpu is None else gpu * MILLI,
    )


amounts = st.none() | st.integers(0, 4)

reserved = st.sampled_from((None, None, None, limits(1, None), limits(2, 1)))


@st.composite
def tenants(draw: st.DrawFn) -> tuple[TenantQueue, ...]:
    """Draw a few tenants in trees; at least one has no quota at all in half of the draws."""
    out: list[TenantQueue] = []
    for name in NAMES[: draw(st.integers(1, len(NAMES)))]:
        quota = limits(draw(amounts), draw(amounts)) or Quota()
        out.append(
            TenantQueue(
                name,
                quota,
                weight=draw(st.sampled_from((1.0, 2.0))),
                parent=draw(st.sampled_from((None, None, *(t.name for t in out)))),
                cohort=draw(st.sampled_from((None, "x", "y"))),
                borrowing_limit=limits(draw(amounts), draw(amounts)),
                lending_limit=limits(draw(amounts), draw(amounts)),
                reserved=draw(reserved),
                queue_order=draw(st.sampled_from(list(ORDERS))),
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
    name=st.sampled_from(list(POLICIES)),
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
        "user": st.sampled_from(("ann", "ann", "bob", "cat")),
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
    }
)


def a_job(uid: str, at: float, shape: dict[str, Any]) -> PendingWorkload:
    shape = dict(shape)
    more = shape.pop("more")
    return job(uid, at=at, workers_max=shape["workers"] + more, **shape)
