"""Programs that run others, as scripts of clusters do: all of their processes are asked to end, and all have the grace."""

from __future__ import annotations

import asyncio
import importlib.util
import textwrap
from pathlib import Path

import pytest

from mlp_hub.domain.jobs.job import Cause
from mlp_hub.executors.base import AttemptPhase, LaunchSpec, Observation
from support.executors.executor_lab import ENDED, PYTHON, Lab, alive, eventually, tree, until

needs_mpi = pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed")
GRACE_S = 60.0
SAVES = """
import signal, sys, time
def save(*_):
    time.sleep(1)
    print("saved", flush=True)
    open("/workspace/ckpt-" + sys.argv[1], "w").close()
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
while True:
    time.sleep(600)
"""
WAYS = {
    "a script": ("sh", "python {saves} a"),
    "a script with more behind it": ("sh", "echo begins; python {saves} a; echo ends"),
    "a pipe": ("sh", "python {saves} a | tee log.txt"),
    "a script in a script": ("sh", "sh -c 'echo; python {saves} a; echo'"),
    "a session of its own": ("sh", "setsid python {saves} a & wait"),
    "output to a file": ("sh", "python {saves} a > out.txt 2>&1 & until grep -q ready out.txt; do sleep 0.1; done; echo ready; wait"),
    "subprocess": ("py", "import subprocess, sys; subprocess.run([sys.executable, '{saves}', 'a'])"),
    "os.system": ("py", "import os; os.system('python {saves} a')"),
    "multiprocessing": (
        "py",
        """
        import multiprocessing, runpy, signal, sys
        def work():
            sys.argv[1:] = ["a"]
            runpy.run_path("{saves}")
        signal.signal(signal.SIGTERM, lambda *_: None)
        one = multiprocessing.Process(target=work)
        one.start()
        one.join()
        """,
    ),
}  # fmt: skip


async def stopped(lab: Lab, spec: LaunchSpec, ranks: int = 1, grace_s: float = GRACE_S) -> Observation:
    """Start an attempt, ask it to end once each rank has said that it is ready, and return how it ended."""
    executor = lab.executor()
    try:
        await executor.start(spec)
        await eventually(lambda: all("ready" in lab.output(spec, rank) for rank in range(ranks)))
        inside = tree(lab.run_dir(spec))["all"]
        await executor.stop(spec.attempt, grace_s)
        seen = await until(executor, spec.attempt, ENDED)
        assert alive(inside) == []
        return seen
    finally:
        await executor.close()


def program(lab: Lab, way: str, **more: object) -> LaunchSpec:
    ending, text = WAYS[way]
    home = lab.home("ann")
    (home / "saves.py").write_text(SAVES)
    entry = home / f"job.{ending}"
    entry.write_text(textwrap.dedent(text).format(saves="/home/ann/saves.py"))
    return lab.spec(entry=entry.name, **more)


@pytest.mark.parametrize("way", WAYS)
def test_child_processes_of_a_program_are_also_asked_to_end_and_can_save(lab: Lab, way: str) -> None:
    spec = program(lab, way)
    seen = asyncio.run(stopped(lab, spec))
    assert seen.phase is AttemptPhase.STOPPED, seen
    assert (Path(lab.workspace(spec)) / "ckpt-a").exists(), lab.output(spec)
    assert seen.ending is not None
    assert not seen.ending.killed


ONE_SAVES = """
import os, runpy, sys
RUNTIME
rank = int(os.environ["MLP_RANK"])
if rank == 0:
    print("ready", flush=True)
    import time
    time.sleep(600)
sys.argv[1:] = [str(rank)]
runpy.run_path("/home/ann/saves.py")
"""


