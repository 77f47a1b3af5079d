"""A hub without any right outside of the namespaces that an administrator made: what it does there, and what it says is missing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import shlex
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.domain.resources import Quota
from mlp_hub.executors.base import CannotStart, TenantPlace
from mlp_hub.executors.kubernetes.composed import ClusterExecutor
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy import given
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.kubernetes import kinds, names
from mlp_hub.kubernetes.client import KubernetesClient
from support.cluster.accounts import Right, rights_of
from support.cluster.chart import Chart
from support.cluster.gangs import launch
from support.cluster.kube import Kube
from support.cluster.kube_installation import installation
from support.cluster.tenancy import connect_as
from support.waiting import PATIENCE_S, until

DEFAULT, RED, GREEN = (TenantPlace(name, Quota(cpu=4000), ("ann",)) for name in ("default", "red", "green"))
SERVICE, HUB = "hub-mlp-hub-service", "hub-mlp-hub-hub"


class Site:
    """A cluster whose administrator made the namespaces of two teams, and one for the platform, with the chart's roles."""

    def __init__(self, kube: Kube, root: Path) -> None:
        self.kube, self.name = kube, f"g{uuid.uuid4().hex[:6]}"
        self.home = f"{self.name}-platform"
        self.teams = tuple(f"{self.name}-{team}" for team in ("default", "red"))
        self.at = installation(
            self.name,
            root=root,
            directories=Directories(root / "homes", root / "jobs"),
            namespaces=self.teams,
            home=self.home,
            capacity={"cpu": "8", "memory": "16Gi"},
        )

    def make(self) -> None:
        self.kube("create", "namespace", self.home)
        for team in ("default", "red"):
            self.run(given.command(self.at, team))
            self.claim(f"{self.name}-{team}")
        for account in (SERVICE, HUB):
            self.kube("-n", self.home, "create", "serviceaccount", account)
        spaces = {f"mlp-{team}": f"{self.name}-{team}" for team in ("default", "red")} | {"mlp": self.home}
        roles = [one for one in Chart().objects("namespaces") if one["kind"] in {"Role", "RoleBinding"}]
        for one in roles:
            one["metadata"]["namespace"] = spaces[one["metadata"]["namespace"]]
            for subject in one.get("subjects", ()):
                subject["namespace"] = self.home
        self.kube("apply", "-f", "-", given=json.dumps({"apiVersion": "v1", "kind": "List", "items": roles}))

    def run(self, command: str) -> None:
        """Run a command that the hub says to run."""
        for one in command.split(" && "):
            program, *words = shlex.split(one)
            assert program == "kubectl"
            self.kube(*words)

    def claim(self, namespace: str) -> None:
        """Make the claim of all files, as an administrator does."""
        shape = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        volume = kinds.PERSISTENT_VOLUMES.named(
            f"{namespace}-files", spec={**shape, "capacity": {"storage": "1Gi"}, **self.at.volume}
        )
        claim = kinds.PERSISTENT_VOLUME_CLAIMS.named(
            "mlp-files",
            namespace,
            spec={**shape, "volumeName": f"{namespace}-files", "resources": {"requests": {"storage": "1Gi"}}},
        )
        items = {"apiVersion": "v1", "kind": "List", "items": [volume, claim]}
        self.kube("apply", "--server-side", "-f", "-", given=json.dumps(items))

    def token(self, account: str) -> str:
        return self.kube("-n", self.home, "create", "token", account).strip()

    def destroy(self) -> None:
        spaces = (self.home, *self.teams, f"{self.name}-green")
        self.kube("delete", "namespace", *spaces, "--wait=false", "--ignore-not-found")
        volumes = [f"{space}-files" for space in spaces]
        self.kube("delete", "pv", *volumes, "--wait=false", "--ignore-not-found")


