"""Execution of attempts as pods of a cluster.

All state of an attempt is in the cluster and on the volume of all files. A hub that starts again
finds there the running and ended attempts, and begins nothing a second time. Looks cost the cluster
nothing, because watches keep a copy of the relevant data.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import ParamSpec, TypeVar

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import OutOfReach
from mlp_hub.domain.jobs.job import Failure
from mlp_hub.executors.base import (
    AttemptKey,
    AttemptPhase,
    AttemptWork,
    CannotStart,
    DiskUse,
    LaunchSpec,
    Observation,
)
from mlp_hub.executors.external import ExternalJobs
from mlp_hub.executors.kubernetes import pod_problems, records
from mlp_hub.executors.kubernetes.app_keys import AppKeys
from mlp_hub.executors.kubernetes.attempt_claims import (
    END,
    AttemptClaim,
    End,
    about_of,
    claim_object,
    object_name,
    owned_by,
)
from mlp_hub.executors.kubernetes.cache import Cache
from mlp_hub.executors.kubernetes.creating import created, created_unread
from mlp_hub.executors.kubernetes.fence import ClusterFence
from mlp_hub.executors.kubernetes.gang import Gang, describe
from mlp_hub.executors.kubernetes.installation import APP_PORT, Installation
from mlp_hub.executors.kubernetes.metering.attempt_work import AttemptWorkMeter
from mlp_hub.executors.kubernetes.metering.gpu_metrics import GpuMetrics
from mlp_hub.executors.kubernetes.metering.pod_meter import PodMeter
from mlp_hub.executors.kubernetes.no_pods import AttemptComplaints
from mlp_hub.executors.kubernetes.nodes.measured import NodeMeter
from mlp_hub.executors.kubernetes.nodes.placed import PlacedNodes
from mlp_hub.executors.kubernetes.operators import OperatorWays
from mlp_hub.executors.kubernetes.put_off import ActsPutOff
from mlp_hub.executors.kubernetes.sync_loop import SyncLoop
from mlp_hub.executors.kubernetes.tenancy import given
from mlp_hub.executors.kubernetes.verdict import ENDED, AttemptVerdict, Scene, judge, settled
from mlp_hub.executors.node_use import NodeUse
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.executors.shared_volume.log_reader import SharedVolumeLogs
from mlp_hub.executors.shared_volume.prepare import make_directories, show_model
from mlp_hub.executors.shared_volume.workspace import SharedVolumeWorkspace
from mlp_hub.executors.workspace import Home
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import ForbiddenError, InvalidObjectError
from mlp_hub.kubernetes.kinds import CONFIG_MAPS, NAMESPACES, PODS, SECRETS, Kind, Object
from mlp_language.message import Message

log = logging.getLogger(__name__)
P = ParamSpec("P")
T = TypeVar("T")
LOOKERS = 4
"""Tuning: threads that look at files of ranks: threads, for how long one waits for a slow volume."""
ENDS_S = 2.0
"""Tuning: seconds for an ended attempt's pods to end: API calls to remove them, for their extra time."""


