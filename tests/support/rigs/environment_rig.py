"""Platforms with environments: one that makes them with uv in real sandboxes, and a maker for stories of how they stand."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from mlp_api.stored.environments import EnvironmentCreate, EnvironmentDetail, EnvironmentInfo
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.resources import Resources
from mlp_hub.executors.environments import BuildFailed, BuildSteps
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.executors.local.package_index import configs_of, index_of
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.workspace import Extent, Space, StoredPlace
from mlp_language.message import msg
from support.rigs.platform_rig import FAST, Rig
from support.waiting import PATIENCE_S, until

ROOT = os.geteuid() == 0
ROOM = Resources(64_000, 0, 64_000, 0)
ONLINE = replace(FAST, job_network="outbound", first_uid=300_000 if ROOT else None)
SIZE = 1000
"""Bytes of what `Maker` makes."""


class Maker:
    """Makes environments out of nothing: a lock has the requirements with `==1.0`, files are one of `SIZE` bytes.

    `waits` holds steps up by what they do (lock, install) until the test lets them go on; `fails` has errors that come first.
    """

    def __init__(self, rig: Rig) -> None:
        self.base = "3.11 /usr/bin/python3"
        self._rig = rig
        self.waits: dict[str, threading.Event] = {}
        self.fails: list[BaseException] = []
        self.space = Space(1 << 40, 1 << 40)
        self.did: list[tuple[str, str]] = []
        self.at_work: set[str] = set()
        self.kernels: set[str] = set()

    async def lock(
        self, of: StoredPlace, requirements: str, owner: int | None, *, epoch: int, steps: BuildSteps
    ) -> str:
        """Lock."""
        del owner
        await asyncio.to_thread(self._work, "lock", of, epoch, steps)
        packages = (re.split(r"[^a-z]", line)[0] for line in requirements.splitlines())
        return "".join(f"{package}==1.0 \\\n    --hash=sha256:0\n" for package in packages)

    async def install(
        self, of: StoredPlace, lock: str, owner: int | None, *, epoch: int, steps: BuildSteps
    ) -> Extent:
        """Install."""
        del owner, lock

        def install() -> Extent:
            top = self._rig.directories.stored(of)
            if top.exists():
                return Extent(1, SIZE)
            self._work("install", of, epoch, steps)
            steps.admit(SIZE)
            top.mkdir(parents=True)
            (top / "package.py").write_bytes(b"x" * SIZE)
            return Extent(1, SIZE)

        return await asyncio.to_thread(install)

    async def offer(self, of: StoredPlace, name: str, *, epoch: int) -> None:
        """Note it."""
        del of, epoch
        self.kernels.add(name)

    async def withdraw(self, of: StoredPlace, name: str, *, epoch: int) -> None:
        """Note it."""
        del of, epoch
        self.kernels.discard(name)

    async def forget(self, of: StoredPlace, *, epoch: int) -> None:
        """Note it."""
        del epoch
        self.did.append(("forget", of.name))

    def _work(self, what: str, of: StoredPlace, epoch: int, steps: BuildSteps) -> None:
        del epoch
        self.did.append((what, of.name))
        assert of.name not in self.at_work, "two at one place"
        self.at_work.add(of.name)
        try:
            if self.fails:
                raise self.fails.pop(0)
            steps.report_output(f"{what} of {of.tenant}")
            steps.leaves(self.space)
            while what in self.waits and not self.waits[what].wait(0.01):
                steps.check_cancelled()
        finally:
            self.at_work.discard(of.name)

    @contextlib.contextmanager
    def held(self, what: str) -> Iterator[Callable[[], Awaitable[bool]]]:
        """Hold a step up; yields what tells whether somebody waits there."""
        self.waits[what] = threading.Event()
        known = sum(did == what for did, _ in self.did)

        async def waits() -> bool:
            return sum(did == what for did, _ in self.did) > known

        try:
            yield waits
        finally:
            self.waits.pop(what).set()


def unresolvable() -> BuildFailed:
    """Return what uv says of requirements that nothing fits."""
    return BuildFailed(msg("{said}", said="No solution found when resolving dependencies"))


class SandboxRig(Rig):
    """A platform whose environments and jobs are real."""

    def __init__(self, root: Path) -> None:
        super().__init__(root, policy=ONLINE)
        for path in (self.directories.homes, self.directories.jobs):
            path.mkdir()
        here = (NodeInfo("here", ROOM, ROOM),)
        index = index_of("", os.environ, configs_of(os.environ))
        self.executor = LocalExecutor(root / "jobs-run", self.directories, nodes=here, index=index)  # type: ignore[assignment]
        self.platform = self.make()


def with_maker(rig: Rig) -> Maker:
    """Give a platform on simulated nodes what makes environments."""
    maker = Maker(rig)
    rig.executor.environments = maker  # type: ignore[assignment]
    rig.platform = rig.make()
    return maker


async def create(
    rig: Rig, name: str = "tools", requirements: str = "iniconfig", tenant: str = "default", user: str = "ann"
) -> EnvironmentInfo:
    """Have an environment made."""
    asked = EnvironmentCreate(name=name, requirements=requirements)
    return await rig.platform.environments.create(tenant, asked, actor=user)


async def detail(rig: Rig, name: str = "tools", tenant: str = "default") -> EnvironmentDetail:
    """Return an environment with all that is known of it."""
    return await rig.platform.environments.get(tenant, name)


async def at_rest(rig: Rig, name: str = "tools", tenant: str = "default") -> EnvironmentInfo:
    """Return an environment once it is ready or in error."""

    async def look() -> EnvironmentInfo | None:
        found = (await detail(rig, name, tenant)).environment
        return found if found.state in ("ready", "error") else None

    found: EnvironmentInfo = await until(look, what=f"environment {name} to be at rest")
    return found


async def delete(rig: Rig, name: str = "tools", tenant: str = "default") -> None:
    """Delete an environment."""
    await rig.platform.environments.delete(tenant, name, actor="ann")


async def gone(rig: Rig, name: str = "tools", tenant: str = "default") -> None:
    """Return once an environment is there no more."""

    async def look() -> bool:
        try:
            await detail(rig, name, tenant)
        except Refused as refused:
            return refused.reason is Reason.NOT_FOUND
        return False

    await until(look, what=f"environment {name} to be gone")


def left(rig: Rig) -> list[str]:
    """Return the directories of environments, and of those that are being made."""
    return sorted(
        f"{top.name}/{each.name}"
        for top in (*(rig.root / "environments").glob("*"), *(rig.root / "environments").glob("*/.arriving"))
        for each in top.glob("*")
        if each.name not in (".arriving", ".kernels")
    )


@asynccontextmanager
async def running_rig(rig: Rig) -> AsyncIterator[None]:
    """Have a rig run; the timeout only bounds a failing test."""

    await rig.start()
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            yield
    finally:
        await rig.close()
