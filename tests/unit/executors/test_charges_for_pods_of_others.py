"""What a team is charged for a pod that another hub made: limits or requests of all its containers, and GPUs of a kind."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.executors.kubernetes.nodes.charge import Charge, charge_of


def pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    made = [{"name": f"c{i}", "resources": resources} for i, resources in enumerate(containers)]
    return {"metadata": {"name": "jupyter-ann"}, "spec": {"containers": made, **spec}}


BOTH = {"limits": {"cpu": "2", "memory": "4Gi"}, "requests": {"cpu": "500m", "memory": "1G"}}


@pytest.mark.parametrize(
    ("by_limits", "given", "charged"),
    [
        (True, pod(BOTH), Charge(2.0, 4096)),
        (False, pod(BOTH), Charge(0.5, 954)),
        (True, pod({"requests": {"memory": "1G"}}), Charge(0.2, 954)),
        (False, pod({"limits": {"cpu": 1}}), Charge(1.0, 1024)),
        (True, pod({}), Charge(0.2, 1024)),
        (True, pod({"limits": None, "requests": None}), Charge(0.2, 1024)),
        # a container beside the notebook counts too, and an init container where it needs more
        (True, pod(BOTH, {"limits": {"cpu": "250m"}}), Charge(2.25, 4096)),
        (
            True,
            pod(BOTH, initContainers=[{"name": "i", "resources": {"limits": {"cpu": "3", "memory": "1Gi"}}}]),
            Charge(3.0, 4096),
        ),
        # GPUs have limits only, and count either way
        (False, pod({"limits": {"nvidia.com/gpu": "2"}}), Charge(0.2, 1024, 2)),
        (
            True,
            pod(
                {"limits": {"cpu": 1, "memory": "1Gi", "nvidia.com/gpu": 1}},
                nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"},
            ),
            Charge(1.0, 1024, 1, "nvidia-h100-80gb-hbm3"),
        ),
        # no kind can be told of two resources
        (True, pod({"limits": {"nvidia.com/gpu": 1, "amd.com/gpu": 1}}), Charge(0.2, 1024, 2)),
        # a pod's own amounts, which newer clusters have
        (True, pod(BOTH, resources={"limits": {"cpu": "1"}}), Charge(1.0, 4096)),
    ],
)
def test_a_pod_is_charged(by_limits: bool, given: dict[str, Any], charged: Charge) -> None:
    assert charge_of(given, by_limits=by_limits, cpu=0.2, ram=1024) == charged
