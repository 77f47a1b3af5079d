"""Releases of the chart at a real API server without nodes: two in one cluster, an upgrade that is cut off, and a database without a volume."""

from __future__ import annotations

import contextlib
import json
import subprocess
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from mlp_cluster import helm
from mlp_hub.cli.lifecycle import pod_clean
from mlp_hub.executors.base import TenantPlace
from mlp_hub.executors.kubernetes.tenancy.keeper import KEPT, TenantKeeper
from mlp_hub.executors.kubernetes.tenancy.objects.common_fields import selector
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import name_of, namespace_of
from support.cluster.chart import CHART, VALUES
from support.cluster.kube import Kube, RefusedError
from support.cluster.kube_installation import installation
from support.waiting import wait_for

PARTS = ("proxy", "hub", "service", "data", "postgresql")
NOWHERE = [word for part in PARTS for word in ("--set", f"{part}.nodeSelector.runs=nowhere")]
"""Where the cluster has a node, pods of a release with a priority class would have the place of other tests' pods."""
OUTSIDE = "clusterroles,clusterrolebindings,persistentvolumes,priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings"
INSIDE = "all,configmaps,serviceaccounts,roles,rolebindings,networkpolicies,persistentvolumeclaims,poddisruptionbudgets"


class Helm:
    """helm, for a release `hub` in a namespace of its own; no pod of it ever runs here."""

    def __init__(self, kube: Kube) -> None:
        self.kube, self.program = kube, helm.build()
        self.installation = f"i{uuid.uuid4().hex[:6]}"
        self.space = f"release-{self.installation}"

    def words(self, verb: str, *more: str) -> list[str]:
        values = ["--values", str(VALUES / "trial.yaml"), "--set", "uninstall.clean=false", *NOWHERE]
        given = [str(CHART), *values, "--set", f"installation={self.installation}"]
        return [
            str(self.program), f"--kubeconfig={self.kube.kubeconfig}", "--namespace", self.space, verb, "hub",
            *(given if verb in {"install", "upgrade"} else []), *more,
        ]  # fmt: skip

    def run(self, verb: str, *more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(verb, *more), capture_output=True, text=True, check=False, timeout=180
        )

    def install(self, *more: str) -> None:
        done = self.run("install", "--create-namespace", *more)
        assert done.returncode == 0, done.stderr

    def status(self) -> str:
        done = self.run("status", "--output", "json")
        assert done.returncode == 0, done.stderr
        return str(json.loads(done.stdout)["info"]["status"])

    def setting(self, name: str) -> str | None:
        found = self.kube.get("-n", self.space, "configmap", "hub-mlp-hub-settings")["data"].get(name)
        return None if found is None else str(found)

    def objects(self) -> set[str]:
        """Name all objects of the release, in its namespace and outside."""
        chosen = ("-l", "app.kubernetes.io/instance=hub", "-o", "name")
        inside = self.kube("-n", self.space, "get", INSIDE, *chosen).split()
        outside = self.kube("get", OUTSIDE, *chosen).split()
        own = (f"{self.space}-", f"{self.installation}-")
        return {*inside, *(one for one in outside if one.rpartition("/")[2].startswith(own))}

    def destroy(self) -> None:
        self.run("uninstall", "--ignore-not-found")
        self.kube("delete", "namespace", self.space, "--wait=false", "--ignore-not-found")
        self.kube("delete", "pv", f"{self.space}-hub-mlp-hub-files", "--wait=false", "--ignore-not-found")


@contextlib.contextmanager
def release(kube: Kube) -> Iterator[Helm]:
    made = Helm(kube)
    try:
        yield made
    finally:
        made.destroy()


@pytest.fixture
def one(kube: Kube) -> Iterator[Helm]:
    with release(kube) as made:
        yield made


@pytest.fixture
def two(kube: Kube) -> Iterator[Helm]:
    with release(kube) as made:
        yield made


async def kept(client: KubernetesClient, name: str) -> set[tuple[str, str, str]]:
    """Name all that a hub of this name has made for its teams; namespaces that end are gone."""
    found = set()
    for kind in KEPT:
        for each in (await client.list(kind, labels=selector(installation(name)))).items:
            if "deletionTimestamp" not in each["metadata"]:
                found.add((kind.kind, namespace_of(each), name_of(each)))
    return found


