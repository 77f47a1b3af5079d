"""Real use of a notebook server, with real processes: processor time counts without any socket, and an open page does not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from mlp.notebook_server import kernel_activity
from mlp.notebook_server.real_use import EVERY_S, SOON_S, RealUse, UseReports, processor_seconds, watch_saves
from support.waiting import wait_for

BURNS = "while True: pass"
WAITS = "import sys; sys.stdin.read()"
CHILD_BURNS = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {BURNS!r}])"


@contextmanager
def running(code: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, start_new_session=True)
    try:
        yield process
    finally:
        subprocess.run(["kill", "-9", "--", f"-{process.pid}"], check=False)
        process.communicate()


class Clock:
    """A steady clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def server(*states: str) -> Any:
    kernels = [{"id": str(n), "execution_state": state} for n, state in enumerate(states)]
    manager = SimpleNamespace(list_kernels=lambda: kernels, last_kernel_activity=1)
    return SimpleNamespace(kernel_manager=manager, web_app=SimpleNamespace(settings={"api_last_activity": 1}))


def of(process: subprocess.Popen[bytes]) -> float:
    return sum(s for (pid, _), s in processor_seconds().items() if pid == process.pid)


def test_a_process_that_computes_without_a_socket_is_use_of_the_server() -> None:
    clock = Clock()
    with running(BURNS) as process:
        use = RealUse(server("idle"), clock)
        before = of(process)
        clock.now += 1.0
        wait_for(lambda: of(process) > before + 0.2, message="for it to compute")
        assert use.idle_s() == 0.0
        assert kernel_activity.SETTING in use._app.web_app.settings, (
            "so that what culls for the whole hub knows"
        )


def test_a_child_of_a_kernels_child_counts_too() -> None:
    clock = Clock()
    with running(CHILD_BURNS):
        use = RealUse(server("idle"), clock)
        before = sum(processor_seconds().values())
        clock.now += 1.0
        wait_for(lambda: sum(processor_seconds().values()) > before + 0.2, message="for it to compute")
        assert use.idle_s() == 0.0


def test_a_process_that_waits_does_not_count_as_use() -> None:
    clock = Clock()
    with running(WAITS) as process:
        wait_for(lambda: of(process) > 0, message="for it to be there")
        use = RealUse(server("idle"), clock)
        clock.now += 600.0
        assert use.idle_s() == 600.0
        clock.now += 600.0
        assert use.idle_s() == 1200.0


def test_a_kernel_at_work_is_use_and_a_page_that_asks_is_not() -> None:
    clock = Clock()
    app = server("busy")
    use = RealUse(app, clock, dict)
    clock.now += 600.0
    assert use.idle_s() == 0.0
    app = server("idle")
    use = RealUse(app, clock, dict)
    clock.now += 600.0
    assert use.idle_s() == 600.0


def test_actions_of_a_person_count_as_use() -> None:
    clock = Clock()
    app = server("idle")
    use = RealUse(app, clock, dict)
    use.idle_s()
    clock.now += 600.0
    app.web_app.settings["terminal_last_activity"] = datetime.now(UTC)
    assert use.idle_s() == 0.0
    clock.now += 60.0
    assert use.idle_s() == 60.0, "it is a change that counts, and not the time that it names"


def test_requests_of_an_untouched_page_are_not_use() -> None:
    clock = Clock()
    app = server("idle")
    use = RealUse(app, clock, dict)
    for _ in range(3):
        clock.now += 600.0
        app.web_app.settings["api_last_activity"] = datetime.now(UTC)  # it stores its layout, and polls
        last = use.idle_s()
    assert last == 1800.0


FILES = "/user/ann/api/contents"


@pytest.mark.parametrize(
    ("method", "path", "status", "is_save"),
    [
        ("PUT", f"{FILES}/a.ipynb", 200, True),
        ("POST", FILES, 201, True),
        ("POST", f"{FILES}/a.ipynb/checkpoints", 201, True),
        ("PATCH", f"{FILES}/a.ipynb", 200, True),
        ("DELETE", f"{FILES}/a.ipynb", 204, True),
        ("GET", f"{FILES}/a.ipynb", 200, False),
        ("PUT", f"{FILES}/a.ipynb", 403, False),
        ("PUT", f"{FILES}_of_others/a", 200, False),
        ("PUT", "/user/ann/lab/api/workspaces/default", 204, False),
        ("PUT", "/user/ann/lab/api/workspaces/api/contents/a", 204, False),
        ("PUT", "/user/ann/lab/api/settings/@jupyterlab/apputils-extension:themes", 204, False),
        ("POST", "/user/ann/api/sessions", 201, False),
    ],
)
def test_a_change_of_a_file_is_use_and_no_other_request_is(
    method: str, path: str, status: int, is_save: bool
) -> None:
    clock, logged = Clock(), list[Any]()
    app = server("idle")
    app.base_url, app.web_app.log_request = "/user/ann/", logged.append
    watch_saves(app)
    use = RealUse(app, clock, dict)
    use.idle_s()
    clock.now += 600.0
    request = SimpleNamespace(method=method, path=path)
    handler = SimpleNamespace(request=request, get_status=lambda: status)
    app.web_app.log_request(handler)
    assert use.idle_s() == (0.0 if is_save else 600.0)
    assert logged == [handler], "it is logged as before"


async def test_reports_come_sooner_during_a_countdown_and_continue_after_a_failure() -> None:
    answers: list[float | Exception | None] = [None, 300.0, OSError("gone"), None]

    async def send(_idle_s: float) -> float | None:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    reports = UseReports(RealUse(server("idle"), Clock(), dict), send)
    assert [await reports.report() for _ in range(4)] == [EVERY_S, SOON_S, EVERY_S, EVERY_S]
