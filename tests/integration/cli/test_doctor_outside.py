"""The doctor asks the public address, through gateways that do one thing wrong each."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlp_hub.cli.doctor import gateway as checks_gateway
from mlp_hub.cli.doctor.checks import Check
from mlp_hub.cli.http import request
from mlp_hub.settings import Settings
from mlp_hub.settings.origins import Origins
from support.proxy.running_proxy import TOKEN, RunningProxy


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    made = RunningProxy(tmp_path_factory.mktemp("outside"))
    made.start()
    yield made
    made.stop(kill=True)


Change = Callable[[bytes], bytes]


@contextlib.contextmanager
def forwarder(port: int, change: Change = bytes, *, buffered: bool = False) -> Iterator[int]:
    """Hand each connection on to a port, with its first bytes changed, and answers as they come or when all are there."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve(near: socket.socket) -> None:
        with near, contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as far:
            far.sendall(change(near.recv(65536)))
            held = b""
            while data := far.recv(65536):
                held += data
                if not buffered:
                    near.sendall(data)
            if buffered:
                near.sendall(held)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(20)


def found(running: RunningProxy, port: int, users: str = "") -> list[Check]:
    with checks_gateway.probe(running.api, TOKEN) as asked:
        assert asked is not None
        return checks_gateway.faults(asked, Origins(f"http://localhost:{port}", users), Settings.load({}))


def test_where_all_is_well_there_is_nothing_to_say(running: RunningProxy) -> None:
    assert found(running, running.port) == []
    with forwarder(running.port) as port:
        assert found(running, port) == []


def test_below_a_path_nothing_else_is_asked(tmp_path: Path) -> None:
    """A gateway may hand on that path alone."""
    running = RunningProxy(tmp_path, base="/mlp")
    running.start()
    asked_for: list[bytes] = []

    def noted(head: bytes) -> bytes:
        asked_for.append(head.split(b" ")[1])
        return head

    try:
        with (
            forwarder(running.port, noted) as port,
            checks_gateway.probe(running.api, TOKEN, "/mlp") as asked,
        ):
            assert asked is not None
            origins = Origins(f"http://localhost:{port}", "")
            assert checks_gateway.faults(asked, origins, Settings.load({})) == []
    finally:
        running.stop(kill=True)
    assert {path.startswith(b"/mlp/") for path in asked_for} == {True}


def without_upgrade(head: bytes) -> bytes:
    return head.replace(b"Upgrade: websocket\r\n", b"").replace(b"Connection: Upgrade\r\n", b"")


def other_host(head: bytes) -> bytes:
    return head.replace(b"Host: localhost:", b"Host: inside.example:")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (other_host, "the Host header that arrives is inside.example:"),
        (without_upgrade, "WebSockets do not pass"),
        (lambda head: head.replace(b"/_mlp_probe/", b"/below/_mlp_probe/"), "does not lead to this hub"),
    ],
)
def test_the_doctor_names_the_mistake_of_a_gateway(running: RunningProxy, change: Change, says: str) -> None:
    with forwarder(running.port, change) as port:
        (check,) = found(running, port)
    assert check.status == "fail"
    assert says in check.found
    assert "docs/how-to/gateway.md" in check.remedy


def test_a_gateway_that_holds_answers_back_is_found(
    running: RunningProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(checks_gateway, "WAIT_S", 1.0)  # the answer ends later than any patience
    with forwarder(running.port, buffered=True) as port:
        (check,) = found(running, port)
    assert (check.status, "arrive only when they are complete" in check.found) == ("fail", True)


def test_an_address_that_nobody_answers_is_a_warning(running: RunningProxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    (check,) = found(running, port)
    assert (check.status, "does not answer from here" in check.found) == ("warn", True)


def test_a_name_of_users_that_does_not_lead_here_is_found(running: RunningProxy) -> None:
    (check,) = found(running, running.port, "users.invalid")
    assert "doctor.users.invalid does not lead here: " in check.found


def test_a_gateway_whose_word_is_not_taken_is_named(running: RunningProxy) -> None:
    environ = {"MLP_PUBLIC_URL": "https://hub.example.org", "MLP_USERS_DOMAIN": "none"}
    for trusted, says in (("", "Name it: MLP_TRUSTED_PROXIES=127.0.0.1"), ("127.0.0.0/8", None)):
        settings = Settings.load(environ | ({"MLP_TRUSTED_PROXIES": trusted} if trusted else {}))
        check = checks_gateway._known("::ffff:127.0.0.1", settings)
        assert (check.remedy if check else None) == says


def test_nobody_learns_anything_who_does_not_know_the_word(running: RunningProxy) -> None:
    for word in ("0" * 32, "", "../x", "__proto__"):
        assert b"sender" not in running.get(f"/_mlp_probe/{word}").body
    assert request(running.api, "POST", f"/probes/{'0' * 32}").status == 403
    headers = {"Authorization": "token wrong"}
    assert request(running.api, "POST", f"/probes/{'0' * 32}", headers=headers).status == 403


def test_without_a_proxy_nothing_is_asked(tmp_path: Path) -> None:
    with checks_gateway.probe(tmp_path / "none.sock", TOKEN) as asked:
        assert asked is None
