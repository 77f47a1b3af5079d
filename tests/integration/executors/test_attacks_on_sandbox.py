"""What a tenant's program tries, from inside a real sandbox."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.executors.base import AttemptPhase
from mlp_hub.executors.shared_volume.logs import read_log
from mlp_hub.sandbox import Bind, capabilities
from mlp_hub.sandbox.shim import files
from support.executors.executor_lab import ENDED, ROOT, Lab, eventually, tree, until

needs_root = pytest.mark.skipif(not ROOT, reason="the hub does not run as root")
needs_outbound = pytest.mark.skipif(not capabilities().outbound, reason="slirp4netns cannot be used here")


def tried(lab: Lab, code: str, user: str = "ann", **more: object) -> list[str]:
    """Run code whose every `attack(...)` prints what it got, or the error that stopped it."""
    head = """
import os, signal, socket, subprocess, ctypes
def attack(what, f):
    try:
        print(what, "GOT", f())
    except Exception as e:
        print(what, "refused", type(e).__name__)
"""
    spec = lab.spec(head + code, user=user, **more)
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, seen
    return lab.output(spec)


def test_files_of_others_and_of_the_hub_do_not_exist(lab: Lab) -> None:
    secret = lab.home("bob") / "secret.txt"
    secret.write_text("bob's")
    os.chmod(secret, 0o644)
    hub = lab.base / "secrets"
    hub.mkdir()
    (hub / "cookie_secret").write_text("x")
    code = f"""
for path in ({str(secret)!r}, {str(hub / "cookie_secret")!r}, "/etc/shadow", "/root/.ssh", "/home/bob",
             {str(lab.run_root)!r}, "/proc/1/root/etc/shadow", "/sys/fs/cgroup", "/sys/class/net", "/var/log",
             "/dev/sda", "/dev/vda", "/dev/mem", "/dev/kvm", "/dev/net/tun", "/run/systemd", "/var/run/docker.sock"):
    attack(path, lambda: os.stat(path))
attack("homes", lambda: os.listdir("/home") == ["ann"] or 1 / 0)
"""
    lines = tried(lab, code)
    assert [line for line in lines if "GOT" in line] == ["homes GOT True"]


READ_ONLY = """
for path in ("/etc/passwd", "/etc/hosts", "/new", "/etc/ld.so.preload", "/usr/bin/new", "/run/new", "/var/new", "/home/new"):
    attack(path, lambda: open(path, "a"))
"""


@needs_root
def test_what_the_platform_built_for_a_sandbox_is_nobodys_and_nothing_else_of_the_machine_is_there(
    lab: Lab,
) -> None:
    code = """
for path in ("/etc", "/etc/passwd", "/dev", "/dev/null"):
    print(path, os.lstat(path).st_uid == os.getuid())
for path in ("/etc/passwd", "/etc/x", "/dev/x", "/dev/pts/x"):
    attack(path, lambda: open(path, "w"))
for path in ("/stage", "/oldroot", "/newroot", "/boot", "/root", "/mnt", "/opt", "/sys/fs", "/dev/vda", "/dev/mem"):
    print(path, os.path.lexists(path))
print(sorted(os.listdir("/dev")))
print(open("/dev/null", "w").write("x"), len(open("/dev/urandom", "rb", 0).read(4)), os.openpty() is not None)
"""
    out = tried(lab, code)
    assert not [line for line in out if line.endswith(" True") and line.startswith("/")], out
    assert not [line for line in out if " GOT " in line], out
    links = ["core", "fd", "ptmx", "stderr", "stdin", "stdout"]
    own = ["full", "null", "pts", "random", "shm", "tty", "urandom", "zero"]
    assert out[-2:] == [str(sorted(links + own)), "1 4 True"]


def test_the_system_inside_cannot_be_changed(lab: Lab) -> None:
    assert [line for line in tried(lab, READ_ONLY) if "GOT" in line] == []


async def test_other_processes_cannot_be_seen_signalled_or_traced(lab: Lab) -> None:
    executor = lab.executor()
    victim = lab.spec(
        "print('up', flush=True)\nimport time; time.sleep(600)", user="bob", env={"TOKEN": "bob's"}
    )
    await executor.start(victim)
    await eventually(lambda: lab.output(victim))
    pid = tree(lab.run_dir(victim))["all"][-1]
    attack = lab.spec(
        f"""
