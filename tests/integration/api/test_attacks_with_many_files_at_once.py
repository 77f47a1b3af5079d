"""Requests that bring or fetch many files at once, from who means ill: each is bounded, and each file is charged and can be named."""

from __future__ import annotations

import socket
import time
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

import pytest

from mlp_hub.api.auth import scopes
from mlp_hub.dav.files.batches import KIND
from mlp_hub.executors.shared_volume.trees.sizes import ENTRY, FREE_ENTRIES
from support.rigs.api_rig import ApiRig
from support.rigs.dav_rig import MIB, DavRig, on_disk, serving, settled


def line(path: str, content: bytes) -> bytes:
    return f"{len(content)} {sha256(content).hexdigest()} {quote(path)}\n".encode() + content


@pytest.mark.parametrize("query", ["contents=", "contents=&contents=", "contents=a&contents"])
def test_a_request_for_contents_without_a_name_is_refused(dav: DavRig, data: str, query: str) -> None:
    assert dav.ask("GET", f"{data}?{query}").status == 400


@pytest.mark.parametrize("name", ["a%2fb", "a%2Fb", "dir/%2f"])
def test_names_that_no_address_can_have_are_refused(rig: ApiRig, dav: DavRig, data: str, name: str) -> None:
    assert dav.ask("PUT", f"{data}/{quote(name)}", b"x").status == 403
    assert dav.ask("POST", data, line(name, b"x"), headers={"Content-Type": KIND}).status == 400
    assert dav.ask("POST", data, line("a", b"x"), headers={"Content-Type": KIND}).status == 200
    assert [path.name for path in on_disk(rig, data).iterdir()] == ["a"]


@pytest.mark.parametrize("together", [True, False])
def test_attacks_tiny_files_are_charged_as_entries_at_once(
    rig: ApiRig, dav: DavRig, data: str, team: str, together: bool
) -> None:
    count, total = FREE_ENTRIES // 2 + 10, 0
    for turn in "abc":  # the first look at a dataset comes soon without a reason, and the next one late
        if together:
            body = b"".join(line(f"{turn}{n}", b"x") for n in range(count))
            assert dav.ask("POST", data, body, headers={"Content-Type": KIND}).status == 200
        else:
            for n in range(count):
                assert dav.ask("PUT", f"{data}/{turn}{n}", b"x").status == 201
        total += count
        settled(rig, team, total + max(total - FREE_ENTRIES, 0) * ENTRY)


def test_attacks_an_upload_that_does_not_end_hides_nothing_that_programs_write(
    rig: ApiRig, dav: DavRig, data: str, team: str
) -> None:
    assert dav.ask("PUT", f"{data}/f", b"x" * ENTRY).status == 201
    body = line("g", bytes(MIB))
    connection = dav.connect()
    try:
        connection.putrequest("POST", data)
        for name, value in (
            ("Authorization", "Bearer ann-token"),
            ("Content-Type", KIND),
            ("Content-Length", str(len(body))),
        ):
            connection.putheader(name, value)
        connection.endheaders(body[: MIB // 2])
        settled(rig, team, ENTRY + len(body))
        (on_disk(rig, data) / "of-a-notebook").write_bytes(bytes(3 * MIB))
        assert dav.ask("DELETE", f"{data}/f").status == 204  # which has the dataset looked at
        settled(rig, team, 3 * MIB)
        connection.send(body[MIB // 2 :])
        assert connection.getresponse().status == 200
    finally:
        connection.close()
    settled(rig, team, 4 * MIB)


@pytest.mark.parametrize("query", ["&".join(f"contents=f{n}" for n in range(4)), "entries"])
def test_attacks_an_answer_that_is_hardly_taken_is_ended(
    rig: ApiRig, data: str, tmp_path: Path, query: str
) -> None:
    root = tmp_path / "tree"  # a process has one alone
    with serving(rig, tmp_path, root, {"SPARE_S": 0.5, "LOWEST": 1 << 30, "LOOK_S": 0.05}) as quick:
        size = 1 << 19
        for n in range(4):
            assert quick.ask("PUT", f"{data}/f{n}", bytes(size)).status == 201
        if query == "entries":  # a long page, without a request for each file
            for n in range(4000):
                (root / "datasets" / Path(data).relative_to("/data") / f"{n:0200}").touch()
        size = 10 * len(quick.ask("GET", f"{data}?{query}").body)
        with socket.socket() as wire:
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            wire.connect(("127.0.0.1", quick.port))
            head = (
                f"GET {data}?{query} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ann-token\r\n\r\n"
            )
            wire.sendall(10 * head.encode())  # more than the kernel has room for
            taken = 0
            while taken < size and (piece := _received(wire)):
                taken += len(piece)
                time.sleep(0.05)
        assert taken < size


def _received(wire: socket.socket) -> bytes:
    try:
        return wire.recv(1 << 16)
    except OSError:
        return b""


def test_attacks_a_token_that_reads_and_a_browsers_cookie_alone_bring_no_files(
    rig: ApiRig, dav: DavRig, data: str
) -> None:
    body, kind = line("f", b"x"), {"Content-Type": KIND}
    reads = rig.hub.user("ann", "ann-reads", held=(scopes.ACCESS, scopes.DATA_READ))
    assert dav.ask("POST", data, body, headers=kind, token=reads).status == 403
    assert dav.ask("GET", f"{data}?contents=f", token=reads).status == 200
    _, session = rig.session("ann", rig.ann)
    cookie = {"Cookie": session["Cookie"]}
    assert dav.ask("POST", data, body, headers={**kind, **cookie}, token=None).status == 403
    evil = {**kind, **session, "Sec-Fetch-Site": "cross-site"}
    assert dav.ask("POST", data, body, headers=evil, token=None).status == 403
    assert not list(on_disk(rig, data).iterdir())
    page = {"Cookie": session["Cookie"], "X-XSRFToken": session["X-XSRFToken"]}
    assert dav.ask("POST", data, body, headers={**kind, **page}, token=None).status == 200
