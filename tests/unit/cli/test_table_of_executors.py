"""The executors that a setting may name are those that can be made."""

from __future__ import annotations

import ast
import asyncio
from dataclasses import fields, replace
from pathlib import Path

import pytest

from mlp_hub import settings as settings_module
from mlp_hub.backends import BACKENDS, backend_of
from mlp_hub.backends.simulated import simulated_nodes
from mlp_hub.cli.doctor import doctor
from mlp_hub.cli.lifecycle.grounds import GROUNDS
from mlp_hub.cli.state import belonging
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.settings.executor_kinds import (
    EXECUTOR_KINDS,
    SANDBOX_CHECKS,
    SOME_CHECKS,
    ConfigFile,
    ExecutorKind,
    Ground,
    Ranks,
)


def test_every_executor_that_a_setting_may_name_is_in_the_table() -> None:
    (field,) = [field for field in fields(Settings) if field.name == "executor"]
    assert field.metadata["choices"] == tuple(BACKENDS)


def test_each_is_made_under_its_own_name(tmp_path: Path) -> None:
    for name in (
        name for name, kind in EXECUTOR_KINDS.items() if kind.config is None
    ):  # others need their system
        settings = Settings.load({"MLP_HOME": str(tmp_path), "MLP_EXECUTOR": name})
        asyncio.run(_made(settings, name))


async def _made(settings: Settings, name: str) -> None:
    executor = await backend_of(settings).make(settings)
    assert executor.name == name
    await executor.close()


def test_one_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    settings = replace(Settings.load({"MLP_HOME": str(tmp_path)}), executor="cloud")
    with pytest.raises(SettingsError, match=r"'cloud'.* local, simulated, kubernetes"):
        backend_of(settings)


def test_every_trait_of_an_executor_has_its_row_where_it_acts() -> None:
    from mlp_hub.hub_integration.configure import SPAWNERS

    assert set(GROUNDS) == set(SPAWNERS) == set(Ground)
    assert set(belonging._RUNNING) == set(Ranks)
    assert {name for name, _ in doctor.CHECKS} >= SOME_CHECKS
    settings = {field.name for field in fields(Settings)}
    for kind in EXECUTOR_KINDS.values():
        assert {kind.files_setting, kind.config.setting if kind.config else ""} <= {*settings, ""}


SLURM = ExecutorKind(
    "on nodes of a batch system",
    ranks=Ranks.ELSEWHERE,
    needs_sandbox=True,
    checks=SANDBOX_CHECKS - {"gpu"},
    files_setting="kubernetes_files",
    config=ConfigFile("kubernetes_config", "SLURM_CONF"),
)


def test_a_third_executor_is_a_row_and_its_traits_act_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXECUTOR_KINDS, "slurm", SLURM)  # type: ignore[misc]
    (executor,) = [field for field in fields(Settings) if field.name == "executor"]
    monkeypatch.setattr(executor, "metadata", {**executor.metadata, "choices": tuple(EXECUTOR_KINDS)})
    environ = {"MLP_HOME": str(tmp_path), "MLP_EXECUTOR": "slurm", "SLURM_CONF": "/etc/slurm.conf"}
    settings = Settings.load({**environ, "MLP_KUBERNETES_FILES": "/shared"})
    assert (settings.files_dir, settings.config_file) == (Path("/shared"), Path("/etc/slurm.conf"))
    checks = {name for name, _ in doctor.checks_of(settings)}
    assert "sandbox" in checks
    assert not checks & {"cluster", "gpu"}
    assert GROUNDS[settings.runs.ground].stop_servers(settings) == 0, "its servers are sandboxes"
    with pytest.raises(SettingsError, match="SLURM_CONF names 2 files"):
        Settings.load({**environ, "SLURM_CONF": "/a:/b"})
    known = belonging.Bindings(executor="slurm", kubeconfig="/etc/slurm.conf")
    assert belonging.way_to(known) == "MLP_EXECUTOR=slurm SLURM_CONF=/etc/slurm.conf"


def test_a_directory_of_an_executor_that_this_version_does_not_know_has_nothing_running(
    tmp_path: Path,
) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path)})
    assert belonging._running(settings, belonging.Bindings(executor="of-a-later-version")) == 0
    assert belonging.way_to(belonging.Bindings(executor="of-a-later-version", kubeconfig="/k")) == (
        "MLP_EXECUTOR=of-a-later-version"
    )


def test_no_program_asks_for_an_executor_by_its_name() -> None:
    root = Path(settings_module.__file__).parent.parent
    asked = []
    for file in sorted(root.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Compare):
                parts = [node.left, *node.comparators]
                names = {part.value for part in parts if isinstance(part, ast.Constant)}
                if names & EXECUTOR_KINDS.keys() and "executor" in ast.unparse(node):
                    asked.append(f"{file.relative_to(root)}:{node.lineno}")
    assert not asked, "a trait of the executor's kind says it"


def test_simulated_nodes_come_from_a_scenario_file(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(
        "version: 1\nnodes:\n  - {name: big, count: 3, cpu: 64, ram: 262144, gpu: 8, gpu_kind: a100, labels: {rack: r1}, taints: [tenant=red, gpu]}\n"
    )
    settings = Settings.load({"MLP_HOME": str(tmp_path), "MLP_SIMULATED_NODES": str(file)})
    nodes = simulated_nodes(settings)
    assert [n.name for n in nodes] == ["big-0", "big-1", "big-2"]
    assert (nodes[0].capacity.cpu, nodes[0].capacity.gpu, nodes[0].gpu_kind) == (64_000, 8000, "a100")
    assert nodes[0].labels == {"rack": "r1"}
    assert [(t.key, t.value, str(t)) for t in nodes[0].taints] == [
        ("tenant", "red", "tenant=red"),
        ("gpu", "", "gpu"),
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("version: 1", "nodes: is missing"),
        ("nodes: []", "nodes"),
        ("nodes: [{name: n, cpu: many}]", "cpu"),
        (None, "No such file"),
    ],
)
def test_a_file_of_simulated_nodes_that_cannot_be_used_is_refused(
    tmp_path: Path, text: str | None, says: str
) -> None:
    file = tmp_path / "nodes.yaml"
    if text is not None:
        file.write_text(text)
    settings = Settings.load({"MLP_HOME": str(tmp_path), "MLP_SIMULATED_NODES": str(file)})
    with pytest.raises(SettingsError, match=says):
        simulated_nodes(settings)
