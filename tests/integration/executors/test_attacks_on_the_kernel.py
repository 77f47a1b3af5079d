"""System calls that a tenant's program makes from inside a real sandbox, and programs that must not miss any."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from mlp_hub.executors.base import AttemptPhase
from mlp_hub.sandbox import capabilities
from support.executors.executor_lab import Lab

needs_filter = pytest.mark.skipif(capabilities().seccomp is None, reason="no filter can be made here")

# by number of x86-64, or by name where the C library has it; each with arguments that a kernel without a filter takes
CALLS = """
import ctypes, errno, fcntl, json, os, platform, socket, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    ctypes.set_errno(0)
    got = libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if isinstance(a, int) else a for a in arguments))
    return "ok" if got >= 0 else errno.errorcode[ctypes.get_errno()]
def trial(f):
    try:
        f()
        return "ok"
    except OSError as error:
        return errno.errorcode[error.errno]
X86 = platform.machine() == "x86_64"
NEW = {"NEWNS": 0x20000, "NEWUTS": 0x4000000, "NEWUSER": 0x10000000, "NEWPID": 0x20000000, "NEWNET": 0x40000000}
buffer = ctypes.create_string_buffer(256)
found = {
    "vsock": trial(lambda: socket.socket(40, socket.SOCK_STREAM)),
    "alg": trial(lambda: socket.socket(38, socket.SOCK_SEQPACKET)),
    "packet": trial(lambda: socket.socket(17, socket.SOCK_RAW)),
    "family 46": trial(lambda: socket.socket(46, socket.SOCK_STREAM)),
    "mount": "ok" if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 else errno.errorcode[ctypes.get_errno()],
    "self ns": trial(lambda: os.open("/proc/self/ns/net", os.O_RDONLY)),
}
for name, flag in NEW.items():
    found["unshare " + name] = "ok" if libc.unshare(flag) == 0 else errno.errorcode[ctypes.get_errno()]
ns = os.open("/proc/self/ns/net", os.O_RDONLY)
found["setns"] = "ok" if libc.setns(ns, 0) == 0 else errno.errorcode[ctypes.get_errno()]
if X86:
    found |= {
        "vsock, its upper half set": call(41, (1 << 32) | 40, 1, 0),
        "io_uring_setup": call(425, 1, buffer),
        "userfaultfd": call(323, 1),
        "keyctl": call(250, 0, -3, 1),
        "add_key": call(248, b"user", b"mlp", b"x", 1, -3),
        "request_key": call(249, b"user", b"mlp", None, -3),
        "bpf": call(321, 0, buffer, 64),
        "perf_event_open": call(298, buffer, 0, -1, -1, 0),
        "clone NEWUSER": call(56, 0x10000000 | 17, 0, 0, 0, 0),
        "clone3": call(435, buffer, 88),
        "open_tree": call(428, -100, b"/", 0),
        "fsopen": call(430, b"tmpfs", 0),
        "move_pages": call(279, 0, 0, None, None, None, 0),
        "kcmp": call(312, os.getpid(), os.getpid(), 0, 0, 1),
        "fanotify_init": call(300, 0, 0),
        "syslog": call(103, 10, None, 0),
    }
import pty
inner, outer = pty.openpty()
found["TIOCSTI"] = trial(lambda: fcntl.ioctl(outer, 0x5412, b"x"))
found["TIOCSTI, its upper half set"] = call(16, outer, (1 << 32) | 0x5412, b"x") if X86 else "EPERM"
found["TIOCLINUX"] = trial(lambda: fcntl.ioctl(outer, 0x541C, b"\\6"))
found["allowed"] = [trial(lambda f=f, k=k: socket.socket(f, k)) for f, k in
                    ((1, 1), (2, 1), (2, 2), (10, 1), (16, socket.SOCK_RAW))] + [trial(socket.socketpair)]
print(json.dumps(found))
print(open("/proc/self/status").read().split("Seccomp:")[1].split()[0])
"""


@needs_filter
def test_system_calls_that_no_program_needs_are_refused_before_the_kernel_handles_them(lab: Lab) -> None:
    spec = lab.spec(CALLS)
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, seen
    lines = lab.output(spec)
    found = json.loads(lines[0])
    assert lines[1] == "2"
    assert set(found.pop("allowed")) == {"ok"}
    assert found.pop("self ns") == "ok"
    for name in [name for name in found if name.startswith(("vsock", "alg", "packet", "family"))]:
        assert found.pop(name) == "EAFNOSUPPORT", name
    for name in ("io_uring_setup", "clone3"):
        assert found.pop(name, "ENOSYS") == "ENOSYS", name
    assert {name: got for name, got in found.items() if got != "EPERM"} == {}


@needs_filter
def test_a_program_of_another_architecture_than_the_machines_ends(lab: Lab) -> None:
    """The same calls have other numbers there: a filter by number would let them pass."""
    code = """
import ctypes, platform, signal
if platform.machine() == "x86_64":
    ctypes.CDLL(None).syscall(ctypes.c_long(0x40000000 | 39))  # getpid of x32
    print("went on")
