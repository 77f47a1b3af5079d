"""What `doctor` says of images that nodes are to have before they are needed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mlp_hub import in_cluster
from mlp_hub.cli.doctor import cluster as checks_cluster
from mlp_hub.cli.doctor.checks import OK, WARN
from mlp_hub.executors.kubernetes.nodes import prewarming
from mlp_hub.kubernetes.client import Listed
from mlp_hub.kubernetes.kinds import DAEMON_SETS
from support.cluster.kube_installation import installation

AT = installation(image="notebook:1", prewarmed=3)


class Cluster:
    """A cluster that has DaemonSets for these images, ready on so many nodes of so many."""

    def __init__(self, **ready: tuple[int, int]) -> None:
        self.items = []
        for image, (there, wanted) in ready.items():
            made = prewarming.daemon_set(AT, f"{image}:1")
            made["status"] = {"numberReady": there, "desiredNumberScheduled": wanted}
            self.items.append(made)

    async def list(self, kind: Any, namespace: str, *, labels: str) -> Listed:
        assert (kind, namespace, labels) == (DAEMON_SETS, AT.namespace, prewarming.selector(AT))
        return Listed(self.items, "1")


def told(monkeypatch: pytest.MonkeyPatch, cluster: Cluster) -> list[tuple[str, str, str]]:
    monkeypatch.setattr(in_cluster, "installation_of", lambda _settings: AT)
    found = asyncio.run(checks_cluster._prewarmed(None, cluster))  # type: ignore[arg-type]
    return [(check.status, check.found, check.remedy) for check in found]


def test_an_image_on_all_nodes_is_fine_and_one_still_being_pulled_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ready, fetched = told(monkeypatch, Cluster(notebook=(3, 3), train=(1, 3)))
    assert ready == (OK, "notebook:1 is on 3 of 3 nodes", "")
    assert fetched[:2] == (WARN, "train:1 is on 1 of 3 nodes")
    assert AT.namespace in fetched[2]


def test_where_none_is_kept_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    assert told(monkeypatch, Cluster()) == []
