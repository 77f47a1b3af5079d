"""Who reaches whom in a cluster with the chart's network policies and those of teams, where the network enforces them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from mlp_hub.executors.kubernetes.tenancy.objects.namespaces import namespace
from mlp_hub.executors.kubernetes.tenancy.objects.network import between_ranks, policies
from support.cluster.chart import Chart, named, pods
from support.cluster.kube_installation import installation
from support.cluster.reachability import End, reaches

AT = installation(
    "mlp",
    hub=("hub-mlp-hub-hub.mlp.svc", 8082),
    service=("hub-mlp-hub-service.mlp.svc", 8084),
    data=("hub-mlp-hub-data.mlp.svc", 8087),
)
PARTS = ("proxy", "hub", "service", "data", "postgresql")
PUBLIC, API, OWN = (
    {"proxy": 8000},
    {"proxy": 8001},
    {"hub": 8081, "service": 8083, "data": 8086, "postgresql": 5432},
)
FOR_PODS, METRICS = {"hub": 8082, "service": 8084, "data": 8087}, {"service": 8085}
PORTS = sorted({*PUBLIC.values(), *API.values(), *OWN.values(), *FOR_PODS.values(), *METRICS.values()})
MUST: Mapping[str, set[tuple[str, int]]] = {
    "proxy": {("hub", 8081), ("service", 8083), ("data", 8086), ("notebook", 8888), ("app", 19998)},
    "hub": {("proxy", 8001), ("service", 8083), ("postgresql", 5432), ("notebook", 8888)},
    "service": {
        ("proxy", 8001), ("hub", 8081), ("data", 8086), ("postgresql", 5432), ("notebook", 8888), ("app", 19998),
    },
    "data": {("service", 8083)},
    "postgresql": set(),
    "notebook": {("hub", 8082), ("service", 8084), ("data", 8087)},
    "rank": {("hub", 8082), ("service", 8084), ("data", 8087)},
    "app": {("hub", 8082), ("service", 8084), ("data", 8087)},
    "another pod": set(),
    "a pod beside the platform": set(),
    "the gateway": {("proxy", 8000)},
    "prometheus": {("service", 8085), ("hub", 8081)},
    "outside": set(),
}  # fmt: skip
"""Who must reach whom at which port of the platform's parts, and of teams' pods; nobody may reach more."""


@pytest.fixture(scope="module")
def applied() -> tuple[list[dict[str, Any]], dict[str, End]]:
    """All policies of one installation with a gateway, Prometheus and the trial database, and who is there."""
    clients = 'networkPolicy.clients={"gateway": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "gateways"}}}}'
    scrapers = 'networkPolicy.scrapers={"prometheus": {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}}'
    objects = Chart().objects("trial", clients, scrapers)
    found = [*named(objects, "NetworkPolicy").values()]
    for tenant in ("red", "blue"):
        found += [policy for _, policy in policies(AT, tenant)]
    found.append(between_ranks(AT, "red", "digits.0", "digits")[1])
    templates = pods(objects)
    ends = {
        part: _in("mlp", f"10.244.1.{number}", templates[f"hub-mlp-hub-{part}"]["metadata"]["labels"])
        for number, part in enumerate(PARTS, 1)
    }
    ends |= {
        "notebook": _of("red", 1, user="ann", network="outbound"),
        "rank": _of("red", 2, user="ann", attempt="digits.0"),
        "app": _of("red", 3, user="ann", app="shop", attempt="shop.0"),
        "blue's notebook": _of("blue", 4, user="eve"),
        "another pod": _in("default", "10.244.3.1", {}),
        "a pod beside the platform": _in("mlp", "10.244.3.2", {"app.kubernetes.io/instance": "hub"}),
        "the gateway": _in("gateways", "10.244.3.3", {}),
        "prometheus": _in("monitoring", "10.244.3.4", {}),
        "outside": End("93.184.216.34"),
    }
    return found, ends


def _in(space: str, ip: str, labels: Mapping[str, str], **more: str) -> End:
    return End(ip, space, labels, {"kubernetes.io/metadata.name": space, **more})


def _of(tenant: str, number: int, **labels: str) -> End:
    _, made = namespace(AT, tenant)
    own = {f"mlp-hub/{key}": value for key, value in labels.items()}
    return End(
        f"10.244.2.{number}",
        f"mlp-{tenant}",
        own,
        {"kubernetes.io/metadata.name": f"mlp-{tenant}", **made["metadata"]["labels"]},
    )


@pytest.mark.parametrize("source", MUST)
def test_each_reaches_what_it_must_and_nothing_else(
    applied: tuple[list[dict[str, Any]], dict[str, End]], source: str
) -> None:
    found, ends = applied
    reached = {
        (target, port)
        for target in (*PARTS, "notebook", "rank", "app", "blue's notebook")
        if target != source
        for port in (*PORTS, 8888, 19998, 22)
        if reaches(found, ends[source], ends[target], port)
    }
    if (
        source in PARTS
    ):  # teams admit all pods of the platform's namespace at these ports; whether a notebook is red's or blue's makes no difference to the platform
        mirrored = {("blue's notebook", port) for target, port in MUST[source] if target == "notebook"}
        assert mirrored <= reached
    platform = {each for each in reached if each[0] in PARTS}
    assert platform == {each for each in MUST[source] if each[0] in PARTS}
    assert {each for each in MUST[source] if each[0] not in PARTS} <= reached


@pytest.mark.parametrize(
    "source",
    ["another pod", "the gateway", "prometheus", "outside", "postgresql", "a pod of another release"],
)
def test_no_other_pod_reaches_a_pod_of_a_team(
    applied: tuple[list[dict[str, Any]], dict[str, End]], source: str
) -> None:
    found, ends = applied
    ends = {**ends, "a pod of another release": _in("other", "10.244.4.1", ends["proxy"].labels)}
    for target in ("notebook", "rank", "app", "blue's notebook"):
        for port in (22, 8888, 19998, 2222):
            assert not reaches(found, ends[source], ends[target], port), (target, port)


def test_parts_of_another_release_reach_no_part_of_this_one(
    applied: tuple[list[dict[str, Any]], dict[str, End]],
) -> None:
    found, ends = applied
    for source in PARTS:
        other = _in("other", "10.244.4.2", ends[source].labels)
        for target in PARTS:
            assert not any(reaches(found, other, ends[target], port) for port in PORTS), (source, target)


def test_the_platform_reaches_the_clusters_api_and_what_people_name_outside(
    applied: tuple[list[dict[str, Any]], dict[str, End]],
) -> None:
    found, ends = applied
    api, mail = End("10.96.0.1"), End("93.184.216.35")
    assert all(reaches(found, ends[part], api, 443) for part in ("hub", "service"))
    assert all(reaches(found, ends[part], mail, 587) for part in ("hub", "service"))
    assert not reaches(found, ends["proxy"], api, 443)
    assert not reaches(found, ends["proxy"], mail, 443)
    assert not reaches(found, ends["postgresql"], mail, 443)


def test_the_proxy_finds_names(applied: tuple[list[dict[str, Any]], dict[str, End]]) -> None:
    found, ends = applied
    dns = _in("kube-system", "10.244.0.2", {"k8s-app": "kube-dns"})
    assert reaches(found, ends["proxy"], dns, 53, "UDP")
    assert reaches(found, ends["proxy"], dns, 53)
