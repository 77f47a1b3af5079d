"""Use of the pods of ranks, as the cluster's metrics API has it, looked at while attempts run; and the work of their GPUs.

No program of a tenant can write it: kubelets measure it. It is in memory alone. After a start of the service, or a change of the
leader, means are of the looks since then.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mlp_hub.executors.kubernetes.metering.believed import PodUse
from mlp_hub.executors.kubernetes.metering.gpu_metrics import GpuMetrics
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ClusterError, ClusterUnreachable, ForbiddenError, MissingObjectError
from mlp_hub.kubernetes.kinds import POD_METRICS, name_of, namespace_of
from mlp_hub.kubernetes.quantities import milli, whole

log = logging.getLogger(__name__)
EVERY_S = 30.0
"""Tuning: seconds between two looks: requests, for how exact means are. A metrics server measures each 15 s; idle GPUs are looked for each 30 s."""
ABSENT_S = 300.0
"""Tuning: seconds until the next look after an answer that the hub may not ask, or that nothing measures."""
FRESH_S = 100.0
"""Tuning: seconds for which a look says what pods use now: three looks, of which one may fail."""
ANSWER_S = 20.0
"""Safety: seconds after which a request without an answer is given up."""
MOST_CORES, MOST_MIB = 1e5, 1 << 40
"""Safety: more than any pod can use; a larger amount is not one of this unit."""
MIB = 2**20
"""Given: bytes of the unit of a rank's memory."""

Rank = tuple[str, int]
"""An attempt, as the label of its pods has it, and a rank of it."""


@dataclass(slots=True)
class _Looks:
    """Sums over the looks at a rank's pods: cores and MiB."""

    stamp: str = ""
    number: int = 0
    cpu: float = 0.0
    ram: int = 0
    cpu_sum: float = 0.0
    ram_sum: int = 0
    cpu_peak: float = 0.0
    ram_peak: int = 0
    at: float = float("-inf")
    gpu: float | None = field(default=None)
    gpu_at: float = float("-inf")

    def see(self, at: float, stamp: str, cpu: float, ram: int) -> None:
        if stamp == self.stamp:
            return  # the cluster has not measured it again
        self.stamp, self.at, self.cpu, self.ram = stamp, at, cpu, ram
        self.number += 1
        self.cpu_sum += cpu
        self.ram_sum += ram
        self.cpu_peak, self.ram_peak = max(self.cpu_peak, cpu), max(self.ram_peak, ram)


class PodMeter:
    """Looks at the pods of ranks while there are attempts. `steady` is a clock that nobody sets."""

    def __init__(
        self,
        client: KubernetesClient,
        selector: str,
        rank_of: Callable[[str, str], Rank | None],
        gpus: GpuMetrics | None = None,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._selector, self._rank_of = client, selector, rank_of
        self._gpus, self._steady = gpus, steady
        self._looks: dict[Rank, _Looks] = {}
        self._due = float("-inf")

    async def run(self, attempts: Callable[[], Collection[str]]) -> None:
        """Look again and again. `attempts` are those of which anything is left, as labels have them."""
        while True:
            try:
                await self.look(attempts())
            except Exception:  # it is tried again soon
                log.exception("measuring the use of pods failed")
            await asyncio.sleep(EVERY_S)

    async def look(self, attempts: Collection[str]) -> None:
        """Look once, and forget the ranks of other attempts."""
        self._looks = {rank: looks for rank, looks in self._looks.items() if rank[0] in attempts}
        if not attempts:
            return
        if self._steady() >= self._due:
            await self._look_at_pods(attempts)
        if self._gpus is not None:
            now = self._steady()
            for (namespace, name), work in (await self._gpus.read()).items():
                if (rank := self._rank_of(namespace, name)) is not None and rank[0] in attempts:
                    looks = self._looks.setdefault(rank, _Looks())
                    looks.gpu, looks.gpu_at = work, now

    def use_of(self, rank: Rank) -> PodUse | None:
        """Return the measured use of a rank; None if no look saw it."""
        looks = self._looks.get(rank)
        if looks is None or not looks.number:
            return None
        fresh, n = self._steady() - looks.at <= FRESH_S, looks.number
        return PodUse(
            looks.cpu if fresh else None,
            looks.ram if fresh else None,
            looks.cpu_sum / n,
            looks.cpu_peak,
            round(looks.ram_sum / n),
            looks.ram_peak,
        )

    def gpu_of(self, rank: Rank) -> float | None:
        """Return the most that a GPU of a rank did lately, from 0 to 1; None if it is not measured."""
        looks = self._looks.get(rank)
        return looks.gpu if looks is not None and self._steady() - looks.gpu_at <= FRESH_S else None

    async def _look_at_pods(self, attempts: Collection[str]) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                answer = await self._client.read(POD_METRICS.path(), {"labelSelector": self._selector})
            now, live = self._steady(), _found(answer)
        except (ForbiddenError, MissingObjectError) as error:
            self._due = self._steady() + ABSENT_S
            log.info("the use of pods is not measured: %s", error)
            return
        except (ClusterError, ClusterUnreachable, TimeoutError, ValueError) as error:
            log.debug("the use of pods is not known now: %s", error)
            return
        for namespace, name, stamp, cpu, ram in live:
            if (rank := self._rank_of(namespace, name)) is not None and rank[0] in attempts:
                self._looks.setdefault(rank, _Looks()).see(now, stamp, cpu, ram)


def _found(answer: bytes) -> Iterator[tuple[str, str, str, float, int]]:
    """Read an answer; raises `ValueError` where it is none. Entries that cannot be read are left out."""
    found = json.loads(answer)
    items = found.get("items") if isinstance(found, dict) else None
    if not isinstance(items, list):
        raise ValueError("the metrics API answers with something other than a list")  # noqa: TRY004 - of a value
    return (one for item in items if (one := _entry(item)) is not None)


def _entry(item: Any) -> tuple[str, str, str, float, int] | None:
    try:
        used: list[Mapping[str, Any]] = [each["usage"] for each in item["containers"]]
        cpu = sum(milli(each["cpu"]) for each in used) / 1000
        ram = sum(whole(each["memory"]) for each in used) // MIB
        stamp = str(item["timestamp"])
        namespace, name = namespace_of(item), name_of(item)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None  # an entry of another version, or of a pod that has just begun
    good = bool(used) and 0 <= cpu <= MOST_CORES and 0 <= ram <= MOST_MIB
    return (namespace, name, stamp, cpu, ram) if good else None
