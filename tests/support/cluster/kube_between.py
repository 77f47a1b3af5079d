"""Stands between clients and a cluster's API: counts what they ask, and can be slow, refuse, be away, or lack operators."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp import web
from kubernetes_asyncio import client as api
from kubernetes_asyncio import config

_PATH = re.compile(r"/apis?/(?:[^/]+/)?v[^/]+/(?:namespaces/[^/]+/(?=.))?([^/]+)(/[^/]+)?(/status)?$")
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch"}
_HOP = {"host", "connection", "transfer-encoding", "content-length", "keep-alive"}


class KubeBetween:
    """A server at `port` of the loopback, for whoever reads `kubeconfig`. The fields may be set at any time.

    `slow_s` is added to each answer; of `refuse_every` requests one is answered 429; while `away` nothing is answered and
    watches are cut, while `deaf` only watches that are open go on; API groups in `lacks` are not there. `on_call` is called with
    each request's name before it is passed on, and again once it is answered there and not yet here. `calls` counts requests by verb and kind, `began` has when each
    request came, and `watches` those that are open.
    """

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._real = kubeconfig
        self.kubeconfig = folder / "kubeconfig-between"
        self.calls: Counter[str] = Counter()
        self.refused = 0
        self.last_at = 0.0
        self.slow_s = 0.0
        self.refuse_every = 0
        self.lacks: frozenset[str] = frozenset()
        self.deaf = False
        self.on_call: Callable[[str, str], None] | None = None
        self._away = False
        self._asked = 0
        self._open: set[asyncio.Transport] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start)
        return self

    def __exit__(self, *error: object) -> None:
        self._run(self._stop)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def away(self) -> bool:
        return self._away

    @away.setter
    def away(self, value: bool) -> None:
        self._away = value
        if value:
            self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for transport in list(self._open):
            transport.abort()

    def _run(self, what: Callable[[], Coroutine[Any, Any, None]]) -> None:
        asyncio.run_coroutine_threadsafe(what(), self._loop).result(30)

    async def _start(self) -> None:
        found = api.Configuration()
        await config.load_kube_config(str(self._real), client_configuration=found)
        self._host = found.host
        trusted = ssl.create_default_context(cafile=found.ssl_ca_cert)
        if found.cert_file:
            trusted.load_cert_chain(found.cert_file, found.key_file)
        self._bearer = found.api_key.get("BearerToken", "")
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=trusted, limit=0),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
        )
        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        port = self._runner.addresses[0][1]
        named: dict[str, Any] = {"name": "between"}
        self.kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "between",
                    "clusters": [{**named, "cluster": {"server": f"http://127.0.0.1:{port}"}}],
                    "users": [{**named, "user": {}}],
                    "contexts": [{**named, "context": {"cluster": "between", "user": "between"}}],
                }
            )
        )

    async def _stop(self) -> None:
        self._away = True
        self._cut()
        await self._session.close()
        await self._runner.cleanup()
        mine = asyncio.all_tasks() - {asyncio.current_task()}
        for task in mine:
            task.cancel()
        await asyncio.gather(*mine, return_exceptions=True)

    async def _pass(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        if self._away or self.deaf:
            request.transport.abort()
            return web.Response()
        self.calls[_name(request)] += 1
        if self.on_call is not None:
            self.on_call(_name(request), "before")
        self.last_at = time.time()
        self._asked += 1
        if any(f"/apis/{group}/" in request.path for group in self.lacks):
            return web.json_response({"kind": "Status", "code": 404, "reason": "NotFound"}, status=404)
        if self.slow_s:
            await asyncio.sleep(self.slow_s)
        if self.refuse_every and self._asked % self.refuse_every == 0:
            self.refused += 1
            said = {
                "kind": "Status",
                "code": 429,
                "reason": "TooManyRequests",
                "message": "too many requests",
            }
            return web.json_response(said, status=429, headers={"Retry-After": "1"})
        self._open.add(request.transport)
        try:
            return await self._forward(request)
        finally:
            self._open.discard(request.transport)

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        headers = {k: v for k, v in request.headers.items() if k.lower() not in _HOP}
        if self._bearer:
            headers["Authorization"] = self._bearer
        body = await request.read()
        try:
            async with self._session.request(
                request.method, self._host + request.path_qs, headers=headers, data=body or None
            ) as answer:
                if self.on_call is not None:
                    self.on_call(_name(request), "after")
                passed = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP}
                response = web.StreamResponse(status=answer.status, headers=passed)
                await response.prepare(request)
                async for data in answer.content.iter_any():
                    await response.write(data)
                await response.write_eof()
                return response
        except (aiohttp.ClientError, OSError):
            with contextlib.suppress(AttributeError):
                request.transport.abort()  # type: ignore[union-attr]
            return web.Response(status=502)


def _name(request: web.Request) -> str:
    """Say what is asked, as in `create pods`."""
    found = _PATH.match(request.path)
    if found is None:
        return f"discover {request.path.rpartition('/')[2]}"
    plural, one = found[1], found[2]
    if request.method == "GET":
        return f"{'watch' if 'watch' in request.query else 'get' if one else 'list'} {plural}"
    if request.method == "DELETE":
        return f"{'delete' if one else 'deletecollection'} {plural}"
    return f"{_VERBS.get(request.method, request.method)} {plural}"
