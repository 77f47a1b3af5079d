"""Every way to run ranks with real pods, in a namespace that is `restricted` and has a quota."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import RankRole, Runtime
from mlp_hub.executors.base import EntryPoint, LaunchSpec
from mlp_hub.executors.kubernetes.gang import lacking
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.kubernetes.kinds import JOBS, PYTORCH_JOBS, TF_JOBS, VOLCANO_JOBS, Kind
from support.cluster.gangs import PLAIN_CLUSTER, GangRig, launch
from support.cluster.kube import Kube
from support.waiting import wait_for


@pytest.fixture(scope="module")
def rig(kube: Kube, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GangRig]:
    root = tmp_path_factory.mktemp("files")
    for folder in (root, *root.parents):
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(0o755)
    rig = GangRig(kube, root)
    yield rig
    rig.close()


def test_one_rank_of_a_plain_job_runs_as_its_user(rig: GangRig) -> None:
    program = """
import os, pathlib, sys
print("rank", os.environ["MLP_RANK"], "of", os.environ["MLP_WORLD_SIZE"], os.getuid(), os.environ["HOME"], os.getcwd())
print("to stderr", file=sys.stderr)
pathlib.Path("made.txt").write_text("here")
pathlib.Path(os.environ["MLP_WORKSPACE"], "kept.txt").write_text(" ".join(sys.argv[1:]))
"""
    (rig.home / "project").mkdir()
    (rig.home / "project").chmod(0o777)
    running = rig.start(launch("plain", program, args=("a", "b c"), workdir="project"))
    running.ended()
    assert [(line.stream, line.text) for line in running.lines(0)] == [
        ("stdout", "rank 0 of 1 300007 /home/ann /home/ann/project"),
        ("stderr", "to stderr"),
    ]
    assert (rig.home / "project" / "made.txt").read_text() == "here"
    assert (running.directory / "kept.txt").read_text() == "a b c"
    report = running.report(0)
    assert (report["state"], report["exit_code"], report["cause"]) == ("finished", 0, "ok")
    assert report["started_at"] <= report["finished_at"]


@pytest.mark.differs("Location of a job's `/tmp`", only="cluster")
def test_temporary_files_of_a_job_are_on_its_nodes_disk(rig: GangRig) -> None:
    program = """
lines = [line.split() for line in open("/proc/self/mounts")]
print(*(line[2] == "tmpfs" for line in lines if line[1] in ("/tmp", "/dev/shm")))
"""
    running = rig.start(launch("plain", program))
    running.ended()
    assert sorted(running.texts(0)[0].split()) == ["False", "True"]


@pytest.mark.whole
def test_a_program_below_the_home_runs_on_three_ranks(rig: GangRig) -> None:
    (rig.home / "hello.sh").write_text('echo "$MLP_RANK of $MLP_WORLD_SIZE with $1"\n')
    running = rig.start(launch("plain", "", 3, program=EntryPoint("hello.sh"), args=("x",)))
    running.ended()
    assert [running.texts(rank) for rank in range(3)] == [[f"{rank} of 3 with x"] for rank in range(3)]


SUM = """
from mpi4py import MPI
import os, socket
world = MPI.COMM_WORLD
total = world.allreduce(world.Get_rank() + 1)
print("rank", world.Get_rank(), "of", world.Get_size(), "sum", total, os.environ["MLP_RANK"])
print(socket.gethostname(), flush=True)
"""


def test_three_mpi_ranks_over_pods_add_up(rig: GangRig) -> None:
    (rig.home / "ranks").mkdir()
    running = rig.start(launch("mpi", f"{SUM}print(os.getcwd())", 3, workdir="ranks"))
    running.ended()
    said = [running.texts(rank) for rank in range(3)]
    assert [lines[0] for lines in said] == [f"rank {rank} of 3 sum 6 {rank}" for rank in range(3)]
    assert len({lines[1] for lines in said}) == 3
    assert {lines[2] for lines in said} == {"/home/ann/ranks"}
    assert all(running.report(rank)["cause"] == "ok" for rank in range(3))


@pytest.mark.whole
def test_an_exception_in_one_mpi_rank_ends_all_and_is_told_as_that_ranks(rig: GangRig) -> None:
    program = """
from mpi4py import MPI
if MPI.COMM_WORLD.Get_rank() == 2:
    raise ValueError("no such digit")
MPI.COMM_WORLD.barrier()
"""
    running = rig.start(launch("mpi", program, 3))
    running.ended("failed")
    report = running.report(2)
    assert (report["state"], report["cause"]) == ("failed", "program-error")
    assert report["message"].startswith("rank 2: ValueError: no such digit")
    assert running.report(0)["state"] == running.report(1)["state"] == "stopped"


def test_sigterm_reaches_all_mpi_ranks_and_what_they_then_write_is_kept(rig: GangRig) -> None:
    program = """
