"""What a machine lacks for a cluster is told, and what it can run all the same."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from mlp_cluster import able as asked
from mlp_cluster import machine
from mlp_cluster.able import GIB, able
from mlp_cluster.running import ClusterError


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine that has all, and where nothing was built yet."""
    monkeypatch.setenv("CLUSTER_DIR", str(tmp_path))
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(machine, "check", lambda *, pods: None)
    monkeypatch.setattr(machine, "WATCHES", 0)
    monkeypatch.setattr(machine, "WATCHES_OF_API", 0)
    monkeypatch.setattr(machine, "go", lambda: "go")
    monkeypatch.setattr(asked, "output", lambda *_, **__: "")
    monkeypatch.setattr(asked, "_available", lambda: 8 * GIB)
    disk(monkeypatch, 100)
    return tmp_path


def disk(monkeypatch: pytest.MonkeyPatch, gib: float) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=int(gib * GIB)))


def refuses(part: str) -> Callable[..., str]:
    def output(command: list[str], **_: object) -> str:
        if any(part in word for word in command):
            raise ClusterError(f"{part} ended with 1:\n\nOperation not permitted")
        return ""

    return output


def test_a_machine_that_has_all_runs_pods(whole: Path) -> None:
    assert str(able()) == "pods"


@pytest.mark.parametrize(
    ("part", "tier", "said"),
    [
        ("ip_forward", None, "a network of their own are not to be had here: "),
        ("make-rshared", None, "mounts are not to be had here: "),
        ("download", None, "Kubernetes is built from Go modules, which are not to be had: "),
        ("/sys/fs/cgroup", "api", "control groups are not to be had here: "),
        ("iptables", "api", "rules for packets are not to be had here: "),
    ],
)
def test_a_missing_capability_is_named(
    whole: Path, monkeypatch: pytest.MonkeyPatch, part: str, tier: str | None, said: str
) -> None:
    monkeypatch.setattr(asked, "output", refuses(part))
    found = able()
    assert found.tier == tier
    assert found.lacks == f"{said}{part} ended with 1:; Operation not permitted"


def test_a_user_without_root_rights_learns_that_a_cluster_needs_root(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    assert str(able(whole)).startswith("none a cluster needs root: ")


def test_packages_of_pods_alone_are_missed_by_pods_alone(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(*, pods: bool) -> None:
        if pods:
            raise ClusterError("missing on this machine: runc")

    monkeypatch.setattr(machine, "check", check)
    assert str(able()) == "api missing on this machine: runc"


@pytest.mark.parametrize(("gib", "tier"), [(0.5, None), (6.9, None), (7.5, "api"), (12.5, "pods")])
def test_a_full_disk_is_told_before_it_is_found_in_the_middle_of_a_build(
    whole: Path, monkeypatch: pytest.MonkeyPatch, gib: float, tier: str | None
) -> None:
    disk(monkeypatch, gib)
    found = able()
    assert found.tier == tier
    assert (f"{gib:.1f} GiB of disk at {whole} are free, and it takes " in found.lacks) == (tier != "pods")


def test_an_existing_build_needs_little_more_space(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.programs.folder().mkdir(parents=True)
    (whole / "images" / "some").mkdir(parents=True)
    disk(monkeypatch, 1.5)
    assert able().tier == "pods"


def test_little_memory_is_told(whole: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asked, "_available", lambda: GIB)
    assert able() == asked.Able(None, "1.0 GiB of memory are free, and it takes 2")


def test_too_few_watches_of_files_are_told_with_the_way_out(
    whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "WATCHES", 1_000_000)
    assert able().tier == "api"
    assert "sysctl fs.inotify.max_user_instances=" in able().lacks
