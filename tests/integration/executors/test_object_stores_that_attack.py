"""Whatever an object store answers, a copy ends, leaves nothing wrong behind and costs the service nothing: its process takes it apart."""

from __future__ import annotations

import contextlib
import gzip
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.executors.shared_volume.fetch import starter
from mlp_hub.executors.workspace import OpenSource, StoredPlace

Answer = Callable[[socket.socket, str], None]
MIB = 1 << 20


class Steps:
    """Lets all of it."""

    def admit(self, size: int) -> None:
        assert size < 1 << 40, size

    def report_progress(self, percent: int) -> None:
        pass

    def check_cancelled(self) -> None:
        pass


@contextlib.contextmanager
def store(answer: Answer) -> Iterator[str]:
    """Serve on loopback, each connection one request."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve(line: socket.socket) -> None:
            with line, contextlib.suppress(OSError):
                head = b""
                while b"\r\n\r\n" not in head and (data := line.recv(65536)):
                    head += data
                answer(line, head.partition(b"\r\n")[0].decode())

        def accept() -> None:
            with contextlib.suppress(OSError):
                while True:
                    line, _ = server.accept()
                    threading.Thread(target=serve, args=(line,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"127.0.0.1:{server.getsockname()[1]}"
        server.shutdown(socket.SHUT_RDWR)


def page(*objects: tuple[str, int], token: str = "") -> bytes:
    contents = "".join(
        f"<Contents><Key>{key}</Key><Size>{size}</Size><ETag>&quot;t&quot;</ETag><LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
        for key, size in objects
    )
    more = (
        f"<IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>"
        if token
        else "<IsTruncated>false</IsTruncated>"
    )
    space = "http://s3.amazonaws.com/doc/2006-03-01/"
    return f'<ListBucketResult xmlns="{space}"><Name>b</Name><Prefix></Prefix>{more}{contents}</ListBucketResult>'.encode()


def whole(
    line: socket.socket, body: bytes, *headers: str, status: str = "200 OK", length: int | None = None
) -> None:
    said = [f"Content-Length: {len(body) if length is None else length}", "Connection: close", *headers]
    line.sendall(f"HTTP/1.1 {status}\r\n".encode() + "\r\n".join([*said, "", ""]).encode() + body)


def is_list(request: str) -> bool:
    return "list-type=2" in request


def packed_bomb(line: socket.socket, _: str) -> None:
    whole(line, gzip.compress(bytes(256 * MIB), 1), "Content-Encoding: gzip")


def endless_page(line: socket.socket, _: str) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n<ListBucketResult>")
    while True:
        line.sendall(b"<Contents></Contents>" * 50_000)


def endless_error(line: socket.socket, _: str) -> None:
    line.sendall(b"HTTP/1.1 403 No\r\nContent-Length: 9999999999\r\n\r\n<Error><Code>")
    while True:
        line.sendall(bytes(MIB))


def many_headers(line: socket.socket, _: str) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\n" + b"X-Some: thing\r\n" * 100_000 + b"Content-Length: 0\r\n\r\n")


def endless_header(line: socket.socket, _: str) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nX-Long: ")
    while True:
        line.sendall(b"x" * MIB)


def redirect(line: socket.socket, _: str) -> None:
    whole(line, b"", "Location: http://127.0.0.1:1/b", status="307 Temporary Redirect")


def empty_pages(line: socket.socket, _: str) -> None:
    whole(line, page(token=os.urandom(8).hex()))


def negative(line: socket.socket, _: str) -> None:
    whole(line, page(("a", -5)))


def deep(line: socket.socket, _: str) -> None:
    whole(line, b"<a>" * MIB)


def entities(line: socket.socket, _: str) -> None:
    doc = (
        b'<!DOCTYPE a [<!ENTITY b "'
        + b"x" * 1000
        + b'"><!ENTITY c "'
        + b"&b;" * 10_000
        + b'">]><ListBucketResult>'
    )
    whole(line, doc + b"&c;" * 10_000 + b"</ListBucketResult>")


def bad_chunks(line: socket.socket, _: str) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc\r\nFFFFFFFFFFFFFFFFF\r\n")


def short(line: socket.socket, request: str) -> None:
    whole(line, page(("a", 1000))) if is_list(request) else whole(line, b"x" * 10, length=1000)


def other_length(line: socket.socket, request: str) -> None:
    whole(line, page(("a", 10))) if is_list(request) else whole(line, b"x" * 1000)


def long(line: socket.socket, request: str) -> None:
    whole(line, page(("a", 10))) if is_list(request) else whole(line, b"x" * 1000, length=10)


def packed_object(line: socket.socket, request: str) -> None:
    data = gzip.compress(bytes(64 * MIB))
    if is_list(request):
        whole(line, page(("a", len(data))))
    else:
        whole(line, data, "Content-Encoding: gzip")


def long_tag(line: socket.socket, request: str) -> None:
    whole(line, page(("a", 1)).replace(b";t&", b";" + b"t" * 60_000 + b"&") if is_list(request) else b"x")


def less_than_nothing(line: socket.socket, request: str) -> None:
    """Cut an object short, and say then that it has -5 bytes by now, of which there is no end."""
    if is_list(request):
        whole(line, page(("a", 10)))
    elif request.startswith("HEAD"):
        whole(line, b"", 'ETag: "u"', "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT", length=-5)
    else:
        whole(line, b"x" * MIB, 'ETag: "u"', length=-5)


def larger_than_disks(line: socket.socket, _: str) -> None:
    whole(line, page(("a", 10**400)))


ENDS = [
    packed_bomb, endless_page, endless_error, many_headers, endless_header, redirect, empty_pages, negative, deep,
    entities, bad_chunks, short, other_length, long_tag, less_than_nothing, larger_than_disks,
]  # fmt: skip


def copy(root: Path, host: str) -> dict[str, int]:
    source = OpenSource(
        endpoint=f"http://{host}",
        bucket="bucket",
        prefix="",
        region="us-east-1",
        key_id="",
        key="",
        token="",
        allowed=(host,),
    )
    owner = 54_321 if os.geteuid() == 0 else None
    starter.fetch(root, source, StoredPlace("dataset", "ann", "pets"), owner, Steps())
    top = root / "datasets/ann/pets"
    return {str(path.relative_to(top)): path.stat().st_size for path in top.rglob("*") if path.is_file()}


@pytest.mark.parametrize("attack", ENDS, ids=lambda attack: attack.__name__)
def test_attack_a_copy_ends_with_its_cause(tmp_path: Path, attack: Answer) -> None:
    root = tmp_path / "files"
    with store(attack) as host, pytest.raises(Refused) as refused:
        copy(root, host)
    assert len(str(refused.value.message)) < 300
    assert [path for path in (root / "datasets/ann/pets").rglob("*") if path.is_file()] == []
    assert sum(path.stat().st_size for path in root.rglob("*") if path.is_file()) <= 1000, (
        "more than was listed"
    )


@pytest.mark.parametrize("attack", [long, packed_object], ids=lambda attack: attack.__name__)
def test_attack_an_object_is_as_long_as_it_was_listed(tmp_path: Path, attack: Answer) -> None:
    with store(attack) as host:
        (size,) = copy(tmp_path / "files", host).values()
    assert size < 100_000
