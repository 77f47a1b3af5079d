"""A tenant's own cluster beside the compute cluster: an API server without nodes, and the agent that joins both as a process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import yaml

from mlp_api.types import TenantCreate
from mlp_cluster import layer
from mlp_cluster.place import ROOT, Place
from support.cluster.brought_rig import BroughtRig, brought_rig
from support.cluster.kube import Kube, RefusedError
from support.cluster.kube_between import KubeBetween
from support.ports import free_port
from support.waiting import PATIENCE_S, until

USER = "red-cluster"
MANIFESTS = ROOT / "layers" / "manifests"
TAKES = [{"key": "mlp-hub/compute", "operator": "Exists"}]
SMALL = {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}


class LayerRig:
    """Red's own cluster. `hub` is the compute cluster with its hub; a run has a node and a namespace of its own above."""

    def __init__(self, hub: BroughtRig, upper: Kube, place: Place, folder: Path) -> None:
        self.hub, self.upper, self.place, self.folder = hub, upper, place, folder
        self.node = f"compute-{uuid.uuid4().hex[:6]}"
        self.namespace = f"own-{uuid.uuid4().hex[:6]}"
        self.agents: list[subprocess.Popen[bytes]] = []
        self.between: KubeBetween | None = None
        self.options: list[str] = []
        self.settings: dict[str, str] = {}

    async def prepare(self, **quota: Any) -> None:
        """Make the tenant, its right to a cluster of its own, and what its cluster has for the agent."""
        await self.hub.platform.users.approve(USER, actor="admin")
        await self.hub.platform.tenants.create(TenantCreate(name="red", **quota))
        await self.hub.platform.tenants.set_member("red", USER)
        may = ("auth", "can-i", "create", "jobs.batch", f"--as=mlp:{USER}", "-n", self.hub.namespace)

        async def let_in() -> bool:
            with contextlib.suppress(RefusedError):
                return "yes" in await asyncio.to_thread(lambda: self.hub.kube(*may))
            return False

        await until(let_in, what="the user to be let in below", every=0.2)
        text = (MANIFESTS / "compute.yaml").read_text().replace("mlp-red", self.hub.namespace)
        await asyncio.to_thread(lambda: self.hub.kube("apply", "-f", "-", given=text))
        note = f"mlp-layer/user=mlp:{USER}"
        await asyncio.to_thread(lambda: self.hub.kube("annotate", "namespace", self.hub.namespace, note))
        above = list(yaml.safe_load_all((MANIFESTS / "upper.yaml").read_text()))
        rights = [one for one in above if one["kind"] != "Deployment"]
        await self.apply(*rights)
        await self.kubectl("create", "namespace", self.namespace)
        token = await self.kubectl("-n", "kube-system", "create", "token", "mlp-layer")
        self.upper_config = self._config(self.upper.kubeconfig, "upper", {"token": token.strip()})
        self.lower_config = self._config(self.hub.kube.kubeconfig, "lower", {"as": f"mlp:{USER}"})

        async def account() -> bool:
            with contextlib.suppress(RefusedError):
                return bool(await self.kubectl("-n", self.namespace, "get", "serviceaccount", "default"))
            return False

        await until(account, what="the default account above", every=0.1)

    def _config(self, source: Path, name: str, user: dict[str, str]) -> Path:
        whole = yaml.safe_load(source.read_text())
        own = whole["users"][0]["user"]
        whole["users"][0]["user"] = {**own, **user} if "as" in user else user
        path = self.folder / f"{name}.kubeconfig"
        path.write_text(json.dumps(whole))
        return path

    def stand_between(self, which: str) -> KubeBetween:
        """Have the agent reach one of the clusters through something that can cut it off."""
        path = self.upper_config if which == "upper" else self.lower_config
        self.between = KubeBetween(path, self.folder)
        self.between.__enter__()
        whole = json.loads(self.between.kubeconfig.read_text())
        if which == "lower":
            whole["users"][0]["user"] = {"as": f"mlp:{USER}"}
        path = self.folder / f"{which}-between.kubeconfig"
        path.write_text(json.dumps(whole))
        if which == "upper":
            self.upper_config = path
        else:
            self.lower_config = path
        return self.between

    async def start(self) -> subprocess.Popen[bytes]:
        """Start an agent, as its Deployment does."""
        program = await asyncio.to_thread(layer.build)
        given = {
            "upper-kubeconfig": self.upper_config,
            "lower-kubeconfig": self.lower_config,
            "namespace": self.hub.namespace,
            "tenant": "red",
            "user": USER,
            "node": self.node,
            "address": self.place.outside,
            "port": free_port(),
            "upper-api": f"{self.place.node}:6443",
            "cpu-shares": self.hub.at.cpu_overcommit,
            **self.settings,
        }
        self._run([program, *(f"--{key}={value}" for key, value in given.items())])
        return self.agents[-1]

    def _run(self, command: list[str | Path]) -> None:
        env = {"PATH": os.environ["PATH"]}
        with (self.folder / f"agent-{len(self.agents)}.log").open("wb") as log:
            self.agents.append(
                subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=env)
            )

    async def start_until_ready(self) -> subprocess.Popen[bytes]:
        agent = await self.start()

        async def ready() -> bool:
            assert agent.poll() is None, self.log()
            with contextlib.suppress(RefusedError):
                conditions = (await self.get(f"node/{self.node}"))["status"].get("conditions") or []
                return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
            return False

        await self.wait(ready, "the node above to be ready")
        return agent

    async def kill(self, agent: subprocess.Popen[bytes]) -> None:
        """Kill an agent, and free its lease: its successor would wait for it."""
        agent.kill()
        await asyncio.to_thread(agent.wait)
        lease = ("lease", f"mlp-layer-{self.node}", "--ignore-not-found")
        await self.kubectl("-n", "kube-system", "delete", *lease)

    def log(self) -> str:
        return "\n".join(
            path.read_text(errors="replace")[-4000:] for path in sorted(self.folder.glob("agent-*.log"))
        )

    async def wait(self, look: Callable[[], Any], what: str) -> Any:
        """Wait with the agent's log and both clusters' states in the message where it is in vain."""
        try:
            return await until(look, what=what, every=0.1)
        except AssertionError as error:
            below = await asyncio.to_thread(self.hub.state)
            above = await self.kubectl("-n", self.namespace, "get", "pods,events", "-o", "wide")
            raise AssertionError(f"{error}\n{self.log()}\n--- above\n{above}\n--- below\n{below}") from None

    # -- above

    async def kubectl(self, *words: str, given: str | None = None) -> str:
        return await asyncio.to_thread(lambda: self.upper(*words, given=given))

    async def apply(self, *wanted: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(wanted)}
        await self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", given=json.dumps(items))

    async def get(self, *words: str) -> dict[str, Any]:
        return await asyncio.to_thread(lambda: self.upper.get("-n", self.namespace, *words))

    def pod(self, name: str, program: str, *, cpu: str = "50m", **fields: Any) -> dict[str, Any]:
        """Return a pod above that runs a program of Python, for our node."""
        about = fields.pop("about", {})
        container = {
            "name": "main", "image": "mlp.local/mpi:dev", "imagePullPolicy": "IfNotPresent",
            "command": ["python3", "-uc", program],
            "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}, "limits": {"memory": "64Mi"}},
            **fields.pop("container", {}),
        }  # fmt: skip
        spec = {
            "restartPolicy": "Never", "tolerations": TAKES, "nodeSelector": {"kubernetes.io/hostname": self.node},
            "terminationGracePeriodSeconds": 2, "containers": [container], **fields,
        }  # fmt: skip
        return {
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace, **about}, "spec": spec,
        }  # fmt: skip

    async def until(self, name: str, *phases: str) -> dict[str, Any]:
        """Return a pod above once it is in one of these phases."""

        async def look() -> dict[str, Any] | None:
            pod = await self.get(f"pod/{name}")
            return pod if pod["status"].get("phase") in phases else None

        found: dict[str, Any] = await self.wait(look, f"pod {name} to be {phases}")
        return found

    async def gone(self, what: str) -> None:
        async def look() -> bool:
            with contextlib.suppress(RefusedError):
                await self.get(what)
                return False
            return True

        await self.wait(look, f"{what} to go")

    # -- below

    async def jobs(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.hub.found("jobs -l mlp-layer/cluster"))["items"]
        return items

    async def pods(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = (await self.hub.found("pods -l mlp-layer"))["items"]
        return items

    async def empty(self) -> None:
        """Return once nothing of the upper cluster is left below."""

        async def look() -> bool:
            secrets = (await self.hub.found("secrets"))["items"]
            left = [one for one in secrets if one["metadata"]["name"].endswith(".layer")]
            return not (await self.jobs() or await self.pods() or left)

        await self.wait(look, "nothing to be left below")

    async def leave(self) -> None:
        for agent in self.agents:
            agent.kill()
            await asyncio.to_thread(agent.wait)
        if self.between is not None:
            self.between.__exit__()
        for words in (
            ("delete", "namespace", self.namespace, "--wait=false", "--ignore-not-found"),
            ("delete", "node", self.node, "--ignore-not-found"),
            ("-n", self.namespace, "delete", "pods", "--all", "--grace-period=0", "--force"),
            ("-n", "kube-system", "delete", "lease", f"mlp-layer-{self.node}", "--ignore-not-found"),
        ):
            with contextlib.suppress(RefusedError):
                await self.kubectl(*words)


@contextlib.asynccontextmanager
async def layer_rig(
    kube: Kube, upper: tuple[Kube, Place], root: Path, **quota: Any
) -> AsyncIterator[LayerRig]:
    """Have a tenant with this quota, and its own cluster; no agent yet. The timeout only bounds a failing test."""
    folder = root / "agent"
    folder.mkdir()
    async with asyncio.timeout(3 * PATIENCE_S), brought_rig(kube, root) as hub:
        rig = LayerRig(hub, *upper, folder)
        try:
            await rig.prepare(**quota)
            yield rig
        finally:
            await rig.leave()
