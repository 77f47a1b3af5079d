"""The chart beside a hub that is there already: no hub and no proxy of its own, tokens of that hub, and values for it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from mlp_hub.settings import Settings
from support.cluster.chart import CHART, VALUES, Chart, Object, named, pods

NOTES = """apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data: {notes: {{ include (print .Template.BasePath "/NOTES.txt") . | quote }}}
"""


@pytest.fixture(scope="module")
def chart() -> Chart:
    return Chart()


@pytest.fixture(scope="module")
def objects(chart: Chart) -> list[Object]:
    return chart.objects("attached")


def notes_of(chart: Chart, to: Path, file: str) -> str:
    """Return what helm prints after an install."""
    copy = to / "chart"
    shutil.copytree(CHART, copy)
    (copy / "templates" / "notes.yaml").write_text(NOTES)
    done = chart.run("template", "hub", copy, "--namespace", "jhub", "--values", VALUES / f"{file}.yaml")
    assert done.returncode == 0, done.stderr
    (found,) = [one for one in yaml.safe_load_all(done.stdout) if one and one["metadata"]["name"] == "notes"]
    return str(found["data"]["notes"])


def test_an_attached_chart_renders_no_hub_and_no_proxy(objects: list[Object]) -> None:
    assert set(pods(objects)) == {"hub-mlp-hub-data", "hub-mlp-hub-service"}
    assert not {"hub-mlp-hub-hub", "hub-mlp-hub-proxy"} & set(named(objects, "Service"))
    assert set(named(objects, "ClusterRole")) == {"mlp-hub-mlp-hub-service", "mlp-hub-mlp-hub-clean"}
    assert not named(objects, "Ingress")
    assert not named(objects, "HTTPRoute")


def test_no_object_is_in_the_way_of_those_of_the_other_chart(objects: list[Object]) -> None:
    theirs = {"hub", "proxy", "proxy-api", "proxy-public", "singleuser", "user-scheduler", "image-puller"}
    assert not theirs & {one["metadata"]["name"] for one in objects}


def _sources(pod: Object) -> dict[str, dict[str, str]]:
    (volume,) = [one for one in pod["spec"]["volumes"] if one["name"] == "secrets"]
    return {
        one["secret"]["name"]: {item["key"]: item["path"] for item in one["secret"]["items"]}
        for one in volume["projected"]["sources"]
    }


def test_tokens_are_those_of_the_other_hub(objects: list[Object]) -> None:
    assert _sources(pods(objects)["hub-mlp-hub-service"]) == {
        "hub-mlp-hub-secrets": {
            "cookie_secret": "cookie_secret",
            "secrets_key": "secrets_key",
            "proxy_token": "proxy_token",
        },
        "hub": {"hub.services.mlp.apiToken": "service_token"},
    }
    assert _sources(pods(objects)["hub-mlp-hub-data"]) == {
        "hub": {"hub.services.mlp-data.apiToken": "data_token"}
    }


def test_a_job_prepares_what_the_hub_prepares_elsewhere_and_a_change_makes_another(chart: Chart) -> None:
    def setup(**sets: str) -> tuple[str, Any]:
        ((name, job),) = [
            (name, job)
            for name, job in named(chart.objects("attached", **sets), "Job").items()
            if "setup" in name
        ]
        return name, job["spec"]["template"]["spec"]["containers"][0]

    name, container = setup()
    assert container["command"][2:] == ["mlp-hub", "pod", "setup", "--secret", "hub-mlp-hub-secrets"]
    assert setup()[0] == name
    assert setup(**{"images.tag": "1.1"})[0] != name


def test_its_settings_name_the_other_hub(objects: list[Object], tmp_path: Path) -> None:
    given = named(objects, "ConfigMap")["hub-mlp-hub-settings"]["data"]
    pod = {
        "MLP_DATABASE_URL": "postgresql://db/mlp",
        "MLP_KUBERNETES_POD": "mlp/x",
        "MLP_HOME": str(tmp_path),
    }
    settings = Settings.load({**given, **pod})
    assert settings.hub_attached
    assert settings.hub_at == ("hub", 8081)
    assert (settings.base, settings.origins.apart) == ("", False)


def test_only_that_hub_its_proxy_its_servers_and_teams_reach_it(objects: list[Object]) -> None:
    found = named(objects, "NetworkPolicy")["hub-mlp-hub-service"]["spec"]["ingress"]
    peers = {
        rule["ports"][0]["port"]: [
            peer["podSelector"]["matchLabels"].get("component")
            for peer in rule["from"]
            if "podSelector" in peer
        ]
        for rule in found
    }
    assert peers == {8083: ["proxy", "hub", None], 8084: ["singleuser-server", "hub"]}
    labels = pods(objects)["hub-mlp-hub-service"]["metadata"]["labels"]
    assert labels["hub.jupyter.org/network-access-hub"] == "true"


def test_the_notes_have_the_values_for_the_other_chart(chart: Chart, tmp_path: Path) -> None:
    notes = notes_of(chart, tmp_path, "attached")
    begin = notes.index("\nhub:\n")
    values = yaml.safe_load(notes[begin : notes.index("\nThe platform's pods start")])
    assert set(values["hub"]["services"]) == {"mlp", "mlp-spawner", "mlp-data"}
    assert values["hub"]["services"]["mlp"]["url"] == "http://hub-mlp-hub-service.jhub.svc:8083"
    config = values["hub"]["extraConfig"]["90-mlp"]
    compile(config, "90-mlp", "exec")
    assert 'service="http://hub-mlp-hub-service.jhub.svc:8084"' in config
    mounts = [one["mountPath"] for one in values["hub"]["extraVolumeMounts"]]
    assert mounts == [values["hub"]["extraEnv"]["PYTHONPATH"]]
    assert "the password that this prints" not in notes


def test_notes_of_a_whole_hub_do_not_mention_another(chart: Chart, tmp_path: Path) -> None:
    notes = notes_of(chart, tmp_path, "trial")
    assert "attached" not in notes
    assert "the password that this prints" in notes


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("hub.enabled=true",), "attach.hubUrl is set beside hub.enabled"),
        (('attach.hubUrl=""',), "hub.enabled is false, and attach.hubUrl is empty"),
        (('attach.hubUrl="https://hub"',), "hubUrl"),
        (('attach.hubUrl="http://hub"',), "hubUrl"),
        (('attach.tokens.secretName=""',), "secretName"),
        (("attach.token=1",), "token"),
        (('address.usersDomain="users.example.org"',), "names of users' servers are those of the hub"),
        (("ingress.enabled=true",), "behind the proxy of the hub that you attach to"),
        (('proxy.tls.secretName="x"',), "behind the proxy of the hub that you attach to"),
        (('config="c.X = 1"',), "config is set beside attach.hubUrl"),
    ],
)
def test_values_that_contradict_are_named(chart: Chart, more: tuple[str, ...], words: str) -> None:
    said = " ".join(chart.refusal("attached", *more).split())
    assert words in said


def test_a_hub_of_ones_own_beside_an_attached_one_is_refused_from_the_other_side_too(chart: Chart) -> None:
    assert "the platform serves one hub" in chart.refusal("gateway", 'attach.hubUrl="http://hub:8081"')


def test_as_a_subchart_its_values_and_objects_are_apart_from_those_of_its_parent(
    chart: Chart, tmp_path: Path
) -> None:
    parent = tmp_path / "site"
    shutil.copytree(CHART, parent / "charts" / "mlp-hub")
    (parent / "Chart.yaml").write_text("apiVersion: v2\nname: site\nversion: 1.0.0\n")
    attached = yaml.safe_load((VALUES / "attached.yaml").read_text())
    (parent / "values.yaml").write_text(yaml.safe_dump({"hub": {"x": 1}, "mlp-hub": attached}))
    done = chart.run("template", "site", parent, "--namespace", "jhub")
    assert done.returncode == 0, done.stderr
    found = [one for one in yaml.safe_load_all(done.stdout) if one]
    assert set(pods(found)) == {"site-mlp-hub-data", "site-mlp-hub-service"}
