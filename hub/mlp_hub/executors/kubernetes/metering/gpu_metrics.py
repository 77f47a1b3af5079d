"""Work of the GPUs of pods, as NVIDIA's DCGM exporter measures it on their nodes, read from the site's Prometheus.

The request goes through the API server (`services/proxy`), so the hub needs no other address, certificate or credential. A program
of a tenant could serve metrics with the exporter's names. So only series of the exporter's job count, and none of which
Prometheus says that it found them in a namespace of this hub.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterError, ClusterUnreachable

log = logging.getLogger(__name__)
METRIC = "DCGM_FI_DEV_GPU_UTIL"
"""Given: percent of the time in which an engine of a GPU computed; devices in slices have none."""
WINDOW_S = 90
"""Tuning: seconds whose most counts: an exporter is asked each 15 or 30 s, and a job that works now and then works."""
MOST_PODS = 20_000
"""Safety: pods of an answer, those at work first: other series may have the exporter's job label."""
ANSWER_S = 10.0
"""Safety: seconds after which a request without an answer is given up."""
AGAIN_S = 300.0
"""Tuning: seconds until the next request after one that was refused."""


class GpuMetrics:
    """Work of the GPUs of all pods. `service` is NAMESPACE/SERVICE:PORT of Prometheus, `job` a pattern of the exporter's job.

    `prefix` begins the namespaces of this hub. `steady` is a clock that nobody sets.
    """

    def __init__(
        self,
        client: KubernetesClient,
        service: str,
        job: str,
        prefix: str,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        namespace, _, name = service.partition("/")
        self.path = f"/api/v1/namespaces/{namespace}/services/{name}/proxy/api/v1/query"
        self._client, self._prefix, self._steady = client, prefix, steady
        chosen = json.dumps(job)  # a string of PromQL has the escapes of JSON
        self._query = (
            f"topk({MOST_PODS}, max by (namespace, pod, exported_namespace, exported_pod) "
            f"(max_over_time({METRIC}{{job=~{chosen}}}[{WINDOW_S}s])))"
        )
        self._due = float("-inf")

    async def read(self) -> Mapping[tuple[str, str], float]:
        """Return the most that a GPU of each pod did lately, from 0 to 1, by namespace and name; nothing while nothing is known."""
        if self._steady() < self._due:
            return {}
        try:
            return await self.ask()
        except (ClusterUnreachable, TimeoutError, ValueError) as error:
            log.info("the work of GPUs is not measured now: %s", error)
        except ClusterError as error:
            self._due = self._steady() + AGAIN_S
            log.warning("the work of GPUs is not measured: %s", error)
        return {}

    async def ask(self) -> Mapping[tuple[str, str], float]:
        """Return the same. Raises `ClusterError`, `ClusterUnreachable`, TimeoutError, or ValueError if another program answers."""
        async with asyncio.timeout(ANSWER_S):
            answer = await self._client.read(self.path, {"query": self._query})
        return works(answer, self._prefix)


def works(answer: bytes, prefix: str) -> Mapping[tuple[str, str], float]:
    """Read an answer of Prometheus; raises `ValueError` where it is none. Series that say no work of a pod are left out."""
    found = json.loads(answer)
    data = found.get("data") if isinstance(found, dict) else None
    series = data.get("result") if isinstance(data, dict) else None
    if not isinstance(series, list):
        raise ValueError("Prometheus answers with something other than series")  # noqa: TRY004 - of a value
    most: dict[tuple[str, str], float] = {}
    for one in series:
        try:
            pod, percent = _pod_of(one["metric"], prefix), float(one["value"][1])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            continue
        if pod is not None and math.isfinite(percent) and 0 <= percent <= 100:
            most[pod] = max(most.get(pod, 0.0), percent / 100)
    return most


def _pod_of(labels: Mapping[str, Any], prefix: str) -> tuple[str, str] | None:
    """Return the pod that a GPU is given to; None if there is none, or if the series comes from a pod of a tenant.

    Where Prometheus keeps its own labels, `exported_pod` is the pod with the GPU, and `pod` is where the series comes from.
    """
    own = str(labels.get("namespace", "")), str(labels.get("pod", ""))
    exported = str(labels.get("exported_namespace", "")), str(labels.get("exported_pod", ""))
    if any(exported):
        return exported if all(exported) and not own[0].startswith(prefix) else None
    return own if all(own) else None
