"""A tenant's own cluster has the compute as a node: pods go down to the queue, and their status, logs and streams come up."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.types import TenantUpdate
from mlp_cluster.place import Place
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from support.cluster.kube import Kube, RefusedError
from support.cluster.layer_rig import USER, LayerRig, layer_rig
from support.ports import free_port

Upper = tuple[Kube, Place]
LASTS = "import time; print('began'); time.sleep(600)"


async def test_a_pod_runs_below_and_its_status_and_log_come_up(
    kube: Kube, upper: Upper, tmp_path: Path
) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=6.0, ram=2048, gpu=2) as rig:
        await rig.start_until_ready()

        async def shows(cpu: str, memory: str, gpus: str) -> bool:
            capacity = (await rig.get(f"node/{rig.node}"))["status"]["allocatable"]
            found = (capacity["cpu"], capacity["memory"], capacity.get("nvidia.com/gpu"))
            return found == (cpu, memory, gpus)

        await rig.wait(lambda: shows("6", "2Gi", "2"), "the quota as capacity")
        await rig.apply(rig.pod("one", "print('hello from below')"), rig.pod("lasts", LASTS))
        ended = await rig.until("one", "Succeeded")
        assert ended["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
        assert await rig.kubectl("-n", rig.namespace, "logs", "one") == "hello from below\n"
        running = await rig.until("lasts", "Running")
        (below,) = [p for p in await rig.pods() if p["status"]["phase"] == "Running"]
        assert running["status"]["podIP"] == below["status"]["podIP"]
        assert running["status"]["hostIP"] == rig.place.outside

        jobs, _ = await rig.hub.platform.jobs.list(SYSTEM, USER)
        assert {job.phase for job in jobs} == {"finished", "running"}
        assert rig.hub.held() == Resources(cpu=50, ram=64)

        await rig.hub.platform.tenants.update("red", TenantUpdate(cpu=3.0, ram=1024, gpu=1))
        await rig.wait(lambda: shows("3", "1Gi", "1"), "the lowered quota")

        await rig.kubectl("-n", rig.namespace, "delete", "pod", "one", "lasts", "--wait=false")
        await rig.gone("pod/one")
        await rig.gone("pod/lasts")
        await rig.empty()
        assert rig.hub.held() == Resources()


READS = """
import json, os, ssl, urllib.request
print(os.environ["FROM_MAP"], os.environ["FROM_SECRET"], os.environ["NAME"], open("/data/file").read())
at = "/var/run/secrets/kubernetes.io/serviceaccount/"
print(open(at + "namespace").read(), "CERTIFICATE" in open(at + "ca.crt").read(), os.environ["KUBERNETES_SERVICE_HOST"])
import http.server
http.server.ThreadingHTTPServer(("", 8000), http.server.SimpleHTTPRequestHandler).serve_forever()
"""


async def test_data_and_tokens_of_the_upper_cluster_are_in_the_pod_and_streams_reach_it(
    kube: Kube, upper: Upper, tmp_path: Path
) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=6.0, ram=2048) as rig:
        await rig.start_until_ready()
        about = {"namespace": rig.namespace}
        pod = rig.pod("reads", READS, volumes=[{"name": "data", "configMap": {"name": "later"}}])
        pod["spec"]["containers"][0] |= {
            "envFrom": [{"configMapRef": {"name": "values"}}],
            "env": [
                {"name": "FROM_SECRET", "valueFrom": {"secretKeyRef": {"name": "key", "key": "word"}}},
                {"name": "NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            ],
            "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        }
        await rig.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "values", **about}, "data": {"FROM_MAP": "map"}},
            {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "key", **about}, "stringData": {"word": "quiet"}},
            pod,
        )  # fmt: skip

        async def waits() -> str | None:
            conditions = (await rig.get("pod/reads"))["status"].get("conditions", [])
            return next((c["message"] for c in conditions if c["type"] == "mlp-hub/Admitted"), None)

        assert "waits for ConfigMap later" in await rig.wait(waits, "what the pod waits for")
        await rig.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "later", **about}, "data": {"file": "content"}}
        )  # fmt: skip
        await rig.until("reads", "Running")

        async def log() -> str | None:
            text = await rig.kubectl("-n", rig.namespace, "logs", "reads")
            return text if text.count("\n") == 2 else None

        first, second = (await rig.wait(log, "the output")).splitlines()
        assert first == "map quiet reads content"
        assert second == f"{rig.namespace} True {rig.place.node}"

        found = (await rig.kubectl("-n", rig.namespace, "exec", "reads", "--", "cat",
                                   "/var/run/secrets/kubernetes.io/serviceaccount/token")).strip()  # fmt: skip
        said = await asyncio.to_thread(
            lambda: rig.upper(f"--token={found}", "--kubeconfig=/dev/null", f"--server=https://{rig.place.node}:6443",
                              f"--certificate-authority={rig.place.folder}/pki/ca.crt", "auth", "whoami", "-o", "json")
        )  # fmt: skip
        assert (
            json.loads(said)["status"]["userInfo"]["username"]
            == f"system:serviceaccount:{rig.namespace}:default"
        )

        failed = ""
        try:
            await rig.kubectl(
                "-n", rig.namespace, "exec", "reads", "--", "sh", "-c", "echo out; echo err >&2; exit 3"
            )
        except RefusedError as error:
            failed = str(error)
        assert "err" in failed
        assert "exit code 3" in failed
        assert "hi" in await rig.kubectl("-n", rig.namespace, "exec", "-i", "reads", "--", "cat", given="hi")
        await _forwards(rig)

        # nobody else's streams, and no Secret of others
        with pytest.raises(RefusedError, match="cannot list resource"):
            await asyncio.to_thread(
                lambda: rig.hub.kube(f"--as=mlp:{USER}", "-n", rig.hub.namespace, "get", "secrets")
            )


async def _forwards(rig: LayerRig) -> None:
    port = free_port()

    def ask() -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as s:
            s.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return s.recv(100).startswith(b"HTTP/1.0 200")
        return False

    async def answers() -> bool:
        return await asyncio.to_thread(ask)

    with _forwarding(rig, f"{port}:8000"):
        await rig.wait(answers, "an answer through port-forward")


@contextlib.contextmanager
def _forwarding(rig: LayerRig, ports: str) -> Iterator[None]:
    command = [rig.upper.program, f"--kubeconfig={rig.upper.kubeconfig}", "-n", rig.namespace]
    forward = subprocess.Popen([*command, "port-forward", "pod/reads", ports], stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        forward.kill()
        forward.wait()


async def test_a_pod_that_waits_says_why_as_the_queue_does(kube: Kube, upper: Upper, tmp_path: Path) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=1.0, ram=1024) as rig:
        await rig.start_until_ready()
        # the hub's other work holds the quota, of which the upper cluster knows nothing
        await rig.hub.platform.users.approve("ann", actor="admin")
        await rig.hub.platform.tenants.set_member("red", "ann")
        await rig.hub.platform.jobs.submit(
            "ann",
            JobCreate(name="fills", code="import time; time.sleep(600)", cpu=0.8, ram=512, tenant="red"),
        )
        await rig.hub.until("fills", "running")
        await rig.apply(rig.pod("waits", LASTS, cpu="500m"))

        async def why() -> dict[str, Any] | None:
            status = (await rig.get("pod/waits"))["status"]
            shown = next((c["state"].get("waiting") or {} for c in status.get("containerStatuses", [])), {})
            return shown if "cpu" in shown.get("message", "") else None

        shown = await rig.wait(why, "the reason above")
        assert shown["reason"] == "WaitsInQueue"
        (job,) = await rig.jobs()
        assert shown["message"] == job["metadata"]["annotations"]["mlp-hub/waits"]

        async def told() -> bool:
            events = (await rig.get("events", "--field-selector", "involvedObject.name=waits"))["items"]
            return any(e["reason"] == "WaitsInQueue" and "cpu" in e["message"] for e in events)

        await rig.wait(told, "the event above")
        await rig.hub.platform.jobs.cancel(SYSTEM, "ann", "fills")
        await rig.until("waits", "Running")
        (job,) = await rig.jobs()
        assert "mlp-hub/waits" not in job["metadata"]["annotations"]


async def test_a_deployment_and_a_job_of_the_upper_cluster_run_below(
    kube: Kube, upper: Upper, tmp_path: Path
) -> None:
    async with layer_rig(kube, upper, tmp_path, cpu=6.0, ram=2048) as rig:
        await rig.start_until_ready()
        template = {"metadata": {"labels": {"app": "web"}}, "spec": rig.pod("x", LASTS)["spec"]}
        about = {"namespace": rig.namespace}
        once = {"spec": {**rig.pod("x", "print('once')")["spec"], "restartPolicy": "OnFailure"}}
        await rig.apply(
            {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", **about},
                "spec": {
                    "replicas": 2, "selector": {"matchLabels": {"app": "web"}},
                    "template": {**template, "spec": {**template["spec"], "restartPolicy": "Always"}},
                },
            },
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", **about}, "spec": {"template": once}},
        )  # fmt: skip

        async def done() -> bool:
            web = (await rig.get("deployment/web"))["status"].get("readyReplicas")
            job = (await rig.get("job/once"))["status"].get("succeeded")
            return (web, job) == (2, 1)

        await rig.wait(done, "both controllers to see what they made")
        await rig.kubectl("-n", rig.namespace, "scale", "deployment/web", "--replicas=1")

        async def one() -> bool:
            return len([p for p in await rig.pods() if p["status"]["phase"] == "Running"]) == 1

        await rig.wait(one, "one replica below")
