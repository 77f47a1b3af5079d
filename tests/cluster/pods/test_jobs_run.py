"""Jobs of each operator with real pods, in a namespace that is `restricted`."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cluster.kube import Namespace, RefusedError

pytestmark = pytest.mark.whole  # the development cluster's own operators: the hub's gangs show them too
JOBS = Path(__file__).parent / "jobs"


def test_a_plain_pod_finds_the_api_server_by_its_name(namespace: Namespace) -> None:
    namespace.apply((JOBS / "pod.yaml").read_text())
    namespace.until("pod/plain", "jsonpath={.status.phase}=Succeeded")
    assert namespace("logs", "plain") == "reached\n"


def test_an_mpijob_has_a_rank_in_each_pod_its_launchers_included(namespace: Namespace) -> None:
    namespace.apply((JOBS / "mpi.yaml").read_text())
    namespace.until("mpijob/ranks", "condition=Succeeded")
    said = namespace("logs", "-l", "training.kubeflow.org/job-role=launcher", "--tail=-1")
    ranks = sorted(line.split() for line in said.splitlines() if line.startswith("rank "))
    assert [(rank, size) for _, rank, _, size, _, _ in ranks] == [("0", "3"), ("1", "3"), ("2", "3")]
    assert len({rank[-1] for rank in ranks}) == 3


def test_a_tfjobs_tasks_know_each_other(namespace: Namespace) -> None:
    namespace.apply((JOBS / "tensorflow.yaml").read_text())
    namespace.until("tfjob/tasks", "condition=Succeeded")
    assert namespace("logs", "tasks-chief-0") == "chief 0 sees ['chief', 'worker']\n"


def test_a_volcano_gang_runs_to_its_end(namespace: Namespace) -> None:
    namespace.apply((JOBS / "volcano.yaml").read_text())
    namespace.until("jobs.batch.volcano.sh/gang", "jsonpath={.status.state.phase}=Completed")


def test_a_pod_that_wants_the_nodes_files_is_refused(namespace: Namespace) -> None:
    pod = (JOBS / "pod.yaml").read_text() + "  volumes: [{name: all, hostPath: {path: /}}]\n"
    with pytest.raises(RefusedError, match="violates PodSecurity"):
        namespace.apply(pod)
