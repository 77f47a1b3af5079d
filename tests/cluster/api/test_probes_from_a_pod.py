"""`mlp-hub pod probe`, which `helm test` runs: it names what is missing, and what it could not find out."""

from __future__ import annotations

import uuid

import pytest

from mlp_hub.cli.doctor import cluster
from mlp_hub.cli.lifecycle import pod_probe
from mlp_hub.settings import Settings
from support.cluster.kube import Kube


def settings_of(kube: Kube, **more: str) -> Settings:
    name = f"t{uuid.uuid4().hex[:6]}"
    return Settings.load(
        {
            "MLP_EXECUTOR": "kubernetes",
            "MLP_KUBERNETES_CONFIG": str(kube.kubeconfig),
            "MLP_KUBERNETES_NAME": name,
            "MLP_KUBERNETES_IMAGE": "mlp.local/nowhere:1",
            "MLP_KUBERNETES_PULL_POLICY": "Never",
            **{key: value.replace("NAME", name) for key, value in more.items()},
        }
    )


def test_rights_are_checked_and_a_network_that_no_pod_could_try_is_not_well(
    kube: Kube, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(cluster, "PROBE_S", 1.0)
    assert pod_probe.probe(settings_of(kube)) == 1
    said = capsys.readouterr().out
    assert "ok    rights      the hub has all rights that it needs" in said
    assert "warn  network     whether the network enforces policies is not known: " in said
    assert "This needs a network that enforces NetworkPolicy" in said


def test_without_rights_in_the_whole_cluster_nothing_is_tried(
    kube: Kube, capsys: pytest.CaptureFixture[str]
) -> None:
    given = settings_of(
        kube,
        MLP_KUBERNETES_NAMESPACES="NAME-red",
        MLP_KUBERNETES_POD="mlp/hub-1",
        MLP_KUBERNETES_CAPACITY="{cpu: 8, memory: 16Gi}",
    )
    assert pod_probe.probe(given) == 1
    assert "the network was not tested: that needs a namespace that the hub makes" in capsys.readouterr().out
