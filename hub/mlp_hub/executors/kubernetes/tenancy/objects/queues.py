"""A tenant's queue in Volcano, where a cluster has that."""

from __future__ import annotations

from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made, made
from mlp_hub.kubernetes.kinds import QUEUES


def queue(at: Installation, tenant: str) -> Made:
    """Return the queue, named as the namespace; it only keeps tenants apart.

    The order of jobs was decided before.
    """
    return made(QUEUES, at, at.namespace_of(tenant), tenant, spec={"weight": 1, "reclaimable": False})
