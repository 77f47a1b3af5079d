"""What a rank used is measured from its start to its end and told once it has ended."""

from __future__ import annotations

import pytest

from mlp_hub.domain.jobs.job import Cause, RankStatus
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.sandbox import capabilities
from support import waiting
from support.executors.executor_lab import ENDED, Lab, eventually, until

ROOMY = Resources(cpu=1000, ram=1024)
needs_groups = pytest.mark.skipif(
    not {"memory", "cpuacct"} & set(capabilities().bases), reason="no control groups here"
)
HOLD = "held = b'1' * ({mib} << 20)\n"
BURN = "import time\nend = time.process_time() + {s}\nwhile time.process_time() < end: pass\n"


def used(seen: Observation, number: int = 0) -> tuple[float, float, int, int]:
    rank: RankStatus = seen.ranks[number]
    assert rank.cpu_mean is not None, rank
    assert rank.cpu_peak is not None
    assert rank.ram_mean is not None
    assert rank.ram_peak is not None
    assert 0 <= rank.cpu_mean <= rank.cpu_peak
    assert 0 <= rank.ram_mean <= rank.ram_peak
    return rank.cpu_mean, rank.cpu_peak, rank.ram_mean, rank.ram_peak


async def until_held(executor: LocalExecutor, attempt: str) -> tuple[int, int]:
    """Return the MiB of two ranks once both are told, and those of the second are the most of them."""

    async def look() -> tuple[int, ...]:
        ranks = (await executor.observe([attempt]))[attempt].ranks
        found = tuple(rank.ram for rank in ranks if rank.ram is not None)
        return found if len(found) == 2 and found[1] >= 150 else ()

    found: tuple[int, int] = await waiting.until(look, what="the memory of both ranks")
    return found


def test_a_rank_that_is_over_says_the_most_memory_it_held(lab: Lab) -> None:
    seen = lab.run(lab.spec(HOLD.format(mib=300) + "del held", per_worker=ROOMY))
    assert seen.phase is AttemptPhase.SUCCEEDED
    assert 300 <= used(seen)[3] < 400
    assert seen.ranks[0].ram is None  # nothing runs now


def test_a_rank_that_is_over_says_the_cores_it_used_on_average(lab: Lab) -> None:
    seen = lab.run(lab.spec(BURN.format(s=1.0) + "time.sleep(1)", per_worker=ROOMY))
    assert seen.started_at is not None
    assert seen.finished_at is not None
    mean, most, _, _ = used(seen)
    seconds = mean * (seen.finished_at - seen.started_at)
    assert 1.0 <= seconds < 3.0  # Python's own start is in it
    assert most < 2.0


def test_processes_that_ended_before_the_rank_did_count(lab: Lab) -> None:
    code = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {HOLD.format(mib=200)!r} + {BURN.format(s=0.5)!r}], check=True)
"""
    seen = lab.run(lab.spec(code, per_worker=ROOMY))
    assert seen.started_at is not None
    assert seen.finished_at is not None
    mean, _, _, ram = used(seen)
    assert mean * (seen.finished_at - seen.started_at) >= 0.5
    assert ram >= 200


@pytest.mark.parametrize("runtime", ["plain", "mpi"])
def test_of_several_ranks_each_has_its_own_numbers(lab: Lab, runtime: str) -> None:
    code = f"""
import os
if os.environ["MLP_RANK"] == "1":
    {HOLD.format(mib=200).strip()}
    exec({BURN.format(s=1.0)!r})
    open("/workspace/ckpt/burnt", "w").close()
else:
    import time
    while not os.path.exists("/workspace/ckpt/burnt"):  # it is there for as long as the other, and idles
        time.sleep(0.1)
"""
    seen = lab.run(lab.spec(code, runtime=runtime, workers=2, per_worker=ROOMY))
    assert seen.phase is AttemptPhase.SUCCEEDED
    assert used(seen, 0)[3] < 200 <= used(seen, 1)[3] < 330
    if runtime != "mpi":  # whose ranks may wait for each other in a busy loop
        assert used(seen, 0)[0] < used(seen, 1)[0]


@needs_groups
def test_files_in_memory_are_memory_and_cached_files_are_not(lab: Lab) -> None:
    code = """
import os, time
with open(os.environ["HOME"] + "/large", "wb") as f:
    for _ in range(300): f.write(bytes(1 << 20))
with open("/tmp/part", "wb") as f:
    for _ in range(150): f.write(bytes(1 << 20))
