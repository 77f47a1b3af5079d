"""Groups of nodes that the cluster could grow by: what is not there yet is told as a node that is absent."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.executors.kubernetes.nodes.description import describe
from mlp_hub.executors.kubernetes.nodes.groups import NodeGroup, group_of
from mlp_hub.executors.kubernetes.nodes.table import NodeTable
from mlp_hub.executors.nodes import Condition, ConditionKind
from support.cluster.kube_objects import node_object

A100 = {
    "most": "2",
    "nodes": "pool=a100",
    "cpu": "64",
    "memory": "512Gi",
    "gpu": "8",
    "gpu-kind": "A100",
}
SIZE = Resources(64_000, 8000, 512 * 1024, 0, (("a100", 8000),))


def told(data: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "g", "labels": {"mlp-hub/node-group": "a100"}}, "data": data}


def test_a_group_is_read_as_it_is_told() -> None:
    assert group_of(told(A100)) == NodeGroup("a100", "pool", "a100", 2, SIZE, "a100")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"nodes": "a100"}, "nodes is the label that its nodes have, such as pool=a100"),
        ({"most": "many"}, "most is 'many'; it is the number of nodes that it may have, 1000 at most"),
        ({"most": "1001"}, "most is '1001'"),
        ({"cpu": "0"}, "cpu and memory are what a node of it has, such as 64 and 512Gi"),
        ({"memory": "512 GB"}, "'512 GB' is no quantity, such as 100m, 2 or 1.5Gi"),
    ],
)
def test_an_invalid_node_group_is_refused_with_a_valid_form(wrong: dict[str, str], said: str) -> None:
    with pytest.raises(ValueError, match="^" + said.replace("(", r"\(")):
        group_of(told(A100 | wrong))


def test_nodes_that_are_not_there_yet_are_told_until_they_are() -> None:
    table = NodeTable()
    table.node_is("n", describe(node_object("n")))
    table.group_is("g", group_of(told(A100)))
    assert table.renew()
    assert [node.name for node in table.view] == ["n", "a100+1", "a100+2"]
    absent = table.view[1]
    assert (absent.allocatable, absent.gpu_kind, absent.ready, absent.schedulable) == (
        SIZE,
        "a100",
        False,
        False,
    )
    assert absent.conditions == (Condition(ConditionKind.ABSENT, "group a100 has 0 of at most 2 nodes"),)
    table.node_is("new", describe(node_object("new", labels={"pool": "a100"})))
    assert table.renew()
    assert [node.name for node in table.view] == ["n", "new", "a100+1"]
    table.group_is("g", None)
    assert table.renew()
    assert [node.name for node in table.view] == ["n", "new"]
    table.group_is("g", None)
    assert not table.renew()
