"""A runtime is named in several places: each test here names the one that was forgotten."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from mlp.commands.completion import Remembering
from mlp.errors import MLPError
from mlp.grammar import job_options
from mlp.grammar.job_options import SUBMIT
from mlp_api.jobs.jobs import MOST_RANKS, JobCreate
from mlp_hub.domain.runtime.runtime import BUILT_IN, WITH_PS, roles_of
from mlp_hub.executors import rank_commands as started
from mlp_hub.executors.base import CannotStart

RUNTIME_NAMES = tuple(BUILT_IN)
ROOT = Path(__file__).parents[3]


@pytest.fixture
def python(tmp_path: Path) -> str:
    """Give an interpreter beside which MPICH seems to be installed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/mpiexec.hydra").touch()
    return str(tmp_path / "bin/python")


def build(runtime: str, python: str, workers: int, ps: int = 0) -> started.GangCommand:
    command = started.Command((python,), "x.py", ())
    return started.build(BUILT_IN[runtime], started.GangShape(command, workers, ps, python))


def test_help_and_completion_name_them_all() -> None:
    help_ = next(o.help() for o in SUBMIT if o.name == "runtime")
    assert help_.startswith(", ".join(RUNTIME_NAMES))

    def unreachable() -> None:
        raise MLPError("away")

    assert Remembering(unreachable)("runtimes") == list(RUNTIME_NAMES)


@pytest.mark.parametrize("page", ["docs/glossary.md", "docs/how-to/train.md"])
def test_the_documentation_names_them_all(page: str) -> None:
    (entry,) = re.findall(r"^\*\*Runtimes?\b.*?(?=\n\n)", (ROOT / page).read_text(), re.DOTALL | re.MULTILINE)
    assert {name for name in RUNTIME_NAMES if f"`{name}`" in entry} == set(RUNTIME_NAMES)


@pytest.mark.parametrize("runtime", RUNTIME_NAMES)
def test_ranks_have_the_roles_that_are_shown_before_they_run(runtime: str, python: str) -> None:
    assert build(runtime, python, 3).ranks.roles == roles_of(BUILT_IN[runtime], 3, 0)


@pytest.mark.parametrize("runtime", RUNTIME_NAMES)
def test_parameter_servers_are_started_where_they_are_offered_and_only_there(
    runtime: str, python: str
) -> None:
    if runtime in WITH_PS:
        assert build(runtime, python, 3, 2).ranks.roles == roles_of(BUILT_IN[runtime], 3, 2)
    else:
        with pytest.raises(CannotStart, match="no parameter servers"):
            build(runtime, python, 3, 2)


def test_the_most_ranks_are_the_same_on_both_sides_also_in_a_range() -> None:
    assert job_options.MOST_RANKS == MOST_RANKS
    for asked in (MOST_RANKS, f"1:{MOST_RANKS}"):
        assert job_options.workers(asked) == asked
        assert msgspec.convert({"name": "a", "workers": asked}, JobCreate).workers == asked
    with pytest.raises(ValueError, match=f"from 1 to {MOST_RANKS:,}"):
        job_options.workers(f"1:{MOST_RANKS + 1}")
