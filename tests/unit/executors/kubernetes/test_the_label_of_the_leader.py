"""The label by which the Services of a chart find the service that leads."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from mlp_hub.kubernetes.leader_label import LEADS, LeaderLabel

OURS = {"app.kubernetes.io/instance": "hub", "app.kubernetes.io/component": "service"}


class Cluster:
    """Pods of one namespace, by name, with their labels."""

    def __init__(self, **pods: dict[str, str]) -> None:
        self.pods, self.patches = pods, 0

    async def get(self, _kind: Any, name: str, _namespace: str) -> dict[str, Any]:
        return self._pod(name)

    async def list(self, _kind: Any, _namespace: str, *, labels: str, metadata: bool) -> Any:
        assert metadata
        wanted = dict(each.split("=") for each in labels.split(",")).items()
        return SimpleNamespace(
            items=[self._pod(name) for name, has in self.pods.items() if wanted <= has.items()]
        )

    async def patch(self, _kind: Any, name: str, patch: Any, _namespace: str) -> dict[str, Any]:
        self.patches += 1
        for key, value in patch["metadata"]["labels"].items():
            if value is None:
                self.pods[name].pop(key, None)
            else:
                self.pods[name][key] = value
        return self._pod(name)

    def _pod(self, name: str) -> dict[str, Any]:
        return {"metadata": {"name": name, "labels": dict(self.pods[name])}}

    def leaders(self) -> list[str]:
        return [name for name, has in self.pods.items() if has.get(LEADS) == "true"]


async def test_the_leader_has_it_and_takes_it_from_a_killed_or_frozen_one() -> None:
    cluster = Cluster(a={**OURS, LEADS: "true"}, b=dict(OURS))
    await LeaderLabel(cluster, "mlp/b").take()  # type: ignore[arg-type]
    assert cluster.leaders() == ["b"]


async def test_another_release_of_the_namespace_keeps_its_own() -> None:
    other = {**OURS, "app.kubernetes.io/instance": "second", LEADS: "true"}
    cluster = Cluster(other=other, a=dict(OURS))
    await LeaderLabel(cluster, "mlp/a").take()  # type: ignore[arg-type]
    assert cluster.leaders() == ["other", "a"]


async def test_one_that_has_it_alone_changes_nothing() -> None:
    cluster = Cluster(a=dict(OURS))
    label = LeaderLabel(cluster, "mlp/a")  # type: ignore[arg-type]
    await label.take()
    before = cluster.patches
    await label.take()
    assert cluster.patches == before


async def test_a_service_that_starts_or_stands_by_takes_it_off_its_own_pod() -> None:
    cluster = Cluster(a={**OURS, LEADS: "true"}, b=dict(OURS))
    await LeaderLabel(cluster, "mlp/a").leave()  # type: ignore[arg-type]
    assert cluster.leaders() == []
