"""The use of a cluster's nodes comes from its metrics API, costs a scrape no time, and ends when nobody measures it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio import client as api

from mlp_hub.domain.resources import Resources
from mlp_hub.executors.kubernetes.nodes import measured
from mlp_hub.executors.kubernetes.nodes.measured import ABSENT_S, EVERY_S, MIB, PATH, NodeMeter
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.kubernetes.client import KubernetesClient

ROOM = Resources(4000, 0, 1000, 0)
NODES = (NodeInfo("n1", ROOM, ROOM), NodeInfo("n2", ROOM, ROOM))


def item(name: str, cpu: str, memory: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "timestamp": "2026-01-01T00:00:00Z", "window": "10s",
            "usage": {"cpu": cpu, "memory": memory}}  # fmt: skip


def listed(*items: Any) -> str:
    return json.dumps({"kind": "NodeMetricsList", "metadata": {}, "items": items})


class MetricsApi:
    """Server with the path of a cluster's metrics API."""

    def __init__(self) -> None:
        self.status, self.body = 200, listed(item("n1", "1500m", "400Mi"), item("n2", "250000000n", "1024Ki"))
        self.asked = 0
        self.open = asyncio.Event()
        self.open.set()
        self.now = 100.0

    async def answer(self, _: web.Request) -> web.Response:
        self.asked += 1
        await self.open.wait()
        return web.Response(status=self.status, text=self.body, content_type="application/json")


@asynccontextmanager
async def measured_cluster() -> AsyncIterator[tuple[MetricsApi, NodeMeter]]:
    server = MetricsApi()
    application = web.Application()
    application.router.add_get(PATH, server.answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    client = KubernetesClient(api.Configuration(host=f"http://{host}:{port}"))
    meter = NodeMeter(client, lambda: NODES, lambda: server.now)
    try:
        yield server, meter
    finally:
        server.open.set()
        await meter.close()
        await client.close()
        await runner.cleanup()


async def test_processors_and_memory_of_all_nodes_are_one_request_in_15_s() -> None:
    async with measured_cluster() as (server, meter):
        wanted = [
            NodeUse("n1", cpu=1.5, memory_total=1000 * MIB, memory_available=600 * MIB),
            NodeUse("n2", cpu=0.25, memory_total=1000 * MIB, memory_available=999 * MIB),
        ]
        assert list(await meter.read()) == wanted
        server.now += EVERY_S - 1
        assert list(await meter.read()) == wanted
        assert server.asked == 1
        server.now += 1
        server.body = listed(item("n1", "2", "1Gi"))
        # more than the node has: it is full, and not less than that
        assert list(await meter.read()) == [
            NodeUse("n1", cpu=2.0, memory_total=1000 * MIB, memory_available=0)
        ]
        assert server.asked == 2


@pytest.mark.parametrize("status", [403, 404])
async def test_where_nobody_measures_or_the_hub_may_not_ask_it_asks_rarely(status: int) -> None:
    async with measured_cluster() as (server, meter):
        assert await meter.read()
        server.now += EVERY_S
        server.status, server.body = status, json.dumps({"kind": "Status", "reason": "No", "message": "no"})
        assert await meter.read() == ()
        server.now += ABSENT_S - 1
        assert await meter.read() == ()
        assert server.asked == 2
        server.status, server.body = 200, listed(item("n1", "1", "1Mi"))
        server.now += 1
        assert [use.node for use in await meter.read()] == ["n1"]


@pytest.mark.parametrize("body", ["", "[]", "{}", '{"items": 3}', "\x00"])
async def test_an_answer_that_is_none_is_not_known(body: str) -> None:
    async with measured_cluster() as (server, meter):
        server.body = body
        with pytest.raises(OSError):  # noqa: PT011 - as executors raise it
            await meter.read()
        assert meter.known() == ()


async def test_entries_that_cannot_be_read_are_left_out() -> None:
    async with measured_cluster() as (server, meter):
        server.body = '{"items": [null, {}, {"metadata": 1}]}'
        assert list(await meter.read()) == []
        server.now += EVERY_S
        server.body = listed(
            item("n1", "many", "1Mi"), item("n2", "1", "1Mi"), item("other", "1", "1Mi"), {"metadata": {"name": "n1"}}
        )  # fmt: skip
        assert [use.node for use in await meter.read()] == ["n2"]


async def test_a_cluster_that_hangs_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measured, "WAIT_S", 0.01)
    async with measured_cluster() as (server, meter):
        server.open.clear()
        for _ in range(3):
            with pytest.raises(ConnectionError):
                await meter.read()
        server.open.set()
        monkeypatch.setattr(measured, "WAIT_S", 60.0)
        assert len(await meter.read()) == 2
        assert server.asked == 1


async def test_a_cluster_that_is_away_shows_nothing_old() -> None:
    async with measured_cluster() as (server, meter):
        assert await meter.read()
        server.now += EVERY_S
        server.status, server.body = 503, "<html>away</html>"
        with pytest.raises(ConnectionError):
            await meter.read()
        assert meter.known() == ()


async def test_what_is_known_costs_no_request_and_is_never_old() -> None:
    async with measured_cluster() as (server, meter):
        assert meter.known() == ()
        assert server.asked == 0
        found = await meter.read()
        assert meter.known() == found
        server.now += EVERY_S
        assert meter.known() == ()
        assert server.asked == 1
