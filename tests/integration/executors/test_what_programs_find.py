"""What programs find in their sandbox of their user's."""

from __future__ import annotations

import sys

import pytest

from executor_lab import Lab
from mlp_hub.executors.base import AttemptPhase


@pytest.mark.parametrize("workers", [1, 2])
def test_the_users_variables_reach_every_rank(lab: Lab, workers: int) -> None:
    spec = lab.spec(
        "import os; print(os.environ['GREETING'])", workers=workers, env={"GREETING": "good day = ü"}
    )
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert [lab.output(spec, rank) for rank in range(workers)] == [["good day = ü"]] * workers


def test_what_a_user_installed_at_home_is_there_in_their_jobs(lab: Lab) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    package = lab.home("ann") / ".local" / "lib" / version / "site-packages" / "theirs"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("word = 'found'")
    spec = lab.spec("import theirs; print(theirs.word)")
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["found"]


def test_what_everybody_expects_is_there_and_draws_without_a_screen(lab: Lab) -> None:
    program = """
import matplotlib.pyplot as plt, numpy, pandas, sklearn
pandas.DataFrame({"loss": numpy.geomspace(1, 0.1, 5)}).plot().figure.savefig("loss.png")
print(open("loss.png", "rb").read(4)[1:].decode())
"""
    spec = lab.spec(program)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED, lab.output(spec)
    assert lab.output(spec)[-1] == "PNG"