@needs_mpi
def test_mpirun_does_not_cut_the_grace_of_the_ranks_that_save(lab: Lab) -> None:
    (lab.home("ann") / "saves.py").write_text(SAVES)
    code = ONE_SAVES.replace("RUNTIME", "from mpi4py import MPI")
    spec = lab.spec(code, runtime="mpi", workers=3)
    seen = asyncio.run(stopped(lab, spec, 3))
    assert seen.phase is AttemptPhase.STOPPED, seen
    for rank in (1, 2):
        assert (Path(lab.workspace(spec)) / f"ckpt-{rank}").exists(), lab.output(spec, rank)
    assert seen.ending is not None
    assert not seen.ending.killed
    assert lab.output(spec, 0) == ["ready"]


@needs_mpi
def test_child_processes_of_an_mpi_rank_save_too(lab: Lab) -> None:
    spec = program(lab, "a pipe", runtime="mpi", workers=2)
    seen = asyncio.run(stopped(lab, spec, 2))
    assert seen.phase is AttemptPhase.STOPPED, seen
    assert [lab.output(spec, rank)[-1] for rank in (0, 1)] == ["saved", "saved"]


def test_ranks_side_by_side_save_while_others_have_ended(lab: Lab) -> None:
    (lab.home("ann") / "saves.py").write_text(SAVES)
    spec = lab.spec(ONE_SAVES.replace("RUNTIME", ""), runtime="tf", workers=2)
    asyncio.run(stopped(lab, spec, 2))
    assert (Path(lab.workspace(spec)) / "ckpt-1").exists(), lab.output(spec, 1)


def test_processes_started_by_a_signal_handler_are_not_asked_to_end(lab: Lab) -> None:
    (lab.home("ann") / "job.sh").write_text(
        "trap 'sh -c \"sleep 1; touch /workspace/ckpt-a\"; exit' TERM\necho ready\nsleep 600 & wait\n"
    )
    spec = lab.spec(entry="job.sh")
    asyncio.run(stopped(lab, spec))
    assert (Path(lab.workspace(spec)) / "ckpt-a").exists()


def test_a_script_does_not_continue_after_a_program_that_saved(lab: Lab) -> None:
    (lab.home("ann") / "saves.py").write_text(SAVES)
    (lab.home("ann") / "job.sh").write_text("python saves.py a; echo goes on; touch /workspace/done\n")
    spec = lab.spec(entry="job.sh")
    asyncio.run(stopped(lab, spec))
    assert sorted(path.name for path in Path(lab.workspace(spec)).iterdir() if path.is_file()) == ["ckpt-a"]


def test_a_process_that_ignores_the_signal_is_killed_once_the_grace_is_over(lab: Lab) -> None:
    (lab.home("ann") / "job.sh").write_text("trap '' TERM\necho ready\nsh -c 'sleep 600; echo'; echo\n")
    seen = asyncio.run(stopped(lab, lab.spec(entry="job.sh"), grace_s=0.3))
    assert seen.phase is AttemptPhase.STOPPED, seen
    assert seen.ending is not None
    assert seen.ending.killed


def test_a_time_limit_is_told_to_all_processes(lab: Lab) -> None:
    spec = program(lab, "a pipe", time_limit=3.0, grace_s=GRACE_S)
    seen = lab.run(spec)
    assert seen.failure is not None
    assert seen.failure.cause is Cause.TIME_LIMIT
    assert (Path(lab.workspace(spec)) / "ckpt-a").exists(), lab.output(spec)
    assert seen.ending is not None
    assert not seen.ending.killed


def test_without_a_sandbox_all_are_asked_too(open_lab: Lab) -> None:
    (open_lab.home("ann") / "saves.py").write_text(SAVES.replace("/workspace/", ""))
    home = open_lab.home("ann")
    (home / "job.sh").write_text(f"cd {home}; {PYTHON} saves.py a; echo\n")
    spec = open_lab.spec(entry="job.sh")
    seen = asyncio.run(stopped(open_lab, spec))
    assert seen.phase is AttemptPhase.STOPPED, seen
    assert (home / "ckpt-a").exists(), open_lab.output(spec)
