"""The token that a tenant's pod could have, tried on everything that the API has: nothing is granted, there or elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ForbiddenError
from mlp_hub.kubernetes.kinds import Kind
from support.cluster.kube import Kube
from support.cluster.pods import pod
from support.cluster.service_at_work import RED
from support.cluster.tenancy import connect_as, running_rig

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
ABOUT_ONESELF = {"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}
"""What everybody may ask: who they are, and what they may."""
MORE = (
    ("", "pods/exec"), ("", "pods/attach"), ("", "pods/portforward"), ("", "pods/proxy"), ("", "pods/log"), ("", "pods/ephemeralcontainers"),
    ("", "pods/eviction"), ("", "pods/binding"), ("", "services/proxy"), ("", "nodes/proxy"), ("", "serviceaccounts/token"),
    ("certificates.k8s.io", "certificatesigningrequests/approval"),
)  # fmt: skip
LEASES = Kind("coordination.k8s.io/v1", "Lease", "leases")


def all_resources(kube: Kube) -> list[tuple[str, str]]:
    """Return all kinds of objects that the API has, with their groups."""
    found = []
    for line in kube("api-resources", "--no-headers", "-o", "name").split():
        plural, _, group = line.partition(".")
        found.append((group, plural))
    return [*found, *MORE]


async def granted(client: KubernetesClient, kube: Kube, namespaces: tuple[str, ...]) -> list[str]:
    """Return all that the API grants to a client, of everything that it has."""

    async def may(group: str, resource: str, verb: str, namespace: str) -> str:
        plural, _, part = resource.partition("/")
        about = {
            "group": group,
            "resource": plural,
            "subresource": part,
            "verb": verb,
            "namespace": namespace,
        }
        said = await client.review(kinds.ACCESS_REVIEWS, spec={"resourceAttributes": about})
        return f"{verb} {resource}.{group} in {namespace or 'all'}" if said["allowed"] else ""

    asked = [
        may(group, resource, verb, namespace)
        for group, resource in await asyncio.to_thread(all_resources, kube)
        if resource not in ABOUT_ONESELF
        for verb in (*VERBS, "impersonate", "escalate", "bind")
        for namespace in namespaces
    ]
    return [said for said in await asyncio.gather(*asked) if said]


async def is_forbidden(attempt: Callable[[], Awaitable[Any]]) -> bool:
    """Whether the API refuses a real call for want of a right."""
    try:
        await attempt()
    except ForbiddenError as refusal:
        return refusal.rights
    return False


async def test_the_token_of_a_tenants_account_is_good_for_nothing(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        space = own.at.namespace_of("red")
        token = await asyncio.to_thread(kube, "-n", space, "create", "token", "default")
        client = await connect_as(kube, token.strip())
        try:
            assert await granted(client, kube, (space, own.at.namespace, "kube-system", "")) == []
            tries: dict[str, Callable[[], Awaitable[Any]]] = {
                "secrets": lambda: client.list(kinds.SECRETS, space),
                "secrets of the platform": lambda: client.list(kinds.SECRETS, own.at.namespace),
                "config maps": lambda: client.list(kinds.CONFIG_MAPS, space),
                "pods": lambda: client.list(kinds.PODS, space),
                "a pod": lambda: client.create({**pod("x"), "metadata": {"name": "x", "namespace": space}}, kinds.PODS),
                "a job": lambda: client.create(kinds.JOBS.named("x", space, spec={}), kinds.JOBS),
                "exec": lambda: client.read(f"{kinds.PODS.path(space, 'x')}/exec", {"command": "id"}),
                "log": lambda: client.read(f"{kinds.PODS.path(space, 'x')}/log"),
                "namespaces": lambda: client.list(kinds.NAMESPACES),
                "a namespace": lambda: client.create(kinds.NAMESPACES.named(f"{own.at.name}-evil"), kinds.NAMESPACES),
                "leases": lambda: client.list(LEASES, own.at.namespace),
                "nodes": lambda: client.list(kinds.NODES),
                "a node's kubelet": lambda: client.read("/api/v1/nodes/x/proxy/pods"),
                "policies": lambda: client.delete(kinds.NETWORK_POLICIES, "mlp-closed", space),
                "its own quota": lambda: client.patch(kinds.RESOURCE_QUOTAS, "mlp-limits", {"spec": {"hard": {}}}, space),
                "a role": lambda: client.create(kinds.ROLES.named("x", space, rules=[]), kinds.ROLES),
                "volumes": lambda: client.list(kinds.PERSISTENT_VOLUMES),
            }  # fmt: skip
            assert [what for what, attempt in tries.items() if not await is_forbidden(attempt)] == []
        finally:
            await client.close()


async def test_no_pod_of_a_tenant_mounts_that_token_by_itself(kube: Kube) -> None:
    async with running_rig(kube) as own:
        await own.keep(RED)
        space = own.at.namespace_of("red")

        async def account() -> Any:
            return await own.client.get(kinds.SERVICE_ACCOUNTS, "default", space)

        found = await own.until(account, "the account")
        assert found["automountServiceAccountToken"] is False
