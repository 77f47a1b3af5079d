"""The proxy of a hub that is below a path of its names: where its parts are, what leads there, and what does not."""

from __future__ import annotations

import contextlib
import http.client
import http.server
import json
import socketserver
import threading
from collections.abc import Iterator

import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S

HOST, USERS = "hub.example.org", "hub-users.example.net"
ANN = f"ann.{USERS}"
HOME = f"https://{HOST}"
PAGE = {"Accept": "text/html"}


class _Named(http.server.BaseHTTPRequestHandler):
    """Answers with its server's name and what it was asked."""

    def do_GET(self) -> None:
        body = json.dumps([self.server.name, self.path]).encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    name = ""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    """A proxy whose hub is below /mlp/, with a service and ann's server; as their routes are in the embedded hub."""
    directory = tmp_path_factory.mktemp("base")
    made = RunningProxy(directory, hosts=[HOST], platform=HOME, users=USERS, base="/mlp")
    routes = {"hub": "", "service": f"/{HOST}/mlp/services/mlp", "ann": f"/{ANN}/mlp/user/ann"}
    with contextlib.ExitStack() as opened:
        for name in routes:
            server = opened.enter_context(_Server(str(directory / f"{name}.sock"), _Named))
            server.name = name
            threading.Thread(target=server.serve_forever, daemon=True).start()
            opened.callback(server.shutdown)
        made.start()
        opened.callback(made.stop, kill=True)
        for name, route in routes.items():
            if route:
                target = url_of(directory / f"{name}.sock")
                assert made.routes("POST", route, {"target": target}).status == 201
        yield made


def ask(running: RunningProxy, path: str, host: str = HOST, **headers: str) -> tuple[int, str]:
    """Return the status, and who answered or where it leads to."""
    link = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    with contextlib.closing(link):
        link.putrequest("GET", path, skip_host=True)
        for name, value in {"Host": host, **headers}.items():
            link.putheader(name, value)
        link.endheaders()
        answer = link.getresponse()
        body = answer.read()
        if answer.status == 200:
            name, asked = json.loads(body)
            assert asked == path, "paths are handed on as they are"
            return 200, name
        return answer.status, answer.headers.get("Location", "")


def test_each_part_is_below_the_path(running: RunningProxy) -> None:
    assert ask(running, "/mlp/hub/login") == (200, "hub")
    assert ask(running, "/mlp/services/mlp/api/v1/health") == (200, "service")
    assert ask(running, "/mlp/user/ann/lab?x=1", ANN) == (200, "ann")


def test_a_url_without_the_base_path_redirects_to_the_start_page(running: RunningProxy) -> None:
    assert ask(running, "/", **PAGE) == (302, f"{HOME}/mlp/")
    assert ask(running, "/mlp", **PAGE) == (302, f"{HOME}/mlp/")
    for path in ("/", "/mlp", "/mlp/"):
        assert ask(running, path, ANN, **PAGE) == (302, f"{HOME}/mlp/")


def test_the_help_of_lab_leads_to_the_platforms_under_every_name(running: RunningProxy) -> None:
    """Its menu knows neither the platform's name nor the path."""
    for host, path in ((HOST, ""), (ANN, ""), (ANN, "/mlp")):
        assert ask(running, f"{path}/services/mlp/docs/", host) == (302, f"{HOME}/mlp/services/mlp/docs/")
    assert ask(running, "/mlp/services/mlp/docs/") == (200, "service")


def test_urls_outside_the_base_path_do_not_reach_the_platform(running: RunningProxy) -> None:
    """The hub itself answers there, which leads browsers on."""
    for path in ("/services/mlp/api/v1/session", "/api/v1/session", "/mlpx/services/mlp/", "/hub/api", "/x"):
        assert ask(running, path) == (200, "hub")


@pytest.mark.parametrize(
    "path",
    [
        "/user/ann/lab",
        "/mlp/hub/login",
        "/mlp/services/mlp/",
        "/mlpx/user/ann/lab",
        "/MLP/user/ann/lab",
        "/mlp/user/../hub/login",
        "/mlp/user/%2e%2e/hub/login",
        "/mlp/../mlp/hub/login",
        "/mlp/user/ann/../../services/mlp/api/v1/session",
    ],
)
def test_nothing_else_is_under_a_users_name(running: RunningProxy, path: str) -> None:
    assert ask(running, path, ANN) == (421, "")
    assert ask(running, path, ANN, **PAGE) == (421, "")


@pytest.mark.parametrize(
    "path", ["//evil.example/", "/\\evil.example/", "//evil.example/mlp/services/mlp/docs/"]
)
def test_nobody_is_led_to_another_host(running: RunningProxy, path: str) -> None:
    for host in (HOST, ANN, "127.0.0.1"):
        assert ask(running, path, host, **PAGE) == (400, "")


@pytest.mark.parametrize("host", ["evil.example", f"{HOST}.evil.example", f"x.{HOST}", f"a.b.{USERS}", USERS])
def test_a_name_that_is_not_ours_is_refused_below_the_path_too(running: RunningProxy, host: str) -> None:
    for path in ("/", "/mlp/", "/mlp/hub/login", "/mlp/user/ann/lab"):
        assert ask(running, path, host, **PAGE) == (421, "")


def test_browsers_under_another_of_its_names_are_led_with_the_path(running: RunningProxy) -> None:
    path = "/mlp/hub/login?next=%2Fmlp%2F"
    assert ask(running, path, "127.0.0.1", **PAGE) == (302, f"{HOME}{path}")
