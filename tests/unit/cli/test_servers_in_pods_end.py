"""What `down JOBS=stop` ends in a cluster: pods of notebook servers, and nothing that it cannot tell of."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.lifecycle import down_pods
from mlp_hub.kubernetes.client import Listed
from mlp_hub.kubernetes.errors import ClusterUnreachable
from support.cluster.server_pods import AT


class Cluster:
    """A cluster of pods by name; those of a lost node stay."""

    def __init__(self, *names: str, lost: tuple[str, ...] = ()) -> None:
        self.pods = dict.fromkeys(names, "there")
        self.lost = lost
        self.asked: list[tuple[str, Any]] = []

    async def list(self, kind: Any, *, labels: str, metadata: bool) -> Listed:
        del kind, metadata
        self.asked.append(("list", labels))
        about = [{"name": name, "namespace": "mlp-red", "uid": f"uid-{name}"} for name in self.pods]
        return Listed([{"metadata": each} for each in about], "1")

    async def delete(self, kind: Any, name: str, namespace: str, *, uid: str, grace_s: int) -> bool:
        del kind
        self.asked.append(("delete", (namespace, name, uid, grace_s)))
        if name not in self.lost:
            del self.pods[name]
        return True


def test_all_servers_of_this_hub_are_told_to_end_with_their_grace() -> None:
    cluster = Cluster("notebook-ann", "notebook-bob")
    ended = asyncio.run(down_pods.end_all(cluster, AT, 9.5))  # type: ignore[arg-type]
    assert ended == (2, 0)
    chosen = "app.kubernetes.io/managed-by=mlp-hub,app.kubernetes.io/instance=mlp,app.kubernetes.io/component=notebook"
    assert cluster.asked == [
        ("list", chosen),
        ("delete", ("mlp-red", "notebook-ann", "uid-notebook-ann", 10)),
        ("delete", ("mlp-red", "notebook-bob", "uid-notebook-bob", 10)),
        ("list", chosen),
    ]


def test_a_server_that_does_not_end_is_reported() -> None:
    cluster = Cluster("notebook-ann", "notebook-bob", lost=("notebook-bob",))
    assert asyncio.run(down_pods.end_all(cluster, AT, 0.0, margin_s=0.0)) == (1, 1)  # type: ignore[arg-type]


def test_a_cluster_that_does_not_answer_does_not_count_as_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def away(_settings: object) -> tuple[int, int]:
        raise ClusterUnreachable("api.example.com", "nobody answers")

    monkeypatch.setattr(down_pods, "_in_cluster", away)
    with pytest.raises(CommandFailed, match="were not changed") as caught:
        down_pods.stop_servers(None)  # type: ignore[arg-type]
    assert "JOBS=stop" in caught.value.remedy


def test_servers_that_are_still_there_are_a_failure_with_their_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def some(_settings: object) -> tuple[int, int]:
        return 1, 2

    monkeypatch.setattr(down_pods, "_in_cluster", some)
    with pytest.raises(CommandFailed, match="2 pods of notebook servers were asked to end and still exist"):
        down_pods.stop_servers(None)  # type: ignore[arg-type]
