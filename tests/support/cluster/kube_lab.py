"""Helpers for tests that run attempts as pods of a real cluster."""

from __future__ import annotations

import asyncio
import json
import threading
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from kubernetes_asyncio import client as api
from kubernetes_asyncio import config

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN
from mlp_hub.executors.base import AttemptPhase, Code, Executor, LaunchSpec, Observation
from mlp_hub.executors.kubernetes.executor import KubernetesExecutor
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.operators import OperatorWays, discover
from mlp_hub.executors.kubernetes.tenancy.objects.priorities import priority_classes
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import NAMESPACES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, QUEUES
from support import waiting
from support.cluster.kube import Kube
from support.executors.executor_lab import ENDED, PROGRAMS, ROOM
from support.executors.executors import _Mounted

IMAGE = "mlp.local/mpi:dev"
T = TypeVar("T")


def apart(asked: Callable[[], Awaitable[T]]) -> T:
    """Run something asynchronous beside whatever event loop runs here."""
    found: list[T] = []

    async def go() -> None:
        found.append(await asked())

    thread = threading.Thread(target=lambda: asyncio.run(go()))
    thread.start()
    thread.join()
    return found[0]


def configuration(kubeconfig: Path) -> api.Configuration:
    made = api.Configuration()
    apart(lambda: config.load_kube_config(str(kubeconfig), client_configuration=made))
    return made


class OwnClientExecutor(KubernetesExecutor):
    """One that has its client to itself, and closes it."""

    async def close(self) -> None:
        await super().close()
        await self._client.close()


class KubeLab(_Mounted):
    """An installation of its own in a cluster: namespaces, a volume on this machine, and the shapes of attempts."""

    def __init__(self, kube: Kube, base: Path) -> None:
        self.kube = kube
        base.chmod(0o755)
        self.directories = Directories(base / "homes", base / "jobs")
        name = f"t{uuid.uuid4().hex[:8]}"
        self.volume = {"hostPath": {"path": str(base), "type": "Directory"}}
        self.at = Installation(base, self.directories, self.volume, IMAGE, ("127.0.0.1", 1), name)
        self.configuration = configuration(kube.kubeconfig)
        self.count = 0
        self.namespace = self.at.namespace_of("default")
        found = kube.get("nodes", "-l", "type!=kwok")["items"]
        self.nodes = tuple(NodeInfo(each["metadata"]["name"], ROOM, ROOM) for each in found)
        self.ways: OperatorWays = apart(self._discover)
        self.make()

    async def _discover(self) -> OperatorWays:
        client = KubernetesClient(self.configuration)
        try:
            return await discover(client)
        finally:
            await client.close()

    def make(self) -> None:
        """Make what a tenant has in the cluster, as far as pods need it."""
        volume = f"{self.at.name}-files-default"
        shape = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        room = {"storage": "1Gi"}
        tenant = NAMESPACES.named(self.namespace)
        tenant["metadata"]["labels"] = {**self.at.own, "pod-security.kubernetes.io/enforce": "restricted"}
        queues = [QUEUES.named(self.namespace, spec={"weight": 1})] if self.ways.gangs else []
        self.apply(
            tenant,
            *(each for _, each in priority_classes(self.at)),
            *queues,
            PERSISTENT_VOLUMES.named(volume, spec={**shape, "capacity": room, **self.volume}),
            PERSISTENT_VOLUME_CLAIMS.named(
                "mlp-files",
                self.namespace,
                spec={**shape, "volumeName": volume, "resources": {"requests": room}},
            ),
        )

    def apply(self, *wanted: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(wanted)}
        self.kube("apply", "--server-side", "-f", "-", given=json.dumps(items))

    def __call__(self, *words: str, given: str | None = None) -> str:
        """Ask kubectl about the tenant's namespace."""
        return self.kube("--namespace", self.namespace, *words, given=given)

    def executor(self, **more: Any) -> KubernetesExecutor:
        client = KubernetesClient(self.configuration)
        more.setdefault("app_key", "the secret of this lab")
        return OwnClientExecutor(client, self.at, more.pop("ways", self.ways), lambda: self.nodes, **more)

    def spec(self, code: str, **more: Any) -> LaunchSpec:
        """Return an attempt that runs this code on one rank, or as said."""
        self.count += 1
        attempt = more.pop("attempt", f"job{self.count:04d}.0")
        workers, ps = more.setdefault("workers", 1), more.setdefault("ps", 0)
        runtime = more.pop("runtime", "plain")
        fields: dict[str, Any] = {
            "attempt": attempt,
            "job": attempt.partition(".")[0],
            "run": 1,
            "user": "ann",
            "uid": 300_000 + sum(b"ann"),
            "tenant": "default",
            "runtime": BUILT_IN[runtime] if isinstance(runtime, str) else runtime,
            "per_worker": Resources(cpu=100, ram=128),
            "placement": (self.nodes[0].name,) * (workers + ps),
            "program": Code(code),
            "args": (),
            "env": {},
            "grace_s": 5.0,
        }
        return LaunchSpec(**{**fields, **more})

    # -- the contract's half

    def make_executor(self) -> Executor:
        return self.executor()

    def attempt(self, kind: str, **more: Any) -> LaunchSpec:
        return self.spec(PROGRAMS[kind], **more)

    def an_act(self, executor: Executor, epoch: int) -> AbstractContextManager[None]:
        assert isinstance(executor, KubernetesExecutor)
        return executor._fence.under_way(epoch)

    # -- tests of faults

    @asynccontextmanager
    async def executing(self, **more: Any) -> AsyncIterator[KubernetesExecutor]:
        """Hand out an executor, and remove what is left there."""
        executor = self.executor(**more)
        try:
            await executor.open()
            yield executor
            for attempt in await executor.known():
                await executor.forget(attempt)
        finally:
            await executor.close()

    def left(self) -> list[str]:
        """List what attempts have in the cluster."""
        kinds = ",".join(sorted({kind.plural + _group(kind.api_version) for kind in self.ways.served}))
        said = self("get", f"configmaps,pods,services,{kinds}", "-l", names.ATTEMPT, "-o", "name")
        return said.split()

    def close(self) -> None:
        for namespace in (self.namespace, self.at.namespace):
            self.kube("delete", "namespace", namespace, "--wait=false", "--ignore-not-found")
        if self.ways.gangs:
            self.kube("delete", "queues.scheduling.volcano.sh", self.namespace, "--wait=false")
        self.kube("delete", "pv", f"{self.at.name}-files-default", "--wait=false", "--ignore-not-found")
        self.kube("delete", "priorityclasses", "-l", self.at.selector)


def _group(version: str) -> str:
    group, slash, number = version.partition("/")
    return f".{number}.{group}" if slash else ""


async def until(
    executor: KubernetesExecutor, attempt: str, *phases: AttemptPhase, among: Iterable[AttemptPhase] = ENDED
) -> Observation:
    """Wait until an attempt is in one of these phases."""
    wanted = phases or tuple(among)

    async def look() -> Observation | None:
        seen = (await executor.observe([attempt]))[attempt]
        assert seen.phase in wanted or seen.phase not in ENDED, f"waited for {wanted}, got {seen}"
        return seen if seen.phase in wanted else None

    found: Observation = await waiting.until(look, what=f"{attempt} to be {wanted}", every=0.05)
    return found