class KubernetesExecutor(SharedVolumeLogs):
    """Executor of a cluster; see `Executor` for the promises of its methods, `ClusterFence` for epochs.

    `nodes` is the view of the cluster's nodes, and `on_nodes` reports its changes. `device` is the
    resource by which a node gives out its GPUs. `app_key` is the secret that keys of apps' pods are
    derived from. Without one, the keys belong to this process alone.
    """

    name = "kubernetes"
    keeps_tenants = False
    external_jobs: ExternalJobs | None = None
    images = True
    environments = None
    serves = True
    drains = False
    limits = False
    measures = False

    def __init__(
        self,
        client: KubernetesClient,
        at: Installation,
        ways: OperatorWays,
        nodes: Callable[[], Sequence[NodeInfo]],
        on_nodes: Callable[[Callable[[], None]], None] = lambda _callback: None,
        *,
        device: Callable[[str], str | None] = lambda _node: None,
        clock: Callable[[], float] = time.time,
        app_key: str = "",
    ) -> None:
        super().__init__(at.directories)
        self._app_keys = AppKeys(app_key)
        self._client, self._at, self._ways, self._clock = client, at, ways, clock
        self._nodes, self._on_nodes = nodes, on_nodes
        self._placed = PlacedNodes(nodes, device, chosen=not at.namespaces)
        self._meter = NodeMeter(client, nodes)
        self._fence = ClusterFence(client, at.namespace, f"{at.name}-epoch")
        self.workspace = SharedVolumeWorkspace(at.directories, self._fence)
        self._tending = SyncLoop(self._advance)
        self._put_off = ActsPutOff(self._changed, lambda: self._cache.trouble is not None)
        self._cache = Cache(
            client,
            at.selector,
            ways.served,
            self._tending.news,
            self._vanished,
            answers_again=self._put_off.answers_again,
        )
        gpus = at.gpu_metrics and GpuMetrics(client, at.gpu_metrics, at.gpu_metrics_job, f"{at.name}-")
        pods = PodMeter(client, f"{at.selector},{names.ATTEMPT}", self._cache.rank_of, gpus or None)
        self._work = AttemptWorkMeter(self._cache, at.directories, pods, self._look)
        self._epoch = 0  # of the service that this one works for
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._final: dict[str, tuple[str, Observation]] = {}  # by attempt: the claim's uid, and how it ended
        self._lost: dict[str, Observation] = {}  # whose claims went without us
        self._complaints = AttemptComplaints(client, clock)
        self._tasks = [
            BackgroundTask(work) for work in (self._fence.copy.run, self._tend_all, self._work.run)
        ]
        self._lookers = ThreadPoolExecutor(LOOKERS, "attempts")

    # -- the interface

    async def open(self) -> None:
        """Find the work that an earlier hub started; every other call does so where it was not done."""
        await self._open()

    def nodes(self) -> Sequence[NodeInfo]:
        """List the cluster's nodes."""
        return self._nodes()

    def on_nodes(self, callback: Callable[[], None]) -> None:
        """Call back whenever `nodes` tells something else."""
        self._on_nodes(callback)

    @property
    def cluster_calls(self) -> Mapping[str, int]:
        """Return the numbers of requests by verb and kind."""
        return self._client.calls

    async def node_use(self, *, known: bool = False) -> Sequence[NodeUse]:
        """Return the use of processors and memory that the cluster's metrics API has; disks, networks and GPUs are its exporters'."""
        return self._meter.known() if known else await self._meter.read()

    def namespace_of(self, tenant: str) -> str:
        """Return the namespace of a tenant's pods."""
        return self._at.namespace_of(tenant)

    def trouble(self) -> Message | None:
        """Say that the cluster is not heard of, and why."""
        error = self._cache.trouble or self._fence.copy.trouble
        return None if error is None else pod_problems.of_cluster(error)

    async def lacks(self, package: str, user: str) -> bool:
        """Say no: nobody can look into an image from here."""
        del package, user
        return False

    async def epoch(self) -> int:
        """Return the highest epoch that was ever seen in the cluster."""
        return await self._fence.read()

    async def fence(self, epoch: int, wait_s: float) -> None:
        """Refuse older epochs from now on; return once work that this process began under one is over."""
        await self._open()
        await self._fence.raise_to(epoch, wait_s)
        self._epoch = max(self._epoch, epoch)
        await self._cache.refresh()

    async def start(self, spec: LaunchSpec, epoch: int = 0) -> None:
        """Create the claim and what it owns, unless the attempt was ever started."""
        async with self._acting(spec.attempt, epoch):
            claim = self._cache.claims.get(spec.attempt)
            if claim is None and spec.attempt not in self._lost:
                await self._start(spec)
            elif claim is not None and claim.end is None and not self._was_made(claim):
                await self._make(claim, await self._look(self._described, spec, claim.about.key))

    async def stop(
        self, attempt: str, grace_s: float, epoch: int = 0, failure: Failure | None = None
    ) -> None:
        """Write down that it ends so, and delete its pods with this grace."""
        async with self._acting(attempt, epoch):
            claim = self._cache.claims.get(attempt)
            if claim is None:
                return
            if claim.end is None:
                seen = (await self._judged(claim)).seen
                if seen.phase in ENDED:
                    return
                phase = AttemptPhase.STOPPED if failure is None else AttemptPhase.FAILED
                claim = await self._write_end(claim, End(phase, self._clock(), grace_s, failure))
            await self._remove(claim, grace_s)

    async def kill(self, attempt: str, epoch: int = 0, failure: Failure | None = None) -> None:
        """Delete its pods again, now without a grace: a frozen process is killed by the kubelet."""
        await self.stop(attempt, 0.0, epoch, failure)

    async def limit(self, attempt: str, time_limit: float | None, epoch: int = 0) -> None:
        """Do nothing: a pod keeps the limit that it was started with."""

    def address(self, attempt: str) -> str:
        """Return where its pod listens, and by which key that is known; nothing while there is none."""
        claim = self._cache.claims.get(attempt)
        key = "" if claim is None else self._app_keys.of(claim.about)
        if claim is None or not key:
            return ""
        for pod in self._cache.pods(claim):
            if pod.address and pod.leaves_at is None and not pod.over:
                host = f"[{pod.address}]" if ":" in pod.address else pod.address
                return f"{key}@{host}:{APP_PORT}"
        return ""

    async def collect(self, attempt: AttemptKey, epoch: int = 0) -> None:
        """Do nothing: ranks write their logs and spools where they are read from."""

    async def forget(self, attempt: str, epoch: int = 0) -> None:
        """Delete the claim, and with it all that it owns."""
        async with self._acting(attempt, epoch):
            claim = self._cache.claims.get(attempt)
            if claim is not None:
                if (await self._judged(claim)).seen.phase not in ENDED or await self._lives_on(claim):
                    await self._remove(claim, 0.0)
                self._cache.removing(claim)
                await self._client.delete(CONFIG_MAPS, claim.name, claim.namespace, uid=claim.uid)
                self._cache.forget(claim)
            for memory in (self._final, self._lost, self._tending.last):
                memory.pop(attempt, None)
            self._complaints.forget(attempt)
        self._locks.pop(attempt, None)

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Return the state of these attempts, from the copy and from the files that their ranks wrote."""
        await self._open()
        seen = await asyncio.gather(*(self._observe(attempt) for attempt in attempts))
        return {each.attempt: each for each in seen}

    async def known(self) -> Sequence[str]:
        """List all attempts that have a claim, or had one that somebody else removed."""
        await self._open()
        return sorted({*self._cache.claims, *self._lost})

    async def disk_use(self, whose: Collection[str | Home]) -> Mapping[str | Home, DiskUse]:
        """Tell nothing: only a node knows what processes of its pods write, and asking it would be a call for each node."""
        del whose
        return {}

    async def work_of(self, attempts: Collection[str]) -> Mapping[str, AttemptWork]:
        """Return the work of GPUs and processors as the cluster measures it, else as ranks wrote it since the last look."""
        return await self._work.work_of(attempts)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt id, on the event loop, whenever looking again is worth it."""
        self._tending.listeners.append(callback)

    async def close(self) -> None:
        """Stop watching; running attempts continue."""
        self._put_off.close()
        await self._meter.close()
        await asyncio.gather(*(task.stop() for task in self._tasks))
        await self._cache.close()

    # -- acts

    @contextlib.asynccontextmanager
    async def _acting(self, attempt: str, epoch: int) -> AsyncIterator[None]:
        try:
            await self._open()
            async with self._fence.act(epoch), self._locks[attempt]:
                self._epoch = max(self._epoch, epoch)
                yield
        except OutOfReach:
            self._put_off.add(attempt)
            raise
        else:
            self._put_off.succeeded()

    def _changed(self, attempt: str) -> None:
        for listener in self._tending.listeners:
            listener(attempt)

    async def _start(self, spec: LaunchSpec) -> None:
        if (lacks := given.not_listed(self._at, spec.tenant)) is not None:
            raise CannotStart(lacks)
        gone = self._placed.gone(spec)
        # whether ranks of it ever began, whatever became of its claim
        ran = await self._look(
            records.read, self._directories.workspace(spec.of_run), spec.attempt, spec.ranks
        )
        gang = await self._look(self._described, spec)
        kind, main = gang.main
        about = about_of(spec, kind, self._clock(), gang.group)
        end = None
        if gone or ran:
            lost = (
                pod_problems.rank_lost(None, min(gone))
                if gone
                else pod_problems.claim_deleted(object_name(spec))
            )
            end = End(AttemptPhase.LOST, self._clock(), 0.0, lost)
        wanted = claim_object(about, main, end)
        try:
            made = await created(self._client, CONFIG_MAPS, wanted)
        except (ForbiddenError, InvalidObjectError) as error:
            raise CannotStart(pod_problems.refused(CONFIG_MAPS.kind, error.said).localized_message) from error
        claim = self._cache.learn_claim(made)
        if claim.end is None:
            await self._make(claim, gang)

    async def _make(self, claim: AttemptClaim, gang: Gang) -> None:
        """Create the objects of a claim; those that the cluster refuses have failed for good."""
        for at_once in ((gang.secret, *gang.beside), (gang.main,)):
            done = await asyncio.gather(
                *(self._make_one(claim, kind, wanted) for kind, wanted in at_once), return_exceptions=True
            )
            for refused in done:
                if isinstance(refused, BaseException):
                    raise refused
                if refused is not None:
                    await self._write_end(claim, End(AttemptPhase.FAILED, self._clock(), 0.0, refused))
                    return

    async def _make_one(self, claim: AttemptClaim, kind: Kind, wanted: Object) -> Failure | None:
        """Make an object that a claim owns; return the failure where the cluster refuses it."""
        wanted["metadata"]["ownerReferences"] = owned_by(claim)
        try:
            if kind == SECRETS:
                await created_unread(self._client, kind, wanted)
                return None
            made = await created(self._client, kind, wanted)
        except (ForbiddenError, InvalidObjectError) as error:
            return pod_problems.refused(kind.kind, error.said)
        self._cache.learn_made(kind, made)
        return None

    async def _write_end(self, claim: AttemptClaim, end: End) -> AttemptClaim:
        """Write down for good how an attempt ends."""
        patch = {"metadata": {"uid": claim.uid, "annotations": {END: end.text()}}}
        return self._cache.learn_claim(
            await self._client.patch(CONFIG_MAPS, claim.name, patch, claim.namespace)
        )

    async def _remove(self, claim: AttemptClaim, grace_s: float) -> None:
        """Delete an attempt's objects: first those that would recreate pods, then the pods, which get SIGTERM."""
        main = self._cache.main(claim)
        if main is not None and not main.leaving:
            await self._client.delete(claim.about.kind, main.name, main.namespace, uid=main.uid)
        if self._cache.pods(claim):
            await self._client.delete_all(
                PODS, claim.namespace, labels=claim.selector, grace_s=max(1, math.ceil(grace_s))
            )

    # -- looking

    async def _observe(self, attempt: str) -> Observation:
        claim = self._cache.claims.get(attempt)
        if claim is None:
            return self._lost.get(attempt) or Observation(attempt, AttemptPhase.ABSENT)
        return (await self._judged(claim)).seen

    async def _judged(self, claim: AttemptClaim) -> AttemptVerdict:
        known = self._final.get(claim.attempt)
        if known is not None and known[0] == claim.uid:
            return AttemptVerdict(known[1])
        about = claim.about
        workspace = self._directories.workspace(about.of_run)
        found = await self._look(records.read, workspace, claim.attempt, len(about.roles))
        claim = self._cache.claims.get(claim.attempt, claim)
        pods = self._cache.pods(claim)
        verdict = judge(
            Scene(
                claim,
                self._cache.main(claim),
                self._was_made(claim) or bool(found),
                pods,
                found,
                self._clock(),
                self._placed.silent((*about.nodes, *(pod.node for pod in pods))),
                self._complaints.of(claim.attempt),
                self._cache.has_group(claim),
                claim.uid in self._cache.told,
                self._work.use_of_ranks(claim),
            )
        )
        if verdict.seen.phase in ENDED:
            verdict = replace(verdict, seen=await self._with_lost_lines(verdict.seen, claim, found))
            self._final[claim.attempt] = claim.uid, verdict.seen
        return verdict

    async def _with_lost_lines(
        self, seen: Observation, claim: AttemptClaim, found: Mapping[int, records.RankRecord]
    ) -> Observation:
        """Add the lines that ranks lost which did not come to record their end."""
        ranks = range(len(claim.about.roles))
        cut = [rank for rank in ranks if found.get(rank, records.RUNNING).state == records.RUNNING.state]
        if not cut:
            return seen
        workspace = self._directories.workspace(claim.about.of_run)
        lost = await self._look(records.lost_lines, workspace, claim.attempt, cut)
        return replace(seen, lost_lines=seen.lost_lines + lost)

    async def _lives_on(self, claim: AttemptClaim) -> bool:
        """Return whether pods continue after the end of an attempt.

        Its ranks have reported the end, which their program can write as well. A remaining pod gets no
        time, because its quota is free. A pod that ends by itself is a moment behind its ranks' report.
        """
        for _ in range(20):
            if all(pod.over for pod in self._cache.pods(claim)):
                return False
            await asyncio.sleep(ENDS_S / 20)
        return True

    def _was_made(self, claim: AttemptClaim) -> bool:
        return claim.uid in self._cache.made

    async def _look(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._lookers, partial(work, *args, **kwargs))

    def _described(self, spec: LaunchSpec, key: str = "") -> Gang:
        if spec.listens:
            key = key or self._app_keys.key_of(spec.user, spec.attempt)
            variables = {"MLP_APP_PORT": str(APP_PORT), "MLP_APP_KEY": key}
            spec = replace(spec, env={**spec.env, **variables})
        gang = describe(spec, self._at, self._ways, object_name(spec), self._placed.devices(spec))
        root = os.geteuid() == 0
        make_directories(spec, self._directories, root=root, ranks_log=True)
        if spec.model is not None:
            show_model(spec, self._directories, root=root)
        return gang

    # -- what happens without being asked for

    async def _open(self) -> None:
        if not self._tasks[0].is_started:
            self._fence.begin()
            self._cache.begin()
            for task in self._tasks:
                task.start()
        await self._cache.synced()

    def _vanished(self, claim: AttemptClaim) -> None:
        """Remember an attempt whose claim somebody else removed: with it goes all that runs."""
        if claim.attempt in self._final:
            self._lost[claim.attempt] = self._final[claim.attempt][1]
            return
        failure = pod_problems.claim_deleted(claim.name)
        self._lost[claim.attempt] = Observation(
            claim.attempt, AttemptPhase.LOST, None, self._clock(), failure=failure
        )

    async def _tend_all(self) -> None:
        """See to attempts, not before all was seen: somebody with a newer epoch may be at work."""
        await asyncio.gather(self._fence.copy.synced(), self._cache.seen())
        await self._tending.run()

    async def _advance(self, attempt: str) -> tuple[Observation, bool]:
        """Advance an attempt by the steps that only the hub takes; see `tending.Advance`."""
        claim = self._cache.claims.get(attempt)
        if claim is None:
            return self._lost.get(attempt) or Observation(attempt, AttemptPhase.ABSENT), True
        verdict = await self._judged(claim)
        if verdict.end is not None or claim.end is not None:
            async with self._fence.act(self._epoch), self._locks[attempt]:
                now = self._cache.claims.get(attempt)
                if now is not None and now.end is None and verdict.end is not None:
                    now = await self._write_end(now, await self._with_its_namespace(now, verdict.end))
                if now is not None and now.end is not None and self._cache.left(now):
                    await self._remove(now, now.end.grace_s)
        elif verdict.seen.phase is AttemptPhase.STARTING:
            await self._complaints.ask(claim, self._cache.pods(claim))
        return verdict.seen, settled(verdict, claim)

    async def _with_its_namespace(self, claim: AttemptClaim, end: End) -> End:
        """Return an end, of an attempt that was lost with its namespace with that reason: its pods go one by one."""
        if end.phase is not AttemptPhase.LOST:
            return end
        found = await self._client.get(NAMESPACES, claim.namespace)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            return end
        return replace(end, failure=pod_problems.namespace_deleted(claim.namespace))
