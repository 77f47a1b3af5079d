"""Amounts by dimension."""

from __future__ import annotations

from mlp_hub.domain.resources import Quota, Resources
from mlp_hub.scheduler.model.demand import Demand
from mlp_hub.scheduler.model.resources import limits_of, resources_of, vector_of, vector_of_ranks


def test_an_amount_becomes_a_vector_without_zeroes_and_the_vector_that_amount() -> None:
    amount = Resources(2000, 3000, 0, 7, (("a100", 3000),))
    vector = {"cpu": 2000, "gpu": 3000, "rom": 7, "gpu:a100": 3000}
    assert vector_of(amount) == vector
    assert resources_of(vector) == amount


def test_ranks_take_gpus_of_a_kind_only_where_they_ask_for_it() -> None:
    assert vector_of_ranks(Demand(cpu=500, whole=1, part=500), 2) == {"cpu": 1000, "gpu": 3000}
    assert vector_of_ranks(Demand(ram=10, whole=1, gpu_kind="a100"), 3) == {
        "ram": 30,
        "gpu": 3000,
        "gpu:a100": 3000,
    }


def test_a_quota_limits_only_what_it_names() -> None:
    assert limits_of(None) == {}
    assert limits_of(Quota(cpu=0, kinds={"h100": 1, "a100": 2})) == {"cpu": 0, "gpu:a100": 2, "gpu:h100": 1}
