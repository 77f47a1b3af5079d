"""What the proxy answers under which host name where users' servers have names of their own: routes, sockets, pages."""

from __future__ import annotations

import http.client
import http.server
import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.unix_sockets import url_of
from support.proxy.running_proxy import RunningProxy
from support.waiting import PATIENCE_S

PAGE = {"Accept": "text/html,application/xhtml+xml"}
WS = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Key": "x",
    "Sec-WebSocket-Version": "13",
}


class _Named(http.server.BaseHTTPRequestHandler):
    """Answers with its server's name and what it was asked."""

    def do_GET(self) -> None:
        body = json.dumps({"server": self.server.name, "path": self.path}).encode()  # type: ignore[attr-defined]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.do_GET()

    def address_string(self) -> str:
        return "socket"

    def log_message(self, *args: object) -> None:
        """Say nothing."""


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    """A proxy in front of a hub, a service, and the servers of ann and bob."""
    yield from _running(tmp_path_factory.mktemp("names"), "http://localhost:{port}", "localhost")


@pytest.fixture(scope="module")
def behind_a_domain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningProxy]:
    yield from _running(tmp_path_factory.mktemp("domain"), "https://hub.example.org", "hub-users.example.org")


def _running(directory: Path, platform: str, users: str) -> Iterator[RunningProxy]:
    made = RunningProxy(directory)
    home = platform.format(port=made.port)
    made.limits = {"platform": home, "users": users}
    host = home.split("//")[1].split(":")[0]
    routes = {"hub": "", "service": f"/{host}/services/mlp"}
    routes |= {user: f"/{user}.{users}/user/{user}" for user in ("ann", "bob")}
    servers = []
    for name in routes:
        server = _Server(str(directory / f"{name}.sock"), _Named)
        server.name = name  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
    made.start()
    for name, route in routes.items():
        if route:
            target = url_of(directory / f"{name}.sock")
            assert made.routes("POST", route, {"target": target}).status == 201
    yield made
    made.stop(kill=True)
    for server in servers:
        server.shutdown()
        server.server_close()


def who(running: RunningProxy, host: str, path: str, **headers: str) -> str:
    answer = running.get(path, Host=host, **headers)
    return answer.json()["server"] if answer.status == 200 else str(answer.status)


def raw(running: RunningProxy, method: str, path: str, **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE_S)
    connection.putrequest(method, path, skip_host=True)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    answer = connection.getresponse()
    connection.close()
    return answer.status, answer.headers.get("Location", "")


@pytest.mark.parametrize("host", ["ann.localhost", "ANN.localhost:8000", "ann.localhost.:1"])
def test_a_users_server_is_under_its_own_name(running: RunningProxy, host: str) -> None:
    assert who(running, host, "/user/ann/lab") == "ann"


@pytest.mark.parametrize(
    "path",
    [
        "/hub/login",
        "/hub",
        "/services/mlp/",
        "/services/mlp/api/v1/session",
        "/api/v1/session",
        "/data/x",
        "/logo",
        "/user",
        "/%68ub/login",
        "/user/../hub/login",
        "/user/ann/../../hub/login",
        "/user/%2e%2e/hub/login",
        "/user/.%2E/services/mlp/api/v1/session",
        "/USER/ann/lab",
        "/?next=/hub/",
    ],
)
def test_nothing_of_the_platform_is_under_a_users_name(running: RunningProxy, path: str) -> None:
    for more in ({}, PAGE, WS, {"Authorization": "Bearer x"}):
        assert raw(running, "GET", path, Host="ann.localhost", **more)[0] == 421
    assert raw(running, "POST", path, Host="ann.localhost")[0] == 421


def test_an_address_that_says_two_things_is_refused_under_every_name(running: RunningProxy) -> None:
    for host in ("ann.localhost", "localhost"):
        for path in ("//user/ann/", "/\\user/ann/", "/%E0%A4%A"):
            assert raw(running, "GET", path, Host=host) == (400, "")


def test_a_users_bare_host_name_redirects_to_the_platform(running: RunningProxy) -> None:
    there = f"http://localhost:{running.port}/"
    assert raw(running, "GET", "/", Host="ann.localhost", **PAGE) == (302, there)


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::1]:8000", "my.example", "bob.localhost", "10.0.0.5"]
)
def test_a_users_server_is_under_no_other_name(running: RunningProxy, host: str) -> None:
    assert who(running, host, "/user/ann/lab") == "hub"
    assert who(running, host, "/user/ann/../ann/lab") == "hub"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1:8000", "[::1]", "my.example", "10.0.0.5"])
def test_programs_reach_hub_and_service_under_each_of_the_platforms_names(
    running: RunningProxy, host: str
) -> None:
    for more in ({}, {"Authorization": "Bearer x", **PAGE}, {"Accept": "application/json"}):
        assert who(running, host, "/services/mlp/api/v1/health", **more) == "service"
        assert who(running, host, "/hub/api", **more) == "hub"


def test_browsers_are_led_to_the_platforms_own_name_with_all_of_the_address(running: RunningProxy) -> None:
    home = f"http://localhost:{running.port}"
    for host in ("127.0.0.1:8000", "[::1]", "127.0.0.9"):
        for path in ("/hub/login?next=%2Fx&y=1", "/"):
            assert raw(running, "GET", path, Host=host, **PAGE) == (302, home + path)
        for path in ("//evil.example/x", "/\\evil.example"):
            assert raw(running, "GET", path, Host=host, **PAGE) == (400, "")
        assert raw(running, "POST", "/hub/login", Host=host, **PAGE)[0] == 200, "no page"
    assert who(running, "localhost", "/hub/login", **PAGE) == "hub"


def test_an_absolute_form_leads_nowhere_else(running: RunningProxy) -> None:
    status, location = raw(running, "GET", "http://evil.example/x", Host="127.0.0.1", **PAGE)
    assert (status, location) == (200, "")


@pytest.mark.parametrize("host", ["10.0.0.5:8000", "my.example"])
def test_a_browser_of_another_machine_is_told_what_its_operator_has_to_set(
    running: RunningProxy, host: str
) -> None:
    answer = running.get("/hub/login", Host=host, **PAGE)
    assert answer.status == 421
    assert b"MLP_PUBLIC_URL" in answer.body


@pytest.mark.parametrize(
    "host", ["x.ann.localhost", "a_b.localhost", ".localhost", "annlocalhost", "localhost.evil.example"]
)
def test_a_name_that_is_neither_is_refused(running: RunningProxy, host: str) -> None:
    assert who(running, host, "/user/ann/lab") == "421"
    assert raw(running, "GET", "/user/ann/api", Host=host, **WS)[0] == 421


def test_behind_a_domain_the_same_holds(behind_a_domain: RunningProxy) -> None:
    running = behind_a_domain
    assert who(running, "hub.example.org", "/services/mlp/x") == "service"
    assert who(running, "ann.hub-users.example.org", "/user/ann/lab") == "ann"
    assert who(running, "bob.hub-users.example.org", "/user/ann/lab") == "hub"
    for host in ("hub-users.example.org", "ann.localhost", "ann.example.org"):
        assert who(running, host, "/hub/login") == "421"
    for host in ("127.0.0.1", "localhost", "10.0.0.5", "my.example"):
        assert raw(running, "GET", "/hub/x?y", Host=host, **PAGE) == (302, "https://hub.example.org/hub/x?y")
        assert who(running, host, "/services/mlp/api/v1/health") == "service"
