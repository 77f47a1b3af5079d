"""Rights that who keeps the tenants needs in the cluster, what each is for, and which of them are lacking."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from mlp_hub.executors.kubernetes.tenancy.objects.members import RULES
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import Kind
from mlp_language.message import Message, msg

KEEP = ("get", "list", "watch", "patch", "create", "delete")
"""Given: verbs of a process that applies objects, watches them, and removes them."""


@dataclass(frozen=True, slots=True)
class Need:
    """Verbs on a kind of objects, and what for."""

    kind: Kind
    verbs: tuple[str, ...]
    purpose: Message


NEEDS = (
    Need(kinds.NAMESPACES, KEEP, msg("each team has a namespace")),
    Need(
        kinds.NETWORK_POLICIES,
        KEEP,
        msg("pods reach their own job, the hub, and the addresses that their team may reach"),
    ),
    Need(kinds.SERVICE_ACCOUNTS, KEEP, msg("pods of teams have no token of the cluster")),
    Need(kinds.RESOURCE_QUOTAS, KEEP, msg("a second limit behind the quota")),
    Need(kinds.LIMIT_RANGES, KEEP, msg("containers without requests count too")),
    Need(kinds.PERSISTENT_VOLUMES, KEEP, msg("the volume of all files, in each namespace")),
    Need(kinds.PERSISTENT_VOLUME_CLAIMS, KEEP, msg("the volume of all files, in each namespace")),
    Need(kinds.ROLES, KEEP, msg("rights of members who come with kubectl")),
    Need(kinds.ROLE_BINDINGS, KEEP, msg("rights of members who come with kubectl")),
    Need(kinds.PRIORITY_CLASSES, KEEP, msg("the order in which a node ends pods when it runs out of memory")),
    Need(kinds.ADMISSION_POLICIES, KEEP, msg("nobody but the hub starts pods in teams' namespaces")),
    Need(kinds.ADMISSION_BINDINGS, KEEP, msg("nobody but the hub starts pods in teams' namespaces")),
    Need(kinds.NODES, ("list", "watch"), msg("no pod of a team reaches a node's address")),
    Need(kinds.ENDPOINT_SLICES, ("get",), msg("no pod of a team reaches the cluster's API")),
    Need(
        kinds.PODS,
        ("list", "create"),
        msg("an empty namespace is removed; the policies are tested"),
    ),
    Need(kinds.CONFIG_MAPS, ("list",), msg("an empty namespace is removed")),
)
"""Contract: rights that the hub needs in the cluster.

To give rights to members, the hub must have them too; `lacking` checks for those as well.
"""
QUEUES = Need(kinds.QUEUES, KEEP, msg("each team has a Volcano queue"))
"""Contract: additional rights in a cluster with Volcano."""


async def lacking(client: KubernetesClient, needs: Sequence[Need] = NEEDS) -> list[Message]:
    """Name what who asks with this client may not, each with its verb and what it is for; nothing where all is given."""
    asked = [
        (need.kind.api_version, need.kind.plural, verb, need.purpose) for need in needs for verb in need.verbs
    ]
    members = msg("the hub may give members only rights that it has")
    for rule in RULES:
        version = f"{rule['apiGroups'][0]}/" if rule["apiGroups"][0] else ""
        asked += [(version, each, verb, members) for each in rule["resources"] for verb in rule["verbs"]]
    answers = await asyncio.gather(
        *(_may(client, version, plural, verb) for version, plural, verb, _ in asked)
    )
    return [
        msg("the hub may not {verb} {plural}: {purpose}", verb=verb, plural=plural, purpose=purpose)
        for (_, plural, verb, purpose), may in zip(asked, answers, strict=True)
        if not may
    ]


async def _may(client: KubernetesClient, version: str, plural: str, verb: str) -> bool:
    group, _, _ = version.rpartition("/")
    resource, _, part = plural.partition("/")
    about = {"verb": verb, "group": group, "resource": resource, "subresource": part}
    found = await client.review(kinds.ACCESS_REVIEWS, spec={"resourceAttributes": about})
    return bool(found["allowed"])