@pytest.fixture
def site(kube: Kube, tmp_path: Path) -> Iterator[Site]:
    made = Site(kube, tmp_path)
    try:
        made.make()
        yield made
    finally:
        made.destroy()


@contextlib.asynccontextmanager
async def executing(site: Site, at: Installation | None = None) -> AsyncIterator[ClusterExecutor]:
    """Hand out the executor of the service, with the rights of the service's account."""
    client = await connect_as(site.kube, await asyncio.to_thread(site.token, SERVICE))
    at = at or site.at
    client.namespaces = at.namespaces
    executor = await ClusterExecutor.make(client, at)
    try:
        async with asyncio.timeout(PATIENCE_S):
            await executor.open()
            await executor.fence(1, 1.0)
            yield executor
    finally:
        await executor.close()


async def found(site: Site, what: str, namespace: str) -> list[dict[str, Any]]:
    listed = await asyncio.to_thread(site.kube.get, "-n", namespace, *what.split())
    items: list[dict[str, Any]] = listed["items"]
    return items


async def test_a_teams_pods_run_in_the_namespace_that_is_given_and_are_shut_in(site: Site) -> None:
    async with executing(site) as executor:
        [node] = executor.nodes()
        assert (node.name, node.capacity.cpu, node.capacity.ram) == ("capacity", 8000, 16 * 1024)
        await executor.keep_tenants([DEFAULT, RED], 1)
        shut = {one["metadata"]["name"] for one in await found(site, "networkpolicies", f"{site.name}-red")}
        assert shut == {"mlp-apps", "mlp-closed", "mlp-names", "mlp-outbound", "mlp-platform"}
        [account] = await found(site, "serviceaccounts", f"{site.name}-red")
        assert account["automountServiceAccountToken"] is False
        spec = launch("plain", "print(1)", 2, tenant="red", placement=("capacity",) * 2)
        await executor.start(spec, 1)

        async def pods() -> list[dict[str, Any]] | None:
            there = await found(site, f"pods -l {names.ATTEMPT}", f"{site.name}-red")
            return there if len(there) == 2 else None

        for pod in await until(pods, what="two pods", every=0.1):
            assert "nodeAffinity" not in (pod["spec"].get("affinity") or {})  # the cluster chooses the node
            assert not pod["spec"].get("priorityClassName")
        await executor.stop(spec.attempt, 1.0, 1)

        async def gone() -> bool:
            return not await found(site, f"pods -l {names.ATTEMPT}", f"{site.name}-red")

        await until(gone, what="its pods to be gone", every=0.1)
        await executor.forget(spec.attempt, 1)


async def test_changes_there_are_put_back(site: Site) -> None:
    async with executing(site) as executor:
        await executor.keep_tenants([RED], 1)
        await asyncio.to_thread(site.kube, "-n", f"{site.name}-red", "delete", "networkpolicy", "mlp-closed")

        async def back() -> bool:
            shut = await found(site, "networkpolicies", f"{site.name}-red")
            return "mlp-closed" in {one["metadata"]["name"] for one in shut}

        await until(back, what="the policy to be there again", every=0.1)


