"""DNS rebinding: a name that is an allowed address at one moment and one inside at the next. What is checked is what is spoken to."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

OUTSIDE, INSIDE = "127.0.0.2", "127.0.0.1"
"""Both are of loopback; the processes below take the first one for an address of the internet."""
_PROGRAM = """
import json, os, socket, sys
from mlp_hub.executors.shared_volume.fetch import addresses
asked = json.loads(sys.argv[1])
real, turns = socket.getaddrinfo, list(asked["turns"])
looked = []

def changing(host, port, *more, **kw):
    if host != "changes.example":
        return real(host, port, *more, **kw)
    looked.append(host)
    here = turns.pop(0) if len(turns) > 1 else turns[0]
    return [one for each in here for one in real(each, port, socket.AF_INET, socket.SOCK_STREAM)]

socket.getaddrinfo = changing
addresses.is_public = lambda address: address == asked["outside"]
said = []
if asked["by"] == "store":
    for _ in range(2):
        client = addresses.client((), "/dev/null")
        try:
            said.append(client.request("GET", asked["url"]).status)
        except Exception as error:
            while error.__cause__ or error.__context__:
                error = error.__cause__ or error.__context__
            said.append(type(error).__name__)
else:
    from mlp_hub.domain import public_addresses
    from mlp_hub.outbound import sending, services
    public_addresses.is_public = addresses.is_public
    services.only(["json"])
    services.prepare()
    for _ in range(2):
        reads, writes = os.pipe()
        told = {"id": 1, "act": "send", "kind": asked["by"], "address": asked["url"], "allowed": [], "mail": None,
                "title": "t", "body": "b", "data": {}}
        if not os.fork():
            answer = sending._done(told)
            os.write(writes, json.dumps([answer, looked]).encode())
            os._exit(0)
        answer, names = json.loads(os.read(reads, 65536))
        os.wait()
        for _ in names:
            changing("changes.example", 80)
        said.append(answer.get("why", 200))
print(json.dumps(said))
"""


class _Both:
    """Two servers on one port: one that may be spoken to, and one inside."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        both = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                both.asked.append(str(self.server.server_address[0]))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                self.do_GET()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        self._servers = [ThreadingHTTPServer((INSIDE, 0), Handler)]
        self.port = self._servers[0].server_address[1]
        self._servers.append(ThreadingHTTPServer((OUTSIDE, self.port), Handler))
        for server in self._servers:
            threading.Thread(target=server.serve_forever, daemon=True).start()

    def close(self) -> None:
        for server in self._servers:
            server.shutdown()
            server.server_close()


@pytest.fixture
def both() -> Iterator[_Both]:
    made = _Both()
    yield made
    made.close()


def said(both: _Both, by: str, *turns: list[str]) -> list[int | str]:
    scheme = "json" if by == "service" else "http"
    asked = {
        "by": by,
        "url": f"{scheme}://changes.example:{both.port}/x",
        "turns": turns,
        "outside": OUTSIDE,
    }
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM, json.dumps(asked)], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    found: list[int | str] = json.loads(run.stdout)
    return found


REFUSED = {"store": "ForbiddenAddressError", "webhook": "forbidden", "service": "forbidden"}


@pytest.mark.parametrize("by", REFUSED)
def test_attack_a_name_that_leads_inside_the_next_time_is_refused_then(both: _Both, by: str) -> None:
    assert said(both, by, [OUTSIDE], [INSIDE]) == [200, REFUSED[by]]
    assert both.asked == [OUTSIDE], "nothing inside is spoken to"


@pytest.mark.parametrize("by", REFUSED)
def test_attack_a_name_is_looked_up_once_for_the_check_and_the_connection(both: _Both, by: str) -> None:
    """One that was looked up twice would be let in by the first answer, and be spoken to at the second."""
    first = said(both, by, [OUTSIDE], [INSIDE], [OUTSIDE], [INSIDE])
    assert first == [200, REFUSED[by]]
    assert INSIDE not in both.asked


@pytest.mark.parametrize("by", REFUSED)
@pytest.mark.parametrize("order", [[INSIDE, OUTSIDE], ["169.254.169.254", INSIDE, OUTSIDE]])
def test_attack_of_a_name_with_addresses_of_both_kinds_none_inside_is_spoken_to(
    both: _Both, by: str, order: list[str]
) -> None:
    assert set(said(both, by, order)) <= {200, REFUSED[by]}
    assert INSIDE not in both.asked
