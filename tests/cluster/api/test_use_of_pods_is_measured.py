"""The use of pods asked of a real API server: one without a metrics API measures nothing and is left alone, whoever asks."""

from __future__ import annotations

import pytest

from mlp_hub.executors.kubernetes.metering.gpu_metrics import GpuMetrics
from mlp_hub.executors.kubernetes.metering.pod_meter import PodMeter
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.kinds import POD_METRICS
from support.cluster.kube import Kube


async def test_a_cluster_without_metrics_and_without_prometheus_measures_no_rank_and_raises_nothing(
    kube: Kube,
) -> None:
    client = await KubernetesClient.connect(kube.kubeconfig)
    try:
        if await client.serves(POD_METRICS):
            pytest.skip("this cluster has a metrics server")
        gpus = GpuMetrics(client, "default/no-such-service:9090", "dcgm-exporter", "mlp-")
        meter = PodMeter(client, "app.kubernetes.io/managed-by=mlp-hub", lambda *_: ("u.0", 0), gpus)
        await meter.look(["u.0"])
        await meter.look(["u.0"])
        assert (meter.use_of(("u.0", 0)), meter.gpu_of(("u.0", 0))) == (None, None)
        asked = [what for what in client.calls if "pods" in what]
        assert [client.calls[what] for what in asked] == [1], "the second look waits"
    finally:
        await client.close()