async def test_a_team_without_a_namespace_is_told_the_command_that_makes_it_and_the_others_run(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    command = (
        f"kubectl create namespace {site.name}-green && kubectl label namespace {site.name}-green "
        f"app.kubernetes.io/managed-by=mlp-hub app.kubernetes.io/instance={site.name} mlp-hub/tenant=green "
        "pod-security.kubernetes.io/enforce=restricted"
    )
    async with executing(site) as executor:
        await executor.keep_tenants([GREEN, RED], 1)
        assert await found(site, "networkpolicies", f"{site.name}-red")
        assert (
            f"team green has no namespace in the cluster, and this hub may not make one: ask an administrator to run `{command}`"
            in caplog.text
        )
        with pytest.raises(CannotStart, match="team green has no namespace in the cluster") as refusal:
            await executor.start(launch("plain", "print(1)", tenant="green", placement=("capacity",)), 1)
        assert command in str(refusal.value)
    # once that is done
    await asyncio.to_thread(site.run, command)
    await asyncio.to_thread(site.claim, f"{site.name}-green")
    listed = replace(site.at, namespaces=(*site.teams, f"{site.name}-green"))
    client = await KubernetesClient.connect(site.kube.kubeconfig)
    await given.check(client, listed, "green")
    await client.close()


async def test_a_lacking_namespace_or_label_is_named_with_the_command(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    red, default = f"{site.name}-red", f"{site.name}-default"
    await asyncio.to_thread(
        site.kube, "label", "namespace", red, "pod-security.kubernetes.io/enforce-", "mlp-hub/tenant-"
    )
    await asyncio.to_thread(site.kube, "-n", default, "delete", "pvc", "mlp-files", "--wait=false")
    async with executing(site) as executor:
        await executor.keep_tenants([DEFAULT, RED], 1)
        repair = f"kubectl label --overwrite namespace {red} mlp-hub/tenant=red pod-security.kubernetes.io/enforce=restricted"
        assert (
            f"namespace {red} of team red lacks labels: an administrator adds them by `{repair}`"
            in caplog.text
        )
        assert f"namespace {default} of team default has no claim mlp-files" in caplog.text
        assert not await found(site, "networkpolicies", red)
        await asyncio.to_thread(site.run, repair)
        await executor.keep_tenants([DEFAULT, RED], 1)
        assert await found(site, "networkpolicies", red)


@pytest.mark.parametrize("account", [SERVICE, HUB])
async def test_the_accounts_may_do_nothing_elsewhere(site: Site, account: str) -> None:
    """All rights of the ClusterRoles of an installation that makes its namespaces, asked for where none is given."""
    asked = [
        right
        for one in Chart().objects("gateway")
        if one["kind"] == "ClusterRole" and not one["metadata"]["name"].endswith("-clean")
        for right in rights_of(one["rules"])
    ]
    client = await connect_as(site.kube, await asyncio.to_thread(site.token, account))
    try:

        async def may(right: Right, namespace: str) -> bool:
            resource, _, part = right.resource.partition("/")
            about = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": part}
            said = await client.review(
                kinds.ACCESS_REVIEWS, spec={"resourceAttributes": {**about, "namespace": namespace}}
            )
            return bool(said["allowed"])

        for namespace in ("", "default", "kube-system"):
            granted = [str(right) for right in asked if await may(right, namespace)]
            assert granted == []
        own = Right("", "secrets", "create" if account == HUB else "get")
        assert await may(own, f"{site.name}-red") is (account == HUB)
        assert not await may(Right("", "pods", "create"), site.home)
        assert not await may(Right("rbac.authorization.k8s.io", "roles", "create"), f"{site.name}-red")
    finally:
        await client.close()


async def test_the_command_of_the_documentation_removes_what_the_hub_made_there(site: Site) -> None:
    red = f"{site.name}-red"
    async with executing(site) as executor:
        await executor.keep_tenants([RED], 1)
        await executor.start(launch("plain", "print(1)", 2, tenant="red", placement=("capacity",) * 2), 1)

        async def made() -> bool:
            return len(await found(site, f"pods -l {names.ATTEMPT}", red)) == 2

        await until(made, what="two pods", every=0.1)
    page = Path(__file__).parents[3] / "docs" / "how-to" / "helm.md"
    [command] = re.findall(r"`(kubectl -n mlp-red delete [^`]*)`", page.read_text())
    await asyncio.to_thread(site.run, command.replace("mlp-red", red))
    kinds_of = command.split("delete ")[1].split()[0]

    async def gone() -> bool:
        left = await found(site, f"{kinds_of} -l app.kubernetes.io/managed-by=mlp-hub", red)
        return not left

    await until(gone, what="nothing of the hub to be left", every=0.2)