else:
    import os; os.kill(os.getpid(), signal.SIGSYS)
"""
    spec = lab.spec(code)
    seen = lab.run(spec)
    assert seen.failure is not None
    assert seen.failure.signal == 31
    assert lab.output(spec) == []


def test_every_process_of_a_gang_is_under_the_filter(lab: Lab) -> None:
    code = "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Seccomp:')])"
    for runtime in ("plain", "mpi"):
        spec = lab.spec(code, workers=2, runtime=runtime)
        assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
        assert [lab.output(spec, rank) for rank in (0, 1)] == [["['2']"]] * 2


def test_programs_can_store_data_below_dev_only_where_its_size_is_limited(lab: Lab) -> None:
    """/dev itself is memory without a limit of its own."""
    code = """
import os
for path in ("/dev/a", "/dev/pts/a", "/dev/shm/a"):
    try:
        open(path, "w").write("x")
        print(path, "written")
    except OSError as error:
        print(path, "refused")
for path in ("/dev/null", "/dev/full", "/dev/tty"):
    try:
        os.close(os.open(path, os.O_RDWR))
        print(path, "opened")
    except OSError as error:
        print(path, error.strerror)
s = os.statvfs("/dev/shm")
print(s.f_blocks * s.f_frsize >> 20)
import multiprocessing
print(multiprocessing.get_context("spawn").Semaphore(1).acquire(), os.ttyname(os.openpty()[1]))
"""
    spec = lab.spec(code)
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    assert lab.output(spec) == [
        "/dev/a refused",
        "/dev/pts/a refused",
        "/dev/shm/a written",
        "/dev/null opened",
        "/dev/full opened",
        "/dev/tty No such device or address",
        "256",
        "True /dev/pts/0",
    ]


def _works(lab: Lab, code: str, **more: object) -> list[str]:
    spec = lab.spec(code, **more)
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, (seen, lab.output(spec))
    return lab.output(spec)


SHARED_WINDOW = """
from mpi4py import MPI
import numpy
world = MPI.COMM_WORLD
window = MPI.Win.Allocate_shared(8 * 1000 if world.rank == 0 else 0, 8, comm=world)
buffer, _ = window.Shared_query(0)
shared = numpy.ndarray(1000, dtype="d", buffer=buffer)
if world.rank == 0:
    shared[:] = numpy.arange(1000)
window.Fence()
total = float(shared.sum())
big = numpy.full(4 << 20, world.rank, dtype="d")
other = numpy.empty_like(big)
world.Sendrecv(big, 1 - world.rank, recvbuf=other, source=1 - world.rank)
print(total, other[0] == other[-1] == 1 - world.rank)
window.Free()
"""


def test_mpi_shares_memory_and_sends_large_messages(lab: Lab) -> None:
    pytest.importorskip("mpi4py")
    assert _works(lab, SHARED_WINDOW, runtime="mpi", workers=2) == ["499500.0 True"]


def test_processes_are_forked_and_spawned(lab: Lab) -> None:
    code = """
import multiprocessing, concurrent.futures, threading, subprocess
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
            print(method, sum(pool.map(abs, range(-10, 0))))
    said = []
    threads = [threading.Thread(target=said.append, args=("thread",)) for _ in range(2)]
    [t.start() for t in threads]; [t.join() for t in threads]
    print(*said)
    print(subprocess.run(["sh", "-c", "echo $((6 * 7))"], capture_output=True, text=True).stdout.strip())
"""
    assert _works(lab, code) == ["fork 55", "spawn 55", "forkserver 55", "thread thread", "42"]


def _program(name: str) -> str:
    path = shutil.which(name, path="/usr/bin:/bin")
    asked = [str(path), "-version" if name == "java" else "--version"]
    if path is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip(f"{name} is not installed")
    return path


def test_a_debugger_attaches_to_an_own_process(lab: Lab) -> None:
    path = _program("gdb")
    code = f"""
import subprocess
victim = subprocess.Popen(["sleep", "100"])
done = subprocess.run([{path!r}, "-nx", "-batch", "-p", str(victim.pid), "-ex", "print 6*7", "-ex", "detach"],
                      capture_output=True, text=True)
victim.kill()
print("$1 = 42" in done.stdout or done.stderr)
done = subprocess.run([{path!r}, "-nx", "-batch", "-ex", "run", "--args", "/bin/true"], capture_output=True, text=True)
print("exited normally" in done.stdout or done.stdout + done.stderr)
"""
    assert _works(lab, code) == ["True", "True"]


def test_java_starts(lab: Lab) -> None:
    path = _program("java")
    code = f"import subprocess; print(subprocess.run([{path!r}, '-Xmx64m', '-version']).returncode)"
    assert _works(lab, code)[-1] == "0"


def test_node_reads_files_without_io_uring(lab: Lab) -> None:
    path = _program("node")
    code = f"""
import subprocess
script = "require('fs').promises.readFile('/etc/hostname').catch(() => 0).then(() => console.log('read'))"
print(subprocess.run([{path!r}, "-e", script], capture_output=True, text=True).stdout.strip())
"""
    assert _works(lab, code) == ["read"]
