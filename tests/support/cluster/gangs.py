"""Gangs on a real cluster without an executor: what it would create is created, what ranks left is read from the volume."""

from __future__ import annotations

import asyncio
import json
import os
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import BUILT_IN, Runtime
from mlp_hub.executors.base import Code, LaunchSpec, LogLine
from mlp_hub.executors.kubernetes import operators
from mlp_hub.executors.kubernetes.gang import Gang, describe
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.tenancy.objects.priorities import priority_classes
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.logs import read_log
from mlp_hub.executors.shared_volume.prepare import make_directories
from mlp_hub.executors.workspace import JobRun
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import JOBS, POD_GROUPS, Kind
from support.cluster.kube import Kube, Namespace, RefusedError
from support.waiting import wait_for

NOTEBOOK_IMAGE = "mlp.local/notebook:dev"
UID = 300_007
PLAIN_CLUSTER = operators.OperatorWays(frozenset({JOBS}))


def launch(runtime: str | Runtime, code: str, workers: int = 1, ps: int = 0, **more: Any) -> LaunchSpec:
    """An attempt of ann's that runs a program's text."""
    given: dict[str, Any] = {
        "attempt": f"a-{uuid.uuid4().hex[:12]}",
        "job": f"train-{uuid.uuid4().hex[:6]}",
        "run": 1,
        "user": "ann",
        "uid": UID,
        "tenant": "red",
        "runtime": BUILT_IN[runtime] if isinstance(runtime, str) else runtime,
        "workers": workers,
        "ps": ps,
        # little, because others run beside
        "per_worker": Resources(cpu=600 // (workers + ps), ram=400),
        "placement": (),
        "program": Code(code),
        "args": (),
        "env": {},
        "grace_s": 20.0,
    }
    return LaunchSpec(**(given | more))


def pods_in(found: Any) -> list[dict[str, Any]]:
    """Templates of pods in an object, wherever its kind has them."""
    if isinstance(found, dict):
        if "containers" in (found.get("spec") or {}):
            return [found]
        found = list(found.values())
    return [pod for each in found for pod in pods_in(each)] if isinstance(found, list) else []


class GangRig:
    """A tenant's namespace as it would be: `restricted`, with a quota, the volume of files, and Volcano's queue."""

    def __init__(self, kube: Kube, root: Path) -> None:
        self.kube = kube
        self.name = f"g{uuid.uuid4().hex[:6]}"
        self.at = Installation(
            root=root,
            directories=Directories(root / "homes", root / "jobs"),
            volume={"hostPath": {"path": str(root)}},
            image=os.environ.get("MLP_TEST_IMAGE", NOTEBOOK_IMAGE),
            service=("127.0.0.1", 1),
            name=self.name,
        )
        self.home = root / "homes" / "ann"
        self.home.mkdir(parents=True)
        os.chown(self.home, UID, UID)
        os.chmod(root, 0o755)
        self.namespace = Namespace(kube, self.at.namespace_of("red"))
        self.ways = asyncio.run(self._discover())
        kube("create", "namespace", self.namespace.name)
        kube("label", "namespace", self.namespace.name, "pod-security.kubernetes.io/enforce=restricted")
        quota = {"requests.cpu": "20", "limits.cpu": "20", "requests.memory": "64Gi", "limits.memory": "64Gi"}
        self._apply("v1", "ResourceQuota", "quota", {"hard": quota})
        volume = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "persistentVolumeReclaimPolicy": "Retain",
            "hostPath": {"path": str(root)},
        }
        for _, each in priority_classes(self.at):
            self.namespace.apply(each)
        self.volume = f"{self.name}-files-red"
        self._apply("v1", "PersistentVolume", self.volume, volume)
        claim = {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": self.volume,
            "resources": {"requests": {"storage": "1Gi"}},
        }
        self._apply("v1", "PersistentVolumeClaim", "mlp-files", claim)
        if self.ways.gangs:
            self._apply("scheduling.volcano.sh/v1beta1", "Queue", f"{self.name}-red", {"weight": 1})
            self.kube(
                "wait", f"queue/{self.name}-red", "--for=jsonpath={.status.state}=Open", "--timeout=60s"
            )

    async def _discover(self) -> operators.OperatorWays:
        client = await KubernetesClient.connect(self.kube.kubeconfig)
        try:
            return await operators.discover(client)
        finally:
            await client.close()

    def _apply(self, version: str, kind: str, name: str, spec: Any) -> None:
        made = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        self.namespace.apply(made)

    def close(self) -> None:
        self.kube("delete", "namespace", self.namespace.name, "--wait=false")
        self.kube("delete", "pv", self.volume, "--wait=false")
        self.kube("delete", "priorityclasses", "-l", self.at.selector)
        if self.ways.gangs:
            self.kube("delete", "queue", f"{self.name}-red", "--wait=false")

    def start(
        self, spec: LaunchSpec, by: operators.OperatorWays | None = None, hidden: tuple[str, ...] = ()
    ) -> Running:
        """Start an attempt; in its pods these directories are empty, as in an image that has not what is in them."""
        gang = describe(spec, self.at, self.ways if by is None else by, f"t-{spec.attempt[2:]}")
        for pod in pods_in(gang.main[1]):
            for path in hidden:
                pod["spec"]["containers"][0]["volumeMounts"].append({"name": "tmp", "mountPath": path})
        return Running(self, spec, gang)


