"""Bad programs: only the offender suffers, and its end says what it did."""

from __future__ import annotations

import os
import resource
import signal
import time

import pytest

from mlp_hub.domain.jobs.job import Cause, Failure, Hint
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.base import STATE, AttemptPhase
from mlp_hub.executors.shared_volume.logs import read_log, tail_log
from mlp_hub.sandbox import capabilities, control
from mlp_hub.sandbox.shim import files
from support.executors.executor_lab import ENDED, Lab, eventually, until

SMALL = Resources(cpu=1000, ram=128)
needs_cpu_group = pytest.mark.skipif("cpu" not in capabilities().bases, reason="no cpu control group here")
needs_memory_group = pytest.mark.skipif(
    "memory" not in capabilities().bases, reason="no memory control group here"
)
needs_pids_group = pytest.mark.skipif("pids" not in capabilities().bases, reason="no pids control group here")


def test_a_program_that_fills_memory_is_out_of_memory(lab: Lab) -> None:
    code = "x = []\nwhile True: x.append(bytearray(8 << 20))"
    seen = lab.run(lab.spec(code, per_worker=SMALL))
    assert seen.failure is not None
    assert seen.failure.cause is Cause.OUT_OF_MEMORY
    assert "128 MiB" in seen.failure.message


def test_the_rank_that_filled_memory_is_named(lab: Lab) -> None:
    code = """
import os, time
x = []
while os.environ["MLP_RANK"] == "1": x.append(bytearray(8 << 20))
time.sleep(600)
"""
    seen = lab.run(lab.spec(code, workers=2, per_worker=SMALL))
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank) == (Cause.OUT_OF_MEMORY, 1)


@needs_memory_group
@pytest.mark.parametrize("runtime", ["plain", "mpi"])
def test_a_rank_may_not_hold_what_the_others_were_given(lab: Lab, runtime: str) -> None:
    code = """
import os, time
if os.environ["MLP_RANK"] == "1":
    x = bytearray(200 << 20)
time.sleep(600)
"""
    seen = lab.run(lab.spec(code, workers=3, per_worker=SMALL, runtime=runtime))
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank) == (Cause.OUT_OF_MEMORY, 1)
    assert seen.failure.message == "rank 1 was killed: more memory than its 128 MiB"
    assert seen.ranks[1].ram_peak == 128


@needs_memory_group
def test_a_process_that_was_killed_for_memory_under_a_program_that_went_on_is_told(lab: Lab) -> None:
    code = """
import os, subprocess, sys
if os.environ["MLP_RANK"] == "1":
    subprocess.run([sys.executable, "-c", "x = bytearray(400 << 20)"], check=False)
"""
    for workers, ranks in ((2, (1,)), (1, (0,))):
        seen = lab.run(lab.spec(code.replace('"1"', f'"{workers - 1}"'), workers=workers, per_worker=SMALL))
        assert (seen.phase, seen.memory_kills) == (AttemptPhase.SUCCEEDED, ranks)


def test_a_program_that_is_not_there_says_so_for_each_of_several_ranks(lab: Lab) -> None:
    tool = lab.home("ann") / "tool"
    tool.write_text("#!/nowhere/at/all\n")
    tool.chmod(0o755)
    seen = lab.run(lab.spec(None, entry="tool", workers=2))
    assert seen.failure is not None
    assert seen.failure.cause is Cause.START_FAILED
    assert "No such file or directory" in seen.failure.message


def test_temporary_files_count_as_memory_and_end_at_their_own_limit(lab: Lab) -> None:
    code = """
for place in ("/tmp/filling", "/dev/shm/filling"):
    try:
        with open(place, "wb") as f:
            for _ in range(1000): f.write(bytes(1 << 20))
    except OSError as e:
        print(e.strerror)
    import os; os.unlink(place)
"""
    spec = lab.spec(code, per_worker=Resources(cpu=1000, ram=256))
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["No space left on device"] * 2


def test_shared_memory_has_the_size_that_was_asked_for(lab: Lab) -> None:
    code = (
        "import os\nfor p in ('/dev/shm', '/tmp'):\n s = os.statvfs(p)\n print(s.f_blocks * s.f_frsize >> 20)"
    )
    spec = lab.spec(code, per_worker=Resources(cpu=1000, ram=256, amounts=(("shm", 200),)))
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["200", "128"]


@needs_memory_group
def test_shared_memory_that_is_full_is_named_with_its_size(lab: Lab) -> None:
    code = "try:\n with open('/dev/shm/x', 'wb') as f:\n  while True: f.write(bytes(1 << 20))\nexcept OSError as e: raise OSError('/dev/shm: No space left on device')"
    seen = lab.run(lab.spec(code, per_worker=Resources(cpu=1000, ram=256, amounts=(("shm", 200),))))
    assert seen.failure is not None
    assert (seen.failure.hint, seen.failure.hint_limit) == (Hint.MEMORY_FILES, 200)


