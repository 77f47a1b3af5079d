"""The local executor keeps the contract, with real sandboxes."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from executor_contract import ExecutorContract
from executor_lab import PROGRAMS, Lab
from mlp_hub.executors.base import AttemptPhase, Executor, LaunchSpec


class TestLocalExecutor(ExecutorContract):
    @pytest.fixture(autouse=True)
    def _lab(self, lab: Lab) -> None:
        self.lab = lab

    def make_executor(self) -> Executor:
        return self.lab.executor()

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        return self.lab.spec(PROGRAMS[kind], **more)


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
