"""Service accounts with the rules of the chart's roles, of which one verb can be taken, and clients that note refusals."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
from kubernetes_asyncio import client as api
from kubernetes_asyncio import config

from mlp_hub.executors.kubernetes.tenancy.required_rights import Need, may
from mlp_hub.kubernetes import kinds
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ForbiddenError
from mlp_hub.kubernetes.kinds import Kind, Object
from mlp_language.message import msg
from support.cluster.kube import Kube
from support.waiting import PATIENCE_S, until

CLUSTER_ROLES = Kind("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_BINDINGS = Kind(
    "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)
HOME = "default"
"""Namespace of the accounts."""


@dataclass(frozen=True)
class Right:
    """One verb on one kind of objects, as a rule of a role has it."""

    group: str
    resource: str
    verb: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}"


def rights_of(rules: Sequence[Object]) -> list[Right]:
    """Return all rights of some rules, one for each verb."""
    return [
        Right(group, resource, verb, name)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
        for verb in rule["verbs"]
    ]


def without(rules: Sequence[Object], right: Right) -> list[Object]:
    """Return the rules without one right."""
    left = []
    for rule in rules:
        named = right.group in rule["apiGroups"] and right.resource in rule["resources"]
        verbs = [verb for verb in rule["verbs"] if not (named and verb == right.verb)]
        if verbs:
            left.append({**rule, "verbs": verbs})
    return left


class NotingClient(KubernetesClient):
    """A client that notes what it was refused, whoever asked."""

    def __init__(self, configuration: api.Configuration) -> None:
        super().__init__(configuration)
        self.refused: list[str] = []
        self.changed = asyncio.Event()

    async def _refusal(self, answer: aiohttp.ClientResponse, asked: str) -> Exception:
        error = await super()._refusal(answer, asked)
        if isinstance(error, ForbiddenError):
            self.refused.append(error.said)
            self.changed.set()
        return error

    def lacked(self, right: Right) -> bool:
        """Whether a request was refused because this right is missing, or because it cannot be given on without it."""
        missing = f'cannot {right.verb} resource "{right.resource}" in API group "{right.group}"'
        given = (f'APIGroups:["{right.group}"]', f'Resources:["{right.resource}"]', f'"{right.verb}"')
        return any(missing in said or all(one in said for one in given) for said in self.refused)


class Account:
    """A service account of the cluster, with the token of its pods."""

    def __init__(self, admin: KubernetesClient, client: NotingClient, name: str, rules: list[Object]) -> None:
        self.admin, self.client, self.name, self.rules = admin, client, name, rules
        self._lost: Right | None = None

    async def have(self, rules: list[Object]) -> None:
        """Give it these rules."""
        await self.admin.apply(CLUSTER_ROLES.named(self.name, rules=rules), CLUSTER_ROLES)

    async def lose(self, right: Right) -> None:
        """Give it all its rules but one right, and wait until the API knows."""
        await self.have(without(self.rules, right))
        await self.until(right, False)
        if self._lost is not None:
            await self.until(self._lost, True)
        self._lost = right

    async def until(self, right: Right, granted: bool) -> None:
        """Wait until the API grants a right, or does not."""
        kind = Kind(f"{right.group}/v1".removeprefix("/"), "", right.resource)
        need = Need(kind, {}, msg("a right"), right.name, HOME if right.name else "")

        async def look() -> bool:
            return await may(self.client, need, right.verb) is granted

        await until(look, what=f"the API to know of {right}")

    async def works_without(self, right: Right, operation: Callable[[], Awaitable[Any]]) -> str | None:
        """Return None where an operation meets a refusal for want of this right, and is ended there; else how it ended."""
        self.client.refused.clear()
        self.client.changed.clear()
        running = asyncio.ensure_future(operation())
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not self.client.lacked(right) and not running.done():
                    noted = asyncio.ensure_future(self.client.changed.wait())
                    await asyncio.wait([running, noted], return_when=asyncio.FIRST_COMPLETED)
                    noted.cancel()
                    self.client.changed.clear()
        finally:
            running.cancel()
            [ended] = await asyncio.gather(running, return_exceptions=True)
        if self.client.lacked(right):
            return None
        return f"fails otherwise: {ended!r}" if isinstance(ended, BaseException) else "works without it"


@contextlib.asynccontextmanager
async def account(kube: Kube, rules: list[Object]) -> AsyncIterator[Account]:
    """Have a service account with these rules in all namespaces, and nothing of it afterwards."""
    name = f"account-{uuid.uuid4().hex[:8]}"
    admin = await KubernetesClient.connect(kube.kubeconfig)
    subject = {"kind": "ServiceAccount", "name": name, "namespace": HOME}
    of = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    try:
        await admin.apply(kinds.SERVICE_ACCOUNTS.named(name, HOME), kinds.SERVICE_ACCOUNTS)
        await admin.apply(CLUSTER_BINDINGS.named(name, roleRef=of, subjects=[subject]), CLUSTER_BINDINGS)
        token = (await asyncio.to_thread(kube, "-n", HOME, "create", "token", name, "--duration=2h")).strip()
        configuration = api.Configuration()
        await config.load_kube_config(str(kube.kubeconfig), client_configuration=configuration)
        configuration.cert_file = configuration.key_file = None
        configuration.api_key = {"BearerToken": f"Bearer {token}"}
        client = NotingClient(configuration)
        try:
            made = Account(admin, client, name, rules)
            await made.have(rules)
            for right in rights_of(rules):
                await made.until(right, True)
            yield made
        finally:
            await client.close()
    finally:
        await admin.delete(CLUSTER_BINDINGS, name)
        await admin.delete(CLUSTER_ROLES, name)
        await admin.delete(kinds.SERVICE_ACCOUNTS, name, HOME)
        await admin.close()
