"""The next job of a class has its turn at once where one of it was admitted, and only there."""

from __future__ import annotations

import pytest

from mlp_hub.scheduler.cache.state import ClusterState
from mlp_hub.scheduler.core import Core
from mlp_hub.scheduler.cycle.nominate import Nominees
from support.scheduler.scheduler_builders import job, snapshot


def state() -> ClusterState:
    state = Core.from_snapshot(snapshot(*(job(f"j{n}", at=n) for n in range(3))), 10.0).state
    state.begin_cycle(10.0)
    return state


@pytest.mark.parametrize("admits", [True, False])
def test_the_outcome_of_a_nominee_is_passed_on_and_not_inferred_from_the_remaining_number(
    admits: bool,
) -> None:
    found = state()
    nominees = Nominees(found)
    seen = []
    for entry in nominees:
        seen.append(entry.job.uid)
        found.withdraw(entry.job.uid, served=admits)
        if admits:
            nominees.note_admission()
    assert seen == (["j0", "j1", "j2"] if admits else ["j0"])