from mpi4py import MPI
import signal, sys, time
def end(*_):
    print("goodbye", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
MPI.COMM_WORLD.barrier()
print("ready", flush=True)
while True:
    time.sleep(0.1)
"""
    running = rig.start(launch("mpi", program, 2))
    for rank in range(2):
        running.until(rank, lambda _report, rank=rank: "ready" in running.texts(rank))
    running.delete()
    for rank in range(2):
        report = running.until(rank, lambda report: report.get("finished_at"))
        assert report["asked"]
        assert running.texts(rank) == ["ready", "goodbye"]


MIRRORED = """
import json, os
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
given = json.loads(os.environ["TF_CONFIG"])
with strategy.scope():
    weight = tf.Variable(1.0)
@tf.function
def step(x):
    def one(x):
        with tf.GradientTape() as tape:
            loss = (weight * x - 4.0) ** 2
        gradient = tape.gradient(loss, weight)
        total = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, gradient)
        weight.assign_sub(0.1 * total)
    strategy.run(one, args=(x,))
for _ in range(30):
    step(tf.constant(2.0 if given["task"]["index"] else 1.0))
print("trained on", strategy.num_replicas_in_sync, "as", given["task"]["index"], "to", round(float(weight.numpy()), 1))
"""
SERVERS = """
import json, os
import tensorflow as tf
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
task = resolver.task_type
if task in ("worker", "ps"):
    tf.distribute.Server(resolver.cluster_spec(), job_name=task, task_index=resolver.task_id,
                         protocol="grpc", start=True).join()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0.0)
@tf.function
def step():
    total.assign_add(1.0)
    return total.read_value()
for _ in range(5):
    coordinator.schedule(step)
coordinator.join()
print("total", total.numpy(), "over", total.device.rsplit("/job:")[1].split("/")[0], flush=True)
"""


def _tf(program: str, workers: int, ps: int = 0) -> LaunchSpec:
    return launch("tf", program, workers, ps, per_worker=Resources(cpu=600 // (workers + ps), ram=1200))


def ways_of(always: Kind, *more: Kind) -> pytest.MarkDecorator:
    """Give a test each of these ways; CI has the first of them each time."""
    marked = [always, *(pytest.param(kind, marks=pytest.mark.whole) for kind in more)]
    return pytest.mark.parametrize("kind", marked, ids=lambda kind: kind.api_version)


@ways_of(TF_JOBS, VOLCANO_JOBS, JOBS)
def test_two_tensorflow_workers_train_together(rig: GangRig, kind) -> None:
    running = rig.start(
        _tf(MIRRORED, 2), OperatorWays((rig.ways.served - {TF_JOBS, VOLCANO_JOBS, JOBS}) | {kind})
    )
    assert running.kind == kind
    running.ended()
    assert [running.texts(rank)[-1] for rank in range(2)] == [
        # the least of (w - 4)^2 + (2w - 4)^2, which neither finds alone
        f"trained on 2 as {rank} to 2.4"
        for rank in range(2)
    ]


@ways_of(VOLCANO_JOBS, TF_JOBS, JOBS)
def test_a_tensorflow_job_with_a_parameter_server_ends_with_its_chief(rig: GangRig, kind) -> None:
    served = (rig.ways.served - {TF_JOBS, VOLCANO_JOBS, JOBS}) | {kind}
    running = rig.start(_tf(SERVERS, 2, 1), OperatorWays(served))
    running.ended()
    assert running.texts(0)[-1] == "total 5.0 over ps"
    for rank in (1, 2):  # those never end by themselves
        assert running.until(rank, lambda report: report.get("finished_at"))["state"] == "stopped"


RENDEZVOUS = """
import os, socket
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
if rank == 0:
    with socket.create_server(("", port)) as server:
        found = sorted(server.accept()[0].recv(10).decode() for _ in range(size - 1))
    print("rendezvous of", found, os.environ["LOCAL_RANK"], flush=True)
else:
    while True:
        try:
            socket.create_connection((host, port)).sendall(str(rank).encode())
            break
        except ConnectionRefusedError:
            pass
