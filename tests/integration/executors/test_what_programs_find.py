"""What programs find in their sandbox of their user's."""

from __future__ import annotations

import sys

import pytest

from mlp_hub.domain.jobs.job import Cause
from mlp_hub.executors.base import AttemptPhase
from support.executors.executor_lab import Lab


@pytest.mark.parametrize("workers", [1, 2])
def test_the_users_variables_reach_every_rank(lab: Lab, workers: int) -> None:
    spec = lab.spec(
        "import os; print(os.environ['GREETING'])", workers=workers, env={"GREETING": "good day = ü"}
    )
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert [lab.output(spec, rank) for rank in range(workers)] == [["good day = ü"]] * workers


def test_packages_that_a_user_installed_at_home_are_available_in_their_jobs(lab: Lab) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    package = lab.home("ann") / ".local" / "lib" / version / "site-packages" / "theirs"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("word = 'found'")
    spec = lab.spec("import theirs; print(theirs.word)")
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["found"]


def test_common_packages_are_available_and_plot_without_a_screen(lab: Lab) -> None:
    program = """
import matplotlib.pyplot as plt, numpy, pandas, sklearn
pandas.DataFrame({"loss": numpy.geomspace(1, 0.1, 5)}).plot().figure.savefig("loss.png")
print(open("loss.png", "rb").read(4)[1:].decode())
"""
    spec = lab.spec(program)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED, lab.output(spec)
    assert lab.output(spec)[-1] == "PNG"


@pytest.mark.parametrize(("runtime", "workers"), [("plain", 1), ("mpi", 2)])
def test_a_program_starts_in_the_directory_that_was_asked_for(lab: Lab, runtime: str, workers: int) -> None:
    place = lab.home("ann") / "project" / "src"
    place.mkdir(parents=True)
    (place / "shown.txt").write_text("there")
    program = "import os; print(os.getcwd(), open('shown.txt').read())"
    spec = lab.spec(program, runtime=runtime, workers=workers, workdir="project/src")
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED, lab.output(spec)
    assert [lab.output(spec, rank) for rank in range(workers)] == [["/home/ann/project/src there"]] * workers


@pytest.mark.parametrize(
    ("workdir", "said"),
    [
        ("gone", "no such directory"),
        ("out", "not in the home"),
        ("file", "no such directory"),
        ("../bob", "not in the home"),
    ],
)
def test_a_program_does_not_start_elsewhere_instead(lab: Lab, workdir: str, said: str) -> None:
    """It was there when the job was submitted; a moment later its user has something else there."""
    home = lab.home("ann")
    (home / "out").symlink_to("/etc")
    (home / "file").write_text("")
    spec = lab.spec("print('ran')", workdir=workdir)
    failure = lab.run(spec).failure
    assert failure is not None
    assert failure.cause is Cause.START_FAILED
    assert said in failure.message
    assert lab.output(spec) == []


@pytest.mark.parametrize(("runtime", "workers"), [("plain", 1), ("plain", 2), ("mpi", 2), ("tf", 2)])
@pytest.mark.parametrize("workdir", [None, "project"])
def test_a_cell_imports_the_modules_of_the_directory_in_which_it_starts(
    lab: Lab, runtime: str, workers: int, workdir: str | None
) -> None:
    place = lab.home("ann") / (workdir or "")
    place.mkdir(exist_ok=True)
    (place / "mine.py").write_text("word = 'found'")
    spec = lab.spec("import mine; print(mine.word)", runtime=runtime, workers=workers, workdir=workdir)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED, lab.output(spec)
    assert [lab.output(spec, rank) for rank in range(workers)] == [["found"]] * workers


def test_a_cells_own_search_path_wins(lab: Lab) -> None:
    spec = lab.spec("import sys; print(*sys.path[1:3])", env={"PYTHONPATH": "/data/one:/data/two"})
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED, lab.output(spec)
    assert lab.output(spec) == ["/data/one /data/two"]
