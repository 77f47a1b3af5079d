"""Amounts that a tenant's pods may have together: a second line of defence behind the ledger, which decides."""

from __future__ import annotations

from mlp_hub.domain.resources import MILLI, Quota
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.nodes.devices import DEVICES
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made, made
from mlp_hub.kubernetes.kinds import LIMIT_RANGES, RESOURCE_QUOTAS

NAME = "mlp-limits"
GENERATIONS = 2
"""Safety: times a tenant's whole quota that its pods may ask for together. The ledger gives back what has ended; the cluster
counts its pods until they have gone. So both what ends and what starts in its place have to fit, all of it at once."""
UNTOLD = {"cpu": "100m", "memory": "64Mi"}
"""Safety: request of a container that says none, such as one that an operator adds: else a quota would refuse it."""


def resource_quota(at: Installation, tenant: str, most: Quota) -> Made:
    """Return the quota of its namespace, for a tenant with this limit, borrowed amounts included."""
    hard = {"services.loadbalancers": "0", "services.nodeports": "0"}
    if most.cpu is not None:
        hard["requests.cpu"] = f"{GENERATIONS * most.cpu}m"
    if most.ram is not None:
        hard["requests.memory"] = f"{GENERATIONS * most.ram}Mi"
    if most.gpu is not None:
        devices = -(-GENERATIONS * most.gpu // MILLI)
        hard |= {f"requests.{device}": str(devices) for device in DEVICES}
    return made(RESOURCE_QUOTAS, at, NAME, tenant, spec={"hard": dict(sorted(hard.items()))})


def limit_range(at: Installation, tenant: str) -> Made:
    """Return what containers ask for that do not say it."""
    limits = [{"type": "Container", "defaultRequest": dict(UNTOLD)}]
    return made(LIMIT_RANGES, at, NAME, tenant, spec={"limits": limits})
