"""What a tenant has the shim do is the tenant's: floods are slowed, counted as the job's, and keep no job alive."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.domain.jobs.job import Cause
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import AttemptPhase, LaunchSpec
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.sandbox import capabilities
from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.cgroups import Groups
from support.executors.executor_lab import ENDED, Lab, eventually, until

MIB = 1 << 20
TENTH = Resources(cpu=50, ram=100)  # of a core for two ranks
HEAD = """
import os, signal, socket, sys, threading, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
def count(n):
    with open("/workspace/ckpt/count", "w") as f: f.write(str(n))
def control():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect("/run/mlp/control.sock")
    return s
first = os.environ["MLP_RANK"] == "0"
if first: count(0)
"""
FLOODS = {
    "big messages": """
s, n = control(), 0
while first:
    s.send(b"[" * 60_000); n += 1
    if n % 50 == 0: count(n)
""",
    "starts of a rank that runs": """
s, n = control(), 0
while first:
    s.send(b'{"t": "start", "rank": 1, "pid": 2}'); n += 1
    if n % 50 == 0: count(n)
""",
    "connections": """
n = 0
while first:
    control().close(); n += 1
    if n % 50 == 0: count(n)
""",
    "empty lines": r"""
b, n = b"\n" * 65536, 0
while first:
    n += os.write(1, b); count(n)
""",
    "single bytes": """
n = 0
while first:
    n += os.write(1, b"x")
    if n % 1000 == 0: count(n)
""",
    "rows that the cursor passes": r"""
b, n = b"\r" + b"\x1b[64B" * 13_000, 0
while first:
    n += os.write(1, b); count(n)
""",
    "a wide row that is written to": r"""
os.write(1, b"\r\x1b[4096G" + "\U0001F600".encode() * 16_000 + b"\x1b[1G")
b, n = b"x\b" * 32_000, 0
while first:
    n += os.write(1, b); count(n)
""",
}
STEERING = ["rows that the cursor passes", "a wide row that is written to"]
WAITS = "\ntime.sleep(600)"
needs_cpuacct = pytest.mark.skipif(
    not capabilities().bases.keys() & {"cpuacct", "cpu"}, reason="no control group that counts processor time"
)


def flood(lab: Lab, name: str, **more: object) -> LaunchSpec:
    more.setdefault("grace_s", 0.5)
    return lab.spec(HEAD + FLOODS[name] + WAITS, workers=2, per_worker=TENTH, **more)


async def under_way(lab: Lab, executor: LocalExecutor, name: str, more_than: int = 0) -> LaunchSpec:
    """Start a flood and wait until it got rid of so much."""
    spec = flood(lab, name)
    await executor.start(spec)
    await eventually(lambda: counted(lab, spec) > more_than)
    return spec


def counted(lab: Lab, spec: LaunchSpec) -> int:
    """Return what the flood says it got rid of."""
    try:
        return int(Path(lab.workspace(spec), "ckpt/count").read_text() or 0)
    except FileNotFoundError:
        return 0


def shim_of(lab: Lab, spec: LaunchSpec) -> int:
    claim = files.read_json(lab.run_dir(spec), "claim")
    assert claim is not None
    return int(claim["pid"])


def written(pid: int) -> int:
    """Return how many bytes a process has written in its life."""
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("wchar")))


def most_memory(pid: int) -> int:
    """Return the most bytes that a process had in memory; 0 where it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except FileNotFoundError:
        return 0
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM")), 0)


def groups_of(lab: Lab, spec: LaunchSpec) -> Groups:
    content = files.read_json(lab.run_dir(spec), "spec.json")
    assert content is not None
    host = content["host"]
    return Groups(host["cgroup"], host["bases"], host["group"])


def cpu_of_group(lab: Lab, spec: LaunchSpec) -> float:
    used = groups_of(lab, spec).cpu_seconds()
    assert used is not None
    return used


def run_out(groups: Groups) -> None:
    """Have the kernel kill something for lack of memory where the shim is."""
    hog = subprocess.Popen([sys.executable, "-c", "input(); b'x' * (300 << 20)"], stdin=subprocess.PIPE)
    Path(groups.paths["memory"], "shim/cgroup.procs").write_text(str(hog.pid))
    hog.communicate(b"\n")


