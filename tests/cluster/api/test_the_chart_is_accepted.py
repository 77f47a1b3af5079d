"""Objects of the Helm chart at a real API server: accepted by it, by Pod Security `restricted`, and confined to their namespaces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from mlp_cluster import definitions
from support.cluster.chart import FILES, Chart, named, pods
from support.cluster.kube import Kube, Namespace, RefusedError
from support.waiting import wait_for

OF_OTHERS = {"ServiceMonitor", "PrometheusRule"}
"""Kinds that this cluster does not have."""
INSTALLATION, RELEASE = "charttest", "hub-mlp-hub"


@pytest.fixture(scope="module")
def chart() -> Chart:
    return Chart()


@pytest.fixture(scope="module")
def gateway(kube: Kube) -> Iterator[None]:
    """The kinds of the Gateway API, as a cluster with a gateway has them."""
    wanted = {"apiVersion": "v1", "kind": "List", "items": definitions.gateway()}
    try:
        kube("get", "crd", "httproutes.gateway.networking.k8s.io")
        there = True
    except RefusedError:
        there = False
    if not there:
        kube("apply", "--server-side", "-f", "-", given=json.dumps(wanted))
    for one in wanted["items"]:
        kube("wait", f"crd/{one['metadata']['name']}", "--for=condition=Established", "--timeout=60s")
    yield
    if not there:
        kube("delete", "-f", "-", "--wait=false", given=json.dumps(wanted))


def into(objects: list[dict[str, Any]], namespace: str) -> dict[str, Any]:
    """Return these objects as one list, those of a namespace in this one."""
    for one in objects:
        if "namespace" in one["metadata"]:
            one["metadata"]["namespace"] = namespace
        if one["kind"] == "Pod":  # its account and its class are not there where nothing is stored
            left = {"serviceAccountName", "priorityClassName"}
            spec = {key: value for key, value in one["spec"].items() if key not in left}
            one["spec"] = {**spec, "automountServiceAccountToken": False}
    return {
        "apiVersion": "v1",
        "kind": "List",
        "items": [one for one in objects if one["kind"] not in OF_OTHERS],
    }


@pytest.mark.usefixtures("gateway")
@pytest.mark.parametrize("file", FILES)
def test_the_server_takes_every_object(chart: Chart, kube: Kube, namespace: Namespace, file: str) -> None:
    objects = into(chart.objects(file), namespace.name)
    kube("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=json.dumps(objects))


@pytest.mark.usefixtures("gateway")
def test_a_route_that_the_gateway_would_not_know_is_refused_by_the_server(
    chart: Chart, kube: Kube, namespace: Namespace
) -> None:
    more = 'httpRoute.parentRefs={"main": {"name": "gateway", "colour": "red"}}'
    objects = into(chart.objects("gateway", more), namespace.name)
    with pytest.raises(RefusedError, match=r"unknown field .*colour"):
        kube("apply", "--dry-run=server", "--validate=strict", "-f", "-", given=json.dumps(objects))


@pytest.mark.parametrize("file", FILES)
def test_every_pod_is_taken_where_restricted_is_enforced(
    chart: Chart, kube: Kube, namespace: Namespace, file: str
) -> None:
    for name, pod in pods(chart.objects(file)).items():
        spec = {
            key: value
            for key, value in pod["spec"].items()
            if key not in ("serviceAccountName", "priorityClassName")
        }
        given = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": pod["metadata"]["labels"]},
            "spec": {**spec, "automountServiceAccountToken": False},
        }
        kube(
            "-n",
            namespace.name,
            "create",
            "--dry-run=server",
            "--validate=strict",
            "-f",
            "-",
            given=json.dumps(given),
        )


@pytest.fixture
def confined(chart: Chart, kube: Kube, namespace: Namespace) -> Iterator[str]:
    """The accounts, roles and admission policy of a release; return the account of its service."""
    wanted = {
        "ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding",
        "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding",
    }  # fmt: skip
    name = f"system:serviceaccount:{namespace.name}:{RELEASE}-service"
    done = chart.text("gateway", installation=INSTALLATION).replace(
        "mlp-hub-mlp-hub", f"{namespace.name}-{RELEASE}"
    )
    objects = [
        one
        for one in yaml.safe_load_all(
            done.replace("serviceaccount:mlp:", f"serviceaccount:{namespace.name}:")
        )
        if one
    ]
    for one in objects:
        for subject in one.get("subjects", ()):
            subject["namespace"] = namespace.name
    some = into([one for one in objects if one["kind"] in wanted], namespace.name)
    kube("apply", "--server-side", "-f", "-", given=json.dumps(some))
    try:
        yield name
    finally:
        kube("delete", "-f", "-", "--wait=false", given=json.dumps(some))


def secret(name: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}}


def test_rights_in_all_namespaces_are_used_in_those_of_the_installation_only(
    kube: Kube, confined: str
) -> None:
    def creates(given: dict[str, Any]) -> str:
        try:
            return kube("create", "--as", confined, "--dry-run=server", "-f", "-", given=json.dumps(given))
        except RefusedError as refusal:
            return str(refusal)

    wait_for(lambda: "own namespaces only" in creates(secret("x", "kube-system")))
    assert "own namespaces only" in creates(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    )
    shape = {"value": 1, "preemptionPolicy": "Never"}
    about = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    assert "own namespaces only" in creates({**about, **shape, "metadata": {"name": "other"}})
    assert "created" in creates({**about, **shape, "metadata": {"name": f"{INSTALLATION}-x"}})
    volume = {"accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/srv"}}
    about = {"apiVersion": "v1", "kind": "PersistentVolume"}
    assert "own namespaces only" in creates({**about, "spec": volume, "metadata": {"name": "other"}})
    assert "created" in creates({**about, "spec": volume, "metadata": {"name": f"{INSTALLATION}-x"}})
    own = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"{INSTALLATION}-red"}}
    assert "created" in creates(own)


def test_the_policy_has_no_fault_that_the_server_knows(kube: Kube, confined: str) -> None:
    name = f"{INSTALLATION}--confined"
    policy = wait_for(
        lambda: found if (found := kube.get("validatingadmissionpolicy", name)).get("status") else None
    )
    assert not policy["status"].get("typeChecking", {}).get("expressionWarnings"), json.dumps(
        policy["status"]
    )


def test_the_account_of_the_hub_has_few_rights(kube: Kube, confined: str) -> None:
    hub = confined.replace("-service", "-hub")

    def may(verb: str, what: str, namespace: str) -> bool:
        try:
            return kube("auth", "can-i", verb, what, "--as", hub, "-n", namespace).strip() == "yes"
        except RefusedError:
            return False

    assert may("create", "pods", f"{INSTALLATION}-red")
    assert not may("get", "secrets", "kube-system")
    assert not may("delete", "namespaces", f"{INSTALLATION}-red")
    assert not may("create", "clusterroles", "default")


def test_the_policy_is_named_by_the_installation_so_that_no_second_release_has_it(chart: Chart) -> None:
    assert named(chart.objects("gateway"), "ValidatingAdmissionPolicy").keys() == {"mlp--confined"}
