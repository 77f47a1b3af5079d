"""Teams' namespaces that an administrator made, for a hub that may make none: messages about missing parts."""

from __future__ import annotations

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.installation import FILES_CLAIM, Installation
from mlp_hub.executors.kubernetes.tenancy.objects.namespaces import SECURITY
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import labels_of
from mlp_language.message import Message, msg

KEPT = (
    kinds.NETWORK_POLICIES,
    kinds.SERVICE_ACCOUNTS,
    kinds.RESOURCE_QUOTAS,
    kinds.LIMIT_RANGES,
)
"""Contract: kinds that are made for tenants there. Roles of members are not among them: without admission policies, which need
rights in the whole cluster, members could start pods past the hub."""


def labels(at: Installation, tenant: str) -> dict[str, str]:
    """Return the labels that the namespace of a tenant has: policies select by them, and pods are limited."""
    enforced = {key: value for key, value in SECURITY.items() if key.endswith("/enforce")}
    return {**at.marks, names.TENANT: names.label_value(tenant), **enforced}


def command(at: Installation, tenant: str) -> str:
    """Return the command that makes the namespace of a tenant with its labels."""
    name = at.namespace_of(tenant)
    given = " ".join(f"{key}={value}" for key, value in labels(at, tenant).items())
    return f"kubectl create namespace {name} && kubectl label namespace {name} {given}"


def not_listed(at: Installation, tenant: str) -> Message | None:
    """Say that a tenant has no namespace, where the hub may make none; None where it has one."""
    name = at.namespace_of(tenant)
    if not at.namespaces or name in at.namespaces:
        return None
    return msg(
        "team {team} has no namespace in the cluster, and this hub may not make one: ask an administrator to run `{command}`, and to add {namespace} to rbac.namespaces of the chart",
        team=tenant,
        command=command(at, tenant),
        namespace=name,
    )


async def check(client: KubernetesClient, at: Installation, tenant: str) -> None:
    """Raise `MessageError` unless the namespace of a tenant is there, with all that the hub may not make."""
    if (lacks := not_listed(at, tenant)) is not None:
        raise MessageError(lacks)
    name, wanted = at.namespace_of(tenant), labels(at, tenant)
    found = await client.get(kinds.NAMESPACES, name)
    if found is None:
        raise MessageError(
            msg(
                "namespace {namespace} of team {team} does not exist: an administrator makes it by `{command}`",
                namespace=name,
                team=tenant,
                command=command(at, tenant),
            )
        )
    has = labels_of(found)
    if missing := [f"{key}={value}" for key, value in wanted.items() if has.get(key) != value]:
        raise MessageError(
            msg(
                "namespace {namespace} of team {team} lacks labels: an administrator adds them by `kubectl label --overwrite namespace {namespace} {labels}`",
                namespace=name,
                team=tenant,
                labels=" ".join(missing),
            )
        )
    if await client.get(kinds.PERSISTENT_VOLUME_CLAIMS, FILES_CLAIM, name) is None:
        raise MessageError(
            msg(
                "namespace {namespace} of team {team} has no claim {claim}: an administrator makes it, bound to the volume of all files",
                namespace=name,
                team=tenant,
                claim=FILES_CLAIM,
            )
        )
