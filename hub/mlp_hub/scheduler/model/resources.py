"""Amounts by dimension: the units of quotas.

The dimensions are those of `Resources`, and `gpu:KIND` for the GPUs of one kind, which also count
under `gpu`.
"""

from __future__ import annotations

from collections.abc import Mapping

from mlp_hub.domain.dimensions import WITHIN
from mlp_hub.domain.resources import Quota, Resources, amount_of
from mlp_hub.scheduler.model.demand import Demand

Vector = Mapping[str, int]
"""Amounts by dimension, and by `gpu:KIND`. Zeroes may be left out."""


def vector_of(amount: Resources) -> dict[str, int]:
    """Return an amount as a vector, without zeroes."""
    vector = {dimension: value for dimension, value in amount.items() if value}
    if amount.kinds:
        vector.update({f"gpu:{kind}": value for kind, value in amount.kinds if value})
    return vector


def vector_of_ranks(demand: Demand, ranks: int) -> dict[str, int]:
    """Return the amounts of a quota that `ranks` ranks take, without zeroes, before the kind of GPU is known."""
    vector = {}
    if demand.cpu:
        vector["cpu"] = demand.cpu * ranks
    if demand.ram:
        vector["ram"] = demand.ram * ranks
    if demand.rom:
        vector["rom"] = demand.rom * ranks
    if demand.amounts:
        vector.update([(dimension, amount * ranks) for dimension, amount in demand.amounts])
    if gpu := demand.gpu:
        vector["gpu"] = gpu * ranks
        if demand.gpu_kind:
            vector[f"gpu:{demand.gpu_kind}"] = gpu * ranks
    return vector


def resources_of(vector: Vector) -> Resources:
    """Return a vector as an amount."""
    return amount_of(vector)


def part(amount: Resources, dimension: str) -> int:
    """Return one dimension of an amount, `gpu:KIND` too."""
    return amount.part(dimension)


def placed(amount: Resources) -> list[tuple[str, int]]:
    """Return (dimension, amount) of all that nodes count: parts of memory are not counted again."""
    return [(d, v) for d, v in amount.items() if d not in WITHIN]


def limits_of(quota: Quota | None) -> dict[str, int]:
    """Return the limits of a quota by dimension, its kinds of GPU by name; unlimited dimensions are left out."""
    if quota is None:
        return {}
    limits = dict(quota.items())
    limits.update((f"gpu:{kind}", v) for kind, v in sorted(quota.kinds.items()))
    return limits
