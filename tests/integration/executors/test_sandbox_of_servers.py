"""What notebook servers need of a sandbox: a socket handed in, signals, and a home whose packages are shared."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import time
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.executors.base import AttemptPhase
from mlp_hub.sandbox import Limits, SandboxPhase, SandboxSpec, SandboxState
from support.executors.executor_lab import PYTHON, ROOT, Lab
from support.executors.wheels import build_wheel

SERVER = """
import os, signal, socket, sys
listener = socket.socket(fileno=int(os.environ["MLP_LISTEN_FD"]))
listener.setblocking(True)
signal.signal(signal.SIGUSR1, lambda *_: print("usr1", flush=True))
print("ready", flush=True)
while True:
    connection, _ = listener.accept()
    with connection:
        connection.sendall(b"from inside")
"""


def spec(lab: Lab, code: str, **more: object) -> SandboxSpec:
    fields: dict[str, object] = {
        "id": "jobserver-ann",
        "argv": (PYTHON, "-u", "-c", code),
        "env": {"PATH": "/usr/bin:/bin", "HOME": "/home/ann"},
        "home_dir": str(lab.home("ann")),
        "home_mount": "/home/ann",
        "log_dir": str(lab.base / "server-log"),
        "user_name": "ann",
        "uid": lab.uid("ann"),
        "binds": sandbox.environment_binds(PYTHON),
        "limits": Limits(cpu=500, ram_mib=256),
    }
    (lab.base / "server-log").mkdir(exist_ok=True)
    return SandboxSpec(**{**fields, **more})  # type: ignore[arg-type]


def wait(run_dir: str, *phases: SandboxPhase) -> SandboxState:
    for _ in range(4000):
        state = sandbox.inspect(run_dir)
        if state.phase in phases:
            return state
        time.sleep(0.005)
    raise AssertionError(f"waited for {phases}, got {state}")


def log_of(lab: Lab) -> str:
    path = lab.base / "server-log/rank-0.log"
    return path.read_text() if path.exists() else ""


def wait_log(lab: Lab, text: str) -> None:
    for _ in range(4000):
        if text in log_of(lab):
            return
        time.sleep(0.005)
    raise AssertionError(f"{text} is not in the log: {log_of(lab)}")


def ask(path: Path) -> bytes:
    with socket.socket(socket.AF_UNIX) as client:
        here = os.open(path.parent, os.O_PATH)
        try:
            client.connect(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)
        return client.recv(100)


def test_a_server_answers_on_the_socket_made_outside(lab: Lab) -> None:
    run_dir, path = str(lab.run_root / "s"), lab.base / "server.sock"
    sandbox.launch(spec(lab, SERVER, listen=str(path)), run_dir)
    assert ask(path) == b"from inside"  # who connects at once simply waits for the server
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert sandbox.signal(run_dir, signal.SIGUSR1) == 1
    wait_log(lab, "usr1")
    sandbox.stop(run_dir, 5)
    state = wait(run_dir, SandboxPhase.EXITED)
    assert state.exit is not None
    assert (state.exit.stopped, state.exit.signal) == (True, signal.SIGTERM)
    assert not path.exists()


def test_a_socket_left_by_a_killed_shim_is_swept(lab: Lab) -> None:
    run_dir, path = str(lab.run_root / "s"), lab.base / "server.sock"
    sandbox.launch(spec(lab, SERVER, listen=str(path)), run_dir)
    wait_log(lab, "ready")
    shim = sandbox.inspect(run_dir).shim_pid
    assert shim is not None
    os.kill(shim, signal.SIGKILL)
    wait(run_dir, SandboxPhase.LOST)
    sandbox.remove(run_dir)
    assert not path.exists()
    assert not Path(run_dir).exists()
    assert sandbox.inspect(run_dir).phase is SandboxPhase.ABSENT


@pytest.mark.parametrize("ending", ["by itself", "stopped", "killed", "shim killed"])
def test_no_control_group_of_a_server_outlives_it(lab: Lab, ending: str) -> None:
    run_dir = str(lab.run_root / "s")
    code = "print('ready', flush=True)" + ("" if ending == "by itself" else "; import time; time.sleep(600)")
    sandbox.launch(spec(lab, code), run_dir)
    host = json.loads(Path(run_dir, "spec.json").read_text())["host"]
    groups = [Path(base, host["group"]) for base in set(host["bases"].values())]
    wait_log(lab, "ready")
    if ending == "stopped":
        sandbox.stop(run_dir, 0.1)
    elif ending == "killed":
        sandbox.kill(run_dir)
    elif ending == "shim killed":
        assert groups == [group for group in groups if group.is_dir()]
        shim = sandbox.inspect(run_dir).shim_pid
        assert shim is not None
        os.kill(shim, signal.SIGKILL)
        wait(run_dir, SandboxPhase.LOST)
        sandbox.remove_leftovers(run_dir)  # as `down` and whoever looks at the server does
    wait(run_dir, SandboxPhase.EXITED, SandboxPhase.LOST)
    assert [group for group in groups if group.exists()] == []


def test_a_command_that_does_not_exist_is_a_failed_start(lab: Lab) -> None:
    run_dir = str(lab.run_root / "s")
    sandbox.launch(spec(lab, "", argv=("/no/such/program",)), run_dir)
    state = wait(run_dir, SandboxPhase.EXITED)
    assert state.exit is not None
    assert state.exit.cause == "start-failed"
    assert "/no/such/program" in state.exit.message


def test_a_missing_directory_is_a_failed_start_that_names_it(lab: Lab) -> None:
    run_dir = str(lab.run_root / "s")
    sandbox.launch(spec(lab, "", binds=(sandbox.Bind("/no/such/dir", "/data"),)), run_dir)
    state = wait(run_dir, SandboxPhase.EXITED)
    assert state.exit is not None
    assert state.exit.cause == "start-failed"
    assert "/no/such/dir" in state.exit.message


def test_launching_again_changes_nothing(lab: Lab) -> None:
    run_dir = str(lab.run_root / "s")
    first = spec(lab, "print('once')")
    for _ in range(3):
        sandbox.launch(first, run_dir)
    wait(run_dir, SandboxPhase.EXITED)
    sandbox.launch(first, run_dir)
    assert log_of(lab).count("once") == 1


def test_kill_is_at_once(lab: Lab) -> None:
    run_dir = str(lab.run_root / "s")
    sandbox.launch(
        spec(lab, "import signal, time\nsignal.signal(15, signal.SIG_IGN)\ntime.sleep(600)"), run_dir
    )
    wait(run_dir, SandboxPhase.RUNNING)
    sandbox.kill(run_dir)
    state = sandbox.inspect(run_dir)
    assert state.exit is not None
    assert state.exit.stopped


def test_packages_installed_by_the_user_are_there_in_the_next_sandbox(lab: Lab) -> None:
    home = lab.home("ann")
    wheel = build_wheel(home, "tinymod", "ANSWER = 42\n")
    if ROOT:
        uid = lab.uid("ann") or 0
        os.chown(wheel, uid, uid)
    install = (
        "import subprocess, sys; subprocess.check_call([sys.executable, '-m', 'pip', 'install', '--user', '-q', "
        "'--no-index', '--break-system-packages', 'tinymod-1.0-py3-none-any.whl'])"
    )
    assert lab.run(lab.spec(install)).phase is AttemptPhase.SUCCEEDED
    use = lab.spec(
        "import tinymod; print(tinymod.ANSWER, tinymod.__file__.startswith('/home/ann/.local/'))", workers=2
    )
    assert lab.run(use).phase is AttemptPhase.SUCCEEDED
    assert lab.output(use, 1) == ["42 True"]


def test_links_and_mounts_below_etc_are_there_though_etc_can_only_be_read(lab: Lab) -> None:
    given = lab.base / "pip.conf"
    given.write_text("[global]\n")
    code = (
        "import os; print(os.readlink('/etc/jupyter'), open('/etc/pip.conf').read().strip(), "
        "os.access('/etc', os.W_OK), open('/etc/passwd').read().count('ann') > 0)"
    )
    made = spec(
        lab,
        code,
        links=(sandbox.Link("/etc/jupyter", "/opt/settings"),),
        binds=(*sandbox.environment_binds(PYTHON), sandbox.Bind(str(given), "/etc/pip.conf")),
    )
    sandbox.launch(made, str(lab.run_root / "s"))
    wait_log(lab, "/opt/settings [global] False True")
