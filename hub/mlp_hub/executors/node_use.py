"""Real use of nodes, as the kernel, the devices or a cluster's metrics API count it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Use of one GPU. `utilization` is the part of time in which it computed, from 0 to 1, None where that is not measured; sizes are bytes."""

    index: int
    utilization: float | None
    memory_used: int
    memory_total: int
    temperature_c: float | None = None
    power_w: float | None = None


@dataclass(frozen=True, slots=True)
class NodeUse:
    """Use of one node; a part that cannot be read is empty or None.

    `cpu_s` is processor time by mode since the node began, in seconds; `cpu` is cores in use now, where only that is measured.
    Sizes are bytes. `received` and `sent` are bytes since the
    node began, over all interfaces except loopback.
    """

    node: str
    cpu_s: Mapping[str, float] = field(default_factory=dict)
    cpu: float | None = None
    memory_total: int | None = None
    memory_available: int | None = None
    disk_total: int | None = None
    disk_available: int | None = None
    received: int | None = None
    sent: int | None = None
    gpus: tuple[GpuUse, ...] = ()
