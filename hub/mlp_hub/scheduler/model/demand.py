"""Demand of one rank on a node, down to whole and shared GPUs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from mlp_hub.domain.resources import MILLI, Resources


@dataclass(frozen=True)
class Demand:
    """One rank's needs: cpu (m), ram (MiB), rom (bytes), `whole` GPUs and `part` thousandths of one more.

    `gpu_kind` None takes any kind. `tenant` is set where the cluster keeps nodes for single tenants
    (taints).
    """

    cpu: int = 0
    ram: int = 0
    rom: int = 0
    whole: int = 0
    part: int = 0
    gpu_kind: str | None = None
    tenant: str | None = None

    @classmethod
    def from_resources(
        cls, per_rank: Resources, gpu_kind: str | None = None, tenant: str | None = None
    ) -> Demand:
        """Read the needs of a rank; a kind counts only where a GPU is asked for."""
        whole, part = divmod(per_rank.gpu, MILLI)
        kind = gpu_kind if per_rank.gpu else None
        return cls(per_rank.cpu, per_rank.ram, per_rank.rom, whole, part, kind, tenant)

    @cached_property
    def gpu(self) -> int:
        """Return the thousandths of GPUs."""
        return self.whole * MILLI + self.part

    @cached_property
    def resources(self) -> Resources:
        """Return the needs as plain resources."""
        return Resources(self.cpu, self.gpu, self.ram, self.rom)

    @cached_property
    def _hash(self) -> int:
        return hash((self.cpu, self.ram, self.rom, self.whole, self.part, self.gpu_kind, self.tenant))

    def __hash__(self) -> int:
        return self._hash  # asked for many times in each decision
