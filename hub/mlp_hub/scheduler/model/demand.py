"""Demand of one rank on a node, down to whole and shared GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mlp_hub.domain.dimensions import MILLI, PLACED
from mlp_hub.domain.resources import Pairs, Resources

Rest = tuple[int, ...]
"""Amounts of the dimensions that nodes have besides cpu, ram and gpu, in the order of `PLACED`."""
NOTHING: Rest = (0,) * len(PLACED)


@dataclass(frozen=True)
class Demand:
    """One rank's needs: cpu (m), ram (MiB), rom (bytes), `whole` GPUs and `part` thousandths of one more.

    `gpu_kind` None takes any kind. `tenant` is set where the cluster keeps nodes for single tenants
    (taints). `amounts` are those of the counted dimensions.
    """

    cpu: int = 0
    ram: int = 0
    rom: int = 0
    whole: int = 0
    part: int = 0
    gpu_kind: str | None = None
    tenant: str | None = None
    amounts: Pairs = ()

    @classmethod
    def from_resources(
        cls, per_rank: Resources, gpu_kind: str | None = None, tenant: str | None = None
    ) -> Demand:
        """Read the needs of a rank; a kind counts only where a GPU is asked for."""
        whole, part = divmod(per_rank.gpu, MILLI)
        kind = gpu_kind if per_rank.gpu else None
        return cls(per_rank.cpu, per_rank.ram, per_rank.rom, whole, part, kind, tenant, per_rank.amounts)

    @cached_property
    def rest(self) -> Rest:
        """Return the amounts that it takes on nodes besides cpu, ram and gpu; empty where there are none."""
        rest = rest_of(self) if self.rom or self.amounts else ()
        return rest if any(rest) else ()

    @cached_property
    def gpu(self) -> int:
        """Return the thousandths of GPUs."""
        return self.whole * MILLI + self.part

    @cached_property
    def resources(self) -> Resources:
        """Return the needs as plain resources."""
        return Resources(self.cpu, self.gpu, self.ram, self.rom, amounts=self.amounts)

    @cached_property
    def _hash(self) -> int:
        return hash(
            (self.cpu, self.ram, self.rom, self.whole, self.part, self.gpu_kind, self.tenant, self.amounts)
        )

    def __hash__(self) -> int:
        return self._hash  # asked for many times in each decision


def rest_of(amount: Demand | Resources) -> Rest:
    """Return the amounts that nodes count besides cpu, ram and gpu."""
    if not amount.amounts:
        return (amount.rom, *NOTHING[1:])
    known = dict(amount.amounts)
    return (amount.rom, *[known.get(dimension, 0) for dimension in PLACED[1:]])


def with_rest(cpu: int, gpu: int, ram: int, rest: Rest) -> Resources:
    """Return amounts of nodes as resources."""
    amounts = (
        () if len(rest) == 1 else tuple([pair for pair in zip(PLACED[1:], rest[1:], strict=True) if pair[1]])
    )
    return Resources(cpu, gpu, ram, rest[0], amounts=amounts)


def rest_after(rest: Rest, each: Rest, ranks: int) -> Rest:
    """Return what is left with `ranks` more ranks that take `each`; a negative number gives back."""
    return tuple([have - ranks * one for have, one in zip(rest, each, strict=True)]) if each else rest
