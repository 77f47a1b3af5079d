"""A platform with real jobs and notebook servers on a small disk, and programs that flood it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from mlp_api.types import ResourceRequestKey, ResourceRequestTry
from mlp_hub import sandbox
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.local.executor import LocalExecutor
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.sandbox import Limits, SandboxSpec
from mlp_hub.service.config import DiskPolicy
from support.executors.executor_lab import PYTHON
from support.executors.small_disk import SmallDisk
from support.rigs.platform_rig import FAST, Rig
from support.waiting import PATIENCE_S

ROOM = Resources(64_000, 0, 64_000, 0)
WRITES = """
import contextlib, time
{how}
with contextlib.suppress(OSError):  # the disk may be full before anybody looks at it
    for _ in range({mib}):
        out.write(bytes(1 << 20)); out.flush()
        time.sleep({pause})
time.sleep(600)
"""
STEADY = """
import contextlib, os, time
while not os.path.exists('/workspace/ckpt/go'):
    with contextlib.suppress(OSError), open('/workspace/ckpt/small', 'ab') as file: file.write(b'x' * 1000)
    print('still here', flush=True)
    time.sleep(0.1)
"""


class DiskRig(Rig):
    """A platform with real jobs, all on one small disk."""

    def __init__(self, disk: SmallDisk, policy: DiskPolicy) -> None:
        self.disk = disk
        policy = replace(policy, reserve=disk.root / "reserve")
        super().__init__(disk.root, policy=replace(FAST, disk=policy, first_uid=300_000))
        for path in (self.directories.homes, self.directories.jobs):
            path.mkdir()
        here = (NodeInfo("here", ROOM, ROOM),)
        self.servers = disk.root / "servers-run"
        self.executor = LocalExecutor(  # type: ignore[assignment]
            disk.root / "jobs-run", self.directories, nodes=here, servers_root=self.servers
        )
        self.platform = self.make()
        self.platform.disk.end_server = self._end
        self.ended: list[str] = []
        """Whose notebook server was ended, one after the other."""

    async def serve(self, code: str, user: str = "ann") -> None:
        """Run a program as a user's notebook server, with quota held for it as the spawner does."""
        number = (await self.platform.users.ensure(user)).number
        asked = ResourceRequestTry(f"{user}/", "sp", "request", "default", user=user, cpu=0.1, ram=2000)
        await self.platform.ledger.try_(asked)
        await self.platform.ledger.confirm(ResourceRequestKey(f"{user}/", "sp"))
        await asyncio.to_thread(self._launch, code, user, 300_000 + number)

    def _launch(self, code: str, user: str, uid: int) -> None:
        logs = self.servers / user / "-.log"
        logs.mkdir(parents=True, exist_ok=True)
        spec = SandboxSpec(
            id=f"notebook-{user}",
            argv=(PYTHON, "-u", "-c", code),
            env={"PATH": "/usr/bin:/bin", "HOME": f"/home/{user}"},
            home_dir=str(sandbox.ensure_home(self.directories.homes, user, uid)),
            home_mount=f"/home/{user}",
            log_dir=str(logs),
            user_name=user,
            uid=uid,
            binds=sandbox.environment_binds(PYTHON),
            limits=Limits(cpu=500, ram_mib=2000),
        )
        sandbox.launch(spec, str(self.servers / user / "-"))

    async def _end(self, user: str, server: str) -> None:
        assert server == ""
        await asyncio.to_thread(sandbox.remove, str(self.servers / user / "-"))
        release = ResourceRequestTry(f"{user}/", "sp", "release", "default", user=user)
        await self.platform.ledger.try_(release)
        await self.platform.ledger.confirm(ResourceRequestKey(f"{user}/", "sp"))
        self.ended.append(user)

    async def go(self, name: str, code: str, user: str = "ann") -> None:
        # what lies on a tmpfs counts as its memory
        await self.submit(name, user, code=code, runtime="plain", cpu=0.1, ram=2000)
        await self.until(name, "running", user=user)

    async def reason(self, name: str, user: str) -> str:
        return (await self.platform.jobs.get(SYSTEM, user, name)).reason or ""


@asynccontextmanager
async def running_rig(disk: SmallDisk, policy: DiskPolicy) -> AsyncIterator[DiskRig]:
    rig = DiskRig(disk, policy)
    await rig.start()
    try:
        async with asyncio.timeout(2 * PATIENCE_S):
            yield rig
    finally:
        await rig.platform.stop()
        for run_dir in rig.servers.glob("*/-"):
            sandbox.remove(str(run_dir))
        for attempt in await rig.executor.known():
            await rig.executor.forget(attempt, 10**6)
        await rig.close()
