"""What the kept core is told of tenants that come and go."""

from __future__ import annotations

from mlp_hub.scheduler.model.types import SchedulingPolicy, Snapshot
from mlp_hub.service.admission.backoff import JobBackoff
from mlp_hub.service.admission.cache import KeptCore
from support.scheduler.scheduler_builders import node, tenant


def test_a_tree_of_tenants_that_goes_at_once_is_taken_down_from_its_leaves() -> None:
    tree = (tenant("root"), *(tenant(f"d{n}", parent="root" if not n else f"d{n - 1}") for n in range(5)))
    kept = KeptCore(Snapshot((node(),), tree, (), (), SchedulingPolicy()), 0.0, {}, JobBackoff(1.0, 2.0))
    assert kept.tenants_are(tree[:1])
    assert set(kept.core.state.queues) == {"root"}
    assert not kept.tenants_are(tree[:1])
