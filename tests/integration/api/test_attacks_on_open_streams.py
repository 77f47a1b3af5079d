"""Who may no more, and has something open still: it ends, however it was opened, and whatever else that person sends meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from mlp_hub.api.auth.authentication import TooMany
from support.rigs.api_rig import BASE, HOST, ApiRig, drain
from support.waiting import PATIENCE_S, wait_for

FOLLOWED = "/users/ann/jobs/digits/logs?follow=1"
WATCHED = "/users/ann/jobs/digits:stream"


@contextlib.contextmanager
def opened(rig: ApiRig, path: str, token: str) -> Iterator[socket.socket]:
    """Ask for what is sent piece by piece, and read no more than how its answer begins."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as plain:
        plain.settimeout(PATIENCE_S)
        plain.connect(str(rig.sockets[True]))
        lines = [f"GET {BASE}{path} HTTP/1.1", f"Host: {HOST}", f"Authorization: Bearer {token}", "", ""]
        plain.sendall("\r\n".join(lines).encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += plain.recv(1)
        assert head.startswith(b"HTTP/1.1 200 "), head
        yield plain


def rest_of(plain: socket.socket) -> bytes:
    """Read until the service ends it."""
    found = b""
    with contextlib.suppress(ConnectionResetError):
        while part := plain.recv(1 << 20):
            found += part
    return found


def requests_under_way(rig: ApiRig) -> int:
    async def count() -> int:
        tasks: list[Any] = [task.get_coro() for task in asyncio.all_tasks()]
        return sum(task.__qualname__ == "Exchange._serve" for task in tasks)

    return rig.run(count())


def test_a_followed_log_ends_with_the_token_that_follows_it(rig: ApiRig) -> None:
    token = rig.hub.user("ann", "follows")
    with opened(rig, FOLLOWED, token) as plain:
        del rig.hub.tokens[token]
        # nor does it end as the whole of a log does: who reads it learns that it is not all
        assert not rest_of(plain).endswith(b"0\r\n\r\n")


def test_a_former_tenant_admin_can_no_longer_follow_logs_of_its_members(rig: ApiRig) -> None:
    lea = rig.hub.user("lea", "lea-follows")
    assert rig.ask("PUT", "/tenants/red/members/lea", {"role": "admin"}, token=rig.root_user).status == 200
    with opened(rig, FOLLOWED, lea) as plain:
        assert rig.ask("DELETE", "/tenants/red/members/lea", token=rig.root_user).status == 200
        assert not rest_of(plain).endswith(b"0\r\n\r\n")


def test_a_download_that_is_hardly_taken_ends_with_its_token(rig: ApiRig) -> None:
    size = 64 * 1024 * 1024
    with (rig.rig.workspace("ann", "digits") / "ckpt" / "large.pt").open("wb") as file:
        file.truncate(size)
    token = rig.hub.user("ann", "downloads")
    with opened(rig, "/users/ann/jobs/digits/files/content?path=ckpt/large.pt", token) as plain:
        del rig.hub.tokens[token]
        wait_for(lambda: requests_under_way(rig) == 0, message="for the download to end")
        assert len(rest_of(plain)) < size


def test_a_reader_who_leaves_the_log_of_a_silent_job_costs_nothing_more(rig: ApiRig) -> None:
    before = requests_under_way(rig)
    with contextlib.ExitStack() as open_ones:
        for _ in range(5):
            open_ones.enter_context(opened(rig, FOLLOWED, rig.ann))
        assert requests_under_way(rig) == before + 5
    wait_for(lambda: requests_under_way(rig) == before, message="for those who left to be forgotten")


def test_guesses_from_the_same_address_keep_nothing_open(
    rig: ApiRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = rig.hub.user("ann", "guesses")
    take = rig.service.limiter.take_token
    with rig.socket(WATCHED, token=token) as one, opened(rig, FOLLOWED, token) as other:
        # as while very many tokens are tried that nobody knows: this rig lets all through
        monkeypatch.setattr(
            rig.service.limiter,
            "take_token",
            lambda bucket, who: 3 if bucket == "unknown-token" else take(bucket, who),
        )
        del rig.hub.tokens[token]

        def is_a_guess() -> bool:
            # whoever has it learns that it has ended, and that makes it one of those that nobody knows
            rig.service.auth.forget(token)
            return rig.ask("GET", "/auth", token=token).status == 429

        wait_for(is_a_guess, message="for the token to be one that nobody knows")
        assert drain(one)[1] == 4401
        rest_of(other)


def test_open_streams_of_a_page_end_with_its_session_even_if_the_hub_keeps_its_token(rig: ApiRig) -> None:
    session, headers = rig.session("ann", rig.ann)
    with rig.socket(WATCHED, headers={**headers, "Origin": f"http://{HOST}"}) as page:
        rig.run(rig.service.sessions.end(session.id))
        assert drain(page)[1] == 4401


def test_open_streams_continue_while_identity_cannot_be_checked(
    rig: ApiRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    identify = rig.service.auth.identify

    async def fails(*args: Any, **kwargs: Any) -> Any:
        asked.append("")
        if len(asked) == 1:
            raise TooMany(1)
        if len(asked) == 2:
            raise OSError("the disk says no")
        return await identify(*args, **kwargs)

    token = rig.hub.user("ann", "unasked")
    with rig.socket(WATCHED, token=token) as one:
        monkeypatch.setattr(rig.service.auth, "identify", fails)
        wait_for(lambda: len(asked) > 3, message="for it to be looked at again")
        del rig.hub.tokens[token]
        assert drain(one)[1] == 4401