import os, signal, ctypes, json
out = {{"pids": sorted(int(p) for p in os.listdir("/proc") if p.isdigit())}}
out["mine"] = os.getpid()
for what, f in {{
    "kill": lambda: os.kill({pid}, 0),
    "environ": lambda: open("/proc/{pid}/environ").read(),
    "all": lambda: os.kill(-1, 0),
}}.items():
    try:
        f()
        out[what] = "got"
    except OSError as e:
        out[what] = type(e).__name__
out["ptrace"] = ctypes.CDLL(None).ptrace(16, {pid}, 0, 0)
out["token"] = [p for p in out["pids"] if b"bob's" in open(f"/proc/{{p}}/environ", "rb").read()] if False else []
print(json.dumps(out))
"""
    )
    await executor.start(attack)
    assert (await until(executor, attack.attempt, ENDED)).phase is AttemptPhase.SUCCEEDED
    out = json.loads(lab.output(attack)[0])
    assert out["kill"] == out["environ"].replace("FileNotFoundError", out["kill"])
    assert out["kill"] == "ProcessLookupError"
    assert out["ptrace"] == -1
    assert out["pids"] == [1, out["mine"]]
    assert (await executor.observe([victim.attempt]))[victim.attempt].phase is AttemptPhase.RUNNING
    await executor.close()


@pytest.mark.differs("Isolation of users", only="local")
def test_no_right_is_left_and_none_can_be_had(lab: Lab) -> None:
    code = """
status = dict(l.split(":\\t", 1) for l in open("/proc/self/status").read().splitlines() if ":\\t" in l)
print([int(status[k], 16) for k in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], status["NoNewPrivs"])
print(open("/proc/self/uid_map").read().split()[::2])
libc = ctypes.CDLL(None, use_errno=True)
for name, call in {
    "mount": lambda: libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None),
    "setuid": lambda: libc.setuid(0),
    "chroot": lambda: libc.chroot(b"/tmp"),
    "sethostname": lambda: libc.sethostname(b"x", 1),
    "netns": lambda: libc.unshare(0x40000000),
    "userns": lambda: libc.unshare(0x10000000),
}.items():
    print(name, call())
