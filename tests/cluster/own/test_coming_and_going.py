"""A cluster beside the one that the other tests use: what it leaves, and that it comes again whatever happened to it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_cluster import cgroups
from mlp_cluster.place import Place, base, clone_name, find
from mlp_cluster.space import HIDDEN, Space
from mlp_cluster.up import down, up
from support.cluster.kube import Kube, Namespace

NAME = f"{clone_name()}-two"
JOBS = Path(__file__).parents[1] / "pods" / "jobs"

pytestmark = pytest.mark.usefixtures("kube")  # the other runs all the time


@pytest.fixture
def passing() -> Iterator[Place]:
    yield up(NAME, pods=True)
    down(NAME)


def run_a_pod(place: Place) -> None:
    default = Namespace(Kube(place.kubeconfig), "default")
    default("delete", "pod", "plain", "--ignore-not-found", "--now")
    default.apply((JOBS / "pod.yaml").read_text())
    default.until("pod/plain", "jsonpath={.status.phase}=Succeeded")


def left() -> list[str]:
    """All that a cluster of this name has on the machine."""
    commands = [entry / "cmdline" for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    told = [path.read_bytes().decode(errors="replace") for path in commands if path.exists()]
    for command in (["ip", "link"], ["ip", "route"], ["cat", "/proc/mounts"]):
        told += subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    folder = base() / "running" / NAME
    files = [*cgroups.left(NAME), *([folder] if folder.exists() else [])]
    return [*(line for line in told if NAME in line), *map(str, files)]


def test_down_leaves_nothing_even_while_pods_run(passing: Place) -> None:
    default = Namespace(Kube(passing.kubeconfig), "default")
    endless = (JOBS / "pod.yaml").read_text().replace("print", "import time; time.sleep(10000); print")
    default.apply(endless)
    default.until("pod/plain", "condition=Ready")
    assert left()
    assert down(NAME)
    assert left() == []
    assert not down(NAME)


def test_it_starts_again_after_the_process_that_holds_it_was_killed(passing: Place) -> None:
    holder = Space(passing).holder()
    assert holder
    os.kill(holder, signal.SIGKILL)
    run_a_pod(up(NAME, pods=True))


def test_killed_programs_are_restarted_with_their_state(passing: Place) -> None:
    run_a_pod(passing)
    space = Space(passing)
    for name in ("etcd", "kube-apiserver", "kubelet", "containerd", "mpi-operator"):
        space.kill(name)
    up(NAME, pods=True)
    pods = Namespace(Kube(passing.kubeconfig), "default").get("pods")["items"]
    assert [pod["status"]["phase"] for pod in pods] == ["Succeeded"]
    run_a_pod(passing)


def test_two_clusters_have_other_addresses_and_the_last_takes_the_mountpoints_away(
    passing: Place, kube: Kube
) -> None:
    others = [place for folder in (base() / "running").iterdir() if (place := find(folder.name))]
    assert len({place.number for place in others}) == len(others)
    down(NAME)
    if len(others) > 1:
        assert all(Path(path).is_dir() for path in HIDDEN)
        kube("get", "nodes")
