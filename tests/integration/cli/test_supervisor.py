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

from mlp_hub.cli.lifecycle import up
from mlp_hub.cli.state import identity, state_dir
from mlp_hub.cli.state import plan as plans
from mlp_hub.cli.supervisor import processes, procs
from mlp_hub.settings import Settings
from support.executors.small_disk import small_disk
from support.waiting import PATIENCE_S

NAMES = ("one", "two")


class Supervised:
    """A state directory with a plan of two programs that sleep, or of given ones."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings.load({"MLP_HOME": str(home)})
        state_dir.prepare(self.settings)
        self.instance = identity.give(self.settings)
        self.children: list[subprocess.Popen[bytes]] = []
        self.commands = {name: ["/bin/sleep", "300"] for name in NAMES}
        self.asks: dict[str, dict[str, str]] = {}
        self.log_max = 1 << 20

    def write_plan(self) -> None:
        components = [
            {
                "name": name,
                "argv": argv,
                "env": {"PATH": "/usr/bin:/bin", "MLP_INSTANCE": self.instance},
                "secret_env": {"SECRET": str(self.settings.secret_file("proxy_token"))},
                "log": str(self.settings.log_dir / f"{name}.log"),
                "digest": repr(argv),
                **({"asks": self.asks[name]} if name in self.asks else {}),
            }
            for name, argv in self.commands.items()
        ]
        plan = {
            "id": repr(self.commands),
            "instance": self.instance,
            "directory": str(self.settings.private_dir),
            "lock": str(self.settings.home / "supervisor.lock"),
            "grace_s": 2.0,
            "log_max": self.log_max,
            "components": components,
        }
        plans.write(self.settings, plan)

    def start(self, *, write_plan: bool = True) -> subprocess.Popen[bytes]:
        if write_plan:
            self.write_plan()
        with (self.settings.log_dir / "supervisor.log").open("ab") as log:
            child = subprocess.Popen(
                plans.supervisor_command(plans.plan_file(self.settings)),
                stdout=log,
                env=processes.supervisor_environ(self.settings, os.environ),
                start_new_session=True,
            )
        self.children.append(child)
        return child

    def pid(self, name: str) -> int | None:
        found = processes.find(self.settings, name)
        return found.pid if found else None

    def wait(self, what: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + PATIENCE_S
        while not (value := what()):
            assert time.monotonic() < deadline, (self.settings.log_dir / "supervisor.log").read_text()
            time.sleep(0.02)
        return value

    def wait_running(self) -> dict[str, int]:
        return self.wait(lambda: (p := {n: self.pid(n) for n in self.commands}) and all(p.values()) and p)

    def state(self) -> dict[str, Any]:
        return processes.state(self.settings)

    def end(self) -> None:
        """End whatever was started."""
        for child in self.children:
            with contextlib.suppress(ProcessLookupError):
                child.kill()
            child.wait()
        for name in self.commands:
            pid = self.pid(name)
            if pid:
                os.killpg(pid, signal.SIGKILL)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    """Hand out a plan; end whatever it started."""
    made = Supervised(tmp_path / "h")
    yield made
    made.end()


def test_a_killed_component_comes_back_and_the_others_do_not_notice(supervised: Supervised) -> None:
    supervised.start()
    before = supervised.wait_running()
    os.kill(before["one"], signal.SIGKILL)
    supervised.wait(lambda: supervised.pid("one") not in (None, before["one"]))
    assert supervised.pid("two") == before["two"]
    state = supervised.state()["components"]["one"]
    assert (state["restarts"], state["waits"]) == (1, False)


def test_each_component_leads_a_separate_session(supervised: Supervised) -> None:
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


@pytest.mark.parametrize("by", ["the next supervisor", "down"])
def test_a_component_that_a_killed_supervisor_could_not_note_down_is_ended(
    supervised: Supervised, by: str
) -> None:
    first = supervised.start()
    before = supervised.wait_running()
    first.kill()
    first.wait()
    (supervised.settings.private_dir / f"{NAMES[0]}.pid").unlink()

    if by == "down":
        processes.stop_all(supervised.settings)
        assert all(procs.start_of(pid) is None for pid in before.values())
    else:
        supervised.start()
        after = supervised.wait_running()
        assert procs.start_of(before[NAMES[0]]) is None
        assert [after[name] == before[name] for name in NAMES] == [False, True]


def test_only_one_supervisor_works_on_a_state_directory(supervised: Supervised) -> None:
    supervised.start()
    before = supervised.wait_running()
    assert supervised.start().wait(PATIENCE_S) == 3
    assert supervised.wait_running() == before


def test_sigterm_stops_the_components_in_the_plans_order(supervised: Supervised) -> None:
    child = supervised.start()
    supervised.wait_running()
    child.terminate()
    assert child.wait(PATIENCE_S) == 0
    assert [supervised.pid(n) for n in NAMES] == [None, None]
    log = (supervised.settings.log_dir / "supervisor.log").read_text()
    assert log.index("stopping one") < log.index("stopping two")


def test_a_component_that_ignores_sigterm_is_killed_after_the_grace(supervised: Supervised) -> None:
    supervised.commands["one"] = ["/bin/sh", "-c", "trap '' TERM; sleep 300 & wait; sleep 300"]
    child = supervised.start()
    supervised.wait_running()
    child.terminate()
    assert child.wait(PATIENCE_S) == 0
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
    assert supervised.start().wait(PATIENCE_S) == 3, "the lock was lost on the way"


def test_sigusr1_ends_the_supervisor_alone(supervised: Supervised) -> None:
    child = supervised.start()
    before = supervised.wait_running()
    child.send_signal(signal.SIGUSR1)
    assert child.wait(PATIENCE_S) == 0
    assert supervised.wait_running() == before


def test_a_component_that_cannot_live_is_tried_less_and_less_often(supervised: Supervised) -> None:
    supervised.commands["one"] = ["/bin/sh", "-c", "echo no good; exit 7"]
    supervised.start()
    supervised.wait(lambda: supervised.state().get("components", {}).get("one", {}).get("restarts", 0) >= 3)
    assert supervised.state()["components"]["one"]["last_exit"] == "ended with status 7"
    assert "no good" in (supervised.settings.log_dir / "one.log").read_text()


def test_sighup_starts_at_once_what_waits_and_forgets_its_deaths(supervised: Supervised) -> None:
    go = supervised.settings.home / "go"
    supervised.commands["one"] = ["/bin/sh", "-c", f"[ -e {go} ] && exec sleep 300; exit 7"]
    child = supervised.start()
    supervised.wait(lambda: supervised.state().get("components", {}).get("one", {}).get("restarts", 0) >= 5)
    before = supervised.state()
    two = before["components"]["two"]["pid"]
    up._check_deaths(supervised.settings, before, before)  # they died earlier, and say nothing of now
    go.touch()
    child.send_signal(signal.SIGHUP)
    supervised.wait(lambda: supervised.state()["began"] != before["began"])
    after = supervised.state()["components"]
    assert after["two"]["pid"] == two
    assert (after["one"]["restarts"], after["one"]["waits"]) == (0, False)


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


def test_a_process_of_another_state_directory_is_neither_adopted_nor_stopped(supervised: Supervised) -> None:
    other = subprocess.Popen(["/bin/sleep", "300"], env={"MLP_INSTANCE": "another"}, start_new_session=True)
    try:
        supervised.start()
        before = supervised.wait_running()
        supervised.children[-1].kill()
        supervised.children[-1].wait()
        pid_file = supervised.settings.private_dir / "one.pid"
        pid_file.write_text(
            json.dumps(
                {**json.loads(pid_file.read_text()), "pid": other.pid, "start": procs.start_of(other.pid)}
            )
        )
        supervised.start()
        supervised.wait(lambda: supervised.pid("one") not in (None, other.pid))
        assert other.poll() is None
        assert supervised.pid("two") == before["two"]
    finally:
        other.kill()
        other.wait()
        os.kill(before["one"], signal.SIGKILL)


def test_deaths_are_told_in_the_state_and_outlive_the_supervisor(supervised: Supervised) -> None:
    first = supervised.start()
    before = supervised.wait_running()
    os.kill(before["one"], signal.SIGKILL)
    supervised.wait(lambda: supervised.state()["components"]["one"]["restarts"] == 1)
    first.kill()
    first.wait()
    supervised.start()
    supervised.wait(lambda: supervised.pid("supervisor"))
    (death,) = supervised.wait(lambda: supervised.state().get("deaths"))
    assert (death["component"], death["why"]) == ("one", "was ended by signal 9")


ANSWERS = """
import socket, sys
s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()
while True:
    link, _ = s.accept(); print(link.recv(4096), flush=True); link.sendall(b"HTTP/1.0 200 OK\\r\\n\\r\\n"); link.close()
