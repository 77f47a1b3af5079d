"""Nodes as executors find them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Self

from mlp_hub.domain.resources import ZERO, Resources

TENANT = "tenant"
"""Key of the taint that leaves a node to the tenant that is its value."""


class Effect(StrEnum):
    """Effect of a taint on workloads that do not tolerate it."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


@dataclass(frozen=True, slots=True)
class Taint:
    """Taint that keeps workloads off a node."""

    key: str
    value: str = ""
    effect: Effect = Effect.NO_SCHEDULE

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read one as scenarios have it: `KEY=VALUE`, or the key alone."""
        key, _, value = text.partition("=")
        return cls(key, value)

    @property
    def closes(self) -> bool:
        """Whether new ranks may not be put there; `PreferNoSchedule` is a wish, and placement goes by its own."""
        return self.effect is not Effect.PREFER_NO_SCHEDULE

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key


class ConditionKind(StrEnum):
    """Kind of a node's fault."""

    NOT_READY = "NotReady"
    CORDONED = "Cordoned"
    MEMORY_PRESSURE = "MemoryPressure"
    DISK_PRESSURE = "DiskPressure"
    PID_PRESSURE = "PIDPressure"
    DRAINED = "Drained"  # an administrator of the platform took it out of service
    ABSENT = "Absent"  # it is not there, but the cluster could grow by it


@dataclass(frozen=True, slots=True)
class Condition:
    """Fault of a node; `message` is for the cluster's administrator."""

    kind: ConditionKind
    message: str = ""


@dataclass(frozen=True, slots=True)
class NodeInfo:
    """A node as found: `allocatable` is what may be given out, `capacity` what is really there.

    `others` is what others than the hub hold there now and may give back; `allocatable` is without it.

    `conditions` are what is wrong now; with any it takes no new rank, and ranks that run there stay. Taints that a cluster
    sets by itself while a condition lasts (`node.kubernetes.io/...`) are told as that condition.
    """

    name: str
    allocatable: Resources
    capacity: Resources
    gpu_kind: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    conditions: tuple[Condition, ...] = ()
    others: Resources = ZERO

    @property
    def at_most(self) -> Resources:
        """Amount to give out once others hold nothing, for the question whether a job can ever run there."""
        return self.allocatable if self.others.is_zero else self.allocatable + self.others

    @property
    def ready(self) -> bool:
        """Whether it answers."""
        return all(c.kind not in (ConditionKind.NOT_READY, ConditionKind.ABSENT) for c in self.conditions)

    @property
    def schedulable(self) -> bool:
        """Whether it takes new ranks, of those who tolerate its taints."""
        return not self.conditions

    def takes(self, tenant: str) -> bool:
        """Whether it takes new ranks and servers of this tenant, which tolerates the taint that leaves a node to it."""
        return self.schedulable and all(
            (taint.key, taint.value) == (TENANT, tenant) for taint in self.taints if taint.closes
        )


def kind_name(product: str) -> str:
    """Return the kind of a GPU by its product's name, as users write it: `nvidia-h100-80gb-hbm3`."""
    return re.sub(r"[^a-z0-9]+", "-", product.lower()).strip("-")
