"""The public port with a certificate of the operator's: TLS, who comes without it, renewal, floods of handshakes."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.certificates import certificate
from support.proxy.behind import Behind
from support.proxy.bodies_told_twice import WAYS, told_twice
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S, wait_for

HOST = "hub.example.org"
TOTAL, PER_ADDRESS = 100, 40
PAGE = {"Accept": "text/html", "Host": HOST}


class Secured:
    """A proxy that speaks TLS, and what it needs to be asked over it."""

    def __init__(self, directory: Path) -> None:
        self.pem = certificate(directory, HOST, "*.hub-users.example.net")
        self.running = RunningProxy(
            directory,
            hosts=[HOST],
            platform=f"https://{HOST}",
            users="hub-users.example.net",
            hsts=600,
            tls=(self.pem, self.pem),
            connections=TOTAL,
            per_address=PER_ADDRESS,
        )

    def connect(self, context: ssl.SSLContext | None = None, sender: str = "127.0.0.1") -> ssl.SSLSocket:
        """Open a connection of its own, sure of whom it speaks to."""
        context = context or ssl.create_default_context(cafile=str(self.pem))
        raw = socket.create_connection(("127.0.0.1", self.running.port), PATIENCE_S, (sender, 0))
        try:
            return context.wrap_socket(raw, server_hostname=HOST)
        except BaseException:
            raw.close()
            raise

    def ask(self, head: str, **how: str) -> bytes:
        """Send one request over TLS, and return all of the answer."""
        with self.connect(**how) as link:  # type: ignore[arg-type]
            link.sendall(head.encode())
            return link.makefile("rb").read()

    def shown(self) -> bytes:
        """Return the certificate that a new connection is shown, whatever it is."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with self.connect(context) as link:
            return link.getpeercert(binary_form=True) or b""


def request(path: str, host: str = HOST) -> str:
    return f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"


@pytest.fixture
def secured(tmp_path: Path) -> Iterator[Secured]:
    """A proxy with TLS, and ann's server behind it."""
    made = Secured(tmp_path)
    with Behind(tmp_path / "behind.sock") as behind:
        made.running.start()
        try:
            route = "/ann.hub-users.example.net/user/ann"
            target = url_of(behind.path)
            assert made.running.routes("POST", route, {"target": target, "user": "ann"}).status == 201
            yield made
        finally:
            made.running.stop(kill=True)


def test_pages_and_websockets_come_over_tls(secured: Secured) -> None:
    answer = secured.ask(request("/_chp_healthz"))
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert b"\r\nStrict-Transport-Security: max-age=600\r\n" in answer
    ann = "ann.hub-users.example.net"
    assert secured.ask(request("/user/ann/lab", ann)).endswith(b"\r\n\r\nok")
    with secured.connect() as link:
        link.sendall(
            f"GET /user/ann/echo HTTP/1.1\r\nHost: {ann}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n".encode()
        )
        assert link.recv(1000).startswith(b"HTTP/1.1 101 ")
        link.sendall(b"hello")
        assert link.recv(100) == b"hello"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_safe_tls_versions_are_accepted(secured: Secured, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=str(secured.pem))
    context.minimum_version = context.maximum_version = version
    with secured.connect(context) as link:
        assert link.version() == version.name.replace("_", ".")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_unsafe_tls_versions_are_rejected(secured: Secured) -> None:
    context = ssl.create_default_context(cafile=str(secured.pem))
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        secured.connect(context)


def plainly(running: RunningProxy, method: str, path: str, headers: dict[str, str]) -> tuple[int, str, str]:
    link = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    with contextlib.closing(link):
        link.request(method, path, headers=headers)
        answer = link.getresponse()
        assert answer.headers["Strict-Transport-Security"] is None
        return answer.status, answer.headers.get("Location", ""), answer.read().decode()


def test_a_browser_that_comes_by_plain_http_is_led_to_tls(secured: Secured) -> None:
    assert plainly(secured.running, "GET", "/hub/login?x=1", PAGE)[:2] == (
        301,
        f"https://{HOST}/hub/login?x=1",
    )
    ann = PAGE | {"Host": "ann.hub-users.example.net:8443"}
    found = plainly(secured.running, "GET", "/user/ann/lab", ann)
    assert found[:2] == (301, "https://ann.hub-users.example.net:8443/user/ann/lab")


