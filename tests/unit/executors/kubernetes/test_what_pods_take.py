"""What a pod takes of its node, as the cluster's scheduler counts it."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.executors.kubernetes.nodes.amounts import MIB, NodeAmount
from mlp_hub.executors.kubernetes.nodes.requests import Use, requests_of, use_of
from mlp_hub.kubernetes.quantities import milli, whole
from support.cluster.kube_objects import container, pod_object

GPU = "nvidia.com/gpu"
SIDECAR = container("side", restart="Always", cpu="500m", memory="64Mi")


@pytest.mark.parametrize(
    ("text", "thousandths", "amount"),
    [
        ("2", 2000, 2),
        ("100m", 100, 1),
        ("0.1", 100, 1),
        ("1500u", 2, 1),
        ("1Ki", 1_024_000, 1024),
        ("1.5Gi", 1_610_612_736_000, 1_610_612_736),
        ("2e3", 2_000_000, 2000),
        ("3E", 3 * 10**21, 3 * 10**18),
        ("1k", 1_000_000, 1000),
        (4, 4000, 4),
        ("0", 0, 0),
    ],
)
def test_a_quantity_is_read_as_the_api_means_it(text: str | int, thousandths: int, amount: int) -> None:
    assert (milli(text), whole(text)) == (thousandths, amount)


def test_an_invalid_quantity_is_refused_with_a_valid_one() -> None:
    with pytest.raises(ValueError, match=r"'5 GB' is no quantity, such as 100m, 2 or 1\.5Gi"):
        whole("5 GB")


@pytest.mark.parametrize(
    ("pod", "takes"),
    [
        pytest.param(
            pod_object(
                "p",
                "n",
                container("a", cpu="1", memory="1Gi", gpu="2"),
                container("b", cpu="250m", rom="1Gi"),
            ),
            NodeAmount(1250, 1024 * MIB, 1024 * MIB, ((GPU, 2),)),
            id="the sum of containers",
        ),
        pytest.param(
            pod_object(
                "p", "n", container("a", cpu="1"), initContainers=[container("i", cpu="3", memory="1Mi")]
            ),
            NodeAmount(3000, MIB),
            id="an init container that needs more",
        ),
        pytest.param(
            pod_object(
                "p",
                "n",
                container("a", cpu="1"),
                initContainers=[container("i", cpu="2"), container("j", cpu="3")],
            ),
            NodeAmount(3000),
            id="init containers come one after the other",
        ),
        pytest.param(
            pod_object("p", "n", container("a", cpu="1"), initContainers=[SIDECAR]),
            NodeAmount(1500, 64 * MIB),
            id="a sidecar goes on beside",
        ),
        pytest.param(
            pod_object("p", "n", container("a", cpu="1"), initContainers=[SIDECAR, container("i", cpu="2")]),
            NodeAmount(2500, 64 * MIB),
            id="an init container beside the sidecar before it",
        ),
        pytest.param(
            pod_object("p", "n", container("a", cpu="1"), initContainers=[container("i", cpu="2"), SIDECAR]),
            NodeAmount(2000, 64 * MIB),
            id="an init container before the sidecar",
        ),
        pytest.param(
            pod_object("p", "n", container("a", cpu="1"), overhead={"cpu": "250m", "memory": "120Mi"}),
            NodeAmount(1250, 120 * MIB),
            id="the overhead of its runtime class",
        ),
        pytest.param(
            pod_object(
                "p",
                "n",
                container("a", cpu="1", memory="1Gi", gpu="1"),
                resources={"requests": {"cpu": "3"}},
                overhead={"cpu": "1"},
            ),
            NodeAmount(4000, 1024 * MIB, 0, ((GPU, 1),)),
            id="what is asked for the pod as a whole",
        ),
        pytest.param(
            pod_object(
                "p",
                "n",
                container("a", cpu="1"),
                status={
                    "containerStatuses": [
                        {
                            "name": "a",
                            "resources": {"requests": {"cpu": "2"}},
                            "allocatedResources": {"cpu": "2"},
                        }
                    ]
                },
            ),
            NodeAmount(2000),
            id="one that was larger, until it is smaller",
        ),
        pytest.param(
            pod_object("p", "n", {"name": "c"}, initContainers=None, overhead=None),
            NodeAmount(),
            id="nothing asked",
        ),
    ],
)
def test_a_pod_takes(pod: dict[str, Any], takes: NodeAmount) -> None:
    assert requests_of(pod) == takes


def test_resources_that_are_not_given_out_do_not_count() -> None:
    one = container("a")
    one["resources"]["requests"] = {"hugepages-2Mi": "4Mi", "rdma/hca": "1", "nvidia.com/mig-1g.10gb": "3"}
    assert requests_of(pod_object("p", "n", one)) == NodeAmount(devices=(("nvidia.com/mig-1g.10gb", 3),))


@pytest.mark.parametrize(
    ("owner", "stays"), [("DaemonSet", True), ("Node", True), ("ReplicaSet", False), (None, False)]
)
def test_a_pod_of_the_nodes_own_stays_with_it(owner: str | None, stays: bool) -> None:
    assert use_of(pod_object("p", "n", container("a", cpu="1"), owner=owner)) == Use(
        "n", NodeAmount(1000), stays
    )


def test_a_pod_that_has_no_node_takes_nothing() -> None:
    assert use_of(pod_object("p", None, container("a", cpu="1"))) is None
