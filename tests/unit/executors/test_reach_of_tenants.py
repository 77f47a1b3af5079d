"""Who must reach whom in a cluster, and who must not, by the policies that tenants have there."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.kubernetes.installation import APP_PORT
from mlp_hub.executors.kubernetes.tenancy.objects.network import between_ranks, policies
from support.cluster.kube_installation import installation
from support.cluster.reachability import End, reaches

AT = installation(
    service=("10.99.7.5", 8081), hub=("10.99.7.5", 8000), data=("10.99.7.5", 8082), dns=("10.99.0.1/32",)
)
NEAR = ["203.0.113.7/32", "198.51.100.9/32"]
DIGITS, OTHER = "digits.0", "other.0"
POLICIES: list[Any] = [
    *(found for tenant in ("red", "blue") for _, found in policies(AT, tenant, NEAR)),
    between_ranks(AT, "red", DIGITS, "digits")[1],
    between_ranks(AT, "red", OTHER, "other")[1],
]


def tenants(name: str, ip: str, **labels: str) -> End:
    named = {f"mlp-hub/{key}": value for key, value in labels.items()}
    return End(
        ip, f"mlp-{name}", named, {"kubernetes.io/metadata.name": f"mlp-{name}", "mlp-hub/tenant": name}
    )


def others(namespace: str, ip: str, **labels: str) -> End:
    return End(
        ip,
        namespace,
        {k.replace("_", "-"): v for k, v in labels.items()},
        {"kubernetes.io/metadata.name": namespace},
    )


ENDS = {
    "rank 0": tenants("red", "10.244.0.10", attempt=DIGITS, user="ann"),
    "rank 1": tenants("red", "10.244.0.11", attempt=DIGITS, user="ann"),
    "another job's rank": tenants("red", "10.244.0.12", attempt=OTHER, user="bob"),
    "a rank with outbound": tenants("red", "10.244.0.13", attempt="fetch.0", network="outbound"),
    "a notebook": tenants("red", "10.244.0.20", user="ann", network="outbound"),
    "an app": tenants("red", "10.244.0.21", user="ann", app="shop", attempt="shop.0"),
    "blue's app": tenants("blue", "10.244.0.32", user="eve", app="shop", attempt="shop.0"),
    "blue's rank": tenants("blue", "10.244.0.30", attempt=DIGITS, user="eve"),
    "blue's notebook": tenants("blue", "10.244.0.31", user="eve", network="outbound"),
    "dns": others("kube-system", "10.244.0.2", k8s_app="kube-dns"),
    "dns of the node": End("169.254.20.10"),
    "dns beside": End("10.99.0.1"),
    "another pod": others("default", "10.244.0.3"),
    "system": others("kube-system", "10.244.0.4"),
    "the hub's machine": End("10.99.7.5"),
    "metadata": End("169.254.169.254"),
    "a node": End("192.168.1.4"),
    "a node's public address": End("203.0.113.7"),
    "the API": End("10.96.0.1"),
    "the API's public address": End("198.51.100.9"),
    "the outside": End("93.184.216.34"),
    "the outside by IPv6": End("2606:2800:220:1::1"),
    "a pod by IPv6": End("fd00::1"),
    "the metadata by IPv6": End("fd00:ec2::254"),
}

MUST = [
    ("rank 0", "rank 1", 2222),
    ("rank 1", "rank 0", 40000),
    ("rank 0", "dns", 53),
    ("rank 0", "dns of the node", 53),
    ("rank 0", "dns beside", 53),
    ("rank 0", "the hub's machine", 8081),
    ("a notebook", "the hub's machine", 8081),
    ("a notebook", "the hub's machine", 8000),
    ("the hub's machine", "a notebook", 8888),
    ("the hub's machine", "blue's notebook", 8888),
    ("the hub's machine", "an app", APP_PORT),
    ("the hub's machine", "blue's app", APP_PORT),
    ("rank 0", "the hub's machine", 8082),
    ("a notebook", "the hub's machine", 8082),
    ("a notebook", "the outside", 443),
    ("a notebook", "the outside by IPv6", 443),
    ("a rank with outbound", "the outside", 443),
]
MUST_NOT = [
    ("rank 0", "another job's rank", 2222),
    ("another job's rank", "rank 0", 2222),
    ("rank 0", "a notebook", 8888),
    ("a notebook", "rank 0", 2222),
    ("rank 0", "blue's rank", 2222),
    ("blue's rank", "rank 0", 2222),
    ("a notebook", "blue's notebook", 8888),
    ("blue's notebook", "a notebook", 8888),
    ("another pod", "rank 0", 2222),
    ("another pod", "a notebook", 8888),
    ("system", "a notebook", 8888),
    ("the outside", "a notebook", 8888),
    ("the hub's machine", "rank 0", 2222),
    ("the hub's machine", "rank 0", APP_PORT),
    ("the hub's machine", "a notebook", APP_PORT),
    ("the hub's machine", "an app", 8080),
    ("a notebook", "an app", APP_PORT),
    ("rank 0", "an app", APP_PORT),
    ("an app", "a notebook", 8888),
    ("an app", "blue's app", APP_PORT),
    ("blue's app", "an app", APP_PORT),
    ("blue's notebook", "an app", APP_PORT),
    ("another pod", "an app", APP_PORT),
    ("system", "an app", APP_PORT),
    ("a node", "an app", APP_PORT),
    ("the outside", "an app", APP_PORT),
    ("an app", "the outside", 443),
    ("rank 0", "the outside", 443),
    ("rank 0", "system", 443),
    ("rank 0", "dns", 9153),
    ("rank 0", "another pod", 80),
    ("a notebook", "another pod", 80),
    ("rank 0", "the hub's machine", 22),
    ("a notebook", "the hub's machine", 22),
    ("a notebook", "a node", 10250),
    ("a notebook", "a node's public address", 10250),
    ("a notebook", "the API", 443),
    ("a notebook", "the API's public address", 443),
    ("a notebook", "metadata", 80),
    ("rank 0", "metadata", 80),
    ("a rank with outbound", "metadata", 53),
    ("a notebook", "dns of the node", 80),
    ("a notebook", "a pod by IPv6", 80),
    ("a notebook", "the metadata by IPv6", 80),
    ("a rank with outbound", "rank 0", 2222),
]


@pytest.mark.parametrize(("source", "target", "port"), MUST)
def test_required_connections_are_allowed(source: str, target: str, port: int) -> None:
    assert reaches(POLICIES, ENDS[source], ENDS[target], port)


@pytest.mark.parametrize(("source", "target", "port"), MUST_NOT)
def test_forbidden_connections_are_blocked(source: str, target: str, port: int) -> None:
    assert not reaches(POLICIES, ENDS[source], ENDS[target], port)


def test_names_are_asked_for_by_udp_too() -> None:
    assert reaches(POLICIES, ENDS["rank 0"], ENDS["dns"], 53, "UDP")


def test_networks_that_were_opened_and_closed_by_hand() -> None:
    at = installation(open=("192.168.50.0/24",), closed=("93.184.0.0/16",))
    found = [each for _, each in policies(at, "red")]
    assert reaches(found, ENDS["a notebook"], End("192.168.50.7"), 443)
    assert not reaches(found, ENDS["rank 0"], End("192.168.50.7"), 443)
    assert not reaches(found, ENDS["a notebook"], ENDS["the outside"], 443)
    assert reaches(found, ENDS["a notebook"], End("1.1.1.1"), 443)


def test_a_hub_in_the_cluster_is_reached_by_its_namespace() -> None:
    at = installation(service=("service", 8081), hub=("hub.mlp--hub.svc.cluster.local", 8000))
    found = [each for _, each in policies(at, "red")]
    hub = others("mlp--hub", "10.244.0.50")
    assert reaches(found, ENDS["rank 0"], hub, 8081)
    assert reaches(found, ENDS["a notebook"], hub, 8000)
    assert reaches(found, hub, ENDS["a notebook"], 8888)
    assert not reaches(found, others("other", "10.244.0.51"), ENDS["a notebook"], 8888)
    assert not reaches(found, ENDS["rank 0"], others("other", "10.244.0.51"), 8081)


def test_a_name_that_no_policy_can_name_is_refused() -> None:
    with pytest.raises(
        MessageError, match=r"pods reach the hub at hub\.example\.com, which no network policy can name"
    ):
        policies(installation(service=("hub.example.com", 443)), "red")
