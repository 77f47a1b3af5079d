"""The service asks a hub whose pod is replaced again: a new leader knows no token, and would refuse all that come."""

from __future__ import annotations

import asyncio

import pytest
from tornado.httpserver import HTTPServer

from mlp_hub.api.hubclient import HubClient
from mlp_hub.domain.errors import Unavailable
from support.hubs.fake_hub import SERVICE_TOKEN, FakeHub
from support.ports import free_port
from support.waiting import PATIENCE_S


async def test_a_question_waits_for_a_hub_that_takes_no_connection() -> None:
    port, hub = free_port(), FakeHub()
    token = hub.user("ann", "ann-token")
    client = HubClient(f"http://127.0.0.1:{port}/hub/api", SERVICE_TOKEN, hold_s=PATIENCE_S)
    server = HTTPServer(hub.application())
    try:
        asked = asyncio.ensure_future(client.user_of_token(token))
        problems = await client.problems()  # whether it is there is told at once
        assert [problem.reason for problem in problems] == ["HubUnavailable"]
        assert not asked.done()
        server.listen(port, "127.0.0.1")
        async with asyncio.timeout(PATIENCE_S):
            found = await asked
        assert found is not None
        assert found.name == "ann"
    finally:
        client.close()
        server.stop()
        await server.close_all_connections()


async def test_elsewhere_it_is_told_at_once() -> None:
    client = HubClient(f"http://127.0.0.1:{free_port()}/hub/api", SERVICE_TOKEN)
    try:
        with pytest.raises(Unavailable):
            await client.user_of_token("ann-token")
    finally:
        client.close()
