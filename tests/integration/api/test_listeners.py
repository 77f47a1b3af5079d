"""What a request's listener says of its sender holds on TCP as it does on a socket, and nothing listens there unasked."""

from __future__ import annotations

import http.client
import socket
from collections.abc import Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from mlp_hub.api.build import make_server
from mlp_hub.api.edge.connections import Gate
from mlp_hub.api.edge.limits import Rate
from mlp_hub.api.edge.listeners import Listener
from mlp_hub.app import listeners_of
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.web.site import make_application
from support.ports import free_port
from support.rigs.api_rig import BASE, HOST, PLENTY, ApiRig
from support.waiting import PATIENCE_S

PROXY, STRANGER = "127.0.0.1", "127.0.0.2"
GUESSES = 5
Answer = tuple[int, bytes]


class Ports:
    """A service that also listens on two ports; the proxy is at 127.0.0.1 and nowhere else."""

    def __init__(self, rig: ApiRig) -> None:
        self.rig = rig
        self.proxy, self.tenants = free_port(), free_port()
        self.rows = [
            Listener(("127.0.0.1", self.proxy), True, proxies=(ip_network(PROXY),)),
            Listener(("127.0.0.1", self.tenants), False),
        ]
        rig.run(self._open())

    async def _open(self) -> None:
        application = make_application(self.rig.service)
        for row in self.rows:
            server = make_server(
                self.rig.service,
                application,
                behind_proxy=row.behind_proxy,
                gate=row.admission(Gate(per_peer=GUESSES, total=GUESSES * 2)),
            )
            server.add_sockets(row.open())
            self.rig._servers.append(server)

    def ask(self, port: int, path: str, source: str = PROXY, **headers: str) -> Answer:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S, source_address=(source, 0))
        try:
            link.request("GET", f"{BASE}{path}", headers={"Host": HOST, **headers})
            answer = link.getresponse()
            return answer.status, answer.read()
        finally:
            link.close()


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[Ports]:
    rates = {**PLENTY, "unknown-token": Rate(0.001, GUESSES)}
    with ApiRig(tmp_path, rates=rates) as rig:
        yield Ports(rig)


def test_both_ports_ask_for_tokens_as_the_sockets_do(ports: Ports) -> None:
    for port in (ports.proxy, ports.tenants):
        assert ports.ask(port, "/auth")[0] == 401
        assert ports.ask(port, "/auth", Authorization=f"Bearer {ports.rig.ann}") == (200, b'"ann"')
        assert ports.ask(port, "/ready")[0] == ports.ask(port, "/health")[0] == 200


def test_a_client_other_than_the_proxy_gets_no_answer_at_the_proxys_port(ports: Ports) -> None:
    for path in ("/health", "/ready", "/auth"):
        with pytest.raises((ConnectionError, http.client.BadStatusLine)):
            ports.ask(ports.proxy, path, STRANGER, Authorization=f"Bearer {ports.rig.root_user}")
    assert ports.ask(ports.tenants, "/ready", STRANGER)[0] == 200


def test_a_foreign_host_is_refused_at_the_proxys_port(ports: Ports) -> None:
    assert ports.ask(ports.proxy, "/health", Host="evil.example")[0] == 403
    assert ports.ask(ports.tenants, "/health", Host="10.0.0.7")[0] == 200  # no browser comes that way


def test_a_forged_address_wins_no_guesses_at_the_port_of_sandboxes(ports: Ports) -> None:
    def guess(port: int, number: int, **headers: str) -> int:
        return ports.ask(port, "/auth", Authorization=f"Bearer wrong-{port}-{number}", **headers)[0]

    said = [
        guess(ports.tenants, n, **{"X-Forwarded-For": f"9.9.9.{n}", "X-Real-IP": f"9.9.9.{n}"})
        for n in range(GUESSES + 1)
    ]
    assert said == [401] * GUESSES + [429]
    assert guess(ports.tenants, 100, **{"X-Forwarded-For": "127.0.0.9"}) == 429
    # the proxy's word counts at its own port: the last address, whatever a client wrote before it
    said = [guess(ports.proxy, n, **{"X-Forwarded-For": f"1.1.1.{n}, 8.8.8.8"}) for n in range(GUESSES + 1)]
    assert said == [401] * GUESSES + [429]
    assert guess(ports.proxy, 100, **{"X-Forwarded-For": "8.8.4.4"}) == 401


def test_connections_per_address_are_limited_and_others_have_room(ports: Ports) -> None:
    held = [socket.create_connection(("127.0.0.1", ports.tenants)) for _ in range(GUESSES)]
    try:
        for link in held:  # all of them are served, before the next one comes
            link.sendall(f"GET {BASE}/health HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode())
            assert link.recv(12) == b"HTTP/1.1 200"
        assert ports.ask(ports.tenants, "/health")[0] == 503
        assert ports.ask(ports.tenants, "/health", STRANGER)[0] == 200
    finally:
        for link in held:
            link.close()


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # Tornado leaves it to the collector
def test_a_port_that_is_taken_is_said_and_not_shared(ports: Ports) -> None:
    with pytest.raises(OSError, match="in use"):
        ports.rows[0].open()


def test_nothing_listens_on_tcp_unless_a_setting_says_where(tmp_path: Path) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path)})
    assert [row.where for row in listeners_of(settings, 1)] == [
        tmp_path / "run" / "private" / "mlp-1.sock",
        tmp_path / "run" / "private" / "tenant-1.sock",
    ]
    told = Settings.load(
        {
            "MLP_HOME": str(tmp_path),
            "MLP_SERVICE_LISTEN": "[::1]:8081",
            "MLP_SERVICE_LISTEN_TENANTS": "0.0.0.0:8082",
            "MLP_SERVICE_PROXIES": "10.1.0.0/16",
        }
    )
    *_, proxy, tenants = listeners_of(told, 1)
    assert (proxy.where, proxy.behind_proxy) == (("::1", 8081), True)
    assert [str(one) for one in proxy.proxies] == ["10.1.0.0/16"]
    assert (tenants.where, tenants.behind_proxy) == (("0.0.0.0", 8082), False)  # noqa: S104 - compared
    assert Settings.load(told.to_environ()) == told


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"MLP_SERVICE_LISTEN": "8081"}, "HOST:PORT"),
        ({"MLP_SERVICE_LISTEN": ":8081"}, "HOST:PORT"),
        ({"MLP_SERVICE_LISTEN": "::1:8081"}, "of IPv6"),
        ({"MLP_SERVICE_LISTEN": "localhost:0"}, "the port must be from 1 to 65535"),
        ({"MLP_SERVICE_LISTEN_TENANTS": "localhost:x"}, "HOST:PORT"),
        ({"MLP_SERVICE_LISTEN": "a:81", "MLP_SERVICE_LISTEN_TENANTS": "b:81"}, "both name port 81"),
        ({"MLP_SERVICE_PROXIES": "10.0.0.1/8"}, "MLP_SERVICE_PROXIES"),
        ({"MLP_SERVICE_PROXIES": "proxy.example"}, "MLP_SERVICE_PROXIES"),
        ({"MLP_REPLICAS": "2"}, "need PostgreSQL"),
    ],
)
def test_an_address_that_cannot_be_meant_stops_the_start(
    tmp_path: Path, given: dict[str, str], said: str
) -> None:
    with pytest.raises(SettingsError, match=said):
        Settings.load({"MLP_HOME": str(tmp_path), **given})
