"""Where no sandbox can be made and that was allowed, attempts run all the same; only the walls are missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.executors.base import AttemptPhase
from mlp_hub.sandbox import control
from mlp_hub.sandbox.capabilities import probe
from support.executors.executor_lab import Lab


def test_paths_of_the_contract_are_those_of_the_machine(open_lab: Lab) -> None:
    code = """
import os
open(os.environ["MLP_CHECKPOINT_DIR"] + "/state", "w").write("x")
print(os.environ["HOME"] == os.getcwd())
"""
    spec = open_lab.spec(code, env={"MLP_CHECKPOINT_DIR": "/workspace/ckpt"})
    assert open_lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert open_lab.output(spec) == ["True"]


def test_background_processes_also_end(open_lab: Lab) -> None:
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
