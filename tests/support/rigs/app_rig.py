"""A platform whose apps run in real sandboxes, a model for them, and a door of TCP for clients that know no other."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from mlp_api.apps.apps import AppCreate, Application
from mlp_api.stored.models import ModelCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.apps.connecting import connect
from mlp_hub.service.apps.endpoints import Endpoint
from mlp_hub.service.config import NoticePolicy
from support.rigs.platform_rig import FAST, Rig
from support.waiting import PATIENCE_S, until

ROOM = Resources(64_000, 0, 64_000, 0)
ROOT = os.geteuid() == 0
PAGES = "http://hub.test/services/mlp/"


class AppRig(Rig):
    """A platform with real jobs, and so real apps."""

    def __init__(self, root: Path, room: Resources = ROOM) -> None:
        super().__init__(
            root, policy=replace(FAST, first_uid=300_000 if ROOT else None, notices=NoticePolicy(pages=PAGES))
        )
        for path in (self.directories.homes, self.directories.jobs):
            path.mkdir()
        here = (NodeInfo("here", room, room),)
        self.executor = LocalExecutor(root / "jobs-run", self.directories, nodes=here)  # type: ignore[assignment]
        self.platform = self.make()

    async def model(self, name: str = "line", files: Callable[[Path], None] | None = None) -> None:
        """Register a version of a model: a line, y = 2x + 1, or what `files` writes."""
        place = self.directories.homes / "ann"

        def write() -> None:
            (place / name).mkdir(parents=True, exist_ok=True)
            (files or write_line)(place / name)

        await asyncio.to_thread(write)
        made = await self.platform.models.register(
            SYSTEM, "ann", ModelCreate(name=name, src=f"home/{name}", any_files=True)
        )

        async def copied() -> bool:
            found = await self.platform.models.get(SYSTEM, "ann", f"{name}@{made.version}")
            assert found.state != "error", str(found.message)
            return found.state == "ready"

        await until(copied, what=f"model {name} to be there")

    async def deploy(self, name: str = "line", model: str = "line", **more: Any) -> Application:
        """Deploy an app of ann's."""
        asked = AppCreate(name=name, model_name=model, **{"cpu": 0.5, "ram": 1024, **more})
        return await self.platform.apps.deploy(SYSTEM, "ann", asked)

    async def app(self, when: Callable[[Application], bool], name: str = "line") -> Application:
        """Return the app once it is so."""

        async def look() -> Application | None:
            found = await self.platform.apps.get(SYSTEM, "ann", name)
            return found if when(found) else None

        found: Application = await until(look, what=f"app {name}", every=0.05)
        return found

    async def gone(self, name: str = "line") -> None:
        """Return once the app is there no more."""

        async def look() -> bool:
            try:
                await self.platform.apps.get(SYSTEM, "ann", name)
            except Refused as refused:
                return refused.reason is Reason.NOT_FOUND
            return False

        await until(look, what=f"app {name} to be gone")

    async def endpoint(self, when: Callable[[Endpoint], bool], name: str = "line") -> Endpoint:
        """Return where the app is, once that is so."""

        async def look() -> Endpoint | None:
            every = self.platform.apps.endpoints.now().values()
            return next((one for one in every if one.name == name and when(one)), None)

        found: Endpoint = await until(look, what=f"the endpoint of app {name}", every=0.05)
        return found


def write_line(directory: Path) -> None:
    """Write the model of a line."""
    import joblib
    import numpy as np
    from sklearn.linear_model import LinearRegression

    x = np.array([[0.0], [1.0], [2.0]])
    joblib.dump(LinearRegression().fit(x, 2 * x[:, 0] + 1), directory / "line.joblib")


@contextlib.asynccontextmanager
async def door(address: str) -> AsyncIterator[str]:
    """Give the `127.0.0.1:PORT` at which a replica is reached by TCP as long as this lasts."""

    relays: set[asyncio.Task[None]] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        relays.add(task)
        try:
            inner_reader, inner_writer = await connect(address)
            try:
                await asyncio.gather(_pass(reader, inner_writer), _pass(inner_reader, writer))
            finally:
                inner_writer.close()
        finally:
            writer.close()
            relays.discard(task)

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"
    finally:
        server.close()
        ends = list(relays)  # a replica keeps its side open for whoever may ask again
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(65_536):
            target.write(data)
            await target.drain()
        target.write_eof()


@asynccontextmanager
async def running_apps(root: Path, room: Resources = ROOM) -> AsyncIterator[AppRig]:
    """Hand out a platform of its own that serves apps."""
    # Seconds, which who only collects tests does not wait, and no event loop should.
    for library in ("joblib", "numpy", "sklearn.linear_model", "tritonclient.http", "onnx", "onnxruntime"):
        importlib.import_module(library)

    rig = AppRig(root, room)
    await rig.start()
    try:
        async with asyncio.timeout(3 * PATIENCE_S):
            yield rig
    finally:
        await end_all(rig)
        await rig.close()


async def end_all(rig: AppRig) -> None:
    """Leave no process behind, whatever became of the story."""
    try:
        # until none is left: another replica follows each that is ended here
        await until(lambda: rig.platform.apps.remove("ann"), what="apps to be gone")
    finally:
        for attempt in await rig.executor.known():
            await rig.executor.forget(attempt, await rig.executor.epoch())
