"""What the supervisor takes for its own process, and what it does about deaths; no process is started here."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mlp_hub.cli.supervisor import Supervisor, procs
from mlp_hub.cli.supervisor import component as components
from mlp_hub.cli.supervisor.component import Component

ME = os.getpid()


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Component]:
    """Make a component whose pid file says what is given, on a clock that stands at 1000."""
    started: list[float] = []
    signals: list[tuple[int, int]] = []

    def start(self: Component, now: float) -> None:
        started.append(now)
        self.start_at = None
        self.pid, self.start_ticks, self.since = 4_000_000, 1, now

    monkeypatch.setattr(Component, "_start", start)
    monkeypatch.setattr(procs, "send", lambda pid, signum: signals.append((pid, signum)))
    monkeypatch.setattr(procs, "send_group", lambda pid, signum: signals.append((pid, signum)))
    monkeypatch.setattr(components.os, "pidfd_open", lambda _pid: (_ for _ in ()).throw(OSError))

    def made(pid_file: dict[str, Any] | str | None = None, digest: str = "same") -> Component:
        if pid_file is not None:
            text = pid_file if isinstance(pid_file, str) else json.dumps(pid_file)
            (tmp_path / "hub.pid").write_text(text)
        entry = {"name": "hub", "digest": digest, "log": str(tmp_path / "hub.log")}
        plan = {"directory": str(tmp_path), "log_max": 100, "grace_s": 0.0}
        component = Component(entry, plan, lambda: 1000.0)
        component.started, component.signals = started, signals  # type: ignore[attr-defined]
        return component

    return made


def own_pid_file(**changed: Any) -> dict[str, Any]:
    return {"pid": ME, "start": procs.start_of(ME), "boot": procs.boot_id(), "digest": "same", **changed}


def test_a_living_process_of_the_same_plan_is_adopted(make: Callable[..., Component]) -> None:
    component = make(own_pid_file())
    component.check_process(1000.0)
    assert (component.pid, component.start_at, component.started) == (ME, None, [])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "pid_file",
    [
        own_pid_file(start=1),  # the number was given to a later process
        own_pid_file(boot="another-boot"),
        own_pid_file(pid=4_000_001),
        "{half of a f",
        "{}",
        None,
    ],
)
def test_anything_else_is_not_ours_and_is_never_signalled(
    make: Callable[..., Component], pid_file: dict[str, Any] | str | None
) -> None:
    component = make(pid_file)
    component.check_process(1000.0)
    assert component.started == [1000.0]  # type: ignore[attr-defined]
    assert component.signals == []  # type: ignore[attr-defined]


def test_a_process_of_an_older_plan_is_restarted(
    make: Callable[..., Component], monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = iter([False] * 9)
    monkeypatch.setattr(Component, "_lives", lambda _self: next(lives))
    component = make(own_pid_file(), digest="newer")
    component.check_process(1000.0)
    assert component.signals[0] == (ME, signal.SIGTERM)  # type: ignore[attr-defined]
    assert component.started == [1000.0]  # type: ignore[attr-defined]


def test_a_dead_one_is_started_when_its_wait_is_over_and_not_before(
    make: Callable[..., Component], monkeypatch: pytest.MonkeyPatch
) -> None:
    component = make()
    component.check_process(1000.0)
    monkeypatch.setattr(Component, "_lives", lambda self: self.pid is None)
    assert component.check_process(1010.0)
    assert component.start_at == pytest.approx(1010.1)
    assert not component.check_process(1010.05)
    monkeypatch.setattr(Component, "_lives", lambda _self: True)
    assert component.check_process(1010.2)
    assert component.started == [1000.0, 1010.2]  # type: ignore[attr-defined]
    assert component.restarts == 1


def test_a_log_above_its_limit_moves_its_newest_part_aside(
    make: Callable[..., Component], tmp_path: Path
) -> None:
    log = tmp_path / "hub.log"
    component = make()
    log.write_bytes(b"a" * 90)
    component.bound_log()
    assert log.stat().st_size == 90
    log.write_bytes(b"old" * 50 + b"b" * 100)
    component.bound_log()
    assert (log.read_bytes(), (tmp_path / "hub.log.1").read_bytes()) == (b"", b"b" * 100)


def test_this_process_is_alive_and_a_number_nobody_has_is_not() -> None:
    start = procs.start_of(ME)
    assert start is not None
    assert procs.is_alive(ME, start, procs.boot_id())
    assert procs.start_of(4_000_001) is None
    assert (procs.memory_mib(ME) or 0) > 1


def test_a_supervisor_that_looks_late_tells_its_components_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a suspend, or when it got no processor itself."""
    seen: list[float] = []
    monkeypatch.setattr(Component, "check_process", lambda _self, _now, *, late: bool(seen.append(late)))
    monkeypatch.setattr(Component, "due", lambda _self: None)
    now = [1000.0]
    entry = {"name": "hub", "digest": "same", "log": str(tmp_path / "hub.log")}
    plan = {"id": "p", "directory": str(tmp_path), "log_max": 100, "grace_s": 0.0, "components": [entry]}
    supervisor = Supervisor(plan, lambda: now[0])
    for passes in (0.0, 5.0, 5.0, 3600.0, 5.0):
        now[0] += passes
        supervisor.tick()
    assert seen == [0.0, 0.0, 0.0, 3595.0, 0.0]