class Running:
    """A gang that was created."""

    def __init__(self, rig: GangRig, spec: LaunchSpec, gang: Gang) -> None:
        self.rig, self.spec, self.gang = rig, spec, gang
        self.name = gang.main[1]["metadata"]["name"]
        self._over = False  # whether its end was awaited: ranks may tell of theirs a moment later
        self.directory = Path(rig.at.directories.workspace(spec.of_run))
        make_directories(spec, rig.at.directories, root=True, ranks_log=True)
        create = rig.namespace
        for _, each in (gang.secret, *gang.beside, gang.main):
            create("create", "--validate=strict", "-f", "-", given=json.dumps(each))

    @property
    def kind(self) -> Kind:
        return self.gang.main[0]

    def object(self) -> dict[str, Any]:
        group = self.kind.api_version.rpartition("/")[0].partition("/")[0]
        return self.rig.namespace.get(f"{self.kind.plural}.{group}/{self.name}")

    def phase(self) -> str:
        """succeeded, failed, or nothing yet."""
        status = self.object().get("status", {})
        volcano = status.get("state", {}).get("phase")
        if volcano:
            return {"Completed": "succeeded", "Terminated": "failed", "Failed": "failed"}.get(volcano, "")
        for one in status.get("conditions", ()):
            if one["status"] == "True" and one["type"] in {"Complete", "Succeeded"}:
                return "succeeded"
            if one["status"] == "True" and one["type"] == "Failed":
                return "failed"
        return ""

    def ended(self, phase: str = "succeeded") -> None:
        self._over = True
        found = wait_for(self.phase, every=0.5, message=f"for {self.name}\n{self.told()}")
        assert found == phase, f"{found}\n{self.told()}"

    def told(self) -> str:
        with_log = [f"{path.name}: {path.read_text()[-800:]}" for path in sorted(self._log.glob("*"))]
        return "\n".join(
            [
                self.rig.namespace("get", "pods,events", "-o", "wide"),
                json.dumps(self.object().get("status")),
                *with_log,
            ]
        )

    @property
    def _log(self) -> Path:
        return self.directory / "log"

    def report(self, rank: int) -> dict[str, Any]:
        path = self._log / f"{self.spec.attempt}.{rank}.json"
        return json.loads(path.read_text()) if path.exists() else {}

    def until(self, rank: int, holds: Callable[[Mapping[str, Any]], Any]) -> dict[str, Any]:
        """Wait until a rank's report is as told."""

        def looked() -> bool:
            if holds(self.report(rank)):
                return True
            assert self._over or not self._there() or not self.phase(), f"{self.phase()}\n{self.told()}"
            return False

        wait_for(looked, every=0.5, message=f"for rank {rank}'s report")
        return self.report(rank)

    def _there(self) -> bool:
        try:
            return bool(self.object())
        except RefusedError:
            return False

    def lines(self, rank: int) -> list[LogLine]:
        found: list[LogLine] = []
        at = 0
        while True:
            chunk = read_log(str(self.directory), rank, at, 100_000)
            if not chunk.lines:
                return found
            found += chunk.lines
            at = chunk.offset

    def texts(self, rank: int) -> list[str]:
        return [line.text for line in self.lines(rank)]

    def pods(self) -> list[dict[str, Any]]:
        return self.rig.namespace.get("pods", "-l", f"mlp-hub/attempt={self.spec.attempt}")["items"]

    def delete(self) -> None:
        self.rig.namespace(
            "delete", self.kind.plural + "." + self.kind.api_version.partition("/")[0], self.name
        )


__all__ = ["PLAIN_CLUSTER", "POD_GROUPS", "GangRig", "JobRun", "RefusedError", "Running", "launch"]
