"""SIGKILL to each process in turn: nothing is left behind, and what is observed afterwards is right."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.domain.jobs.job import Cause
from mlp_hub.executors.base import AttemptPhase, LaunchSpec
from mlp_hub.sandbox.shim import files
from support.executors.executor_lab import ENDED, Lab, alive, command_line, eventually, tree, until

LASTS = "import time\nprint('up', flush=True)\ntime.sleep(600)"


async def started(lab: Lab, spec: LaunchSpec, ranks: int = 1) -> tuple[object, dict[str, list[int]]]:
    executor = lab.executor()
    await executor.start(spec)
    await eventually(lambda: all(lab.output(spec, rank) for rank in range(ranks)))
    await until(executor, spec.attempt, [AttemptPhase.RUNNING])
    return executor, tree(lab.run_dir(spec))


@pytest.mark.parametrize("who", ["shim", "bwrap", "child"])
async def test_killing_a_process_of_the_sandbox_ends_all_of_it(lab: Lab, who: str) -> None:
    spec = lab.spec(LASTS, workers=2, time_limit=600.0)
    executor, pids = await started(lab, spec, 2)
    os.kill(pids[who][0], signal.SIGKILL)
    seen = await until(executor, spec.attempt, ENDED)
    assert seen.failure is not None
    if who == "shim":
        assert (seen.phase, seen.failure.cause) == (AttemptPhase.LOST, Cause.NODE_LOST)
    else:
        assert (seen.phase, seen.failure.cause) == (AttemptPhase.FAILED, Cause.SIGNAL)
        assert seen.failure.signal == signal.SIGKILL
    # all die at once; the first one that is seen to counts as the failed one
    states = [r.state for r in seen.ranks]
    assert states in (["failed", "failed"], ["failed", "stopped"], ["stopped", "failed"])
    await eventually(lambda: not alive(pids["all"] + pids["bwrap"] + pids["shim"]))
    assert lab.leftovers() == []
    await executor.start(spec)  # an attempt that was lost is never started again
    assert (await executor.observe([spec.attempt]))[spec.attempt].phase is seen.phase
    await executor.close()


async def test_killing_one_rank_ends_the_gang_and_names_it(lab: Lab) -> None:
    spec = lab.spec(LASTS, workers=3)
    executor, pids = await started(lab, spec, 3)
    rank = sandbox.inspect(lab.run_dir(spec)).ranks[1]
    assert rank.pid is not None
    os.kill(rank.pid, signal.SIGKILL)
    seen = await until(executor, spec.attempt, ENDED)
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank, seen.failure.signal) == (
        Cause.SIGNAL,
        1,
        signal.SIGKILL,
    )
    await eventually(lambda: not alive(pids["all"]))
    await executor.close()


@pytest.mark.parametrize("who", ["mpiexec", "rank"])
async def test_killing_the_launcher_or_a_rank_of_mpi_ends_all(lab: Lab, who: str) -> None:
    pytest.importorskip("mpi4py")
    code = "from mpi4py import MPI\nimport time\nprint('up', flush=True)\nMPI.COMM_WORLD.barrier()\ntime.sleep(600)"

    spec = lab.spec(code, runtime="mpi", workers=2)
    executor, pids = await started(lab, spec, 2)
    if who == "mpiexec":
        victim = next(pid for pid in pids["all"] if "mpiexec" in command_line(pid).split(" ")[0])
    else:
        victim = sandbox.inspect(lab.run_dir(spec)).ranks[1].pid or 0
    os.kill(victim, signal.SIGKILL)
    seen = await until(executor, spec.attempt, ENDED)
    assert seen.phase is AttemptPhase.FAILED
    assert seen.failure is not None
    assert seen.failure.cause is Cause.SIGNAL
    if who == "rank":
        assert (seen.failure.rank, seen.failure.signal) == (1, signal.SIGKILL)
    await eventually(lambda: not alive(pids["all"]))
    await executor.close()


def test_the_hub_may_be_killed_and_finds_its_attempts_again(lab: Lab) -> None:
    """The service is a process of its own here; its attempt runs on, and is not started twice."""
    code = (
        "import os, time\nprint(os.getpid(), flush=True)\n"
        "while not os.path.exists('/workspace/ckpt/go'): time.sleep(0.05)\nprint('done')"
    )
    spec = lab.spec(code, attempt="jobx.0")
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from pathlib import Path
from support.executors.executor_lab import Lab
async def go():
    lab = Lab(Path({str(lab.base)!r}))
    executor = lab.executor()
    await executor.start(lab.spec({spec.program.text!r}, attempt="jobx.0"))
    print("started", flush=True)
    await asyncio.sleep(600)
asyncio.run(go())
"""
    hub = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert hub.stdout is not None
    assert hub.stdout.readline() == b"started\n"
    hub.kill()
    hub.wait()
    hub.stdout.close()

    async def go() -> None:
        executor = lab.executor()
        assert await executor.known() == ["jobx.0"]
        await executor.start(spec)
        await until(executor, "jobx.0", [AttemptPhase.RUNNING])
        Path(lab.workspace(spec), "ckpt", "go").touch()
        seen = await until(executor, "jobx.0", ENDED)
        assert seen.phase is AttemptPhase.SUCCEEDED
        assert len(lab.output(spec)) == 2  # it ran once
        await executor.close()

    asyncio.run(go())


async def test_killing_the_process_that_forks_shims_hurts_nobody(lab: Lab) -> None:
    first, second = lab.spec(LASTS), lab.spec("print('fine')")
    executor, _ = await started(lab, first)
    process = executor._fork_server._process
    assert process is not None
    process.kill()
    process.wait()
    await executor.start(second)
    assert (await until(executor, second.attempt, ENDED)).phase is AttemptPhase.SUCCEEDED
    assert (await executor.observe([first.attempt]))[first.attempt].phase is AttemptPhase.RUNNING
    await executor.close()


def test_background_processes_of_a_program_end_with_it(lab: Lab) -> None:
    code = """
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
time.sleep(0.2)
"""
    spec = lab.spec(code)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.leftovers() == []


async def test_an_attempt_of_before_the_machines_last_start_is_lost(lab: Lab) -> None:
    spec = lab.spec("print(1)")
    run_dir = Path(lab.run_dir(spec))
    run_dir.mkdir(parents=True)
    host = {"cgroup": "none", "bases": {}, "group": "x"}
    files.write_json(str(run_dir), "spec.json", {"boot": "another", "host": host, "spec": {"listen": None}})

    executor = lab.executor()
    assert (await executor.observe([spec.attempt]))[spec.attempt].phase is AttemptPhase.LOST
    await executor.close()


async def test_removing_kills_what_runs(lab: Lab) -> None:
    spec = lab.spec("import signal, time\nsignal.signal(15, signal.SIG_IGN)\nprint('up')\ntime.sleep(600)")
    executor, pids = await started(lab, spec)
    await executor.forget(spec.attempt)
    assert not alive(pids["all"] + pids["bwrap"] + pids["shim"])
    assert not Path(lab.run_dir(spec)).exists()
    assert lab.leftovers() == []
    await executor.close()