"""


def test_one_that_is_stopped_is_replaced_and_what_answers_is_left(supervised: Supervised) -> None:
    """The whole of it: asked, silent, SIGTERM that it cannot take, SIGKILL, started again."""
    for name in NAMES:
        path = str(supervised.settings.private_dir / f"{name}.sock")
        code = f"import os, sys\nif os.path.exists(sys.argv[1]): os.unlink(sys.argv[1])\n{ANSWERS}"
        supervised.commands[name] = ["/usr/bin/python3", "-c", code, path]
        supervised.asks[name] = {"socket": path, "path": "/health"}
    supervised.start()
    before = supervised.wait_running()
    for name in NAMES:
        log = supervised.settings.log_dir / f"{name}.log"
        supervised.wait(lambda log=log: "GET /health" in log.read_text())
    os.kill(before["one"], signal.SIGSTOP)
    supervised.wait(lambda: supervised.pid("one") not in (None, before["one"]))
    assert supervised.pid("two") == before["two"]
    (death,) = supervised.state()["deaths"]
    assert death["component"] == "one"
    assert death["why"].startswith("has not answered for ")
    log = (supervised.settings.log_dir / "supervisor.log").read_text()
    assert f"one, process {before['one']}, has not answered for" in log


def test_on_a_full_disk_components_are_started_again_and_noted_down_when_there_is_room(
    tmp_path: Path,
) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        supervised = Supervised(disk.root / "h")
        try:
            child = supervised.start()
            before = supervised.wait_running()
            log = supervised.settings.log_dir / "supervisor.log"
            with log.open("ab") as file:  # what is left of its last page is room, too
                file.write(b"\n" * (-log.stat().st_size % 4096))
            disk.fill()
            for turn in range(3):
                for pid in _children(child.pid):
                    os.kill(pid, signal.SIGKILL)
                supervised.wait(lambda pids=before: len(_children(child.pid) - set(pids.values())) == 2)
                before = dict(enumerate(_children(child.pid)))  # type: ignore[arg-type]
                assert disk.is_full(), turn
            assert child.poll() is None
            disk.free()
            child.send_signal(signal.SIGCHLD)  # wakes it up earlier than its next look
            after = supervised.wait(
                lambda: (
                    (p := {n: supervised.pid(n) for n in NAMES})
                    and set(p.values()) == _children(child.pid)
                    and p
                )
            )
            assert set(after.values()) == set(before.values())
            supervised.wait(lambda: len(supervised.state()["deaths"]) == 6)
            child.terminate()
            assert child.wait(PATIENCE_S) == 0
            assert "lines of this log were lost: there was no room" in log.read_text()
        finally:
            supervised.end()


def test_a_supervisor_that_starts_on_a_full_disk_adopts_what_runs_and_is_found(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        supervised = Supervised(disk.root / "h")
        try:
            first = supervised.start()
            before = supervised.wait_running()
            supervised.wait(lambda: supervised.pid("supervisor"))
            first.kill()
            first.wait()
            disk.fill()
            second = supervised.start(write_plan=False)
            supervised.wait(lambda: supervised.pid("supervisor") == second.pid)
            assert supervised.wait_running() == before
        finally:
            disk.free()
            supervised.end()


def _children(pid: int) -> set[int]:
    return {int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}