for path in ("/usr/bin/x", "/etc/passwd", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"):
    attack(path, lambda: open(path, "w").write("x"))
"""
    lines = tried(lab, code)
    assert lines[0] == "[0, 0, 0, 0, 0] 1"
    uid = str(lab.uid("ann") or os.getuid())
    if capabilities().mode != "root":
        assert lines[1] == str([uid, "1"])  # one id, and it is not root
    # without a user namespace the kernel's own switch, which made us choose that mode, forbids new ones
    calls = [line for line in lines[2:8] if capabilities().mode != "root" or "ns" not in line.split()[0]]
    assert all(line.endswith(" -1") for line in calls), lines
    assert all("refused" in line for line in lines[8:]), lines


@pytest.fixture
def host_servers() -> Iterator[tuple[int, str]]:
    """A TCP server on all of this machine's addresses and a server on an abstract UNIX socket."""
    tcp = socket.create_server(("0.0.0.0", 0))
    name = f"mlp-test-{os.getpid()}"
    unix = socket.socket(socket.AF_UNIX)
    unix.bind("\0" + name)
    unix.listen()
    yield tcp.getsockname()[1], name
    tcp.close()
    unix.close()


def own_addresses() -> list[str]:
    from mlp_hub.sandbox.shim.network import host_addresses

    return host_addresses()


@pytest.mark.parametrize("network", ["none", pytest.param("outbound", marks=needs_outbound)])
def test_the_machines_own_servers_cannot_be_reached(
    lab: Lab, host_servers: tuple[int, str], network: str
) -> None:
    port, name = host_servers
    addresses = ["127.0.0.1", "10.0.2.2", "169.254.169.254", *own_addresses()]
    code = f"""
for address in {addresses!r}:
    attack(address, lambda: socket.create_connection((address, {port}), timeout=2))
attack("ipv6", lambda: socket.create_connection(("::1", {port}), timeout=2))
s = socket.socket(socket.AF_UNIX)
attack("abstract", lambda: s.connect("\\0{name}"))
print(sorted(n for _, n in socket.if_nameindex()))
"""
    lines = tried(lab, code, network=network)
    assert [line for line in lines if "GOT" in line] == []
    assert lines[-1] == str(["lo"] if network == "none" else ["lo", "tap0"])


@needs_outbound
def test_a_socket_that_is_bound_to_the_way_out_reaches_nothing_of_the_machine(lab: Lab) -> None:
    """Answers would not be taken inside, but what is asked for would be asked."""
    addresses = ["127.0.0.1", "127.1.2.3", *own_addresses()]
    with socket.create_server(("0.0.0.0", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(tcp.getsockname())
        code = f"""
def bound(kind):
    s = socket.socket(type=kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b"tap0")
    s.settimeout(2)
    return s
for address in {addresses!r}:
    for n in range(3):  # the first ones wait for the neighbour's address
        with contextlib.suppress(OSError):
            bound(socket.SOCK_DGRAM).sendto(b"x", (address, {tcp.getsockname()[1]}))
    attack(address, lambda: bound(socket.SOCK_STREAM).connect((address, {tcp.getsockname()[1]})))
"""
        lines = tried(lab, f"import contextlib{code}", network="outbound")
        assert len(lines) == len(addresses)
        for server, take in ((tcp, tcp.accept), (udp, lambda: udp.recvfrom(9))):
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                take()


@needs_outbound
def test_a_sandbox_with_a_way_out_has_a_route_and_a_name_server(lab: Lab) -> None:
    code = """
import json
routes = [l.split() for l in open("/proc/net/route").read().splitlines()[1:]]
print(json.dumps(sorted((r[0], r[1]) for r in routes if r[0] == "tap0")))
print(open("/etc/resolv.conf").read().strip())
"""
    lines = tried(lab, code, network="outbound")
    assert ["tap0", "00000000"] in json.loads(lines[0])
    assert lines[1] == "nameserver 10.0.2.3"


def test_the_users_variables_cannot_reach_what_runs_outside(lab: Lab) -> None:
    """LD_PRELOAD would otherwise be loaded by the program that makes the sandbox."""
    marks = lab.base / "mark"
    lines = tried(
        lab,
        "print(os.environ['LD_LIBRARY_PATH'], os.environ['BASH_ENV'])",
        env={"LD_LIBRARY_PATH": str(marks), "BASH_ENV": "/workspace/x", "LD_DEBUG_OUTPUT": str(marks)},
    )
    assert lines == [f"{marks} /workspace/x"]
    assert not marks.exists()


async def test_secrets_of_an_attempt_are_on_no_command_line(lab: Lab) -> None:
    executor = lab.executor()
    spec = lab.spec(
        "print('up', flush=True)\nimport time; time.sleep(600)", env={"MLP_JOB_TOKEN": "s3cr3t-token"}
    )
    await executor.start(spec)
    await eventually(lambda: lab.output(spec))
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                assert b"s3cr3t-token" not in Path(f"/proc/{entry}/cmdline").read_bytes()
            except (FileNotFoundError, ProcessLookupError):
                continue
    assert stat.S_IMODE(os.stat(lab.run_dir(spec)).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(f"{lab.run_dir(spec)}/spec.json").st_mode) == 0o600
    await executor.close()


def test_the_log_cannot_be_touched_or_redirected(lab: Lab) -> None:
    code = """
attack("write", lambda: open("/workspace/log/rank-0.log", "w"))
attack("rename", lambda: os.rename("/workspace/log", "/workspace/log2"))
attack("rmdir", lambda: os.rmdir("/workspace/log"))
attack("code", lambda: open("/workspace/code/main.py", "w"))
open("/workspace/mine", "w").write("ok")
open("/workspace/ckpt/mine", "w").write("ok")
open("/workspace/metrics/mine", "w").write("ok")
"""
    lines = tried(lab, code)
    names = ("write", "rename", "rmdir", *(("code",) if ROOT else ()))
    assert [line.split()[:2] for line in lines[: len(names)]] == [[name, "refused"] for name in names]


def test_links_planted_for_the_next_attempt_are_not_followed(lab: Lab, tmp_path: Path) -> None:
    """As if a tenant had got hold of its job's directory between two attempts."""
    spec = lab.spec("print('hello')")
    assert lab.run(spec).phase is AttemptPhase.SUCCEEDED
    target = lab.base / "precious"
    target.mkdir()
    (target / "rank-0.log").write_text("untouched")
    (target / "main.py").write_text("untouched")
    workspace = Path(lab.workspace(spec))

    os.rename(workspace / "log", workspace / "old-log")
    os.symlink(target, workspace / "log")
    again = lab.spec("print('again')", attempt=spec.attempt.replace(".0", ".1"))
    seen = lab.run(again)
    assert seen.failure is not None
    assert seen.failure.cause == "start-failed"
    assert read_log(lab.workspace(spec), 0).lines == ()

    os.unlink(workspace / "log")
    os.mkdir(workspace / "log")
    os.symlink(target / "rank-0.log", workspace / "log/rank-0.log")
    seen = lab.run(lab.spec("print('again')", attempt=spec.attempt.replace(".0", ".2")))
    assert seen.failure is not None
    assert read_log(lab.workspace(spec), 0).lines == ()

    os.unlink(workspace / "log/rank-0.log")
    os.unlink(workspace / "code/main.py")
    os.symlink(target / "main.py", workspace / "code/main.py")
    assert (
        lab.run(lab.spec("print('ok')", attempt=spec.attempt.replace(".0", ".3"))).phase
        is AttemptPhase.SUCCEEDED
    )
    assert (target / "rank-0.log").read_text() == (target / "main.py").read_text() == "untouched"


def test_an_entry_outside_of_the_home_directory_is_refused(lab: Lab) -> None:
    for entry in ("/etc/passwd", "../bob/run.py", "a/../../bob/run.py"):
        seen = lab.run(lab.spec(None, entry=entry))
        assert seen.failure is not None
        assert "is not in the home directory" in seen.failure.message


def test_a_link_in_the_home_directory_leads_nowhere_outside(lab: Lab) -> None:
    outside = lab.base / "outside.py"
    outside.write_text("print('GOT')")
    os.symlink(outside, lab.home("ann") / "run.py")
    spec = lab.spec(None, entry="run.py")
    assert lab.run(spec).phase is AttemptPhase.FAILED
    assert not any("GOT" in line for line in lab.output(spec) if "can't open" not in line)


def test_lies_on_the_control_socket_hurt_only_the_liar(lab: Lab) -> None:
    code = """
import os, socket, array, json, time
if os.environ["MLP_RANK"] == "0":
    for junk in (b"", b"x", b"[]", b"{}", b'{"rank": 99, "t": "exit"}', b'{"rank": -1, "t": "start"}', b"[" * 60000,
                 b'{"rank": 1e999, "t": "exit"}', b'{"rank": true, "t": "exit", "code": "a"}'):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.connect("/run/mlp/control.sock")
        f = os.open("/dev/zero", os.O_RDONLY)
        s.sendmsg([junk], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [f] * 4))])
    many = []
    for _ in range(100):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        s.settimeout(1)
        try:
            s.connect("/run/mlp/control.sock")
        except OSError:
            break
        many.append(s)
time.sleep(0.5)
print("still fine")
"""
    spec = lab.spec(code, workers=2)
    seen = lab.run(spec)
    assert seen.phase is AttemptPhase.SUCCEEDED, seen
    assert lab.output(spec, 1) == ["still fine"]


@needs_root
async def test_every_person_is_another_user_of_the_machine(lab: Lab) -> None:
    executor = lab.executor()
    owners = set()
    for user in ("ann", "bob"):
        spec = lab.spec("print('up', flush=True)\nimport time; time.sleep(600)", user=user)
        await executor.start(spec)
        await eventually(lambda spec=spec: lab.output(spec))
        pid = tree(lab.run_dir(spec))["all"][-1]
        owners.add(os.stat(f"/proc/{pid}").st_uid)
    assert owners == {lab.uid("ann"), lab.uid("bob")}
    await executor.close()


async def test_a_bound_directory_of_sockets_is_reached_and_nothing_else(lab: Lab) -> None:
    place = lab.base / "tenant"
    place.mkdir()
    os.chmod(place, 0o755)
    server = socket.socket(socket.AF_UNIX)
    here = os.open(place, os.O_PATH)
    server.bind(f"/proc/self/fd/{here}/mlp.sock")
    os.close(here)
    os.chmod(place / "mlp.sock", 0o666)
    server.listen()

    def answer() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"hello")

    answers = threading.Thread(target=answer, daemon=True)
    answers.start()

    executor = lab.executor(binds=[Bind(str(place), "/run/platform")])
    spec = lab.spec(
        "import socket, os\ns = socket.socket(socket.AF_UNIX)\ns.connect('/run/platform/mlp.sock')\n"
        "print(s.recv(5).decode())\n"
        "try: os.unlink('/run/platform/mlp.sock')\nexcept OSError as e: print(e.strerror)"
    )
    await executor.start(spec)
    await until(executor, spec.attempt, ENDED)
    assert lab.output(spec) == ["hello", "Read-only file system"]
    await executor.close()
    answers.join()
    server.close()


def test_the_descriptors_inside_are_the_three_standard_ones(lab: Lab) -> None:
    assert tried(lab, "print(sorted(os.listdir('/proc/self/fd'))[:-1])") == ["['0', '1', '2']"]


def test_claims_are_taken_once(tmp_path: Path) -> None:
    assert files.claim(str(tmp_path), os.getpid()) is True
    assert files.claim(str(tmp_path), os.getpid()) is False
