"""Whose end ends a gang: who went first is named, in whatever way it went."""

from __future__ import annotations

import importlib.util

import pytest

from mlp_hub.domain.jobs.job import Cause
from mlp_hub.executors.base import AttemptPhase
from support.executors.executor_lab import Lab

needs_mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
BEGINS = "from mpi4py import MPI\nimport os, sys, threading, time\nworld = MPI.COMM_WORLD\nworld.Barrier()\n"


@needs_mpi
@pytest.mark.parametrize(("status", "code"), [(-1, 255), (0, 0), (256, 0), (7, 7)])
def test_the_rank_that_aborts_is_named_whatever_it_says(lab: Lab, status: int, code: int) -> None:
    seen = lab.run(
        lab.spec(
            BEGINS + f"if world.rank == 2: world.Abort({status})\nworld.Barrier()\n", runtime="mpi", workers=4
        )
    )
    assert seen.failure is not None
    assert (seen.failure.rank, seen.failure.exit_code, seen.failure.signal) == (2, code, None)
    assert seen.failure.message == f"rank 2 called MPI_Abort({status}) (exit status {code})"
    assert [rank.state for rank in seen.ranks] == ["stopped", "stopped", "failed", "stopped"]


@needs_mpi
def test_a_program_that_ends_after_its_abort_before_it_is_killed_has_aborted_all_the_same(lab: Lab) -> None:
    """MPICH's MPI_Abort returns, now and then, before its launcher kills the ranks: rank 2 has said what it says there, and ends."""
    says = (
        "Abort(7) on node 2 (rank 2 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 7) - process 2"
    )
    code = f"if world.rank == 2: print({says!r}, file=sys.stderr)\nelse: time.sleep(1); os.kill(os.getpid(), 9)\n"
    seen = lab.run(lab.spec(BEGINS + code, runtime="mpi", workers=3))
    assert seen.failure is not None
    assert (seen.failure.rank, seen.failure.message) == (2, "rank 2 called MPI_Abort(7) (exit status 7)")


@needs_mpi
@pytest.mark.parametrize("begins", [BEGINS, "import os, threading, time\n"], ids=["MPI", "before-MPI"])
def test_an_exception_ends_all_ranks_although_a_thread_of_its_rank_is_still_running(
    lab: Lab, begins: str
) -> None:
    raises = (
        "  threading.Thread(target=time.sleep, args=(3600,)).start()\n  raise RuntimeError('bad batch')\n"
    )
    code = f"if os.environ['MLP_RANK'] == '1':\n{raises}from mpi4py import MPI\nMPI.COMM_WORLD.Barrier()\n"
    seen = lab.run(lab.spec(begins + code, runtime="mpi", workers=3))
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank, seen.failure.exit_code) == (Cause.PROGRAM_ERROR, 1, 1)
    assert seen.failure.message == "rank 1: RuntimeError: bad batch (exit status 1)"
    assert "by_mpi4py" not in seen.failure.tail


@needs_mpi
def test_an_exception_ends_all_although_python_has_a_safe_path(lab: Lab) -> None:
    code = BEGINS + "if world.rank == 1: raise RuntimeError('bad batch')\nworld.Barrier()\n"
    seen = lab.run(lab.spec(code, runtime="mpi", workers=2, env={"PYTHONSAFEPATH": "1"}))
    assert seen.failure is not None
    assert seen.failure.message == "rank 1: RuntimeError: bad batch (exit status 1)"


@pytest.mark.parametrize("ends", ["raise RuntimeError('bad batch')", "sys.exit(1)"])
def test_a_tensorflow_rank_that_raises_ends_although_one_of_its_threads_is_still_running(
    lab: Lab, ends: str
) -> None:
    code = f"""import os, sys, threading, time
if os.environ['MLP_RANK'] == '1':
  threading.Thread(target=time.sleep, args=(3600,)).start()
  {ends}
time.sleep(3600)
"""
    seen = lab.run(lab.spec(code, runtime="tf", workers=3))
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank, seen.failure.exit_code) == (Cause.PROGRAM_ERROR, 1, 1)
    assert "by_python" not in seen.failure.tail


@needs_mpi
def test_a_rank_that_leaves_without_finalize_is_the_one(lab: Lab) -> None:
    seen = lab.run(
        lab.spec(BEGINS + "if world.rank == 1: os._exit(0)\nworld.Barrier()\n", runtime="mpi", workers=3)
    )
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank, seen.failure.exit_code) == (Cause.PROGRAM_ERROR, 1, 0)
    assert seen.failure.message == "rank 1 ended without MPI_Finalize while 2 ranks ran"
    assert [rank.state for rank in seen.ranks] == ["stopped", "failed", "stopped"]


@needs_mpi
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("os.kill(os.getpid(), 9)", "rank 1 was killed by signal 9 (SIGKILL)"),
        ("os._exit(3)", "rank 1 ended with exit status 3"),
        ("sys.exit('no data')", "rank 1 ended with exit status 1"),
    ],
)
def test_other_ways_to_go_first(lab: Lab, how: str, message: str) -> None:
    seen = lab.run(
        lab.spec(BEGINS + f"if world.rank == 1: {how}\nworld.Barrier()\n", runtime="mpi", workers=3)
    )
    assert seen.phase is AttemptPhase.FAILED, seen
    assert seen.failure is not None
    assert seen.failure.message == message


@pytest.mark.parametrize("runtime", ["plain", "tf"])
def test_a_rank_that_ended_well_just_before_is_told_with_the_failure(lab: Lab, runtime: str) -> None:
    code = """
import os, time
from pathlib import Path
rank, began = int(os.environ["MLP_RANK"]), Path("/workspace/began")
if rank == 1:
    Path("/workspace/begins").write_text(str(os.getpid()))
    Path("/workspace/begins").rename(began)
    os._exit(0)
while rank == 0:
    # a number is free only when who starts the ranks has taken that end; it reports one after the other
    if began.exists() and not Path(f"/proc/{began.read_text()}").exists():
        raise ConnectionError("peer closed")
time.sleep(600)
"""
    seen = lab.run(lab.spec(code, runtime=runtime, workers=3))
    assert seen.failure is not None
    assert seen.failure.rank == 0
    assert "; rank 1 had ended " in seen.failure.message, seen.failure
