"""Work of attempts, of their GPUs and processors: as the cluster measures it, otherwise as ranks wrote it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from mlp_hub.domain.jobs.idle_gpus import WORKS_CORES, WORKS_GPU
from mlp_hub.executors.base import AttemptWork, most_of
from mlp_hub.executors.kubernetes import records
from mlp_hub.executors.kubernetes.attempt_claims import AttemptClaim
from mlp_hub.executors.kubernetes.cache import Cache
from mlp_hub.executors.kubernetes.metering.believed import PodUse
from mlp_hub.executors.kubernetes.metering.pod_meter import PodMeter
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.kubernetes import names


class AttemptWorkMeter:
    """Work and use of attempts that have claims. `look` runs a function that reads files in a thread."""

    def __init__(
        self,
        cache: Cache,
        directories: Directories,
        pods: PodMeter,
        look: Callable[..., Awaitable[Any]],
    ) -> None:
        self._cache, self._directories, self._pods, self._look = cache, directories, pods, look
        self._gpu_looks: dict[str, dict[int, int]] = {}  # of ranks, at the last look at their work

    async def run(self) -> None:
        """Measure the pods of all attempts, for ever; without the cluster there is nothing to measure."""
        await self._cache.seen()
        await self._pods.run(self._cache.attempts)

    async def work_of(self, attempts: Collection[str]) -> Mapping[str, AttemptWork]:
        """Return the work as the cluster measures it, else as ranks wrote it since the last call."""
        claims = [claim for one in attempts if (claim := self._cache.claims.get(one)) is not None]
        found = {claim.attempt: await self._look(self.reported, claim) for claim in claims}
        self._gpu_looks = {one: looks for one, (_, looks) in found.items()}
        return {claim.attempt: self.believed(claim, found[claim.attempt][0]) for claim in claims}

    def reported(self, claim: AttemptClaim) -> tuple[AttemptWork, dict[int, int]]:
        """Return the work that the ranks of an attempt wrote, and the numbers of their looks at their GPUs."""
        about = claim.about
        ranks = records.read(self._directories.workspace(about.of_run), claim.attempt, len(about.roles))
        running = {n: one.use or records.RankUse() for n, one in ranks.items() if one.state == "running"}
        before = self._gpu_looks.get(claim.attempt, {})
        gpus = [use.gpu if use.gpu_looks != before.get(n, 0) else None for n, use in running.items()]
        cores = [use.cpu for use in running.values()]
        unseen: list[float | None] = [None] * (len(about.roles) - len(ranks))
        work = AttemptWork(
            most_of(gpus + unseen, WORKS_GPU), most_of(cores + unseen, WORKS_CORES), True, True
        )
        return work, {n: use.gpu_looks for n, use in running.items()}

    def believed(self, claim: AttemptClaim, told: AttemptWork) -> AttemptWork:
        """Return the work of an attempt by the cluster's measures of the pods that run, as far as there are any."""
        ranks = {pod.rank for pod in self._cache.pods(claim) if pod.rank is not None and not pod.over}
        keys = [(names.label_value(claim.attempt), rank) for rank in ranks]
        gpu = most_of(map(self._pods.gpu_of, keys), WORKS_GPU)
        uses = map(self._pods.use_of, keys)
        cores = most_of((None if use is None else use.cpu for use in uses), WORKS_CORES)
        if gpu is not None:
            told = replace(told, gpu=gpu, gpu_reported=False)
        return told if cores is None else replace(told, cores=cores, cores_reported=False)

    def use_of_ranks(self, claim: AttemptClaim) -> Mapping[int, PodUse]:
        """Return the use of the ranks of an attempt that the cluster has measured."""
        label = names.label_value(claim.attempt)
        found = {rank: self._pods.use_of((label, rank)) for rank in range(len(claim.about.roles))}
        return {rank: use for rank, use in found.items() if use is not None}
