"""Where no sandbox can be made and that was allowed, attempts run all the same; only the walls are missing."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executor_contract import ExecutorContract
from executor_lab import PROGRAMS, Lab
from mlp_hub.executors import sandbox
from mlp_hub.executors.base import AttemptPhase, Executor, LaunchSpec
from mlp_hub.executors.sandbox import control
from mlp_hub.executors.sandbox.capabilities import probe


@pytest.fixture
def open_lab(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("MLP_ALLOW_NO_SANDBOX", "1")
    caps = probe("open")
    if caps.mode is None:
        why = [m.effect for m in caps.missing if m.what.startswith("an environment")]
        assert why, caps.missing
        pytest.skip(f"this source tree is where other users may not look: {why[0]}")
    assert caps.mode == "open"
    monkeypatch.setattr(control, "capabilities", lambda: caps)
    # not below pytest's own directory: without a sandbox the users themselves must get there
    base = Path(tempfile.mkdtemp(prefix="mlp-open-"))
    base.chmod(0o755)
    lab = Lab(base)
    yield lab
    lab.close()
    assert lab.leftovers() == []
    shutil.rmtree(base)


class TestWithoutSandbox(ExecutorContract):
    @pytest.fixture(autouse=True)
    def _lab(self, open_lab: Lab) -> None:
        self.lab = open_lab

    def make_executor(self) -> Executor:
        return self.lab.executor()

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        return self.lab.spec(PROGRAMS[kind], **more)


def test_paths_of_the_contract_are_those_of_the_machine(open_lab: Lab) -> None:
    code = """
import os
open(os.environ["MLP_CHECKPOINT_DIR"] + "/state", "w").write("x")
print(os.environ["HOME"] == os.getcwd())
"""
    spec = open_lab.spec(code, env={"MLP_CHECKPOINT_DIR": "/workspace/ckpt"})
    assert open_lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert open_lab.output(spec) == ["True"]


def test_what_is_left_in_the_background_ends_too(open_lab: Lab) -> None:
    code = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(600)\nprint('main')"
    spec = open_lab.spec(code)
    assert open_lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert open_lab.leftovers() == []


def test_mpi_runs(open_lab: Lab) -> None:
    pytest.importorskip("mpi4py")
    spec = open_lab.spec(
        "from mpi4py import MPI; print(MPI.COMM_WORLD.allreduce(1))", runtime="mpi", workers=2
    )
    assert open_lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert [open_lab.output(spec, rank) for rank in (0, 1)] == [["2"], ["2"]]


def test_without_leave_nothing_is_started(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLP_ALLOW_NO_SANDBOX", raising=False)
    caps = probe("open")
    assert caps.mode is None
    monkeypatch.setattr(control, "capabilities", lambda: caps)
    seen = lab.run(lab.spec("print(1)"))
    assert seen.failure is not None
    assert seen.failure.cause == "start-failed"
    assert "no sandbox can be made" in seen.failure.message
    assert sandbox.inspect(lab.run_dir(lab.spec())).phase is sandbox.SandboxPhase.ABSENT


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts attempts as other users")
def test_an_interpreter_that_users_cannot_reach_is_told_beforehand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLP_ALLOW_NO_SANDBOX", "1")
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "python").symlink_to(Path(sys.executable).resolve())
    monkeypatch.setattr(sys, "executable", str(closed / "python"))
    caps = probe("open")
    assert caps.mode is None
    told = next(m for m in caps.missing if m.what.startswith("an environment"))
    assert "cannot start" in told.effect
    assert "/opt" in told.remedy
