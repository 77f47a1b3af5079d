"""Any process may be killed in the middle: the job goes on or is requeued whole, quota and metrics stay exact."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable

import psutil
import pytest

from mlp_hub.sandbox import inspect
from support.hubs.live_hub import LiveHub, tenant_use
from support.waiting import wait_for

POINTS = 200
PROGRAM = f"""
import mlp, os, time
rank = int(os.environ["MLP_RANK"])
for i in range({POINTS}):
    mlp.report(step=i, value=i * 10 + rank, progress=100 * i // {POINTS})
    time.sleep(0.02)
"""
GO = "while not os.path.exists('/workspace/ckpt/go'): time.sleep(0.05)\n"
UNTIL_TOLD = "from mpi4py import MPI\nMPI.COMM_WORLD.barrier()\n" + PROGRAM + GO
SHAPE = {"runtime": "mpi", "workers": 2, "cpu": 0.5, "ram": 256}


def assert_each_point_once(hub: LiveHub, user: str, name: str, ranks: int) -> None:
    """Every point that a rank reported is stored exactly once, in order."""
    for rank in range(ranks):
        steps = [p["step"] for p in hub.points(user, name) if p["rank"] == rank]
        assert steps == list(range(POINTS)), f"rank {rank}: {len(steps)} points"


def let_end(hub: LiveHub, user: str, name: str) -> None:
    """Tell a program that ends only when told to."""
    (hub.home / "mlp" / "jobs" / user / name / "ckpt" / "go").touch()


def both_at_work(hub: LiveHub, user: str, name: str) -> None:
    """Wait until the ranks have met: from then on the job's processes are those that it has to its end."""
    hub.wait_phase(user, name, "running")
    wait_for(lambda: hub.job(user, name)["progress"], message="for the ranks to report")


def shim_of(hub: LiveHub, user: str, name: str) -> psutil.Process | None:
    """Return the process that keeps the job's present attempt, None when there is none."""
    job = hub.job(user, name)
    pid = inspect(str(hub.home / "jobs-run" / f"{job['uid']}.{job['restarts']}")).shim_pid
    try:
        return None if pid is None else psutil.Process(pid)
    except psutil.NoSuchProcess:
        return None


def processes_of(hub: LiveHub, user: str, name: str) -> list[psutil.Process]:
    """List the live processes of a job: its shim and all below it."""
    shim = shim_of(hub, user, name)
    try:
        return [] if shim is None else [shim, *shim.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def find(hub: LiveHub, user: str, name: str, word: str) -> psutil.Process:
    """Find one process of the job by a word of its command line."""

    def look() -> psutil.Process | None:
        for process in processes_of(hub, user, name):
            try:
                if any(word in part for part in process.cmdline()):
                    return process
            except psutil.Error:
                continue
        return None

    return wait_for(look, message=f"for a process {word} of {name}")


def assert_gone(processes: Iterable[psutil.Process]) -> None:
    """None of these processes lives any more; a zombie that its parent has yet to reap counts as dead."""

    def gone() -> bool:
        return not [p for p in processes if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]

    wait_for(gone, message="for the processes to be gone")


@pytest.mark.parametrize("component", ["hub", "service", "proxy", "supervisor"])
def test_a_job_continues_when_a_part_of_the_platform_is_killed(hub: LiveHub, component: str) -> None:
    before = tenant_use(hub)
    name = f"through-{component}"
    hub.submit("ann", name, UNTIL_TOLD, **SHAPE)
    both_at_work(hub, "ann", name)
    processes = processes_of(hub, "ann", name)
    assert len(processes) >= 5, "shim, bwrap, launcher and two ranks"
    old = hub.kill(component)
    if component == "supervisor":
        hub.up()
    hub.wait_back(component, old)
    assert all(p.is_running() for p in processes), "its processes were not touched"
    let_end(hub, "ann", name)
    job = hub.wait_phase("ann", name, "finished")
    assert (job["restarts"], job["progress"]) == (0, 100)
    assert_each_point_once(hub, "ann", name, 2)
    assert tenant_use(hub) == before
    assert_gone(processes)


@pytest.mark.parametrize(("victim", "word"), [("launcher", "mpiexec"), ("rank", "main.py")])
def test_a_killed_rank_or_launcher_takes_the_gang_down_whole_and_it_is_retried(
    hub: LiveHub, victim: str, word: str
) -> None:
    before = tenant_use(hub)
    name = f"without-{victim}"
    first = "import os, time\nif os.environ['MLP_RESTART_COUNT'] == '0': time.sleep(600)\n"
    hub.submit("ann", name, "from mpi4py import MPI\n" + first + PROGRAM, retries=1, **SHAPE)
    hub.wait_phase("ann", name, "running")
    killed = find(hub, "ann", name, word)
    processes = processes_of(hub, "ann", name)
    killed.kill()
    job = hub.wait_phase("ann", name, "finished")
    assert job["restarts"] == 1
    assert_each_point_once(hub, "ann", name, 2)
    assert tenant_use(hub) == before
    assert_gone(processes)


def test_a_killed_rank_without_retries_fails_the_job_and_says_which_signal(hub: LiveHub) -> None:
    hub.submit("ann", "one-shot", "from mpi4py import MPI\nimport time; time.sleep(600)\n", **SHAPE)
    hub.wait_phase("ann", "one-shot", "running")
    killed = find(hub, "ann", "one-shot", "main.py")
    processes = processes_of(hub, "ann", "one-shot")
    killed.kill()
    job = hub.wait_phase("ann", "one-shot", "failed")
    assert (job["failure"]["cause"], job["failure"]["signal"]) == ("signal", signal.SIGKILL)
    assert_gone(processes)


def test_a_killed_shim_counts_as_a_lost_node_and_uses_up_no_retry(hub: LiveHub) -> None:
    before = tenant_use(hub)
    code = "import os, time\nif os.environ['MLP_RESTART_COUNT'] == '0': time.sleep(600)\n" + PROGRAM
    hub.submit("ann", "lost", code, cpu=0.5, ram=256)
    hub.wait_phase("ann", "lost", "running")
    processes = processes_of(hub, "ann", "lost")
    processes[0].kill()
    job = hub.wait_phase("ann", "lost", "finished")
    assert job["restarts"] == 1
    assert_each_point_once(hub, "ann", "lost", 1)
    assert tenant_use(hub) == before
    assert_gone(processes)


def test_the_service_killed_at_the_moment_of_submission_neither_loses_nor_doubles_jobs(hub: LiveHub) -> None:
    before = tenant_use(hub)
    for i in range(5):
        hub.submit("bob", f"burst-{i}", "import time; time.sleep(0.5)", cpu=0.5, ram=128)
        if i == 2:
            old = hub.kill("service")
            hub.wait_back("service", old)
    for i in range(5):
        job = hub.wait_phase("bob", f"burst-{i}", "finished")
        assert job["restarts"] == 0
    assert tenant_use(hub) == before


def test_down_leaves_a_job_running_and_the_next_up_finds_it(hub: LiveHub) -> None:
    hub.submit("ann", "overnight", UNTIL_TOLD, **SHAPE)
    both_at_work(hub, "ann", "overnight")
    processes = processes_of(hub, "ann", "overnight")
    hub.down()
    assert all(p.is_running() for p in processes)
    hub.up()
    let_end(hub, "ann", "overnight")
    job = hub.wait_phase("ann", "overnight", "finished")
    assert job["restarts"] == 0
    assert_each_point_once(hub, "ann", "overnight", 2)


def test_metrics_reported_while_the_service_is_stopped_arrive_later(hub: LiveHub) -> None:
    hub.submit("ann", "patient", PROGRAM, cpu=0.5, ram=256)
    hub.wait_phase("ann", "patient", "running")
    pid = hub.pid("service")
    os.kill(pid, signal.SIGSTOP)
    try:
        time.sleep(3)
    finally:
        os.kill(pid, signal.SIGCONT)
    hub.wait_phase("ann", "patient", "finished")
    assert_each_point_once(hub, "ann", "patient", 1)
