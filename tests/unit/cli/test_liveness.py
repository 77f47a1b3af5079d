"""When the supervisor gives up on a component that is silent, and when it does not. Real sockets, a clock of the test's own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.cli.supervisor import liveness
from mlp_hub.cli.supervisor.liveness import Liveness
from support.waiting import PATIENCE_S


class Component:
    """Something that listens; each question is answered, or not, as the test says."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.listener.settimeout(PATIENCE_S)
        self.open: list[socket.socket] = []
        self.cpu = 0.0
        self.busy = 0.0  # cores that it uses

    def accept(self, answer: bytes | None) -> bytes:
        """Take one connection; answer (b"": hang up), or keep it waiting (None). Return what was asked."""
        link, _ = self.listener.accept()
        link.settimeout(PATIENCE_S)
        asked = link.recv(4096)
        if answer is None:
            self.open.append(link)
            return asked
        if answer:
            link.sendall(answer)
        link.close()
        return asked

    def close(self) -> None:
        for link in (*self.open, self.listener):
            link.close()


@pytest.fixture
def component(tmp_path: Path) -> Iterator[Component]:
    made = Component(tmp_path / "s")
    yield made
    made.close()


def watch(component: Component, *, heard: bool = True) -> Liveness:
    return Liveness((str(component.path), "/health"), 0.0, heard=heard)


def look(watched: Liveness, component: Component, now: float, *, late: float = 0.0) -> str | None:
    return watched.check_liveness(now, lambda: component.cpu, late=late)


def until_given_up(watched: Liveness, component: Component, start: float, most: float) -> tuple[float, str]:
    """Look every second, in which a busy component uses its core; return when and why it is given up."""
    now = start
    while now <= start + most:
        if why := look(watched, component, now):
            return now - start, why
        now += 1.0
        component.cpu += component.busy
    raise AssertionError(f"not given up within {most} s")


@pytest.mark.parametrize("answer", [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 503 Service Unavailable\r\n\r\n"])
def test_any_answer_is_a_sign_of_life(component: Component, answer: bytes) -> None:
    watched = watch(component)
    now = 0.0
    for _ in range(20):
        assert look(watched, component, now) is None
        assert component.accept(answer).startswith(b"GET /health HTTP/1.0\r\n")
        now += liveness.ANSWER_S - 1
        assert look(watched, component, now) is None
        assert watched.fd is None
        assert watched.due() == now + liveness.ASK_EVERY
        now = watched.due()


def test_one_that_is_idle_and_silent_is_given_up_after_three_questions(component: Component) -> None:
    after, why = until_given_up(watch(component), component, 100.0, 60.0)
    assert after == liveness.ANSWER_S * liveness.MISSES_IDLE
    assert why == "has not answered for 30 s"


def test_one_that_is_busy_and_silent_gets_more_time(component: Component) -> None:
    component.busy = 0.5
    after, why = until_given_up(watch(component), component, 100.0, 300.0)
    assert after == liveness.ANSWER_S * liveness.MISSES_BUSY
    assert "though busy" in why


def test_one_answer_among_misses_resets_the_count(component: Component) -> None:
    watched = watch(component)
    now = 0.0
    for _ in range(5):
        for _ in range(2):  # two are missed
            assert look(watched, component, now) is None
            component.accept(None)
            now += liveness.ANSWER_S
            assert look(watched, component, now) is None
        assert look(watched, component, now) is None
        component.accept(b"HTTP/1.0 200 OK\r\n\r\n")
        assert look(watched, component, now + 1) is None
        now += liveness.ASK_EVERY + 1


def test_time_in_which_the_supervisor_did_not_run_does_not_count_as_silence(component: Component) -> None:
    """A machine that was suspended, or a container that was frozen, with all in it."""
    watched = watch(component)
    now = 0.0
    for _ in range(20):
        assert look(watched, component, now) is None
        now += 3600.0
        assert look(watched, component, now, late=3600.0) is None
        now += liveness.ANSWER_S - 1
        assert look(watched, component, now) is None


def test_a_supervisor_that_is_often_late_gives_up_one_that_hangs_all_the_same(component: Component) -> None:
    watched = watch(component)
    now, said = 0.0, []
    for _ in range(liveness.MISSES_IDLE):
        assert look(watched, component, now, late=100.0) is None
        now += liveness.ANSWER_S
        said.append(look(watched, component, now))
        now += 100.0
    assert said == [None, None, "has not answered for 30 s"]


def test_a_supervisor_that_is_late_at_each_look_gives_up_one_that_hangs_within_a_minute(
    component: Component,
) -> None:
    """Looks are five seconds apart at most; on a machine that is overloaded each comes three seconds later than that."""
    watched = watch(component)
    now, given_up = 0.0, None
    assert look(watched, component, now) is None
    while given_up is None and now < 60.0:
        now += 8.0
        given_up = look(watched, component, now, late=3.0)
    assert given_up is not None
    assert now < 60.0


def test_one_that_hangs_up_without_a_word_is_silent_too(component: Component) -> None:
    watched = watch(component)
    now = 0.0
    given_up = None
    while given_up is None and now < 60.0:
        given_up = look(watched, component, now)
        if watched.fd is not None:
            component.accept(b"")
        now += 1.0
    assert given_up == "has not answered for 30 s"


def test_one_whose_socket_is_gone_is_silent_too(component: Component) -> None:
    component.path.unlink()
    after, _ = until_given_up(watch(component), component, 0.0, 60.0)
    assert after == liveness.ANSWER_S * liveness.MISSES_IDLE


def test_one_that_was_just_started_has_time_to_come_up(component: Component) -> None:
    component.path.unlink()
    after, why = until_given_up(watch(component, heard=False), component, 0.0, 1000.0)
    assert after == liveness.ANSWER_S * liveness.START_IDLE
    assert why == "has not answered in the 120 s since its start"


def test_a_backlog_that_is_full_is_asked_again_and_breaks_nothing(tmp_path: Path) -> None:
    component = Component(tmp_path / "full")
    component.listener.listen(0)
    crowd = []
    try:
        for _ in range(4):
            link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            link.setblocking(False)
            crowd.append(link)
            if link.connect_ex(str(component.path)):
                break
        watched = watch(component)
        assert look(watched, component, 0.0) is None
        assert watched.fd is None
        assert watched.due() == liveness.TRY_EVERY
        after, _ = until_given_up(watched, component, 0.0, 60.0)
        assert after == liveness.ANSWER_S * liveness.MISSES_IDLE
    finally:
        for link in crowd:
            link.close()
        component.close()
