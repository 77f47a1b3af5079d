"""Which nodes a server's pod may go to that has GPUs, and by which name it asks for them."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_cluster import fake_nodes
from mlp_hub.executors.kubernetes.notebooks import Gpus, NoGpus, gpus_of
from mlp_hub.kubernetes.kinds import Object
from support.cluster.kube_installation import installation
from support.cluster.server_pods import made

PRODUCT = "nvidia.com/gpu.product"
ABSENT = {"key": "mlp-hub/gpu-kind", "operator": "DoesNotExist"}


def node(labels: dict[str, str], devices: dict[str, str]) -> Object:
    found = fake_nodes.node(0, 0)
    found["metadata"]["labels"] |= labels
    found["status"] = {"capacity": devices, "allocatable": devices}
    return found


H100 = node({PRODUCT: "NVIDIA-H100-80GB-HBM3"}, {"nvidia.com/gpu": "8"})
A100 = node({PRODUCT: "NVIDIA-A100-SXM4-40GB"}, {"nvidia.com/gpu": "4"})
OWN = node({PRODUCT: "NVIDIA-A100-SXM4-40GB", "mlp-hub/gpu-kind": "big"}, {"nvidia.com/gpu": "2"})
AMD = node({"amd.com/gpu.product-name": "MI300X"}, {"amd.com/gpu": "1"})
NONE = node({}, {})


def found(gpu: int, kind: str = "", *nodes: Object) -> Gpus:
    return gpus_of(nodes or (H100, A100, OWN, AMD, NONE), gpu, kind, installation())


def term(key: str, *values: str, **more: Any) -> dict[str, Any]:
    own = [] if key == "mlp-hub/gpu-kind" else [ABSENT]
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values), **more}, *own]}


def test_a_kind_is_found_by_the_label_that_tells_it() -> None:
    h100 = Gpus("nvidia.com/gpu", 2, (term(PRODUCT, "NVIDIA-H100-80GB-HBM3"),))
    assert found(2, "nvidia-h100-80gb-hbm3") == h100
    assert found(1, "mi300x") == Gpus("amd.com/gpu", 1, (term("amd.com/gpu.product-name", "MI300X"),))


def test_the_operators_name_of_a_gpu_kind_precedes_a_vendors_label() -> None:
    assert found(1, "big") == Gpus("nvidia.com/gpu", 1, (term("mlp-hub/gpu-kind", "big"),))


def test_gpus_of_any_kind_are_those_of_which_there_are_most() -> None:
    assert found(1) == Gpus("nvidia.com/gpu", 1)
    assert found(1, "", AMD, NONE) == Gpus("amd.com/gpu", 1)


def test_a_request_for_missing_gpus_lists_the_available_ones() -> None:
    with pytest.raises(NoGpus, match=r"of the kind tpu; available: big, mi300x, nvidia-a100"):
        found(1, "tpu")
    with pytest.raises(NoGpus, match="no node of the cluster has GPUs"):
        found(1, "", NONE)


def test_the_pod_asks_for_them_and_goes_to_nodes_that_have_them() -> None:
    spec = made(gpus=found(2, "nvidia-h100-80gb-hbm3"))["spec"]
    assert spec["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == "2"
    node_affinity = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert node_affinity["nodeSelectorTerms"] == [term(PRODUCT, "NVIDIA-H100-80GB-HBM3")]
    assert "affinity" not in made(gpus=found(1))["spec"]


def test_an_operators_affinity_also_applies() -> None:
    theirs = {"key": "zone", "operator": "In", "values": ["a"]}
    configured = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [theirs]}]
            }
        }
    }
    spec = made(affinity=configured, gpus=found(1, "mi300x"))["spec"]
    required = spec["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    ours = term("amd.com/gpu.product-name", "MI300X")["matchExpressions"]
    assert required["nodeSelectorTerms"] == [{"matchExpressions": [theirs, *ours]}]


def test_a_pod_passes_the_taint_that_leaves_a_node_to_its_tenant() -> None:
    own = {"key": "tenant", "operator": "Equal", "value": "red", "effect": "NoSchedule"}
    assert own in made()["spec"]["tolerations"]
