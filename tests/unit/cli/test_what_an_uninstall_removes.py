"""What `mlp-hub pod clean` removes: all that the hub of one name made, and nothing of others."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.cli.lifecycle import pod_clean
from mlp_hub.kubernetes import kinds

OURS = {"app.kubernetes.io/managed-by": "mlp-hub", "app.kubernetes.io/instance": "mlp"}
OTHER = {**OURS, "app.kubernetes.io/instance": "mlp2"}
CHART = {**OURS, "app.kubernetes.io/managed-by": "Helm"}
Key = tuple[kinds.Kind, str]


class Cluster:
    """Objects outside of namespaces; those that `lasting` names are long in going."""

    def __init__(self, found: dict[Key, dict[str, str]], *, volcano: bool = True, lasting: str = "") -> None:
        self.found, self.volcano, self.lasting = found, volcano, lasting

    async def serves(self, kind: kinds.Kind) -> bool:
        assert kind is kinds.QUEUES
        return self.volcano

    async def list(self, kind: kinds.Kind, *, labels: str, metadata: bool) -> Any:
        assert metadata
        assert self.volcano or kind is not kinds.QUEUES
        wanted = dict(each.split("=") for each in labels.split(",")).items()
        names = [name for (of, name), has in self.found.items() if of is kind and wanted <= has.items()]
        return SimpleNamespace(items=[{"metadata": {"name": name}} for name in names])

    async def delete(self, kind: kinds.Kind, name: str) -> bool:
        return name == self.lasting or self.found.pop((kind, name), None) is not None


def objects() -> dict[Key, dict[str, str]]:
    return {
        (kinds.NAMESPACES, "mlp-red"): OURS,
        (kinds.NAMESPACES, "mlp--hub"): {},
        (kinds.NAMESPACES, "mlp"): CHART,
        (kinds.NAMESPACES, "mlp2-red"): OTHER,
        (kinds.NAMESPACES, "kube-system"): {},
        (kinds.PERSISTENT_VOLUMES, "mlp-files-red"): OURS,
        (kinds.PERSISTENT_VOLUMES, "mlp-hub-mlp-hub-files"): CHART,
        (kinds.PRIORITY_CLASSES, "mlp-job"): OURS,
        (kinds.ADMISSION_POLICIES, "mlp-pods"): OURS,
        (kinds.ADMISSION_BINDINGS, "mlp-pods"): OURS,
        (kinds.QUEUES, "mlp-red"): OURS,
        (kinds.QUEUES, "default"): {},
    }


async def test_all_of_one_name_goes_and_what_others_have_stays() -> None:
    cluster = Cluster(objects())
    await pod_clean.remove(cluster, "mlp")  # type: ignore[arg-type]
    assert {name for _, name in cluster.found} == {
        "mlp", "mlp2-red", "kube-system", "mlp-hub-mlp-hub-files", "default",
    }  # fmt: skip


async def test_without_volcano_its_queues_are_not_asked_for() -> None:
    cluster = Cluster(
        {key: has for key, has in objects().items() if key[0] is not kinds.QUEUES}, volcano=False
    )
    await pod_clean.remove(cluster, "mlp")  # type: ignore[arg-type]
    assert OURS not in cluster.found.values()


async def test_objects_that_the_cluster_keeps_are_named_and_do_not_hold_up_the_uninstall(
    capsys: pytest.CaptureFixture[str],
) -> None:
    cluster = Cluster(objects(), lasting="mlp-red")
    await pod_clean.remove(cluster, "mlp", patience=0)  # type: ignore[arg-type]
    assert "still ends mlp-red" in capsys.readouterr().out
