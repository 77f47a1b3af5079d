"""Floods by who has no account, against a real hub behind a real proxy: others are served, and memory is bounded."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.hubs.hub_stack import Browser, HubStack
from support.waiting import PATIENCE_S, wait_for

ADDRESSES = [f"127.0.0.{n}" for n in range(12, 17)]
MANY, OF_ONE = 600, 250
STACK = {"config": f"c.MLPHub.connections_max = {MANY}\nc.MLPHub.connections_per_address = {OF_ONE}\n"}
UPGRADE = (
    "GET /hub/login HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
)
POST = "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {size}\r\n\r\n"
MIB = 1 << 20


def pid(stack: HubStack, name: str) -> int:
    return stack.processes[name].pid


def descriptors(stack: HubStack) -> int:
    return sum(len(list(Path(f"/proc/{pid(stack, name)}/fd").iterdir())) for name in ("proxy", "hub"))


def memory(stack: HubStack, name: str) -> int:
    pages = Path(f"/proc/{pid(stack, name)}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def is_served(stack: HubStack) -> bool:
    """Whether a bystander with a connection of their own gets the login page and an answer of the service."""
    with contextlib.closing(Browser(stack).http) as http:
        return http.get("/hub/login").status_code == http.get("/services/mlp/page").status_code == 200


@contextlib.contextmanager
def flood(stack: HubStack) -> Iterator:
    """Hand out what opens a connection from an address and sends something; all are closed at the end."""
    with contextlib.ExitStack() as links:

        def connect(address: str, data: bytes) -> socket.socket:
            link = links.enter_context(socket.create_connection(("127.0.0.1", stack.port), 30, (address, 0)))
            with contextlib.suppress(OSError):
                link.sendall(data)
            return link

        yield connect


@pytest.mark.parametrize("more", ["", "Content-Length: 40\r\n"], ids=["plain", "with a body"])
def test_upgrades_that_are_left_at_once_hold_nothing(stack: HubStack, more: str) -> None:
    before = descriptors(stack)
    for n in range(2 * MANY):  # were one of ten held, it would show
        with socket.create_connection(("127.0.0.1", stack.port), 30, (ADDRESSES[n % 5], 0)) as link:
            link.sendall(UPGRADE.format(more=more).encode())
        if n % 500 == 0:
            assert is_served(stack)
    assert is_served(stack)
    wait_for(lambda: descriptors(stack) < before + 80)  # some to the hub are kept for what comes next


@pytest.mark.parametrize(
    "data",
    [b"", b"GET /hub/login HTTP/1.1\r\nHost:", POST.format(path="/hub/login", size=1000).encode() + b"x"],
    ids=["idle", "half-sent headers", "half-sent body"],
)
def test_an_administrator_gets_through_what_others_hold(stack: HubStack, data: bytes) -> None:
    if not stack.api("GET", "/users/boss").is_success:
        stack.add("boss", admin=True)
    early = Browser(stack)
    early.login("boss")
    before = descriptors(stack)
    with flood(stack) as connect:
        for n in range(3 * MANY):
            connect(ADDRESSES[n % 5], data)
        assert descriptors(stack) - before < 2 * MANY + 100
        assert early.get("/hub/home").status_code == 200
        late = Browser(stack)
        assert late.login("boss").status_code == 200
        assert late.get("/hub/home").url.path == "/hub/home"
        assert is_served(stack)


@pytest.mark.parametrize("size", [63 * 1024, pytest.param(4 * MIB - 10, marks=pytest.mark.whole)])
@pytest.mark.parametrize("posts", [100, 1000])
def test_stalled_posts_take_little_of_the_hubs_memory(stack: HubStack, posts: int, size: int) -> None:
    """Through the proxy by a thousand connections too; the budget of all is 16 MiB."""
    assert is_served(stack)
    before, opened = memory(stack, "hub"), descriptors(stack)
    data = POST.format(path="/hub/login", size=size).encode() + b"a" * (size - 10)
    with flood(stack) as connect:
        for n in range(posts):
            connect(ADDRESSES[n % 5], data[: 2 * MIB])
        assert is_served(stack)
        assert memory(stack, "hub") - before < 70 * MIB
    assert is_served(stack)
    wait_for(lambda: descriptors(stack) < opened + 80)


def test_a_body_that_is_too_large_is_told(stack: HubStack) -> None:
    with contextlib.closing(Browser(stack).http) as http:
        answer = http.post("/hub/login", content=b"a" * (65 << 10))
    assert answer.status_code == 413
    assert "at most 65536" in answer.json()["message"]
    names = [f"user-{n}" for n in range(10_000)]
    answer = stack.api("POST", "/groups/none/users", json={"users": names})
    assert answer.status_code == 404  # it was read


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_a_tenants_stalled_posts_take_little_of_the_hubs_memory(stack: HubStack) -> None:
    """By the socket that sandboxes have; the platform's own is not in their way."""
    before = memory(stack, "hub")
    with contextlib.ExitStack() as links:
        os.seteuid(300_900)
        try:
            for n in range(700):
                link = links.enter_context(socket.socket(socket.AF_UNIX))
                link.settimeout(PATIENCE_S)
                link.connect(str(stack.settings.tenant_hub_socket))
                path = "/hub/api/users" if n % 2 else "/hub/login"
                with contextlib.suppress(OSError):
                    link.sendall(POST.format(path=path, size=63 << 10).encode() + b"a" * (62 << 10))
        finally:
            os.seteuid(0)
        assert is_served(stack)
        assert memory(stack, "hub") - before < 90 * MIB


ODD = [
    "//",
    "//[",
    "/%E0%A4%A",
    "/hub/%",
    "/hub/login?next=%E0%A4%A",
    "/hub/%00",
    "/constructor",
    "/hub//login",
]
ODD += ["/services/mlp/%E0%A4%A", "/services/mlp/api/v1/%00", "/user/__proto__/", "/hub/login?" + "a&" * 5000]


@pytest.mark.parametrize("more", [False, True], ids=["page", "WebSocket"])
@pytest.mark.parametrize("target", ODD)
def test_odd_requests_cause_no_internal_error_of_the_hub(stack: HubStack, target: str, more: bool) -> None:
    request = f"GET {target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    if more:
        request = UPGRADE.format(more="").replace("/hub/login", target)
    with socket.create_connection(("127.0.0.1", stack.port), 30) as link:
        link.sendall(request.encode())
        assert 200 <= int(link.recv(65536).split(b" ")[1]) < 500


def test_a_hub_that_hangs_is_told_while_the_service_is_served(stack: HubStack) -> None:
    os.kill(pid(stack, "hub"), signal.SIGSTOP)
    try:
        with contextlib.closing(Browser(stack).http) as http:
            for _ in range(5):
                assert http.get("/hub/login").status_code == 503
                assert http.get("/services/mlp/page").status_code == 200
    finally:
        os.kill(pid(stack, "hub"), signal.SIGCONT)
    wait_for(lambda: is_served(stack))
