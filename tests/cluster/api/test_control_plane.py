"""The API server with controllers and operators; pods are played by kwok."""

from __future__ import annotations

import json

import pytest

from mlp_cluster import fake_nodes
from support.cluster.kube import Kube, Namespace, RefusedError

# other tests make and delete nodes that kwok plays while these run
(OURS,) = (f"{key}={value}" for key, value in fake_nodes.ADDED.items())
ON_FAKE_NODES = {
    "nodeSelector": fake_nodes.ADDED,
    "tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
}


def container(name: str, gpus: int = 0) -> dict:
    rights = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    limits = {"nvidia.com/gpu": str(gpus)} if gpus else {}
    return {
        "name": name,
        "image": "nothing/runs:here",
        "securityContext": rights,
        "resources": {"limits": limits},
    }


def pods_of(name: str, gpus: int = 0) -> dict:
    return {"spec": {**ON_FAKE_NODES, "containers": [container(name, gpus)]}}


@pytest.fixture
def fake(kube: Kube) -> Kube:
    fake_nodes.add(kube.kubeconfig, 3, 8)
    return kube


def test_it_is_the_kubernetes_that_was_built(kube: Kube) -> None:
    assert json.loads(kube("version", "-o", "json"))["serverVersion"]["gitVersion"].startswith("v1.34.")


def test_nodes_that_kwok_plays_are_ready_with_their_gpus(fake: Kube) -> None:
    fake("wait", "node", "-l", OURS, "--for=condition=Ready", "--timeout=60s")
    nodes = fake.get("nodes", "-l", OURS)["items"]
    assert [node["status"]["allocatable"]["nvidia.com/gpu"] for node in nodes] == ["8", "8", "8"]


def test_a_pod_that_asks_for_gpus_runs_on_a_node_that_kwok_plays(fake: Kube, namespace: Namespace) -> None:
    namespace.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, **pods_of("c", gpus=8)})
    namespace.until("pod/p", "condition=Ready")
    assert namespace.get("pod", "p")["spec"]["nodeName"].startswith("fake-")


def test_the_mpi_operator_brings_a_job_to_its_end(fake: Kube, namespace: Namespace) -> None:
    launcher = pods_of("launcher")
    launcher["spec"]["restartPolicy"] = "Never"
    spec = {
        "mpiReplicaSpecs": {
            "Launcher": {"replicas": 1, "template": launcher},
            "Worker": {"replicas": 2, "template": pods_of("worker")},
        }
    }
    namespace.apply(
        {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "metadata": {"name": "m"}, "spec": spec}
    )
    namespace.until("mpijob/m", "condition=Succeeded")


def test_the_training_operators_webhook_refuses_a_tfjob_without_its_container(namespace: Namespace) -> None:
    spec = {"tfReplicaSpecs": {"Worker": {"replicas": 1, "template": pods_of("other")}}}
    with pytest.raises(RefusedError, match=r"admission webhook.*tensorflow"):
        namespace.apply(
            {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "t"}, "spec": spec}
        )


def test_volcanos_webhook_refuses_a_job_that_wants_more_than_it_has(namespace: Namespace) -> None:
    tasks = [{"name": "w", "replicas": 1, "template": pods_of("c")}]
    job = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "v"}}
    with pytest.raises(RefusedError, match="minAvailable"):
        namespace.apply({**job, "spec": {"minAvailable": 2, "schedulerName": "volcano", "tasks": tasks}})


def test_volcano_binds_a_gang_that_fits_and_none_of_one_that_does_not(
    fake: Kube, namespace: Namespace
) -> None:
    def gang(name: str, workers: int) -> str:
        tasks = [{"name": "w", "replicas": workers, "template": pods_of("c", gpus=8)}]
        spec = {"minAvailable": workers, "schedulerName": "volcano", "tasks": tasks}
        namespace.apply(
            {
                "apiVersion": "batch.volcano.sh/v1alpha1",
                "kind": "Job",
                "metadata": {"name": name},
                "spec": spec,
            }
        )
        return f"jobs.batch.volcano.sh/{name}"

    nodes = len(fake.get("nodes", "-l", OURS)["items"])
    fits = gang("fits", 2)
    gang("large", nodes + 1)
    namespace.until(
        fits, "jsonpath={.status.state.phase}=Completed"
    )  # kwok ends the pods of anything called Job
    groups = [
        group["metadata"]["name"] for group in namespace.get("podgroups.scheduling.volcano.sh")["items"]
    ]
    (large,) = [name for name in groups if name.startswith("large-")]
    namespace.until(f"podgroups.scheduling.volcano.sh/{large}", "condition=Unschedulable")
    bound = [p["metadata"]["name"] for p in namespace.get("pods")["items"] if p["spec"].get("nodeName")]
    assert sorted(bound) == ["fits-w-0", "fits-w-1"]
