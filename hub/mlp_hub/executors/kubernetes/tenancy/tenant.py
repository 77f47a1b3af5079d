"""All objects of one tenant in the cluster, and of all tenants, in the order of their creation."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mlp_hub.executors.base import TenantPlace
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.objects import files, limits, members, namespaces, network, queues
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import Made
from mlp_hub.executors.kubernetes.tenancy.objects.priorities import priority_classes
from mlp_hub.executors.kubernetes.tenancy.policies.admission import admission


def for_tenant(
    at: Installation, place: TenantPlace, near: Collection[str] = (), *, volcano: bool = False
) -> Sequence[Made]:
    """Return what a tenant has. Its doors are shut before anything can be put in, and people come last."""
    name = place.name
    if at.namespaces:  # the rest an administrator makes, or it needs rights in the whole cluster
        return [
            *network.policies(at, name, near),
            namespaces.account(at, name),
            limits.resource_quota(at, name, place.quota),
            limits.limit_range(at, name),
        ]
    return [
        namespaces.namespace(at, name),
        *network.policies(at, name, near),
        namespaces.account(at, name),
        limits.resource_quota(at, name, place.quota),
        limits.limit_range(at, name),
        files.volume(at, name),
        files.claim(at, name),
        *([queues.queue(at, name)] if volcano else []),
        members.role(at, name),
        *members.bindings(at, name, place.members),
    ]


def for_all(at: Installation, own: str) -> Sequence[Made]:
    """Return what all tenants need: before there is a namespace its policies hold. `own` is the keeper's name at the API."""
    return [] if at.namespaces else [*priority_classes(at), *admission(at, own)]