async def test_the_end_of_one_release_leaves_all_of_another(kube: Kube, one: Helm, two: Helm) -> None:
    one.install("--set", "priorityClass.create=true")
    two.install("--set", "priorityClass.create=true")
    assert not {name for name in one.objects() if one.space in name} & two.objects()
    client = await KubernetesClient.connect(kube.kubeconfig)
    keepers = [TenantKeeper(client, installation(each.installation)) for each in (one, two)]
    try:
        for keeper in keepers:
            await keeper.keep([TenantPlace("red")])
            await keeper.close()
        before, of_teams = two.objects(), await kept(client, two.installation)
        assert of_teams
        assert one.run("uninstall").returncode == 0
        await pod_clean.remove(client, one.installation)
        assert two.objects() == before
        assert await kept(client, two.installation) == of_teams
        assert await kept(client, one.installation) == set()
    finally:
        for each in (one, two):
            await pod_clean.remove(client, each.installation)
        await client.close()


def test_a_second_release_that_would_keep_the_same_namespaces_is_refused(one: Helm, two: Helm) -> None:
    one.install()
    before = one.objects()
    two.installation = one.installation
    done = two.run("install", "--create-namespace")
    assert done.returncode != 0
    assert f'ValidatingAdmissionPolicy "{one.installation}--confined"' in done.stderr
    assert f'must equal "{two.space}": current value is "{one.space}"' in done.stderr
    assert one.objects() == before
    two.installation = "none"
    assert two.objects() == set()


def test_an_upgrade_that_was_cut_off_is_done_again_after_a_rollback(kube: Kube, one: Helm) -> None:
    one.install()
    changed = ("--set", "settings.keep_jobs_days=30")
    with subprocess.Popen(
        one.words("upgrade", "--wait", *changed), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as upgrade:
        # its objects are there already, and helm waits for pods
        wait_for(lambda: one.setting("MLP_KEEP_JOBS_DAYS") == "30")
        upgrade.kill()
    assert one.status() == "pending-upgrade"
    refused = one.run("upgrade", *changed)
    assert refused.returncode != 0
    assert "another operation (install/upgrade/rollback) is in progress" in refused.stderr
    back = one.run("rollback", "1")
    assert back.returncode == 0, back.stderr
    assert one.setting("MLP_KEEP_JOBS_DAYS") is None
    again = one.run("upgrade", *changed)
    assert again.returncode == 0, again.stderr
    assert one.status() == "deployed"
    assert one.setting("MLP_KEEP_JOBS_DAYS") == "30"


def test_an_installation_that_was_cut_off_is_done_again_after_an_uninstall(one: Helm) -> None:
    with subprocess.Popen(
        one.words("install", "--create-namespace", "--wait"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as cut:

        def there() -> bool:
            with contextlib.suppress(RefusedError):
                return one.setting("MLP_EXECUTOR") == "kubernetes"
            return False

        wait_for(there)
        cut.kill()
    assert one.status() == "pending-install"
    assert one.run("uninstall").returncode == 0
    one.install()
    assert one.status() == "deployed"


def test_without_a_default_storage_class_the_claim_and_the_notes_say_so(kube: Kube, one: Helm) -> None:
    classes: list[dict[str, Any]] = kube.get("storageclasses")["items"]
    default = "storageclass.kubernetes.io/is-default-class"
    if any((each["metadata"].get("annotations") or {}).get(default) == "true" for each in classes):
        pytest.skip("this cluster has a default storage class")
    done = one.run("install", "--create-namespace", "--set", "database.trial.size=1Gi")
    assert done.returncode == 0, done.stderr
    assert "waits for a volume of 1Gi of the cluster's default storage class" in done.stdout
    name = "hub-mlp-hub-postgresql"

    def said() -> str:
        found = kube.get("-n", one.space, "events", f"--field-selector=involvedObject.name={name}")["items"]
        return " ".join(each.get("message", "") for each in found)

    wait_for(lambda: "no storage class is set" in said())
