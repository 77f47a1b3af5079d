"""The hub takes the id of a request from its proxy alone: sandboxes and pods cannot repeat the id of another's request."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from tornado.netutil import bind_unix_socket
from tornado.web import Application, RequestHandler

from mlp_hub.hub_integration.server import HubServer
from mlp_hub.logs.concern import HEADER, WELL_FORMED, current
from support.ports import free_port

GIVEN = "id-of-another-request"


class Shown(RequestHandler):
    def get(self) -> None:
        self.finish({"header": self.request.headers.get_list(HEADER), "log": current().request_id})


async def ask(given: str, *, path: Path | None = None, port: int = 0) -> dict[str, Any]:
    opened = asyncio.open_unix_connection(str(path)) if path else asyncio.open_connection("127.0.0.1", port)
    reader, writer = await opened
    writer.write(f"GET /hub/api/x HTTP/1.0\r\nHost: x\r\n{given}\r\n".encode())
    answer = await reader.read()
    writer.close()
    assert b" 200 " in answer.partition(b"\n")[0], (given, answer)
    found: dict[str, Any] = json.loads(answer.partition(b"\r\n\r\n")[2])
    assert found["header"] == [found["log"]], "one id, and the same in the log"
    return found


async def test_only_the_proxys_id_is_taken(tmp_path: Path) -> None:
    own, sandboxes, port = tmp_path / "hub.sock", tmp_path / "tenants.sock", free_port()
    server = HubServer(
        Application([("/hub/api/x", Shown)]), tenant_socket=str(sandboxes), pods=("127.0.0.1", port)
    )
    server.add_sockets([bind_unix_socket(str(own))])
    try:
        header = f"{HEADER}: {GIVEN}\r\n"
        assert (await ask(header, path=own))["log"] == GIVEN
        for given in (header, header * 2, f"x-request-id: {GIVEN}\r\n", ""):
            for where in ({"path": sandboxes}, {"port": port}):
                made = (await ask(given, **where))["log"]  # type: ignore[arg-type]
                assert made != GIVEN
                assert WELL_FORMED.fullmatch(made)
        for given in (header * 2, f"{HEADER}: a b c d e f\r\n"):
            made = (await ask(given, path=own))["log"]
            assert GIVEN not in made
            assert WELL_FORMED.fullmatch(made)
    finally:
        server.stop()
        await server.close_all_connections()
