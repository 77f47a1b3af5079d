"""The use of pods and of their GPUs comes from a cluster's API over HTTP; a lie beside it changes nothing that anybody pays or ends by."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from aiohttp import web
from kubernetes_asyncio import client as api

from mlp_hub.cli.doctor.checks import FAIL, OK, WARN
from mlp_hub.cli.doctor.cluster import _gpu_metrics
from mlp_hub.executors.kubernetes.metering.gpu_metrics import GpuMetrics
from mlp_hub.executors.kubernetes.metering.pod_meter import PodMeter
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import POD_METRICS
from mlp_hub.settings import Settings


class MeasuringApi:
    """Server with the paths of a cluster's metrics API, and of the proxy to its Prometheus."""

    def __init__(self) -> None:
        self.status, self.pods_with_gpus = 200, 1
        self.queries: list[dict[str, str]] = []
        self.client: KubernetesClient

    async def pods(self, request: web.Request) -> web.Response:
        self.queries.append(dict(request.query))
        used = {"name": "rank", "usage": {"cpu": "12500000n", "memory": "204800Ki"}}
        item = {
            "metadata": {"name": "train-0", "namespace": "mlp-red"},
            "timestamp": "2026-01-01T00:00:00Z",
            "window": "15s",
            "containers": [used, used],
        }
        return web.json_response({"kind": "PodMetricsList", "items": [item]}, status=self.status)

    async def query(self, request: web.Request) -> web.Response:
        self.queries.append(dict(request.query))
        labels = {"namespace": "mlp-red", "pod": "train-0"}
        found = {
            "resultType": "vector",
            "result": [{"metric": labels, "value": [1.0, "0"]}] * self.pods_with_gpus,
        }
        return web.Response(text=json.dumps({"status": "success", "data": found}), status=self.status)


@asynccontextmanager
async def measuring() -> AsyncIterator[tuple[MeasuringApi, PodMeter]]:
    server, application = MeasuringApi(), web.Application()
    application.router.add_get(POD_METRICS.path(), server.pods)
    path = "/api/v1/namespaces/monitoring/services/{service}/proxy/api/v1/query"
    application.router.add_get(path, server.query)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    client = server.client = KubernetesClient(api.Configuration(host=f"http://{host}:{port}"))
    gpus = GpuMetrics(client, "monitoring/https:prometheus:9090", "(nvidia-)?dcgm-exporter", "mlp-")
    ranks = {("mlp-red", "train-0"): ("u.0", 0)}
    try:
        yield server, PodMeter(client, "a=b,c", lambda ns, name: ranks.get((ns, name)), gpus)
    finally:
        await client.close()
        await runner.cleanup()


async def test_one_look_is_a_request_for_all_pods_and_one_for_all_gpus() -> None:
    async with measuring() as (server, meter):
        await meter.look(["u.0"])
        use = meter.use_of(("u.0", 0))
        assert use is not None
        assert (use.cpu, use.ram) == (0.026, 400), (
            "the containers of a pod together; a part of a thousandth is one"
        )
        assert meter.gpu_of(("u.0", 0)) == 0.0
        assert server.queries[0] == {"labelSelector": "a=b,c"}
        assert 'DCGM_FI_DEV_GPU_UTIL{job=~"(nvidia-)?dcgm-exporter"}[90s]' in server.queries[1]["query"]


async def test_a_metrics_server_that_fails_leaves_the_last_looks_and_the_gpus() -> None:
    async with measuring() as (server, meter):
        await meter.look(["u.0"])
        server.status = 500
        await meter.look(["u.0"])
        assert meter.use_of(("u.0", 0)) is not None
        assert meter.gpu_of(("u.0", 0)) == 0.0


async def test_the_doctor_says_whether_prometheus_measures_gpus_and_what_to_do(tmp_path: Path) -> None:
    given = {"MLP_HOME": str(tmp_path), "MLP_KUBERNETES_GPU_METRICS": "monitoring/prometheus:9090"}
    settings = Settings.load(given)
    async with measuring() as (server, _):
        (check,) = await _gpu_metrics(settings, server.client)
        assert (check.status, "1 pods" in check.found) == (OK, True)
        server.pods_with_gpus = 0
        (check,) = await _gpu_metrics(settings, server.client)
        assert (check.status, "MLP_KUBERNETES_GPU_METRICS_JOB" in check.remedy) == (WARN, True)
        server.status = 403
        (check,) = await _gpu_metrics(settings, server.client)
        assert (check.status, "services/proxy" in check.remedy) == (FAIL, True)
        assert await _gpu_metrics(Settings.load({"MLP_HOME": str(tmp_path)}), server.client) == []