@asynccontextmanager
async def running(lab: Lab) -> AsyncIterator[LocalExecutor]:
    executor = lab.executor()
    try:
        yield executor
    finally:
        await executor.close()


@pytest.mark.parametrize("name", FLOODS)
def test_a_flood_keeps_no_job_alive_beyond_its_time_limit(lab: Lab, name: str) -> None:
    seen = lab.run(flood(lab, name, time_limit=2.0))
    assert seen.failure is not None
    assert seen.failure.cause is Cause.TIME_LIMIT


@pytest.mark.parametrize("name", FLOODS)
async def test_a_flood_keeps_no_cancel_waiting(lab: Lab, name: str) -> None:
    async with running(lab) as executor:
        spec = await under_way(lab, executor, name, 20)
        await executor.stop(spec.attempt, 0.5)
        assert (await until(executor, spec.attempt, ENDED)).phase is AttemptPhase.STOPPED


@pytest.mark.skipif("memory" not in capabilities().bases, reason="no control group that bounds memory")
@pytest.mark.parametrize("name", STEERING)
async def test_attack_a_cursor_that_moves_far_takes_no_memory_of_the_log_writer(lab: Lab, name: str) -> None:
    async with running(lab) as executor:
        spec = await under_way(lab, executor, name)
        shim = shim_of(lab, spec)
        begun = counted(lab, spec)
        await eventually(lambda: counted(lab, spec) > begun + 128 * 1024 or not files.start_time(shim))
        most = most_memory(shim)
        await executor.stop(spec.attempt, 0.5)
        assert (await until(executor, spec.attempt, ENDED)).phase is AttemptPhase.STOPPED
        assert 0 < most < 45 * MIB


@pytest.mark.skipif("memory" not in capabilities().bases, reason="no control group that bounds memory")
async def test_attack_a_shim_that_a_job_has_run_out_of_memory_is_the_jobs_failure_and_not_the_nodes(
    lab: Lab,
) -> None:
    async with running(lab) as executor:
        spec = lab.spec("import time; time.sleep(600)")
        await executor.start(spec)
        await until(executor, spec.attempt, {AttemptPhase.RUNNING})
        run_out(groups_of(lab, spec))
        os.kill(shim_of(lab, spec), signal.SIGKILL)
        seen = await until(executor, spec.attempt, ENDED)
        assert seen.failure is not None
        assert (seen.phase, seen.failure.cause) == (AttemptPhase.FAILED, Cause.OUT_OF_MEMORY)


@pytest.mark.parametrize("name", ["big messages", "starts of a rank that runs", "connections"])
async def test_messages_are_taken_at_a_bounded_rate(lab: Lab, name: str) -> None:
    async with running(lab) as executor:
        began = time.monotonic()
        spec = await under_way(lab, executor, name, 100)
        await asyncio.sleep(2)
        queued = 1000  # what the kernel holds for the shim
        assert counted(lab, spec) < 80 + 100 * (time.monotonic() - began) + queued
        assert (await executor.observe([spec.attempt]))[spec.attempt].phase is AttemptPhase.RUNNING


@pytest.mark.parametrize("name", ["empty lines", "single bytes"])
async def test_the_rate_of_log_bytes_written_for_a_job_is_limited_by_its_bucket(lab: Lab, name: str) -> None:
    async with running(lab) as executor:
        began = time.monotonic()
        spec = await under_way(lab, executor, name)
        await asyncio.sleep(4)
        wrote = written(shim_of(lab, spec))
        assert wrote < (16 + 4 * (time.monotonic() - began) + 4) * MIB


@needs_cpuacct
async def test_the_shims_work_counts_as_its_jobs_and_takes_nothing_from_another_tenants(lab: Lab) -> None:
    """Four floods of a tenth of a core each beside a witness who may use all cores and does."""

    async with running(lab) as executor:
        cores = os.cpu_count() or 1
        spin = f"import os\nfor _ in range({cores - 1}):\n    if os.fork() == 0: break\nprint('up', flush=True)\nwhile True: pass"
        witness = lab.spec(spin, user="bob", per_worker=Resources(cpu=1000 * cores, ram=100))
        floods = [flood(lab, name) for name in ("big messages", "connections", "empty lines", "single bytes")]
        for spec in (witness, *floods):
            await executor.start(spec)
        await eventually(lambda: all(counted(lab, spec) > 0 for spec in floods) and lab.output(witness))
        before = [cpu_of_group(lab, spec) for spec in (witness, *floods)]
        ours = [files.usage(shim_of(lab, spec)) for spec in floods]
        await asyncio.sleep(3)
        used = [cpu_of_group(lab, spec) - at for spec, at in zip((witness, *floods), before, strict=True)]
        for spec, at, of_group in zip(floods, ours, used[1:], strict=True):
            now = files.usage(shim_of(lab, spec))
            assert at is not None
            assert now is not None
            assert now[0] - at[0] <= of_group + 0.05  # in ticks of the clock
        # each flood weighs a tenth of a core
        assert sum(used[1:]) < 0.6 * used[0], used


