"""Attempts of jobs that people brought: begun when their object is released, ended when it is held.

All state is on the object itself: the attempt's id, its end, and whether it is held. So a hub that
starts again begins nothing a second time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import OutOfReach
from mlp_hub.domain.jobs.job import ExternalJob, Failure
from mlp_hub.executors.base import AttemptPhase, CannotStart, LaunchSpec, Observation
from mlp_hub.executors.kubernetes import no_pods, pod_problems
from mlp_hub.executors.kubernetes.attempt_claims import End
from mlp_hub.executors.kubernetes.external import complaints, patches
from mlp_hub.executors.kubernetes.external.admission_gate import AdmissionGate
from mlp_hub.executors.kubernetes.external.judging import alive, judge
from mlp_hub.executors.kubernetes.external.objects import ExternalObjects
from mlp_hub.executors.kubernetes.external.views import ExternalView, view_of
from mlp_hub.executors.kubernetes.fence import ClusterFence
from mlp_hub.executors.kubernetes.installation import Installation
from mlp_hub.executors.kubernetes.pod_problems import Complaint
from mlp_hub.executors.kubernetes.sync_loop import SyncLoop
from mlp_hub.executors.kubernetes.tenancy.objects.network import between_ranks
from mlp_hub.executors.kubernetes.verdict import ENDED, AttemptVerdict
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.kubernetes import names
from mlp_hub.kubernetes.client import KubernetesClient
from mlp_hub.kubernetes.errors import (
    ConflictingObjectError,
    ForbiddenError,
    InvalidObjectError,
    MissingObjectError,
)
from mlp_hub.kubernetes.kinds import JOBS, MPI_JOBS, NETWORK_POLICIES, PODS, Kind, labels_of
from mlp_language.message import msg

log = logging.getLogger(__name__)
TRIES = 4
"""Safety: tries to let an object run that changes meanwhile."""


class ExternalAttempts:
    """Executor's work on attempts of jobs that people brought; `jobs` is the service's view of them.

    `tenant_of` returns the tenant of a namespace, None where the namespace is not this hub's. `nodes`
    are the cluster's nodes.
    """

    def __init__(  # noqa: PLR0917 - all of them are another's
        self,
        client: KubernetesClient,
        at: Installation,
        served: Collection[Kind],
        fence: ClusterFence,
        nodes: Callable[[], Sequence[NodeInfo]],
        tenant_of: Callable[[str], str | None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client, self._at, self._fence = client, at, fence
        self._nodes, self._tenant_of, self._clock = nodes, tenant_of, clock
        self._tending = SyncLoop(self._advance, tells_news=True)
        self._objects = ExternalObjects(client, at, served, self._changed, self._tending.news)
        self.jobs = AdmissionGate(client, self._objects, fence, tenant_of)
        self._epoch = 0
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._gone: dict[str, Observation] = {}  # whose objects somebody deleted, as they were last
        self._launched: set[str] = set()
        self._complaints: dict[str, tuple[float, float, Complaint | None]] = {}
        self._task = BackgroundTask(self._tend_all)

    async def seen(self) -> None:
        """Return once all were listed."""
        self.begin()
        await self._objects.seen()

    def begin(self) -> None:
        """Begin to watch, where that is not done."""
        self._objects.begin()
        self._task.start()

    async def close(self) -> None:
        """Stop watching; running work continues."""
        await self._task.stop()
        await self._objects.close()

    def lead(self, epoch: int) -> None:
        """Act under this epoch from now on, and look at all there is."""
        self._epoch = max(self._epoch, epoch)
        for view in self._objects.all():
            self._changed(view.what.uid, view, view)

    def on_change(self, callback: Callable[[str], None]) -> None:
        """Call back with an attempt whenever looking again is worth it."""
        self._tending.listeners.append(callback)

    def knows(self, attempt: str) -> bool:
        """Whether an attempt is of an object that somebody brought."""
        return attempt in self._gone or self._objects.of_attempt(attempt) is not None

    def known(self) -> list[str]:
        """List all attempts of such objects."""
        return [view.attempt for view in self._objects.all() if view.attempt is not None] + [*self._gone]

    async def start(self, spec: LaunchSpec, what: ExternalJob, epoch: int) -> None:
        """Let the object run, unless it was let run as this attempt before."""
        async with self._acting(spec.attempt, epoch):
            known = self._objects.find(what.uid)
            if known is not None and known.attempt == names.label_value(spec.attempt):
                return
            try:
                await self._try_to_start(spec, what, known)
            except (ForbiddenError, InvalidObjectError) as error:
                if isinstance(error, ForbiddenError) and error.passes:
                    raise OutOfReach(error.message) from error
                raise CannotStart(pod_problems.refused(what.kind, error.said).localized_message) from error
            self._tending.news(spec.attempt)

    async def stop(self, attempt: str, grace_s: float, epoch: int, failure: Failure | None) -> None:
        """Hold the object again, write down that it ends so, and end its pods with this grace."""
        async with self._acting(attempt, epoch):
            if (gone := self._gone.get(attempt)) is not None:
                if gone.phase not in ENDED:
                    del self._gone[attempt]
                return
            view = self._objects.of_attempt(attempt)
            if view is None or view.over:
                return
            if view.end is None:
                phase = AttemptPhase.STOPPED if failure is None else AttemptPhase.FAILED
                await self._objects.patch(
                    view.what, patches.holds(view, End(phase, self._clock(), grace_s, failure))
                )
            await self._end_pods(view, attempt, grace_s)
            self._tending.news(attempt)

    async def forget(self, attempt: str, epoch: int) -> None:
        """Hold the object where it has not ended, and have it be of no attempt."""
        async with self._acting(attempt, epoch):
            for memory in (self._gone, self._tending.last, self._complaints):
                memory.pop(attempt, None)
            self._tending.settle(attempt)
            self._launched.discard(attempt)
            view = self._objects.of_attempt(attempt)
            if view is not None:
                with contextlib.suppress(MissingObjectError, ConflictingObjectError):  # it has gone meanwhile
                    await self._forget(view, attempt)
        self._locks.pop(attempt, None)

    async def observe(self, attempts: Sequence[str]) -> Mapping[str, Observation]:
        """Return the state of these attempts."""
        return {attempt: self._observe(attempt) for attempt in attempts}

    # -- acts

    @contextlib.asynccontextmanager
    async def _acting(self, attempt: str, epoch: int) -> AsyncIterator[None]:
        async with self._fence.act(epoch), self._locks[attempt]:
            self._epoch = max(self._epoch, epoch)
            yield

    async def _try_to_start(self, spec: LaunchSpec, what: ExternalJob, known: ExternalView | None) -> None:
        """Begin, though controllers write their status meanwhile."""
        for left in reversed(range(TRIES)):
            try:
                await self._start(spec, what, known)
            except (ConflictingObjectError, MissingObjectError):
                if not left:
                    raise
            else:
                break

    async def _start(self, spec: LaunchSpec, what: ExternalJob, known: ExternalView | None) -> None:
        found = await self._objects.get(what)
        view = None if found is None or known is None else view_of(known.form, self._at, found)
        if view is None or found is None:
            raise _not_there(what)
        if (view.ranks, view.per_pod) != (spec.ranks, spec.per_worker):
            raise CannotStart(
                msg(
                    "its {kind} was changed after it was submitted, and now asks for something else; create another one",
                    kind=what.kind,
                )
            )
        gone = set(spec.placement) - {node.name for node in self._nodes()}
        end = None
        if gone:
            end = End(AttemptPhase.LOST, self._clock(), 0.0, pod_problems.rank_lost(None, min(gone)))
        elif view.ranks > 1:
            await self._connect(spec, view)
        version = found["metadata"]["resourceVersion"]
        if end is None and view.form.kind == JOBS and view.started:
            reset = {**patches.UNTIMED, "metadata": {"resourceVersion": version}}
            again = await self._client.patch(JOBS, what.name, reset, what.namespace, status=True)
            version = again["metadata"]["resourceVersion"]
        await self._objects.patch(what, patches.lets_run(self._at, view, spec, version, end))

    async def _connect(self, spec: LaunchSpec, view: ExternalView) -> None:
        """Let its pods reach each other."""
        kind, wanted = between_ranks(self._at, spec.tenant, names.label_value(spec.attempt), _way(view))
        wanted["metadata"]["ownerReferences"] = [
            {
                "apiVersion": view.form.kind.api_version,
                "kind": view.what.kind,
                "name": view.name,
                "uid": view.what.uid,
            }
        ]
        await self._client.apply(wanted, kind)

    async def _forget(self, view: ExternalView, attempt: str) -> None:
        if not view.over and (not view.suspended or alive(self._objects.pods(attempt), self._clock())):
            await self._objects.patch(view.what, patches.holds(view))
            await self._end_pods(view, attempt, 0.0)
        if view.ranks > 1:
            await self._client.delete(NETWORK_POLICIES, _way(view), view.namespace)
        await self._objects.patch(view.what, patches.forgets(view))

    async def _end_pods(self, view: ExternalView, attempt: str, grace_s: float) -> None:
        if self._objects.pods(attempt):
            chosen = f"{names.ATTEMPT}={names.label_value(attempt)}"
            grace = max(1, math.ceil(grace_s))
            await self._client.delete_all(PODS, view.namespace, labels=chosen, grace_s=grace)

    # -- looking

    def _observe(self, attempt: str) -> Observation:
        if attempt in self._gone:
            return self._gone[attempt]
        view = self._objects.of_attempt(attempt)
        if view is None:
            pods = alive(self._objects.pods(attempt), self._clock())
            last = self._tending.last.get(attempt)
            phase = AttemptPhase.RUNNING if pods else AttemptPhase.ABSENT
            return Observation(attempt, phase, ranks=last.ranks if pods and last else (), leaves=False)
        return self._judged(view, attempt).seen

    def _judged(self, view: ExternalView, attempt: str) -> AttemptVerdict:
        pods = self._objects.pods(attempt)
        _, _, complaint = self._complaints.get(attempt, (0.0, 0.0, None))
        lost = self._lost({*view.nodes, *(pod.node for pod in pods)})
        return judge(view, attempt, pods, self._clock(), lost_nodes=lost, complaint=complaint)

    def _lost(self, placed: Collection[str]) -> AbstractSet[str]:
        """Return which of these nodes do not answer."""
        return frozenset(placed) - {node.name for node in self._nodes() if node.ready} - {""}

    # -- what happens without being asked for

    def _changed(self, uid: str, before: ExternalView | None, now: ExternalView | None) -> None:
        if now is None and before is not None and before.attempt is not None and before.end is None:
            attempt = before.attempt
            last = self._tending.last.get(attempt)
            if before.over:  # it had ended before it was deleted, as with a time to live of 0
                self._gone[attempt] = judge(before, attempt, [], self._clock()).seen
            elif last is not None and last.phase not in ENDED:
                self._gone[attempt] = last
        self.jobs.notify(uid)
        for view in (before, now):
            if view is not None and view.attempt is not None:
                self._tending.news(view.attempt)
        if now is not None and now.attempt is None and not now.suspended and not now.over:
            self._tending.news(f"held {uid}")

    async def _tend_all(self) -> None:
        await self._objects.seen()
        await self._tending.run()

    async def _advance(self, attempt: str) -> tuple[Observation, bool]:
        """Advance an attempt by the steps that only the hub takes; see `tending.Advance`."""
        if attempt.startswith("held "):
            await self._hold(attempt.removeprefix("held "))
            return Observation(attempt, AttemptPhase.ABSENT), True
        view = self._objects.of_attempt(attempt)
        if view is None:
            return self._observe(attempt), True
        verdict = self._judged(view, attempt)
        left = alive(self._objects.pods(attempt), self._clock())
        if verdict.end is not None:
            async with self._acting(attempt, self._epoch):
                await self._objects.patch(view.what, patches.holds(view, verdict.end))
                await self._end_pods(view, attempt, verdict.end.grace_s)
        elif view.over and left:
            for pod in left:  # as parameter servers, which nobody else ends
                if pod.leaves_at is None:
                    await self._client.delete(PODS, pod.name, view.namespace)
        elif view.end is None and verdict.seen.phase is AttemptPhase.STARTING:
            await self._bring_on(view, attempt)
        steady = verdict.seen.phase is AttemptPhase.RUNNING and view.end is None and verdict.end is None
        return verdict.seen, steady or verdict.seen.phase in ENDED

    async def _hold(self, uid: str) -> None:
        """Hold an object that somebody else let run: nothing of it is in the ledger, and its pods are refused."""
        view = self._objects.find(uid)
        if (
            view is None
            or view.attempt is not None
            or view.suspended
            or self._tenant_of(view.namespace) is None
        ):
            return
        async with self._fence.act(self._epoch):
            log.warning("%s is held again: it was let run past the hub", view.what.title)
            await self._objects.patch(view.what, patches.holds(view))

    async def _bring_on(self, view: ExternalView, attempt: str) -> None:
        """See to it that the pods that are made are this attempt's, and learn why none are."""
        if view.form.kind == MPI_JOBS and attempt not in self._launched:
            await self._launch(view, attempt)
        now = self._clock()
        if len(self._objects.pods(attempt)) >= view.ranks:
            self._complaints.pop(attempt, None)
            return
        since, last, _ = self._complaints.get(attempt, (now, now + no_pods.AFTER_S - no_pods.AGAIN_S, None))
        if now >= last + no_pods.AGAIN_S:
            found = await complaints.ask(self._client, view, since, now)
            self._complaints[attempt] = since, now, found
        else:
            self._complaints.setdefault(attempt, (since, last, None))

    async def _launch(self, view: ExternalView, attempt: str) -> None:
        """Have the operator recreate the launcher.

        The operator creates it while the job is held, and does not copy the pods' placement into it.
        """
        name = complaints.launcher_of(view)
        launcher = await self._client.get(JOBS, name, view.namespace)
        if launcher is None:
            return
        owners = launcher["metadata"].get("ownerReferences") or ()
        if labels_of(launcher["spec"]["template"]).get(names.ATTEMPT) == names.label_value(attempt):
            self._launched.add(attempt)
        elif any(owner["uid"] == view.what.uid for owner in owners):
            await self._client.delete(JOBS, name, view.namespace, uid=launcher["metadata"]["uid"])


def _not_there(what: ExternalJob) -> CannotStart:
    return CannotStart(
        msg("its {kind} {name} no longer exists; create it again", kind=what.kind, name=what.name)
    )


def _way(view: ExternalView) -> str:
    """Return the name of the policy by which its pods reach each other."""
    return f"brought-{view.what.uid}"
