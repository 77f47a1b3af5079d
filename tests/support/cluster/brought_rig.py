"""A platform whose jobs are pods of a real cluster, and people who come there with kubectl."""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mlp_api.jobs.jobs import Job
from mlp_api.types import TenantCreate
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.kubernetes.composed import ClusterExecutor
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.platform import Platform
from mlp_hub.store.database import Database
from support.cluster.kube import Kube, RefusedError
from support.cluster.pod_stack import leave
from support.cluster.tenancy import as_somebody, installation
from support.waiting import PATIENCE_S, until

IMAGE = "mlp.local/mpi:dev"
POLICY = RunPolicy(
    first_uid=300_000,
    grace_s=3.0,
    backoff_s=0.05,
    backoff_max_s=0.5,
    look_every_s=0.5,
    cycle_every_s=1.0,
    check_core=True,
)


class BroughtRig:
    """One database and one installation in a cluster; platforms on them may come and go. Ann is a member of red."""

    def __init__(self, kube: Kube, root: Path) -> None:
        root.chmod(0o755)
        self.kube, self.name = kube, f"t{uuid.uuid4().hex[:6]}"
        self.db = Database(str(root / "mlp.sqlite"))
        self.db.create_schema()
        self.at = installation(
            self.name,
            root=root,
            directories=Directories(root / "homes", root / "jobs"),
            volume={"hostPath": {"path": str(root), "type": "Directory"}},
            image=IMAGE,
        )
        self.namespace = self.at.namespace_of("red")
        self.ann = as_somebody(kube, "mlp:ann", self.namespace)

    async def start(self) -> None:
        client = await KubernetesClient.connect(self.kube.kubeconfig)
        self.executor = await ClusterExecutor.make(client, self.at)
        await self.executor.open()
        self.platform = Platform(self.db, self.executor, time.time, POLICY, alone=True)
        await self.platform.start()

    async def stop(self) -> None:
        await self.platform.stop()
        await self.executor.close()

    async def tenant(self, **quota: Any) -> None:
        """Make red, with ann in it, and wait until she may bring jobs."""
        await self.platform.users.approve("ann", actor="admin")
        await self.platform.tenants.create(TenantCreate(name="red", **quota))
        await self.platform.tenants.set_member("red", "ann")

        async def let_in() -> bool:
            with contextlib.suppress(RefusedError):
                return "yes" in await self.kubectl("auth", "can-i", "create", "jobs.batch")
            return False

        await until(let_in, what="ann to be let in", every=0.2)

    async def kubectl(self, *words: str, given: Any = None) -> str:
        """Do something as ann."""
        return await asyncio.to_thread(lambda: self.ann(*words, given=given))

    async def brings(self, given: dict[str, Any]) -> None:
        await self.kubectl("create", "-f", "-", given=given)

    async def found(self, what: str) -> dict[str, Any]:
        """Return an object, or a list of some."""
        return await asyncio.to_thread(lambda: self.kube.get("-n", self.namespace, *what.split()))

    async def pods(self, **labels: str) -> list[dict[str, Any]]:
        chosen = ",".join(f"mlp-hub/{key}={value}" for key, value in labels.items())
        items: list[dict[str, Any]] = (await self.found(f"pods -l {chosen}"))["items"]
        return items

    async def until(self, name: str, *phases: str) -> Job:
        """Return ann's job once it is in one of the phases."""
        last: list[Any] = []

        async def look() -> Job | None:
            try:
                job = await self.platform.jobs.get(SYSTEM, "ann", name)
            except Refused:
                return None
            last[:] = [job.phase, job.reason, str(job.message)]
            assert job.phase in phases or job.phase not in {"failed", "cancelled"}, last
            return job if job.phase in phases else None

        try:
            found: Job = await until(look, what=f"job {name} to be {phases}", every=0.1)
        except AssertionError as error:
            raise AssertionError(f"{error}: {last}\n{await asyncio.to_thread(self.state)}") from None
        return found

    def state(self) -> str:
        kinds = "jobs,mpijobs,tfjobs,pytorchjobs,pods,events"
        return self.kube("-n", self.namespace, "get", kinds, "-o", "wide")

    async def gone(self, what: str) -> None:
        """Return once there is no such object."""

        async def look() -> bool:
            try:
                await self.found(what)
            except RefusedError:
                return True
            return False

        await until(look, what=f"{what} to go", every=0.2)

    def held(self) -> Resources:
        return self.db.read_now(lambda tx: tx.ledger.in_use("red", time.time()))


@contextlib.asynccontextmanager
async def brought_rig(kube: Kube, root: Path) -> AsyncIterator[BroughtRig]:
    rig = BroughtRig(kube, root)
    try:
        await rig.start()
        yield rig
    finally:
        with contextlib.suppress(AttributeError):
            await rig.stop()
        await asyncio.to_thread(rig.db.close)
        await asyncio.to_thread(leave, kube, rig.name)


@asynccontextmanager
async def running_rig(kube: Kube, root: Path) -> AsyncIterator[BroughtRig]:
    """Hand out a rig; the timeout only bounds a failing test."""

    async with asyncio.timeout(3 * PATIENCE_S), brought_rig(kube, root) as rig:
        yield rig
