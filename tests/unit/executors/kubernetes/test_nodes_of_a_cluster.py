"""Nodes as a cluster describes them: what may be given out, of which kind, and what keeps work off them."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.executors.kubernetes.nodes.amounts import NONE, NodeAmount
from mlp_hub.executors.kubernetes.nodes.description import describe
from mlp_hub.executors.nodes import Condition, ConditionKind, Effect, NodeInfo, Taint
from support.cluster.kube_objects import LOST, READY, node_object

H100 = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
SLICES = {"nvidia.com/mig-1g.10gb": "7", "nvidia.com/mig-3g.40gb": "2"}


def info(node: dict[str, Any], *tolerated: dict[str, str]) -> NodeInfo:
    return describe(node, tolerated).less(NONE, NONE)


def test_a_node_is_told_with_all_that_placement_goes_by() -> None:
    found = node_object("a", gpus=8, labels={**H100, "topology.kubernetes.io/zone": "z1", "rack": "r1"})
    found["status"]["allocatable"] = {
        "cpu": "7910m",
        "memory": "30Gi",
        "ephemeral-storage": "1Gi",
        "nvidia.com/gpu": "7",
    }
    kind = "nvidia-h100-80gb-hbm3"
    assert info(found) == NodeInfo(
        "a",
        Resources(7910, 7000, 30 * 1024, 1 << 30, ((kind, 7000),)),
        Resources(8000, 8000, 32 * 1024, 0, ((kind, 8000),)),
        kind,
        {**H100, "topology.kubernetes.io/zone": "z1", "zone": "z1", "rack": "r1"},
    )


@pytest.mark.parametrize(
    ("more", "labels", "device", "kind", "gpus"),
    [
        ({"nvidia.com/gpu": "4"}, H100, "nvidia.com/gpu", "nvidia-h100-80gb-hbm3", 4),
        ({"nvidia.com/gpu": "4"}, {}, "nvidia.com/gpu", None, 4),
        ({"nvidia.com/gpu": "4"}, {**H100, "mlp-hub/gpu-kind": "H100"}, "nvidia.com/gpu", "h100", 4),
        (
            {"nvidia.com/gpu": "1"},
            {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"},
            "nvidia.com/gpu",
            "nvidia-tesla-t4",
            1,
        ),
        (
            {"amd.com/gpu": "8"},
            {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"},
            "amd.com/gpu",
            "amd-instinct-mi300x-oam",
            8,
        ),
        (
            SLICES,
            {"nvidia.com/mig-1g.10gb.product": "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"},
            "nvidia.com/mig-1g.10gb",
            "nvidia-h100-80gb-hbm3-mig-1g-10gb",
            7,
        ),
        (SLICES, H100, "nvidia.com/mig-1g.10gb", "nvidia-h100-80gb-hbm3-mig-1g-10gb", 7),
        ({"nvidia.com/gpu": "0"}, H100, None, None, 0),
        ({"rdma/hca": "4"}, H100, None, None, 0),
    ],
)
def test_gpus_have_the_kind_that_labels_tell(
    more: dict[str, str], labels: dict[str, str], device: str | None, kind: str | None, gpus: int
) -> None:
    found = describe(node_object(more=more, labels=labels))
    assert (found.device, found.kind, found.capacity.gpu) == (device, kind, gpus * 1000)


def taint(key: str, effect: str = "NoSchedule", **more: str) -> dict[str, str]:
    return {"key": key, "effect": effect, **more}


@pytest.mark.parametrize(
    ("node", "wrong"),
    [
        (node_object(), {}),
        (
            node_object(unschedulable=True, taints=(taint("node.kubernetes.io/unschedulable"),)),
            {"Cordoned": "cordoned"},
        ),
        (
            node_object(
                conditions=LOST,
                taints=(
                    taint("node.kubernetes.io/unreachable"),
                    taint("node.kubernetes.io/unreachable", "NoExecute", timeAdded="2026-01-01T00:00:00Z"),
                ),
            ),
            {"NotReady": "Kubelet stopped posting node status."},
        ),
        (node_object(taints=(taint("node.kubernetes.io/not-ready"),)), {"NotReady": "not ready"}),
        (node_object(conditions=()), {"NotReady": "it has not reported yet"}),
        (
            node_object(
                conditions=(
                    *READY,
                    {"type": "DiskPressure", "status": "True", "message": "the disk is full"},
                    {"type": "PIDPressure", "status": "False", "message": "fine"},
                ),
                taints=(taint("node.kubernetes.io/disk-pressure"),),
            ),
            {"DiskPressure": "the disk is full"},
        ),
        (
            node_object(conditions=({"type": "NetworkUnavailable", "status": "True"}, *READY)),
            {"NotReady": ""},
        ),
        (
            node_object(taints=(taint("ToBeDeletedByClusterAutoscaler"),)),
            {"Cordoned": "the autoscaler removes it"},
        ),
        (node_object(taints=(taint("node.kubernetes.io/pid-pressure"),)), {"PIDPressure": "PID pressure"}),
    ],
)
def test_a_problem_of_a_node_is_a_condition(node: dict[str, Any], wrong: dict[str, str]) -> None:
    found = info(node)
    assert {c.kind.value: c.message for c in found.conditions} == wrong
    assert found.taints == ()
    assert found.schedulable == (not wrong)
    assert found.ready == ("NotReady" not in wrong)


def test_a_node_that_is_being_removed_takes_nothing_new() -> None:
    node = node_object()
    node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert info(node).conditions == (Condition(ConditionKind.CORDONED, "being removed from the cluster"),)


def test_other_taints_are_told_as_they_are_but_for_those_that_all_pods_tolerate() -> None:
    node = node_object(
        taints=(
            taint("gpu", value="only"),
            taint("spot", "PreferNoSchedule"),
            taint("kwok", value="fake"),
            taint("nvidia.com/gpu", value="present"),
        )
    )
    tolerated = ({"key": "kwok", "operator": "Exists"}, {"key": "nvidia.com/gpu", "value": "present"})
    assert info(node, *tolerated).taints == (
        Taint("gpu", "only"),
        Taint("spot", "", Effect.PREFER_NO_SCHEDULE),
    )
    assert info(node, {"operator": "Exists"}).taints == ()
    others = ({"key": "gpu", "value": "no"}, {"key": "gpu", "operator": "Exists", "effect": "NoExecute"})
    assert Taint("gpu", "only") in info(node, *others).taints


def test_a_node_is_left_to_a_tenant_by_a_taint() -> None:
    red = info(node_object(taints=(taint("tenant", value="red"),)))
    assert (red.takes("red"), red.takes("blue")) == (True, False)


def test_usage_of_pods_is_not_allocatable_and_removable_usage_counts_in_the_maximum() -> None:
    node = describe(node_object(gpus=2, labels=H100))
    found = node.less(
        NodeAmount(cpu=500, ram=1), NodeAmount(cpu=2000, ram=1 << 30, devices=(("nvidia.com/gpu", 1),))
    )
    assert (found.allocatable.cpu, found.allocatable.gpu, found.allocatable.ram) == (
        5500,
        1000,
        31 * 1024 - 1,
    )
    assert found.at_most == Resources(7500, 2000, 32 * 1024 - 1, 0, (("nvidia-h100-80gb-hbm3", 2000),))


def test_a_node_that_is_overdrawn_has_nothing_left() -> None:
    found = describe(node_object(cpu="1")).less(NodeAmount(cpu=900), NodeAmount(cpu=900, ram=64 << 30))
    assert (found.allocatable.cpu, found.allocatable.ram, found.at_most.cpu) == (0, 0, 100)
