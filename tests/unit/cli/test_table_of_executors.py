"""The executors that a setting may name are those that can be made."""

from __future__ import annotations

import asyncio
from dataclasses import fields, replace
from pathlib import Path

import pytest

from mlp_hub.app import EXECUTORS, make_executor, simulated_nodes
from mlp_hub.settings import Settings, SettingsError


def test_every_executor_that_a_setting_may_name_is_in_the_table() -> None:
    (field,) = [field for field in fields(Settings) if field.name == "executor"]
    assert field.metadata["choices"] == tuple(EXECUTORS)


def test_each_is_made_under_its_own_name(tmp_path: Path) -> None:
    for name in ("local", "simulated"):  # a cluster's needs one: tests/cluster
        settings = Settings.load({"MLP_HOME": str(tmp_path), "MLP_EXECUTOR": name})
        asyncio.run(_made(settings, name))


async def _made(settings: Settings, name: str) -> None:
    executor = await make_executor(settings)
    assert executor.name == name
    await executor.close()


def test_one_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    settings = replace(Settings.load({"MLP_HOME": str(tmp_path)}), executor="cloud")
    with pytest.raises(SettingsError, match=r"'cloud'.* local, simulated, kubernetes"):
        asyncio.run(make_executor(settings))


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
