"""The real supervisor with small programs instead of the platform's components."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.cli import plan as plans
from mlp_hub.cli import processes, procs, state_dir
from mlp_hub.settings import Settings

NAMES = ("one", "two")


class Supervised:
    """A state directory with a plan of two programs that sleep, or of given ones."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings.load({"MLP_HOME": str(home)})
        state_dir.prepare(self.settings)
        self.children: list[subprocess.Popen[bytes]] = []
        self.commands = {name: ["/bin/sleep", "300"] for name in NAMES}
        self.log_max = 1 << 20

    def write_plan(self) -> None:
        components = [
            {
                "name": name,
                "argv": argv,
                "env": {"PATH": "/usr/bin:/bin"},
                "secret_env": {"SECRET": str(self.settings.secret_file("proxy_token"))},
                "log": str(self.settings.log_dir / f"{name}.log"),
                "digest": repr(argv),
            }
            for name, argv in self.commands.items()
        ]
        plan = {
            "id": repr(self.commands),
            "directory": str(self.settings.private_dir),
            "lock": str(self.settings.home / "supervisor.lock"),
            "grace_s": 2.0,
            "log_max": self.log_max,
            "components": components,
        }
        plans.write(self.settings, plan)

    def start(self) -> subprocess.Popen[bytes]:
        self.write_plan()
        with (self.settings.log_dir / "supervisor.log").open("ab") as log:
            child = subprocess.Popen(
                plans.supervisor_command(plans.plan_file(self.settings)), stdout=log, start_new_session=True
            )
        self.children.append(child)
        return child

    def pid(self, name: str) -> int | None:
        found = processes.find(self.settings, name)
        return found.pid if found else None

    def wait(self, what: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + 30
        while not (value := what()):
            assert time.monotonic() < deadline, (self.settings.log_dir / "supervisor.log").read_text()
            time.sleep(0.02)
        return value

    def wait_running(self) -> dict[str, int]:
        return self.wait(lambda: (p := {n: self.pid(n) for n in self.commands}) and all(p.values()) and p)

    def state(self) -> dict[str, Any]:
        return processes.state(self.settings)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    """Hand out a plan; end whatever it started."""
    made = Supervised(tmp_path / "h")
    yield made
    for child in made.children:
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        child.wait()
    for name in made.commands:
        pid = made.pid(name)
        if pid:
            os.killpg(pid, signal.SIGKILL)


def test_a_killed_component_comes_back_and_the_others_do_not_notice(supervised: Supervised) -> None:
    supervised.start()
    before = supervised.wait_running()
    os.kill(before["one"], signal.SIGKILL)
    supervised.wait(lambda: supervised.pid("one") not in (None, before["one"]))
    assert supervised.pid("two") == before["two"]
    state = supervised.state()["components"]["one"]
    assert (state["restarts"], state["waits"]) == (1, False)


def test_each_component_leads_a_session_of_its_own(supervised: Supervised) -> None:
    supervised.start()
    pids = supervised.wait_running()
    assert {os.getsid(pid) for pid in pids.values()} == set(pids.values())


def test_a_killed_supervisor_leaves_all_running_and_the_next_one_adopts_them(supervised: Supervised) -> None:
    first = supervised.start()
    before = supervised.wait_running()
    first.kill()
    first.wait()
    assert {n: supervised.pid(n) for n in NAMES} == before
    supervised.start()
    supervised.wait(lambda: supervised.pid("supervisor"))
    assert supervised.wait_running() == before
    # and looks after them: a death of an adopted one is noticed too
    os.kill(before["two"], signal.SIGKILL)
    supervised.wait(lambda: supervised.pid("two") not in (None, before["two"]))


def test_only_one_supervisor_works_on_a_state_directory(supervised: Supervised) -> None:
    supervised.start()
    before = supervised.wait_running()
    assert supervised.start().wait(30) == 3
    assert supervised.wait_running() == before


def test_sigterm_stops_the_components_in_the_plans_order(supervised: Supervised) -> None:
    child = supervised.start()
    supervised.wait_running()
    child.terminate()
    assert child.wait(30) == 0
    assert [supervised.pid(n) for n in NAMES] == [None, None]
    log = (supervised.settings.log_dir / "supervisor.log").read_text()
    assert log.index("stopping one") < log.index("stopping two")


def test_what_ignores_sigterm_is_killed_after_the_grace(supervised: Supervised) -> None:
    supervised.commands["one"] = ["/bin/sh", "-c", "trap '' TERM; sleep 300 & wait; sleep 300"]
    child = supervised.start()
    supervised.wait_running()
    child.terminate()
    assert child.wait(30) == 0
    assert supervised.pid("one") is None


def test_sighup_restarts_only_what_changed_in_the_plan(supervised: Supervised) -> None:
    child = supervised.start()
    before = supervised.wait_running()
    supervised.commands["two"] = ["/bin/sleep", "301"]
    supervised.write_plan()
    child.send_signal(signal.SIGHUP)
    supervised.wait(lambda: supervised.state().get("plan") == repr(supervised.commands))
    after = supervised.wait_running()
    assert after["one"] == before["one"]
    assert after["two"] != before["two"]
    assert child.poll() is None
    assert supervised.start().wait(30) == 3, "the lock was lost on the way"


def test_sigusr1_ends_the_supervisor_alone(supervised: Supervised) -> None:
    child = supervised.start()
    before = supervised.wait_running()
    child.send_signal(signal.SIGUSR1)
    assert child.wait(30) == 0
    assert supervised.wait_running() == before


def test_a_component_that_cannot_live_is_tried_less_and_less_often(supervised: Supervised) -> None:
    supervised.commands["one"] = ["/bin/sh", "-c", "echo no good; exit 7"]
    supervised.start()
    supervised.wait(lambda: supervised.state().get("components", {}).get("one", {}).get("restarts", 0) >= 3)
    assert supervised.state()["components"]["one"]["last_exit"] == "ended with status 7"
    assert "no good" in (supervised.settings.log_dir / "one.log").read_text()


def test_a_program_that_is_not_there_is_named(supervised: Supervised) -> None:
    supervised.commands["one"] = ["/nowhere/program"]
    supervised.start()
    seen = supervised.wait(lambda: supervised.state().get("components", {}).get("one"))
    assert "/nowhere/program" in seen["last_exit"] or "No such file" in seen["last_exit"]
    supervised.wait(lambda: supervised.pid("two"))


def test_secrets_reach_the_program_by_its_environment_only(supervised: Supervised) -> None:
    supervised.start()
    pid = supervised.wait_running()["one"]
    secret = supervised.settings.secret("proxy_token")
    assert f"SECRET={secret}".encode() in Path(f"/proc/{pid}/environ").read_bytes()
    assert secret not in plans.plan_file(supervised.settings).read_text()


def test_a_flooded_log_stays_bounded(supervised: Supervised) -> None:
    supervised.log_max = 100_000
    supervised.commands["one"] = ["/bin/sh", "-c", "head -c 300000 /dev/zero | tr '\\0' x; exec sleep 300"]
    child = supervised.start()
    log = supervised.settings.log_dir / "one.log"
    supervised.wait(lambda: log.exists() and log.stat().st_size == 300_000)
    child.send_signal(signal.SIGCHLD)  # wakes it up earlier than its next look
    supervised.wait(lambda: log.stat().st_size == 0)
    assert log.with_suffix(".log.1").stat().st_size == 100_000


def test_the_supervisor_stays_small(supervised: Supervised) -> None:
    child = supervised.start()
    supervised.wait_running()
    assert (procs.memory_mib(child.pid) or 0) < 12


def test_pid_files_are_whole_json_at_any_time(supervised: Supervised) -> None:
    supervised.start()
    supervised.wait_running()
    for path in supervised.settings.private_dir.glob("*.pid"):
        assert {"pid", "start", "boot"} <= set(json.loads(path.read_text()))
