"""The Helm chart, rendered by the real helm: its objects, and that none changes by itself."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
import yaml

from mlp_hub.kubernetes import restricted
from mlp_hub.settings import Settings
from reference.rights import ROLES
from support.cluster.chart import CHART, FILES, Chart, Object, containers, named, pods

DATA = "MLP_"


@pytest.fixture(scope="module")
def chart() -> Chart:
    return Chart()


def settings_of(objects: list[Object], home: Path) -> Settings:
    """Load the settings of a rendered chart as a pod would."""
    (found,) = [
        one["data"] for name, one in named(objects, "ConfigMap").items() if name.endswith("-settings")
    ]
    given = {key: value for key, value in found.items() if key != "MLP_CONFIG"}
    pod = {"MLP_DATABASE_URL": "postgresql://db/mlp", "MLP_KUBERNETES_POD": "mlp/hub-service-1"}
    return Settings.load({**given, **pod, "MLP_HOME": str(home)})


@pytest.mark.parametrize("file", FILES)
def test_helm_finds_no_fault(chart: Chart, file: str) -> None:
    done = chart.run("lint", "--strict", CHART, "--values", CHART.parent / "values" / f"{file}.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", FILES)
def test_two_renders_are_equal(chart: Chart, file: str) -> None:
    assert chart.text(file) == chart.text(file)


def test_no_template_asks_the_cluster_or_chance() -> None:
    forbidden = re.compile(
        r"\b(lookup|rand\w*|uuidv4|now|date|genCA|genSelfSigned\w*|genPrivateKey|htpasswd|bcrypt)\b"
    )
    for path in (CHART / "templates").iterdir():
        for action in re.findall(r"{{-?(.*?)-?}}", path.read_text(), re.DOTALL):
            if not action.lstrip().startswith("/*"):
                assert not forbidden.search(re.sub(r'"[^"]*"', "", action)), f"{path.name}: {action}"


@pytest.mark.parametrize("file", FILES)
def test_every_pod_fits_pod_security_restricted(chart: Chart, file: str) -> None:
    found = pods(chart.objects(file))
    assert len(found) >= (2 if file == "attached" else 4)
    for name, pod in found.items():
        context = pod["spec"]["securityContext"]
        assert context["runAsNonRoot"] is True, name
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert not {"hostNetwork", "hostPID", "hostIPC"} & pod["spec"].keys(), name
        for one in containers(pod):
            assert one["securityContext"].items() >= restricted.container().items(), f"{name}/{one['name']}"
        allowed = {"emptyDir", "configMap", "secret", "persistentVolumeClaim", "projected"}
        for volume in pod["spec"]["volumes"]:
            assert volume.keys() - {"name"} <= allowed, f"{name}/{volume['name']}"


@pytest.mark.parametrize("file", FILES)
def test_all_names_begin_with_the_release_and_no_object_is_there_twice(chart: Chart, file: str) -> None:
    objects = chart.objects(file)
    keys = [(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]) for one in objects]
    assert len(keys) == len(set(keys))
    begin = "research" if file == "monitored" else "hub-mlp-hub"
    for kind, namespace, name in keys:
        if kind.startswith("ValidatingAdmissionPolicy"):
            assert name == f"{'research' if file == 'monitored' else 'mlp'}--confined"
            continue
        assert name.startswith(begin if namespace else f"mlp-{begin}"), name


def test_two_releases_of_one_cluster_share_no_name(chart: Chart) -> None:
    objects = chart.objects("gateway")
    outside = {
        (one["kind"], one["metadata"]["name"]) for one in objects if "namespace" not in one["metadata"]
    }
    assert all("charttwo" not in str(one) for one in objects)
    values = CHART.parent / "values" / "gateway.yaml"
    done = chart.run(
        "template", "hub", CHART, "--namespace", "other", "--values", values, "--set", "installation=charttwo"
    )
    again = [one for one in yaml.safe_load_all(done.stdout) if one and "namespace" not in one["metadata"]]
    assert outside
    assert not outside & {(one["kind"], one["metadata"]["name"]) for one in again}


@pytest.mark.parametrize("file", FILES)
def test_the_settings_of_the_pods_load(chart: Chart, file: str, tmp_path: Path) -> None:
    settings = settings_of(chart.objects(file), tmp_path)
    assert settings.executor == "kubernetes"
    assert isinstance(settings.hub_at, tuple)
    assert isinstance(settings.service_at, tuple)
    assert isinstance(settings.data_at, tuple)
    assert isinstance(settings.proxy_at, tuple)
    assert settings.volume


def test_a_changed_setting_restarts_the_pods_and_nothing_else_does(chart: Chart) -> None:
    def sums(**sets: str) -> set[str]:
        found = pods(chart.objects("gateway", **sets))
        return {pod["metadata"]["annotations"]["checksum/config"] for pod in found.values()}

    before = sums()
    assert len(before) == 1
    assert sums(**{"settings.notebook_ram": "4096"}) != before
    assert sums(config="c.JupyterHub.log_level = 10") != before
    assert sums(**{"proxy.service.port": "81"}) == before


def test_settings_become_variables(chart: Chart) -> None:
    objects = chart.objects(
        "gateway",
        'settings.mail_domains={"a": "example.org", "b": null, "c": "example.com"}',
        "settings.charge_files=false",
        "settings.notebook_cpu=0.5",
        "settings.metric_points_max=5000000",
        "settings.keep_jobs_days=null",
    )
    found = named(objects, "ConfigMap")["hub-mlp-hub-settings"]["data"]
    assert found["MLP_MAIL_DOMAINS"] == "example.org,example.com"
    assert found["MLP_CHARGE_FILES"] == "0"
    assert found["MLP_NOTEBOOK_CPU"] == "0.5"
    assert found["MLP_METRIC_POINTS_MAX"] == "5000000"
    assert "MLP_KEEP_JOBS_DAYS" not in found


def test_only_the_parts_that_need_the_cluster_have_its_token(chart: Chart) -> None:
    found = pods(chart.objects("trial"))
    held = {name: pod["spec"].get("automountServiceAccountToken", True) for name, pod in found.items()}
    assert held == {
        "hub-mlp-hub-hub": True,
        "hub-mlp-hub-service": True,
        "hub-mlp-hub-proxy": False,
        "hub-mlp-hub-data": False,
        "hub-mlp-hub-postgresql": False,
    }


def test_each_part_gets_only_its_own_secrets(chart: Chart) -> None:
    keys = {
        name: sorted(
            item["key"]
            for volume in pod["spec"]["volumes"]
            for item in volume.get("secret", {}).get("items", ())
        )
        for name, pod in pods(chart.objects("trial")).items()
    }
    assert keys == {
        "hub-mlp-hub-hub": [],  # it makes the Secret
        "hub-mlp-hub-service": [
            "cookie_secret",
            "database_password",
            "proxy_token",
            "secrets_key",
            "service_token",
        ],
        "hub-mlp-hub-proxy": ["gateway_token", "proxy_token"],
        "hub-mlp-hub-data": ["data_token"],
        "hub-mlp-hub-postgresql": ["database_password"],
    }


def test_an_existing_secret_replaces_the_made_one_wholly(chart: Chart) -> None:
    objects = chart.objects("ingress")
    assert "hub-mlp-hub-secrets" not in chart.text("ingress")
    assert named(objects, "Role").keys() == {"hub-mlp-hub-service"}
    (setup,) = pods(objects)["hub-mlp-hub-hub"]["spec"]["initContainers"]
    assert "--secret" not in setup["command"]


def test_the_service_selects_the_leader_and_the_budget_is_for_two_or_more(chart: Chart) -> None:
    objects = chart.objects("gateway")
    assert named(objects, "Service")["hub-mlp-hub-service"]["spec"]["selector"]["mlp-hub/leads"] == "true"
    assert named(objects, "PodDisruptionBudget").keys() == {"hub-mlp-hub-service"}
    assert not named(chart.objects("trial"), "PodDisruptionBudget")


def test_nothing_kills_a_migration(chart: Chart) -> None:
    for pod in pods(chart.objects("gateway")).values():
        for one in pod["spec"].get("initContainers", ()):
            assert not {"livenessProbe", "startupProbe"} & one.keys()
        assert "activeDeadlineSeconds" not in pod["spec"]


@pytest.mark.parametrize("role", ["hub", "service", "clean"])
def test_each_account_has_the_rights_of_its_table_and_no_other(chart: Chart, role: str) -> None:
    found = named(chart.objects("gateway"), "ClusterRole")[f"mlp-hub-mlp-hub-{role}"]
    needed = {(need.kind.group, need.kind.plural, verb) for need in ROLES[role] for verb in need.verbs}
    given = {
        (group, resource, verb)
        for rule in found["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert given == needed


def test_the_service_may_change_pods_in_the_release_namespace_only(chart: Chart) -> None:
    objects = chart.objects("gateway")
    (rule,) = named(objects, "Role")["hub-mlp-hub-service"]["rules"]
    assert rule == {"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}
    everywhere = named(objects, "ClusterRole")["mlp-hub-mlp-hub-service"]["rules"]
    assert not [rule for rule in everywhere if rule["resources"] == ["pods"] and "patch" in rule["verbs"]]


def test_with_given_namespaces_nothing_needs_rights_in_the_whole_cluster(chart: Chart) -> None:
    objects = chart.objects("namespaces")
    assert all("namespace" in one["metadata"] for one in objects), [
        one["kind"] for one in objects if "namespace" not in one["metadata"]
    ]
    roles = [
        (one["metadata"]["namespace"], one["metadata"]["name"]) for one in objects if one["kind"] == "Role"
    ]
    assert sorted(roles) == [
        ("mlp", "hub-mlp-hub-hub"),
        ("mlp", "hub-mlp-hub-service"),
        ("mlp-default", "hub-mlp-hub-hub"),
        ("mlp-default", "hub-mlp-hub-service"),
        ("mlp-red", "hub-mlp-hub-hub"),
        ("mlp-red", "hub-mlp-hub-service"),
    ]
    data = named(objects, "ConfigMap")["hub-mlp-hub-settings"]["data"]
    assert data["MLP_KUBERNETES_NAMESPACES"] == "mlp-default,mlp-red"
    assert json.loads(data["MLP_KUBERNETES_CAPACITY"]) == {
        "cpu": "64",
        "memory": "256Gi",
        "nvidia.com/gpu": "8",
    }


def test_without_roles_of_the_chart_an_uninstall_makes_none_either(chart: Chart) -> None:
    kinds = {one["kind"] for one in chart.objects("ipv6")}
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}


def test_no_right_is_for_all_kinds_or_all_verbs(chart: Chart) -> None:
    for file in FILES:
        objects = chart.objects(file)
        for one in (*named(objects, "ClusterRole").values(), *named(objects, "Role").values()):
            for rule in one["rules"]:
                assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
                assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])


def test_each_verb_has_its_reason_beside_it(chart: Chart) -> None:
    text = chart.text("gateway")
    verbs = [
        line for line in text.splitlines() if re.match(r" +- (get|list|watch|patch|create|delete\w*)\b", line)
    ]
    assert len(verbs) > 100
    assert [line for line in verbs if "  # " not in line] == []
    lines = text.splitlines()
    rules = [n for n, line in enumerate(lines) if line.startswith("  - apiGroups: ")]
    assert [lines[n] for n in rules if not lines[n - 1].lstrip().startswith("# ")] == []


def test_a_wildcard_name_leads_to_the_proxy_beside_the_platforms(chart: Chart) -> None:
    (route,) = named(chart.objects("gateway"), "HTTPRoute").values()
    assert route["spec"]["hostnames"] == ["hub.example.org", "*.users.example.org"]
    (ingress,) = named(chart.objects("ingress"), "Ingress").values()
    assert [rule["host"] for rule in ingress["spec"]["rules"]] == [
        "tools.example.org",
        "*.mlp-users.example.org",
    ]
    assert ingress["spec"]["tls"][0]["hosts"] == ["tools.example.org", "*.mlp-users.example.org"]
    assert ingress["spec"]["rules"][0]["http"]["paths"][0]["path"] == "/mlp"


def test_everything_that_a_workload_can_be_given_arrives(chart: Chart) -> None:
    objects = chart.objects("monitored")
    deployment = named(objects, "Deployment")["research-service"]
    assert deployment["metadata"]["labels"]["example.org/owner"] == "platform"
    assert deployment["metadata"]["annotations"] == {"example.org/note": "service"}
    pod = deployment["spec"]["template"]
    assert pod["metadata"]["labels"]["example.org/cost"] == "platform"
    assert pod["metadata"]["annotations"]["example.org/scrape"] == "false"
    spec = pod["spec"]
    assert spec["nodeSelector"] == {"example.org/pool": "platform"}
    assert spec["tolerations"] == [{"key": "example.org/platform", "operator": "Exists"}]
    assert [one["topologyKey"] for one in spec["topologySpreadConstraints"]] == [
        "topology.kubernetes.io/zone"
    ]
    assert spec["priorityClassName"] == "mlp-research"
    service, logs = spec["containers"]
    assert {"name": "HTTPS_PROXY", "value": "http://proxy.example.org:3128"} in service["env"]
    assert {"name": "authorities", "mountPath": "/etc/authorities", "readOnly": True} in service[
        "volumeMounts"
    ]
    assert {"name": "authorities", "configMap": {"name": "authorities"}} in spec["volumes"]
    assert logs["securityContext"]["readOnlyRootFilesystem"] is True


def test_network_policies_name_only_pods_of_the_chart_and_of_teams(chart: Chart) -> None:
    objects = chart.objects("trial")
    labels = [pod["metadata"]["labels"].items() for pod in pods(objects).values()]
    policies = named(objects, "NetworkPolicy")
    assert len(policies) == 5
    for policy in policies.values():
        selector = policy["spec"]["podSelector"]["matchLabels"].items()
        assert any(selector <= one for one in labels)
        assert "Ingress" in policy["spec"]["policyTypes"]
    (database,) = policies["hub-mlp-hub-postgresql"]["spec"]["ingress"]
    peers = [peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for peer in database["from"]]
    assert sorted(peers) == ["hub", "service"]


def test_only_named_scrapers_reach_the_metrics(chart: Chart) -> None:
    def ports(file: str) -> list[int]:
        found = [policy["spec"]["ingress"] for policy in named(chart.objects(file), "NetworkPolicy").values()]
        return [port["port"] for rules in found for rule in rules for port in rule["ports"]]

    assert 8085 not in ports("gateway")
    assert 8085 in ports("monitored")


def test_probes_ask_where_nodes_may(chart: Chart) -> None:
    """The port for parts of the platform serves addresses of pods only."""
    for name in ("hub", "service"):
        for one in pods(chart.objects("gateway"))[f"hub-mlp-hub-{name}"]["spec"]["containers"]:
            probes = [one[key] for key in one if key.endswith("Probe")]
            assert {probe["httpGet"]["port"] for probe in probes} == {"pods"}


def test_monitoring_is_off_until_it_is_asked_for(chart: Chart) -> None:
    assert not [one for one in chart.objects("gateway") if one["apiVersion"].startswith("monitoring")]
    objects = chart.objects("monitored")
    assert named(objects, "ServiceMonitor").keys() == {"research-mlp-hub", "research-jupyterhub"}
    (rules,) = named(objects, "PrometheusRule").values()
    urls = {
        rule["annotations"]["runbook_url"] for group in rules["spec"]["groups"] for rule in group["rules"]
    }
    assert urls
    assert all(url.startswith("https://hub.example.org/services/mlp/docs/") for url in urls)
    boards = [one for name, one in named(objects, "ConfigMap").items() if "-dashboards-" in name]
    assert len(boards) >= 5
    for board in boards:
        (content,) = board["data"].values()
        assert json.loads(content)["title"]


def test_the_notes_have_the_address_and_the_next_step(chart: Chart, tmp_path: Path) -> None:
    # helm shows them only where a cluster is asked: here they are the content of one more object
    copy = shutil.copytree(CHART, tmp_path / "mlp-hub")
    notes = (CHART / "templates" / "NOTES.txt").read_text()
    head = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes}\n"
    shown = f'{{{{- define "notes" -}}}}{notes}{{{{- end -}}}}\n{head}data: {{notes: {{{{ include "notes" . | toJson }}}}}}\n'
    (copy / "templates" / "notes.yaml").write_text(shown)
    values = CHART.parent / "values" / "trial.yaml"
    done = chart.run(
        "template",
        "hub",
        copy,
        "--namespace",
        "mlp",
        "--values",
        values,
        "--show-only",
        "templates/notes.yaml",
    )
    assert done.returncode == 0, done.stderr
    notes = yaml.safe_load(done.stdout)["data"]["notes"]
    assert "http://localhost:8000/" in notes
    assert "get secret hub-mlp-hub-secrets" in notes
    assert "port-forward svc/hub-mlp-hub-proxy" in notes
    assert "trial" in notes


def test_a_changed_setting_does_not_restart_the_trial_database(chart: Chart) -> None:
    def database(**sets: str) -> Object:
        return pods(chart.objects("trial", **sets))["hub-mlp-hub-postgresql"]

    assert database(**{"settings.notebook_ram": "4096"}) == database()


def test_the_trial_database_is_on_a_volume_that_outlives_its_pod(chart: Chart) -> None:
    for sets in ({}, {"database.trial.size": "8Gi"}):
        found = pods(chart.objects("trial", **sets))["hub-mlp-hub-postgresql"]["spec"]
        place = found["containers"][0]["command"][3]
        mounts = {one["mountPath"]: one["name"] for one in found["containers"][0]["volumeMounts"]}
        (volume,) = [name for path, name in mounts.items() if path in ("/files", "/var/lib/trial")]
        assert place.startswith(tuple(mounts))
        assert {"name": volume, **found["volumes"][-1]} == found["volumes"][-1]
        assert "persistentVolumeClaim" in found["volumes"][-1]


def hooks(objects: list[Object]) -> list[Object]:
    """Return the objects that helm has only while it installs, upgrades or uninstalls; not those of `helm test`."""
    found = ((one, one["metadata"].get("annotations", {}).get("helm.sh/hook")) for one in objects)
    return [one for one, hook in found if hook not in {None, "test"}]


def test_an_uninstall_removes_what_the_hub_made_and_no_other_hook_holds_up_anything(chart: Chart) -> None:
    found = hooks(chart.objects("gateway"))
    assert {one["metadata"]["annotations"]["helm.sh/hook"] for one in found} == {"post-delete"}
    verbs = {verb for one in found for rule in one.get("rules", ()) for verb in rule["verbs"]}
    assert verbs == {"list", "delete"}
    assert hooks(chart.objects("gateway", **{"uninstall.clean": "false"})) == []


def test_the_secret_is_removed_only_where_no_files_are_kept_that_it_opens(chart: Chart) -> None:
    def removed(**sets: str) -> bool:
        (job,) = named(chart.objects("gateway", **sets), "Job").values()
        return "--secret" in job["spec"]["template"]["spec"]["containers"][0]["command"]

    assert not removed()
    assert removed(**{"storage.keep": "false"})
    assert not removed(**{"storage.keep": "false", "secrets.existingSecret": "mine"})


def test_the_job_of_an_uninstall_needs_nothing_that_is_gone_by_then(chart: Chart) -> None:
    objects = chart.objects("gateway", **{"priorityClass.create": "true"})
    (job,) = named(objects, "Job").values()
    pod = job["spec"]["template"]["spec"]
    assert "priorityClassName" not in pod
    assert "envFrom" not in pod["containers"][0]
    assert [volume for volume in pod["volumes"] if "emptyDir" not in volume] == []
    assert pod["serviceAccountName"] in {one["metadata"]["name"] for one in hooks(objects)}