"""


@ways_of(PYTORCH_JOBS, JOBS)
def test_ranks_of_torch_find_their_master(rig: GangRig, kind) -> None:
    served = (rig.ways.served - {PYTORCH_JOBS, JOBS}) | {kind}
    running = rig.start(launch("torch", RENDEZVOUS, 3), OperatorWays(served))
    assert running.kind == kind
    running.ended()
    assert running.texts(0) == ["rendezvous of ['1', '2'] 0"]


def test_a_tenants_runtime_gives_each_role_its_program_and_its_hosts(rig: GangRig) -> None:
    runtime = Runtime(
        "exchange",
        "",
        "",
        program=("{python}", "-u", "{entry}", "{role}", "{port}", "{hosts.worker}", "{args}"),
        roles=(
            RankRole("desk", 1, ("/bin/sh", "-c", "echo {role} {rank} {count.worker}; sleep 3")),
            RankRole("worker"),
        ),
        env={"ALL": "{hosts}"},
        ends_with="desk",
        linger_s=20.0,
        success=(0, 7),
        tenant="red",
    )
    program = """
import os, socket, sys
role, port, workers, word = sys.argv[1:]
print(role, len(os.environ["ALL"].split(",")), word, [socket.gethostbyname(w.split(":")[0]) != "" for w in workers.split(",")])
sys.exit(7)
"""
    running = rig.start(launch(runtime, program, 3, args=("hi",)))
    running.ended()
    assert running.texts(0) == ["desk 0 2"]
    assert running.texts(1) == running.texts(2) == ["worker 3 hi [True, True]"]
    assert [running.report(rank)["exit_code"] for rank in range(3)] == [0, 7, 7]
    assert {running.report(rank)["state"] for rank in range(3)} == {"finished"}


LAUNCHER = """
import os, subprocess, sys
ranks = [
    subprocess.Popen(sys.argv[2:], env={**os.environ, "MY_RANK": str(n), "WORD": "w%d" % n})
    for n in range(int(sys.argv[1]))
]
sys.exit(max(one.wait() for one in ranks))
"""


def _launched(rig: GangRig) -> Runtime:
    (rig.home / "launch.py").write_text(LAUNCHER)
    return Runtime(
        "own",
        "",
        "",
        launcher=("{python}", "/home/ann/launch.py", "{world_size}", "{start_rank}"),
        rank_env="MY_RANK",
        tenant="red",
    )


@pytest.mark.whole
def test_a_tenants_launcher_starts_each_rank_in_its_own_pod(rig: GangRig) -> None:
    program = "import os, socket; print(os.environ['MLP_RANK'], os.environ['WORD'], socket.gethostname())"
    running = rig.start(launch(_launched(rig), program, 3))
    running.ended()
    said = [running.texts(rank)[0].split() for rank in range(3)]
    assert [words[:2] for words in said] == [["0", "w0"], ["1", "w1"], ["2", "w2"]]
    assert len({words[2] for words in said}) == 3


@pytest.mark.whole
def test_the_end_of_one_rank_is_what_its_launcher_is_told(rig: GangRig) -> None:
    program = "import os, sys; sys.exit(5 if os.environ['MLP_RANK'] == '1' else 0)"
    running = rig.start(launch(_launched(rig), program, 2))
    running.ended("failed")
    assert running.report(1)["exit_code"] == 5
    assert running.report(1)["message"] == "rank 1 ended with exit status 5"


def test_a_flood_from_two_ranks_is_complete_and_in_order(rig: GangRig) -> None:
    program = """
import os, sys
for n in range(100_000):
    print(os.environ["MLP_RANK"], n)
"""
    running = rig.start(launch("plain", program, 2))
    running.ended()
    for rank in range(2):
        assert running.texts(rank) == [f"{rank} {n}" for n in range(100_000)]
        assert running.report(rank)["lost_lines"] == 0


def test_sigterm_reaches_what_a_rank_has_started(rig: GangRig) -> None:
    program = """
import subprocess
subprocess.run(["sh", "-c", 'trap "echo child ends; exit 0" TERM; echo ready; while :; do sleep 0.1; done'])
"""
    running = rig.start(launch("plain", program))
    running.until(0, lambda _report: "ready" in running.texts(0))
    running.delete()
    report = running.until(0, lambda report: report.get("finished_at"))
    assert "child ends" in running.texts(0)
    assert (report["asked"], report["state"]) == (True, "stopped")


@pytest.mark.whole
def test_a_process_that_ignores_sigterm_is_killed_after_the_grace(rig: GangRig) -> None:
    program = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("ready", flush=True)
time.sleep(1000)
"""
    running = rig.start(launch("plain", program, grace_s=1.0))
    running.until(0, lambda _report: "ready" in running.texts(0))
    running.delete()
    report = running.until(0, lambda report: report.get("finished_at"))
    assert (report["signal"], report["state"]) == (9, "stopped")


