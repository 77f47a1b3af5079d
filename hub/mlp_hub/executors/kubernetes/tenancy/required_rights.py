"""Rights that who keeps the tenants needs in the cluster, what each is for, and which of them are lacking."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlp_hub.executors.kubernetes.tenancy.objects.members import RULES
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import Kind
from mlp_language.message import Message, msg

LOOK = {
    "list": "their state at the start, and after an outage",
    "watch": "a change by others is noticed at once",
}
"""Given: verbs of a process that follows objects, with the reason of each."""
KEEP = {
    "get": "it is read before it is changed or removed",
    **LOOK,
    "patch": "a difference from the wanted state is corrected",
    "create": "a missing one is made",
    "delete": "it is removed when nobody needs it",
}
"""Given: verbs of a process that applies objects, watches them, and removes them, with the reason of each."""


@dataclass(frozen=True, slots=True)
class Need:
    """Verbs on a kind of objects, each with its reason, and their purpose; on one object only if it is named."""

    kind: Kind
    verbs: Mapping[str, str]
    purpose: Message
    name: str = ""
    namespace: str = ""  # of that object


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
    Need(kinds.NODES, LOOK, msg("no pod of a team reaches a node's address")),
    Need(
        kinds.ENDPOINT_SLICES,
        {"get": "the addresses of the cluster's API"},
        msg("no pod of a team reaches the cluster's API"),
        "kubernetes",
        "default",
    ),
    Need(
        kinds.PODS,
        {
            "list": "a namespace with pods stays",
            "create": "the admission policies are tried with one that they must refuse",
        },
        msg("an empty namespace is removed; the policies are tested"),
    ),
    Need(
        kinds.CONFIG_MAPS,
        {"list": "a namespace with records of attempts stays"},
        msg("an empty namespace is removed"),
    ),
)
"""Contract: rights that the hub needs in the cluster.

To give rights to members, the hub must have them too; `lacking` checks for those as well.
"""
QUEUES = Need(kinds.QUEUES, KEEP, msg("each team has a Volcano queue"))
"""Contract: additional rights in a cluster with Volcano."""
MEMBERS = msg("the hub may give members only rights that it has")


def of_members() -> list[Need]:
    """Return the rights that members get, and that the hub needs to give them."""
    found = []
    for each in RULES:
        for plural in each["resources"]:
            version = f"{each['apiGroups'][0]}/v1".removeprefix("/")
            verbs = dict.fromkeys(each["verbs"], "members have it")
            found.append(Need(Kind(version, "", plural), verbs, MEMBERS))
    return found


async def lacking(client: KubernetesClient, needs: Sequence[Need] = NEEDS) -> list[Message]:
    """Name what who asks with this client may not, each with its verb and what it is for; nothing where all is given."""
    asked = [(need, verb) for need in (*needs, *of_members()) for verb in need.verbs]
    answers = await asyncio.gather(*(may(client, need, verb) for need, verb in asked))
    return [
        msg(
            "the hub may not {verb} {plural}: {purpose}",
            verb=verb,
            plural=need.kind.plural,
            purpose=need.purpose,
        )
        for (need, verb), granted in zip(asked, answers, strict=True)
        if not granted
    ]


async def may(client: KubernetesClient, need: Need, verb: str) -> bool:
    """Whether who asks with this client has a verb."""
    resource, _, part = need.kind.plural.partition("/")
    about = {"verb": verb, "group": need.kind.group, "resource": resource, "subresource": part}
    about |= {"name": need.name, "namespace": need.namespace}
    found = await client.review(kinds.ACCESS_REVIEWS, spec={"resourceAttributes": about})
    return bool(found["allowed"])
