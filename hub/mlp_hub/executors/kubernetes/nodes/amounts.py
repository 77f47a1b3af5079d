"""Amounts of nodes and pods, in the smallest units that the cluster counts in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mlp_hub.domain.resources import MILLI, Resources
from mlp_hub.executors.kubernetes.nodes.devices import is_gpu
from mlp_hub.kubernetes.quantities import milli, whole

MIB = 1 << 20
"""Given: bytes of the unit in which the hub counts memory."""


class NodeAmount(NamedTuple):
    """Thousandths of processors, bytes of memory and of the node's disk, and GPUs by the resource that they are.

    No counted dimension is on nodes yet. The first one needs a field here, which sums, and `resources_of`, pass on.
    """

    cpu: int = 0
    ram: int = 0
    rom: int = 0
    devices: tuple[tuple[str, int], ...] = ()

    def plus(self, other: NodeAmount, sign: int = 1) -> NodeAmount:
        """Return the sum, or with a sign of -1 the difference."""
        devices = self.devices
        if other.devices:
            total = dict(devices)
            for name, n in other.devices:
                total[name] = total.get(name, 0) + sign * n
            devices = _sorted(total)
        return NodeAmount(
            self.cpu + sign * other.cpu, self.ram + sign * other.ram, self.rom + sign * other.rom, devices
        )

    def or_more(self, other: NodeAmount) -> NodeAmount:
        """Return of each the larger."""
        devices = self.devices
        if other.devices:
            mine = dict(devices)
            devices = _sorted(mine | {name: max(n, mine.get(name, 0)) for name, n in other.devices})
        return NodeAmount(
            max(self.cpu, other.cpu), max(self.ram, other.ram), max(self.rom, other.rom), devices
        )

    def resources_of(self, device: str | None, kind: str | None) -> Resources:
        """Return it as the hub counts, of devices this one alone, and nothing below zero."""
        gpu = max(0, dict(self.devices).get(device, 0)) * MILLI if device else 0
        kinds = ((kind, gpu),) if kind and gpu else ()
        return Resources(max(0, self.cpu), gpu, max(0, self.ram) // MIB, max(0, self.rom), kinds)


NONE = NodeAmount()


def amount_of(found: Mapping[str, Any] | None) -> NodeAmount:
    """Parse amounts as the API lists them; amounts that the hub does not give out are left out."""
    if not found:
        return NONE
    return NodeAmount(
        milli(found.get("cpu", "0")),
        whole(found.get("memory", "0")),
        whole(found.get("ephemeral-storage", "0")),
        _sorted({name: whole(n) for name, n in found.items() if is_gpu(name)}),
    )


def _sorted(devices: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, n) for name, n in devices.items() if n)) if devices else ()