@needs_memory_group
def test_memory_that_is_full_of_files_is_named_with_its_size(lab: Lab) -> None:
    code = "with open('/dev/shm/x', 'wb') as f:\n while True: f.write(bytes(1 << 20))"
    seen = lab.run(lab.spec(code, per_worker=Resources(cpu=1000, ram=256)))
    assert seen.failure is not None
    assert (seen.failure.hint, seen.failure.hint_limit) == (Hint.MEMORY_FILES, 128)
    assert seen.ranks[0].ram_peak is not None
    assert seen.ranks[0].ram_peak >= 128


def test_a_limit_of_descriptors_is_named_with_its_number(lab: Lab) -> None:
    seen = lab.run(lab.spec("held = []\nwhile True: held.append(open('/dev/null'))"))
    assert seen.failure is not None
    assert seen.failure.hint is Hint.DESCRIPTOR_LIMIT
    assert seen.failure.hint_limit == resource.getrlimit(resource.RLIMIT_NOFILE)[0]


@needs_pids_group
async def test_a_fork_bomb_fails_alone(lab: Lab) -> None:
    code = """
import os, time
made = 0
try:
    for _ in range(2000):
        if os.fork() == 0: time.sleep(600)
        made += 1
except BlockingIOError as e:
    print(made < 1000, e.strerror)
    raise SystemExit(7)
"""

    executor = lab.executor()
    bomb, good = lab.spec(code), lab.spec("print('fine')", user="bob")
    await executor.start(bomb)
    await executor.start(good)
    assert (await until(executor, good.attempt, ENDED)).phase is AttemptPhase.SUCCEEDED
    seen = await until(executor, bomb.attempt, ENDED)
    assert seen.failure is not None
    assert seen.failure.exit_code == 7
    assert lab.output(bomb) == ["True Resource temporarily unavailable"]
    assert seen.failure.hint is Hint.PROCESS_LIMIT
    assert seen.failure.hint_limit == 448 + 16 * (os.cpu_count() or 1)
    await executor.close()


@pytest.mark.skipif("memory" not in capabilities().bases, reason="no memory control group here")
def test_data_buffered_in_connections_counts_as_memory(lab: Lab) -> None:
    code = """
import resource, socket, time
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
listener = socket.create_server(("127.0.0.1", 0), backlog=100)
held, piece = [], b"x" * 65536
while len(held) < 6000:
    one = socket.create_connection(listener.getsockname())
    held += [one, listener.accept()[0]]
    for end in held[-2:]:
        end.setblocking(False)
        try:
            while True:
                end.send(piece)
        except BlockingIOError:
            pass
time.sleep(20)
"""
    seen = lab.run(lab.spec(code, per_worker=SMALL))
    assert seen.failure is not None
    assert seen.failure.cause is Cause.OUT_OF_MEMORY


@pytest.mark.skipif(capabilities().mode != "root-userns", reason="the hub can mount no terminals here")
@pytest.mark.parametrize("ranks", [1, 3])
def test_terminals_are_there_and_one_sandbox_cannot_take_those_of_all(lab: Lab, ranks: int) -> None:
    code = """
import os
if os.environ["MLP_RANK"] == "0":
    master, slave = os.openpty()
    os.write(slave, b"seen")
    print(os.read(master, 4).decode(), os.ttyname(slave), oct(os.stat("/dev/ptmx").st_mode & 0o777))
    taken = 1
    try:
        while taken < 1000:
            os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY)
            taken += 1
    except OSError as error:
        print(taken, error.strerror)
"""
    spec = lab.spec(code, workers=ranks)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["seen /dev/pts/0 0o666", f"{64 + ranks} No space left on device"]


def test_a_flood_of_output_is_bounded_and_its_start_and_end_stay_readable(lab: Lab) -> None:
    code = """
import sys
print("first line")
line = "x" * 99 + "\\n"
for _ in range(280): sys.stdout.write(line * 1000)
print("last line")
"""
    spec = lab.spec(code)
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED
    stored = sum(entry.stat().st_size for entry in os.scandir(f"{lab.workspace(spec)}/log"))
    assert 8 << 20 < stored < 21 << 20
    assert read_log(lab.workspace(spec), 0).lines[0].text == "first line"
    assert tail_log(lab.workspace(spec), 0, 1).lines[0].text == "last line"
    dropped = at = lines = 0
    while (chunk := read_log(lab.workspace(spec), 0, at)).offset != at:
        dropped += chunk.dropped
        at = chunk.offset
        lines += len(chunk.lines)
    assert dropped > 1 << 20
    assert lines > 100_000 / 2


def test_long_broken_and_unfinished_lines_arrive(lab: Lab) -> None:
    code = r"""
import os, time
os.write(1, b"a" * 50000 + b"\n")
os.write(1, b"bad \xff\xfe utf-8\n")
os.write(1, "é".encode() * 20000 + b"\n")
os.write(1, b"progress 10%\r")
time.sleep(1)
os.write(1, b"progress 20%")
"""
    spec = lab.spec(code)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert [line.rpartition(STATE)[2] for line in lab.output(spec)] == [
        "a" * 50000,
        "bad \ufffd\ufffd utf-8",
        "é" * 20000,
        "progress 20%",
    ]


