"""What the how-tos for users tell to type works, and prints what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.executors.wheels import build_wheel
from support.hubs.live_hub import BIN, LiveHub
from support.told import do_as_told

MEAN = "def mean(values):\n    return sum(values) / len(values)\n"


@pytest.fixture
def shell_env(hub: LiveHub, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell of ann's somewhere else, logged in."""
    env = {**hub.env, "PATH": f"{BIN}:{hub.env['PATH']}", "HOME": str(tmp_path)}
    env.pop("XDG_CONFIG_HOME", None)
    return env | {"MLP_API_URL": f"{hub.url}/services/mlp/api/v1", "MLP_TOKEN": hub.token("ann")}


def test_every_block_of_data_and_packages_does_what_it_says(
    hub: LiveHub, shell_env: dict[str, str], tmp_path: Path
) -> None:
    hub.submit("ann", "makes-the-home", "pass", cpu=0.5, ram=128)
    hub.wait_phase("ann", "makes-the-home", "finished")
    wheels = hub.home / "homes" / "ann" / "wheels"
    wheels.mkdir()
    build_wheel(wheels, "tinystats", MEAN)
    wheels.chmod(0o755)
    do_as_told("how-to/data.md", tmp_path, shell_env)
    results = hub.home / "homes" / "ann" / "results" / "squares-1"
    assert sorted(file.read_text() for file in results.iterdir()) == ["10\n", "20\n"]


def test_every_block_of_from_slurm_does_what_it_says(
    hub: LiveHub, shell_env: dict[str, str], tmp_path: Path
) -> None:
    do_as_told("how-to/slurm.md", tmp_path, shell_env)
    hub.wait_phase("ann", "long", "cancelled")


@pytest.mark.parametrize(
    "page",
    [
        "train",
        "sweeps",
        "runs",
        "models",
        "datasets",
        pytest.param("apps", marks=pytest.mark.whole),
        "notebooks",
    ],
)
def test_the_program_at_the_top_of_a_page_runs_and_prints_what_it_says(
    hub: LiveHub, shell_env: dict[str, str], tmp_path: Path, page: str
) -> None:
    do_as_told(f"how-to/{page}.md", tmp_path, shell_env)