@needs_cpuacct
async def test_the_processor_time_that_is_shown_has_what_the_shim_used(lab: Lab) -> None:
    async with running(lab) as executor:
        spec = await under_way(lab, executor, "empty lines")
        await executor.observe([spec.attempt])
        await asyncio.sleep(1.5)
        pid = shim_of(lab, spec)
        own = files.usage(pid)
        assert own is not None
        seen = (await executor.observe([spec.attempt]))[spec.attempt]
        assert sum(rank.cpu or 0 for rank in seen.ranks) > 0
        await executor.stop(spec.attempt, 0.1)
        await until(executor, spec.attempt, ENDED)
        end = sandbox.inspect(lab.run_dir(spec)).exit
        assert end is not None
        assert end.cpu_s is not None
        assert end.cpu_s >= own[0] - 0.05


def test_the_shim_has_separate_memory_and_processes_when_the_job_uses_up_its_own(lab: Lab) -> None:
    """Whoever fills what the job may have leaves the shim what it needs to say how that ended."""
    code = """
import os
x = []
for _ in range(4):
    if os.fork() == 0: break
while True:
    os.write(1, b"\\n" * 65536)
    x.append(bytearray(4 << 20))
"""
    seen = lab.run(lab.spec(code, per_worker=Resources(cpu=1000, ram=64)))
    assert seen.failure is not None
    assert seen.failure.cause is Cause.OUT_OF_MEMORY


HANDS_OUT = """
import array, socket, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
for _ in range(2000):
    try: s.connect(os.path.expanduser("~/taker")); break
    except OSError: time.sleep(0.01)
print("handed out", flush=True)
channel = control() if {way} else None
fds = array.array("i", [channel.fileno()] if channel else [1, 2])
s.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])
s.recv(1)  # until the other has begun
os._exit(0)
"""
TAKES = r"""
import array, fcntl, os, socket, threading
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(os.path.expanduser("~/taker"))
s.listen(1)
print("up", flush=True)
peer, _ = s.accept()
_, ancillary, _, _ = peer.recvmsg(1, socket.CMSG_SPACE(64))
fds = array.array("i"); fds.frombytes(ancillary[0][2])
def flood(fd, what):
    while True: os.write(fd, what)
fcntl.fcntl(fds[0], 1031, 1 << 20)  # F_SETPIPE_SZ
for fd in fds:
    for _ in range(2):
        threading.Thread(target=flood, args=(fd, {what})).start()
import time; time.sleep(0.2)
peer.send(b"x")
"""


@pytest.mark.parametrize(("workers", "way"), [(1, False), (2, False), (2, True)])
async def test_handed_out_file_descriptors_do_not_delay_the_end_of_a_job(
    lab: Lab, workers: int, way: bool
) -> None:
    """Its output, or its way to the shim, is in the hands of another job that goes on with it."""

    async with running(lab) as executor:
        taker = lab.spec(TAKES.replace("{what}", "b'[' * 4000" if way else r"b'\n' * 65536"))
        giver = lab.spec(
            HEAD + "if not first: sys.exit()\n" + HANDS_OUT.replace("{way}", str(way)), workers=workers
        )
        await executor.start(taker)
        await eventually(lambda: lab.output(taker) == ["up"])
        await executor.start(giver)
        seen = await until(executor, giver.attempt, ENDED)
        assert seen.phase is AttemptPhase.SUCCEEDED
        assert lab.output(giver)[0] == "handed out"
        stored = sum(entry.stat().st_size for entry in os.scandir(f"{lab.workspace(giver)}/log"))
        assert stored < 24 * MIB