@needs_cpu_group
def test_a_spinning_program_gets_no_more_than_its_cores(lab: Lab) -> None:
    code = """
import os, time
for _ in range(3):
    if os.fork() == 0: break
end = time.monotonic() + 2
while time.monotonic() < end: pass
"""
    spec = lab.spec(code)
    seen = lab.run(spec)
    from mlp_hub import sandbox

    state = sandbox.inspect(lab.run_dir(spec))
    assert state.exit is not None
    assert state.exit.cpu_s is not None
    assert seen.started_at is not None
    assert seen.finished_at is not None
    # four spinners on one core: its part of all cores for as long as they were there, and a little of a period
    assert state.exit.cpu_s < 1.2 * (seen.finished_at - seen.started_at) + 0.5


async def test_a_program_that_ignores_sigterm_is_killed_after_the_grace(lab: Lab) -> None:
    code = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('up', flush=True)\ntime.sleep(600)"

    executor = lab.executor()
    spec = lab.spec(code)
    await executor.start(spec)
    await eventually(lambda: lab.output(spec))
    await executor.stop(spec.attempt, 0.5)
    seen = await until(executor, spec.attempt, ENDED)
    assert seen.phase is AttemptPhase.STOPPED
    assert seen.ranks[0].signal == signal.SIGKILL
    await executor.close()


async def test_a_program_may_save_within_the_grace(lab: Lab) -> None:
    code = """
import signal, sys, time
def save(*_):
    time.sleep(0.3)
    open("/workspace/ckpt/state", "w").write("step 7")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("up", flush=True)
time.sleep(600)
"""

    executor = lab.executor()
    spec = lab.spec(code, workers=2)
    await executor.start(spec)
    await eventually(lambda: lab.output(spec, 0) and lab.output(spec, 1))
    await executor.stop(spec.attempt, 10)
    seen = await until(executor, spec.attempt, ENDED)
    assert seen.phase is AttemptPhase.STOPPED
    with open(f"{lab.workspace(spec)}/ckpt/state") as file:
        assert file.read() == "step 7"
    await executor.close()


def test_a_syntax_error_shows_its_traceback(lab: Lab) -> None:
    seen = lab.run(lab.spec("def f(:\n"))
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.rank, seen.failure.exit_code) == (Cause.PROGRAM_ERROR, 0, 1)
    assert "SyntaxError" in seen.failure.tail


def test_a_rank_killed_by_a_signal_says_which(lab: Lab) -> None:
    seen = lab.run(lab.spec("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)"))
    assert seen.failure is not None
    assert (seen.failure.cause, seen.failure.signal) == (Cause.SIGNAL, signal.SIGSEGV)


def test_a_script_that_does_not_exist_fails_before_anything_runs(lab: Lab) -> None:
    began = time.time()
    seen = lab.run(lab.spec(None, entry="nowhere/train.py"))
    assert seen.failure is not None
    assert seen.failure.cause is Cause.START_FAILED
    assert seen.failure.message == "the home directory has no file nowhere/train.py"
    assert seen.started_at is None
    assert seen.finished_at is not None
    assert seen.finished_at >= began


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("run.py", "import sys; print('args', *sys.argv[1:])"),
        ("run.sh", 'echo args "$@"'),
        ("sub/run", "#!/bin/sh\necho args $@"),
    ],
)
def test_files_of_the_home_directory_run_with_their_arguments(lab: Lab, name: str, content: str) -> None:
    path = lab.home("ann") / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    path.chmod(0o755)
    uid = lab.uid("ann")
    if uid is not None:
        os.chown(path.parent, uid, uid)
        os.chown(path, uid, uid)
    spec = lab.spec(None, entry=name, args=("--epochs", "5"))
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == ["args --epochs 5"]


async def test_a_frozen_shim_of_a_job_beyond_its_limit_is_killed_for_that(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "ANSWERS_S", 0.1)
    executor = lab.executor()
    spec = lab.spec("import time\nprint('up', flush=True)\ntime.sleep(600)")
    await executor.start(spec)
    await eventually(lambda: lab.output(spec) == ["up"])
    shim = files.read_json(lab.run_dir(spec), "claim")
    assert shim is not None
    os.kill(shim["pid"], signal.SIGSTOP)
    late = Failure(Cause.TIME_LIMIT, message="ran longer than its time limit of 1 s")
    await executor.kill(spec.attempt, 0, late)
    seen = await until(executor, spec.attempt, ENDED)
    assert (seen.phase, seen.failure) == (AttemptPhase.FAILED, late)  # as nobody runs it again
    await executor.forget(spec.attempt)
    await executor.close()