def test_a_rank_that_fails_ends_the_gang_and_says_how(rig: GangRig) -> None:
    program = """
import os, time
if os.environ["MLP_RANK"] == "1":
    raise RuntimeError("rank one is broken")
time.sleep(1000)
"""
    running = rig.start(launch("plain", program, 2))
    running.ended("failed")
    report = running.report(1)
    assert (report["exit_code"], report["cause"]) == (1, "program-error")
    assert report["message"] == "rank 1: RuntimeError: rank one is broken (exit status 1)"
    assert running.until(0, lambda report: report.get("finished_at"))["state"] == "stopped"
    # the other one's pod has failed too: it was stopped
    failed = [pod["status"] for pod in running.pods() if pod["status"]["phase"] == "Failed"]
    states = [json.dumps(status["containerStatuses"][0]["state"]) for status in failed]
    told = [state for state in states if '"stopped"' not in state]
    assert all("rank one is broken" in state for state in told)


@pytest.mark.whole
def test_more_memory_than_asked_for_is_told_as_that(rig: GangRig) -> None:
    running = rig.start(launch("plain", "x = bytearray(900 << 20)"))
    running.ended("failed")
    report = running.report(0)
    if report["finished_at"] is not None:  # else the kernel took the rank program too, and the cluster tells
        assert report["cause"] == "out-of-memory"
        assert report["message"] == "rank 0 was killed: more memory than its 400 MiB"


@pytest.mark.whole
def test_a_time_limit_ends_a_rank_and_is_its_reason(rig: GangRig) -> None:
    running = rig.start(launch("plain", "import time; time.sleep(1000)", time_limit=1.0))
    running.ended("failed")
    assert running.report(0)["cause"] == "time-limit"
    assert running.report(0)["message"] == "it ran longer than its time limit of 1 s"


def test_a_plain_cluster_runs_all_but_mpi(rig: GangRig) -> None:
    running = rig.start(launch("torch", RENDEZVOUS, 2), PLAIN_CLUSTER)
    running.ended()
    assert running.texts(0) == ["rendezvous of ['1'] 0"]


@pytest.mark.whole
def test_volcano_binds_a_gang_whole_or_not_at_all(rig: GangRig, kube: Kube) -> None:
    [room] = [
        node["status"]["allocatable"]["cpu"]
        for node in kube.get("nodes")["items"]
        if "kwok.x-k8s.io/node" not in node["metadata"].get("annotations", {})
    ]
    milli = int(room[:-1]) if room.endswith("m") else int(room) * 1000
    each = Resources(cpu=milli * 2 // 5, ram=200)  # two fit, three do not
    waiting = rig.start(launch("plain", "print('never')", 3, per_worker=each))

    def told() -> bool:
        group = rig.namespace.get(f"podgroups.scheduling.volcano.sh/{waiting.name}-gang")
        conditions = group.get("status", {}).get("conditions", ())
        return any(one["type"] == "Unschedulable" and one["status"] == "True" for one in conditions)

    wait_for(lambda: len(waiting.pods()) == 3 and told(), every=0.5)
    running = rig.start(launch("plain", "print('here')", 2, per_worker=each))
    running.ended()  # so there was room for two all the time
    assert [pod["spec"].get("nodeName") for pod in waiting.pods()] == [None] * 3
    waiting.delete()


@pytest.mark.whole
@pytest.mark.differs("MPI implementation", only="cluster")
@pytest.mark.parametrize(
    ("missing", "said"),
    [
        (
            "/usr/sbin",
            "the image has no sshd and ssh, by which MPI starts ranks in pods: install openssh-server in it",
        ),
        (
            "/etc/alternatives",
            "the image has no mpirun, which runtime mpi needs: install Open MPI or MPICH in it",
        ),
    ],
)
def test_an_image_without_what_mpi_needs_fails_naming_it(rig: GangRig, missing: str, said: str) -> None:
    running = rig.start(launch("mpi", SUM, 2), hidden=(missing,))
    running.ended("failed")
    assert running.report(0)["message"] == said
    assert running.report(0)["cause"] == "start-failed"


@pytest.mark.whole
def test_an_image_without_python_fails_naming_it(rig: GangRig) -> None:
    spec = launch("plain", "", image="mlp.local/pause:dev")
    running = rig.start(spec)

    def refused() -> str:
        for pod in running.pods():
            for one in pod["status"].get("containerStatuses", ()):
                for state in one["state"].values():
                    if state.get("message"):
                        return state["message"]
        return ""

    message = wait_for(refused, every=0.5)
    assert str(lacking(message)) == "the image has no python3, which runs the ranks: install it there"
