"""Pods that the ledger holds already take nothing more of their node: the hub's own, and those of a hub that it is attached to."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.executors.kubernetes.nodes.cluster_nodes import ClusterNodes
from support.cluster.kube_installation import installation


def pod(**labels: str) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": "p", "namespace": "n", "labels": labels},
        "spec": {"nodeName": "n1", "containers": [container]},
    }


@pytest.mark.parametrize(("name", "taken"), [("ours", False), ("another", True)])
async def test_a_charged_pod_counts_for_others_only(name: str, taken: bool) -> None:
    at = installation(name="ours")
    nodes = ClusterNodes(None, at)  # type: ignore[arg-type]
    assert (nodes._use(pod(**{"mlp-hub/charged": name})) is not None) is taken
    assert nodes._use(pod(**at.marks)) is None
    assert nodes._use(pod()) is not None
