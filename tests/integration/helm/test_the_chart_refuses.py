"""Values that are misspelled, contradict each other or are another chart's: helm names them and installs nothing."""

from __future__ import annotations

import pytest

from support.cluster.chart import CHART, Chart

GIVEN = (
    'rbac.namespaces={"mlp-red": true}',
    'rbac.capacity={"cpu": 64, "memory": "256Gi"}',
    'storage.existingClaim="files"',
)
"""Values of an installation in namespaces that an administrator made."""


@pytest.fixture(scope="module")
def chart() -> Chart:
    return Chart()


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("adress.url=1", "adress"),
        ("hub.replicas=2", "replicas"),
        ("settings.notebok_ram=1", "notebok_ram"),
        ("settings.port=8000", "port"),  # the chart sets it
        ("service.topologySpreadConstraints=[]", "topologySpreadConstraints"),
        ("storage.storageClass=x", "storageClass"),
        ("monitoring.serviceMonitor.enable=true", "enable"),
        ("images.names.jupyter=x", "jupyter"),
    ],
)
def test_a_misspelled_value_is_named(chart: Chart, value: str, named: str) -> None:
    key, _, given = value.partition("=")
    assert named in chart.refusal("gateway", **{key: given})


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ('service.replicas="two"', "replicas"),
        ("service.replicas=0", "replicas"),
        ('installation="Upper"', "installation"),
        ('installation="-x"', "installation"),
        ('address.url="hub.example.org"', "url"),
        ('images.pullPolicy="Sometimes"', "pullPolicy"),
        ('settings.notebook_ram="much"', "notebook_ram"),
        ("settings.notebook_ram=1", "notebook_ram"),
        ('settings.scheduling_policy="best"', "scheduling_policy"),
        ('podNetworks.x="not a network"', "podNetworks"),
        ('storage.source={"nfs": {}, "csi": {}}', "source"),
        ("priorityClass.value=2000000000", "priorityClass"),
        ('listenAddress="127.0.0.1"', "listenAddress"),
    ],
)
def test_a_value_of_another_kind_is_named(chart: Chart, value: str, named: str) -> None:
    assert named in chart.refusal("gateway", value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (('address.url=""',), "address.url is empty"),
        (('address.usersDomain=""',), "address.usersDomain is empty"),
        (('database.existingSecret.name=""',), "No database is set"),
        (("database.trial.enabled=true",), "choose one database"),
        (("storage.source=null",), "storage.source is empty"),
        (("httpRoute.parentRefs=null",), "httpRoute.parentRefs is empty"),
        (("monitoring.serviceMonitor.enabled=true",), "networkPolicy.scrapers is empty"),
        (("ingress.enabled=true",), "ingress.tlsSecretName is empty"),
        (('proxy.tls.secretName="x"',), "proxy.tls.secretName is set beside"),
        (
            ('hub.serviceAccount.name="x"', 'service.serviceAccount.name="x"'),
            "hub.serviceAccount.name and service.serviceAccount.name are the same",
        ),
        (
            ('address.url="http://hub.example.org/"', 'proxy.tls.secretName="x"', "httpRoute.enabled=false"),
            "begins with http, beside a certificate",
        ),
        (("networkPolicy.enabled=false",), "networkPolicy.clients and networkPolicy.scrapers limit nobody"),
        (('proxy.service.loadBalancerClass="x"',), "proxy.service.type is ClusterIP"),
        (('database.trial.storageClassName="x"',), "database.trial.size is empty"),
        (('listenAddress="[::]"', 'podNetworks={"private-v6": null}'), "podNetworks has no network of IPv6"),
        (
            ('hub.serviceAccount={"name": "x", "annotations": {"a": "b"}}',),
            "hub.serviceAccount.annotations is set beside hub.serviceAccount.name",
        ),
        (('rbac.capacity={"cpu": 1}',), "rbac.namespaces is empty"),
        (('rbac.namespaces={"red": true}',), "rbac.namespaces has red: the namespace of a team is mlp-TEAM"),
        (('rbac.namespaces={"mlp-red": true}',), "storage.existingClaim is empty"),
        ((*GIVEN, 'rbac.capacity={"cpu": 1}'), "rbac.capacity lacks cpu or memory"),
        ((*GIVEN, "priorityClass.create=true"), "rbac.namespaces and priorityClass.create are both set"),
        (
            (*GIVEN, "settings.kubernetes_prewarmed=2"),
            "rbac.namespaces and settings.kubernetes_prewarmed are both set",
        ),
    ],
)
def test_values_that_cannot_be_together_are_refused_with_the_way_out(
    chart: Chart, more: tuple[str, ...], words: str
) -> None:
    assert words in chart.refusal("gateway", *more)


@pytest.mark.parametrize(
    "value", ["singleuser", "cull", "scheduling", "prePuller", "imagePullSecrets", "custom"]
)
def test_a_value_of_another_chart_is_refused_with_its_name_here(chart: Chart, value: str) -> None:
    assert f"{value} is a value of another chart: set " in chart.refusal("gateway", f'{value}={{"a": 1}}')


def test_without_any_value_the_first_that_is_needed_is_named(chart: Chart) -> None:
    assert "address.url is empty" in chart.refusal("")


def test_a_cluster_that_is_too_old_is_refused_with_both_versions(chart: Chart) -> None:
    values = CHART.parent / "values" / "gateway.yaml"
    for old in ("1.23.17", "1.29.14"):
        done = chart.run("template", "hub", CHART, "--values", values, "--kube-version", old)
        assert done.returncode != 0
        assert "chart requires kubeVersion: >=1.30.0-0" in done.stderr
        assert f"incompatible with Kubernetes v{old}" in done.stderr
    for new in ("1.30.0", "1.34.4-gke.1000"):
        assert not chart.run("template", "hub", CHART, "--values", values, "--kube-version", new).returncode


@pytest.mark.parametrize(
    "attack",
    [
        'address.url="https://hub.example.org/\\n    evil: true"',
        'images.tag="1\\n          privileged: true"',
        'images.repository="r\\nkind: Pod"',
    ],
)
def test_a_value_with_a_line_break_adds_no_field(chart: Chart, attack: str) -> None:
    try:
        objects = chart.objects("gateway", attack)
    except AssertionError:
        return  # refused
    except Exception as error:  # noqa: BLE001 - no YAML is as good as a refusal
        assert "yaml" in type(error).__module__  # noqa: PT017
        return
    assert not any(
        "privileged" in str(one) and "True" in str(one) for one in objects if one["kind"] == "Deployment"
    )
