"""What a point of a metric looks like on the wire, whichever number a program reported."""

from __future__ import annotations

import pytest

from mlp_hub.api.resources.jobs.metrics import shown


@pytest.mark.parametrize(
    ("reported", "told"), [(3, 3), (3.0, 3), (2.5, 2.5), (float("inf"), float("inf")), (0, 0)]
)
def test_whole_epochs_are_whole_numbers(reported: float, told: float) -> None:
    point = {"seq": 1, "rank": 0, "time": 1.0, "values": {"epoch": reported, "loss": 1, "acc": 2}}
    found = shown("ann", "digits", point)
    assert (found.epoch, type(found.epoch), found.loss, found.values) == (told, type(told), 1, {"acc": 2})
