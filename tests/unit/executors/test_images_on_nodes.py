"""Which images nodes have before somebody waits for them."""

from __future__ import annotations

from typing import Any

from mlp_hub.executors.kubernetes.nodes.prewarming import chosen, daemon_set
from mlp_hub.kubernetes.kinds import Object
from support.cluster.kube_installation import installation

GIB = 1 << 30
AT = installation(image="notebook:1", prewarmed=3, pull_secrets=("registry",))


def node(disk: str = "1000Gi", **sizes: int) -> Object:
    images = [{"names": [name, f"{name}@sha256:0"], "sizeBytes": size} for name, size in sizes.items()]
    return {"status": {"allocatable": {"ephemeral-storage": disk}, "images": images}}


def test_that_of_notebooks_comes_first_and_then_those_that_are_used_most() -> None:
    assert chosen(AT, ["b", "a", "notebook:1", "c"], [node(), node()]) == ["notebook:1", "b", "a"]
    assert chosen(AT, [], [node(), node()]) == ["notebook:1"]


def test_where_nothing_can_be_gained_or_is_wanted_there_are_none() -> None:
    assert chosen(AT, ["a"], [node()]) == []
    assert chosen(installation(prewarmed=0), ["a"], [node(), node()]) == []


def test_they_take_a_fifth_of_the_smallest_nodes_disk_at_most() -> None:
    nodes = [node("100Gi", big=17 * GIB, small=1 * GIB), node()]
    assert chosen(AT, ["big", "small"], nodes) == ["notebook:1", "big", "small"]
    assert chosen(AT, ["big", "unknown", "small"], nodes) == ["notebook:1", "big", "small"]
    assert chosen(AT, ["a", "b"], [node("15Gi"), node()]) == ["notebook:1"]


def test_the_pod_that_pulls_an_image_does_nothing_and_has_no_rights() -> None:
    made = daemon_set(AT, "team/train:1")
    spec: dict[str, Any] = made["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    assert (container["image"], container["imagePullPolicy"]) == ("team/train:1", "IfNotPresent")
    assert spec["automountServiceAccountToken"] is False
    assert spec["imagePullSecrets"] == [{"name": "registry"}]
    labels = made["spec"]["template"]["metadata"]["labels"]
    assert made["spec"]["selector"]["matchLabels"] == labels
    # it is the hub's to remove, and its pods take of their nodes what the hub does not give out
    assert AT.own.items() <= made["metadata"]["labels"].items()
    assert not AT.own.keys() & labels.keys()