time.sleep(1.5)
"""
    seen = lab.run(lab.spec(code, per_worker=ROOMY))
    assert seen.phase is AttemptPhase.SUCCEEDED, seen
    assert 150 <= used(seen)[3] < 290


@needs_groups
async def test_files_in_memory_are_their_ranks_and_what_it_uses_now_is_counted_as_its_peak(lab: Lab) -> None:
    code = """
import os, time
if os.environ["MLP_RANK"] == "1":
    with open("/dev/shm/part", "wb") as f:
        for _ in range(150): f.write(bytes(1 << 20))
    print("written", flush=True)
while not os.path.exists("/workspace/ckpt/seen"):
    time.sleep(0.1)
"""

    executor = lab.executor()
    spec = lab.spec(code, workers=2, per_worker=Resources(cpu=1000, ram=256))
    await executor.start(spec)
    await eventually(lambda: lab.output(spec, 1))
    held = await until_held(executor, spec.attempt)
    open(f"{lab.workspace(spec)}/ckpt/seen", "w").close()
    seen = await until(executor, spec.attempt, ENDED)
    assert used(seen, 0)[3] < 100
    assert held[0] < 100
    assert 150 <= held[1] <= used(seen, 1)[3] < 256
    await executor.close()


def test_a_rank_that_ran_out_of_memory_used_all_of_it(lab: Lab) -> None:
    code = "x = []\nwhile True: x.append(bytearray(8 << 20))"
    seen = lab.run(lab.spec(code, per_worker=Resources(cpu=1000, ram=128)))
    assert seen.failure is not None
    assert seen.failure.cause is Cause.OUT_OF_MEMORY
    assert used(seen)[3] == 128


def test_usage_reported_from_inside_is_capped_at_the_limits_of_the_sandbox(lab: Lab) -> None:
    code = """
import json, os, socket
if os.environ["MLP_RANK"] == "0":
    liar = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    liar.connect("/run/mlp/control.sock")
    for told in ({"cpu_s": 1e9, "ram_kib": 1 << 40}, {"cpu_s": "much", "ram_kib": [1]}, {"cpu_s": -1, "ram_kib": None}):
        liar.send(json.dumps({"t": "exit", "rank": 1, "code": 0, "signal": None, **told}).encode())
import time
time.sleep(0.5)
"""
    seen = lab.run(lab.spec(code, workers=2, per_worker=Resources(cpu=1000, ram=256)))
    assert seen.phase is AttemptPhase.SUCCEEDED
    assert used(seen, 1)[3] <= 512
    if "cpuacct" in capabilities().bases or capabilities().cgroup == "v2":
        assert used(seen, 1)[0] < 100
    assert used(seen, 0)[3] < 256


def test_a_rank_that_never_ran_used_nothing_that_is_known(lab: Lab) -> None:
    seen = lab.run(lab.spec(None, entry="there-is-none.py"))
    assert seen.phase is AttemptPhase.FAILED
    assert all(rank.ram_peak is None for rank in seen.ranks if rank.state != "failed")


def test_it_is_told_when_ranks_began_to_write(lab: Lab) -> None:
    """A short attempt tells it with its end; what nobody wrote is no first line, and what bubblewrap or mpirun says is none."""
    seen = lab.run(lab.spec("import sys, time\ntime.sleep(0.2)\nprint('here')", per_worker=ROOMY))
    assert seen.started_at is not None
    assert seen.finished_at is not None
    assert seen.stages.first_line is not None
    assert seen.started_at + 0.2 <= seen.stages.first_line <= seen.finished_at
    assert (seen.stages.created, seen.stages.bound, seen.stages.pulled) == (None, None, None)
    assert lab.run(lab.spec("pass", per_worker=ROOMY)).stages.first_line is None


async def test_a_running_program_shows_its_first_line_while_it_runs(lab: Lab) -> None:
    executor = lab.executor()
    spec = lab.spec("import time\nprint('here', flush=True)\ntime.sleep(600)", per_worker=ROOMY)
    await executor.start(spec)

    async def written() -> bool:
        seen = (await executor.observe([spec.attempt]))[spec.attempt]
        assert seen.phase in (AttemptPhase.STARTING, AttemptPhase.RUNNING)
        return seen.stages.first_line is not None

    await waiting.until(written, what="its first line")
    await executor.stop(spec.attempt, 0.0)
    await until(executor, spec.attempt, [AttemptPhase.STOPPED])
    await executor.close()