@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("GET", {"Host": HOST}),
        ("GET", PAGE | {"Authorization": "Bearer x"}),
        ("POST", PAGE),
        ("GET", {"Host": HOST, "Connection": "Upgrade", "Upgrade": "websocket"}),
    ],
    ids=["program", "token", "form", "WebSocket"],
)
def test_other_plain_http_requests_are_pointed_to_https(
    secured: Secured, method: str, headers: dict[str, str]
) -> None:
    status, _, text = plainly(secured.running, method, "/services/mlp/api/v1/health", headers)
    assert (status, text) == (
        400,
        f"This port speaks TLS: begin the address with https, as https://{HOST}/\n",
    )


def test_nobody_is_led_to_a_name_that_is_not_ours(secured: Secured) -> None:
    status, location, _ = plainly(secured.running, "GET", "/", PAGE | {"Host": "evil.example"})
    assert (status, location) == (421, "")


def test_a_renewed_certificate_is_taken_and_nobody_is_cut(secured: Secured, tmp_path: Path) -> None:
    before = secured.shown()
    with secured.connect() as link:
        (tmp_path / "new").mkdir()
        certificate(tmp_path / "new", HOST).replace(secured.pem)
        wait_for(lambda: secured.shown() != before, message="for the new certificate")
        link.sendall(request("/_chp_healthz").encode())
        assert link.recv(1000).startswith(b"HTTP/1.1 200 ")


def test_a_broken_certificate_leaves_the_old_one_until_it_is_mended(secured: Secured, tmp_path: Path) -> None:
    before, log = secured.shown(), secured.running.directory / "log"
    secured.pem.write_text("no certificate")
    wait_for(lambda: "the old one is kept" in log.read_text(), message="for the broken one to be seen")
    assert secured.shown() == before
    secured.pem.unlink()
    (tmp_path / "new").mkdir()
    certificate(tmp_path / "new", HOST).replace(secured.pem)
    wait_for(lambda: secured.shown() != before, message="for the new certificate")


FLOODS = {"nothing": b"", "a first byte": b"\x16", "half a handshake": b"\x16\x03\x01\x02\x00\x01\x00"}


@pytest.mark.parametrize("first", FLOODS.values(), ids=FLOODS)
def test_handshakes_that_do_not_end_take_nobodys_place(secured: Secured, first: bytes) -> None:
    with contextlib.ExitStack() as links:
        for _ in range(3 * TOTAL):
            place = ("127.0.0.1", secured.running.port)
            link = links.enter_context(socket.create_connection(place, PATIENCE_S, ("127.0.0.2", 0)))
            with contextlib.suppress(OSError):
                link.sendall(first)
        assert secured.ask(request("/_chp_healthz"), sender="127.0.0.9").startswith(b"HTTP/1.1 200 ")
        assert secured.ask(request("/_chp_healthz"), sender="127.0.0.2").startswith(b"HTTP/1.1 200 ")
        assert secured.running.descriptors() < TOTAL + 60


def test_an_invalid_handshake_ends_only_its_own_connection(secured: Secured) -> None:
    for garbage in (
        b"\x16" * 500,
        b"\x16\x03\x01\xff\xff" + bytes(70_000),
        b"\x80\x2e\x01",
        b"\x00",
        b"\r\n\r\n",
    ):
        place = ("127.0.0.1", secured.running.port)
        with socket.create_connection(place, PATIENCE_S) as link, contextlib.suppress(OSError):
            link.sendall(garbage)
            link.shutdown(socket.SHUT_WR)
            while link.recv(65536):
                pass
    assert secured.ask(request("/_chp_healthz")).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("way", WAYS)
def test_a_body_whose_end_is_told_twice_hides_no_second_request(secured: Secured, way: str) -> None:
    with secured.connect() as link:
        with contextlib.suppress(OSError):  # it may end in the middle of this
            link.sendall(told_twice(way, "/user/ann/x", "ann.hub-users.example.net", "/user/ann/hidden"))
        answer = link.makefile("rb").read()
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert answer.count(b"HTTP/1.1 ") == 1


def test_connections_that_have_ended_are_forgotten(secured: Secured) -> None:
    held = secured.running.descriptors()
    for _ in range(3 * PER_ADDRESS):
        secured.connect().close()
    assert secured.ask(request("/_chp_healthz")).startswith(b"HTTP/1.1 200 ")
    wait_for(lambda: secured.running.descriptors() <= held + 2, message="for the connections to be closed")


def test_wrong_files_end_the_proxy_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = certificate(tmp_path / "other", HOST)
    running = RunningProxy(tmp_path, tls=(certificate(tmp_path, HOST), other))
    running.launch()
    assert running.child is not None
    assert running.child.wait(PATIENCE_S) == 2
    assert "The certificate cannot be used: " in (tmp_path / "log").read_text()
