"""From a job's shape to commands, roles and environments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.executors.base import CannotStart
from mlp_hub.executors.rank_commands import Command, GangCommand, GangShape, lacks
from mlp_hub.executors.rank_commands import build as built
from mlp_hub.sandbox.spec import INSIDE

PYTHON = "/venv/bin/python"
PROGRAM = (PYTHON, "-u", "/workspace/code/main.py")


def shape(workers: int = 1, ps: int = 0, python: str = PYTHON) -> GangShape:
    return GangShape(Command((python, "-u"), PROGRAM[2], ()), workers, ps, python)


def build(name: str, shape: GangShape) -> GangCommand:
    return built(BUILT_IN[name], shape)


def test_one_plain_rank_is_the_sandboxs_own_command() -> None:
    start = build("plain", shape())
    assert start.argv == PROGRAM
    assert start.ranks.mode == "single"
    assert start.env == {"MLP_RANK": "0", "MLP_WORLD_SIZE": "1"}


def test_several_plain_ranks_are_a_gang() -> None:
    start = build("plain", shape(3))
    assert start.argv == (PYTHON, "-IS", INSIDE, "gang")
    assert (start.ranks.mode, start.ranks.roles) == ("gang", ("worker",) * 3)


def test_tf_workers_are_one_cluster_whose_first_is_chief() -> None:
    start = build("tf", shape(2))
    config = [json.loads(env["TF_CONFIG"]) for env in start.ranks.envs]
    assert config[0]["cluster"] == {"worker": ["127.0.0.1:20000", "127.0.0.1:20001"]}
    assert [c["task"] for c in config] == [{"type": "worker", "index": 0}, {"type": "worker", "index": 1}]
    assert start.ranks.roles == ("chief", "worker")
    assert (start.ranks.leader, start.ranks.linger_s) == (0, 10.0)


def test_tf_servers_come_last_and_end_with_the_chief() -> None:
    start = build("tf", shape(3, 2))
    config = [json.loads(env["TF_CONFIG"]) for env in start.ranks.envs]
    assert {kind: len(members) for kind, members in config[0]["cluster"].items()} == {
        "chief": 1,
        "worker": 2,
        "ps": 2,
    }
    assert [(c["task"]["type"], c["task"]["index"]) for c in config] == [
        ("chief", 0),
        ("worker", 0),
        ("worker", 1),
        ("ps", 0),
        ("ps", 1),
    ]
    for own in config:
        cluster, task = own["cluster"], own["task"]
        assert cluster[task["type"]][task["index"]]
    assert start.ranks.roles == ("chief", "worker", "worker", "ps", "ps")
    assert start.ranks.linger_s == 0.0


def test_a_chief_without_workers_for_its_servers_is_refused() -> None:
    with pytest.raises(CannotStart, match="--workers 2"):
        build("tf", shape(1, 1))


@pytest.mark.parametrize("runtime", ["plain", "mpi", "torch"])
def test_servers_are_for_tf_only(runtime: str) -> None:
    with pytest.raises(CannotStart, match="has no parameter servers"):
        build(runtime, shape(2, 1))


def test_mpi_without_mpich_says_what_to_install() -> None:
    with pytest.raises(CannotStart, match="pip install mpich"):
        build("mpi", shape(2))


def test_mpi_runs_python_so_that_an_exception_ends_all(tmp_path: Path) -> None:
    python = str(tmp_path / "bin/python")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mpiexec.hydra").touch()
    package = tmp_path / "lib/python3.11/site-packages/mpi4py"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    start = build("mpi", shape(2, python=python))
    launcher = (str(tmp_path / "bin/mpiexec.hydra"), "-launcher", "fork", "-n", "2")
    assert start.argv == (*launcher, python, "-IS", INSIDE, "rank")
    assert start.ranks.program == (python, "-u", "/run/mlp/by_mpi4py.py", "/workspace/code/main.py")


def test_torch_starts_through_torchrun() -> None:
    start = build("torch", shape(2))
    assert start.argv[:3] == (PYTHON, "-m", "torch.distributed.run")
    assert start.argv[-4:] == (PYTHON, "-IS", INSIDE, "rank")
    assert start.ranks.rank_env == "RANK"


def test_a_package_that_jobs_would_lack_is_found_out_without_importing_it(tmp_path: Path) -> None:
    python, home = str(tmp_path / "bin" / "python"), str(tmp_path / "ann")
    assert lacks("torch", python, home, "/home/ann")
    put(tmp_path / "lib" / "python3.11" / "site-packages" / "torch")
    assert not lacks("torch", python, home, "/home/ann")


def test_packages_that_a_user_installed_at_home_are_not_missing(tmp_path: Path) -> None:
    python, home = str(tmp_path / "bin" / "python"), tmp_path / "ann"
    (tmp_path / "lib" / "python3.11").mkdir(parents=True)
    put(home / ".local" / "lib" / "python3.9" / "site-packages" / "torch")
    assert lacks("torch", python, str(home), "/home/ann")  # for another Python than jobs have
    put(home / ".local" / "lib" / "python3.11" / "site-packages" / "torch")
    assert not lacks("torch", python, str(home), "/home/ann")
    assert lacks("tensorflow", python, str(home), "/home/ann")


def put(package: Path) -> None:
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
