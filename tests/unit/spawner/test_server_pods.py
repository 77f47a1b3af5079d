"""What a grant makes of a pod, and what a pod tells of its server."""

from __future__ import annotations

from typing import Any

import pytest

from mlp_hub.executors.kubernetes.notebooks import selector
from mlp_language.render import plain
from mlp_spawner.environment import build_for_pod
from mlp_spawner.kubernetes import pod_states
from mlp_spawner.kubernetes.pod_manifest import pod_name
from support.cluster.server_pods import AT, made


def test_a_pod_is_its_tenants_and_found_by_the_hubs_selector() -> None:
    about = made()["metadata"]
    assert about["namespace"] == "mlp-red"
    wanted = dict(part.split("=") for part in selector(AT).split(","))
    assert wanted.items() <= about["labels"].items()
    assert (about["labels"]["mlp-hub/tenant"], about["labels"]["mlp-hub/user"]) == ("red", "ann")
    assert about["labels"]["own"] == "1"


def test_dashboards_of_jupyterhub_find_a_pod_and_its_user() -> None:
    about = made()["metadata"]
    assert about["name"].startswith("jupyter-")
    assert {"app": "jupyterhub", "component": "singleuser-server"}.items() <= about["labels"].items()
    assert about["labels"]["hub.jupyter.org/username"] == "ann"
    assert about["annotations"]["hub.jupyter.org/username"] == "ann"


def test_settings_that_separate_tenants_cannot_be_configured() -> None:
    spec = made()["spec"]
    (container,) = spec["containers"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsUser"] == 300_007
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }
    assert spec["nodeSelector"] == {"disk": "ssd"}
    assert container["image"] == "image:1"


def test_a_pod_requests_the_granted_amount_and_is_limited_in_memory() -> None:
    (container,) = made()["spec"]["containers"]
    assert container["resources"] == {
        "requests": {"cpu": "250m", "memory": "2048Mi"},
        "limits": {"memory": "2048Mi"},
    }


def test_without_gpus_its_image_gets_none_by_a_variable() -> None:
    (container,) = made()["spec"]["containers"]
    assert container["env"] == [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}]


def test_of_the_volume_it_sees_the_users_home_datasets_and_models_alone() -> None:
    (container,) = made()["spec"]["containers"]
    files = [m for m in container["volumeMounts"] if m["name"] == "mlp-files"]
    assert files == [
        {"name": "mlp-files", "mountPath": "/home/ann", "subPath": "homes/ann"},
        {"name": "mlp-files", "mountPath": "/mlp/datasets/ann", "subPath": "datasets/ann"},
        {"name": "mlp-files", "mountPath": "/mlp/models/ann", "subPath": "models/ann", "readOnly": True},
    ]


def test_no_two_servers_have_pods_of_one_name() -> None:
    servers = [
        ("a", "b-c"),
        ("a-b", "c"),
        ("a-b-c", ""),
        ("a.b-c", ""),
        ("a", "b"),
        ("a-b", ""),
        ("x" * 90, ""),
    ]
    names = {pod_name(user, server) for user, server in servers}
    assert len(names) == len(servers)
    assert all(len(name) <= 63 for name in names)


def test_nothing_of_the_hubs_environment_passes() -> None:
    env = build_for_pod({"SECRET": "1", "JUPYTERHUB_USER": "ann"}, "ann", "http://h:1/api")
    assert "SECRET" not in env
    assert (env["JUPYTERHUB_USER"], env["MLP_API_URL"], env["HOME"]) == ("ann", "http://h:1/api", "/home/ann")
    assert "MLP_DATA_URL" not in env
    assert build_for_pod({}, "ann", "http://h:1/api", "http://h:2/data")["MLP_DATA_URL"] == "http://h:2/data"


def told(**status: Any) -> pod_states.Pod:
    about = {"uid": "u", "name": "n", "namespace": "s", **status.pop("about", {})}
    spec = {"containers": [{"name": "notebook", "image": "image:1"}]}
    return pod_states.pod_of({"metadata": about, "spec": spec, "status": status})


def container(**state: Any) -> list[dict[str, Any]]:
    return [{"name": "notebook", "state": state}]


def test_an_image_that_cannot_be_had_is_hopeless_and_one_that_is_tried_again_is_not() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off: no such image."}
    said = plain(pod_states.hopeless(told(containerStatuses=container(waiting=waiting))))
    assert said.startswith(
        "The image image:1 of the notebook server is not available: Back-off: no such image."
    )
    again = told(containerStatuses=container(waiting={"reason": "ErrImagePull"}))
    assert not pod_states.hopeless(again)
    assert "tried again" in plain(pod_states.waits_for(again))


def test_a_container_that_cannot_be_made_is_hopeless_but_not_while_its_node_only_has_not_heard_of_a_secret() -> (
    None
):
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "gone" not found'}
    said = plain(pod_states.hopeless(told(containerStatuses=container(waiting=waiting))))
    assert said.startswith('The notebook server\'s container cannot be made: secret "gone" not found.')
    waiting["message"] = "failed to sync secret cache: timed out waiting for the condition"
    late = told(phase="Pending", containerStatuses=container(waiting=waiting))
    assert not pod_states.hopeless(late)
    assert "on its node" in plain(pod_states.waits_for(late))


def test_a_pod_whose_volume_is_not_there_yet_waits_for_that_and_for_no_node() -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": '0/1 nodes are available: persistentvolumeclaim "mlp-files" not found. preemption: none.',
    }
    pod = told(phase="Pending", conditions=[condition])
    assert pod.unbound
    assert "volume" in plain(pod_states.waits_for(pod))


@pytest.mark.parametrize(
    ("status", "says"),
    [
        ({"containerStatuses": container(terminated={"exitCode": 137, "reason": "OOMKilled"})}, "2048 MiB"),
        ({"phase": "Failed", "reason": "Evicted", "message": "low on memory."}, "its node, which ran short: low on memory"),
        ({"about": {"deletionTimestamp": "now"}, "containerStatuses": container(terminated={"exitCode": 0})}, "deleted in the cluster"),
        ({"containerStatuses": container(terminated={"exitCode": 3})}, "status 3"),
        (
            {"conditions": [{"type": "DisruptionTarget", "status": "True", "message": "taint"}]},
            "ended by the cluster: taint",
        ),
    ],
)  # fmt: skip
def test_its_user_is_told_how_a_server_ended(status: dict[str, Any], says: str) -> None:
    assert says in plain(pod_states.how_it_ended(told(**status), 2048))


def test_a_server_that_was_shut_down_from_within_needs_no_words() -> None:
    assert not pod_states.how_it_ended(told(containerStatuses=container(terminated={"exitCode": 0})), 2048)
    assert "deleted in the cluster" in plain(pod_states.how_it_ended(None, 2048))
