"""Worker of the queue that brings apps to their wanted state: operation, and recovery too.

It reads the stored state, which is the app and the jobs that are its replicas. It asks a pure
function for a plan, stores that, then carries it out. The replicas that answer are known in memory
alone; the next leader asks them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from mlp_hub.domain.apps.app import App, AppPhase
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import FINAL, Cause, Failure, Job, Phase, Target
from mlp_hub.domain.runtime.runtime import BUILT_IN, Runtime
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import Executor, Superseded
from mlp_hub.service.apps.endpoints import Endpoint, Endpoints
from mlp_hub.service.apps.next_action import LOOP, AppPlan, decide, is_live
from mlp_hub.service.apps.probing import Probing, ReplicaProbe
from mlp_hub.service.apps.replicas import probe_of, replica_spec
from mlp_hub.service.apps.scaling import AppLoad, Scaling, replicas_for
from mlp_hub.service.jobs import resolving
from mlp_hub.service.jobs.submissions import Submissions
from mlp_hub.service.lifecycle.effects import FencedEffects
from mlp_hub.service.lifecycle.targets import store_aimed
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.former_members import gone_from, left_message
from mlp_hub.service.state.leadership import Leadership, LeaseLost
from mlp_hub.service.support.limits import DEFAULTS, ServiceLimits
from mlp_hub.store.repos.jobs.jobs import Stale
from mlp_hub.store.tx import Tx
from mlp_language.message import msg, to_data

KIND = "app"
PLACED_S = 0.2
"""Tuning: seconds between two looks whether it is known where a replica that runs listens, which its cluster tells a moment later."""
DRAINS_S = 4.0
"""Tuning: seconds in which nothing is sent to a replica that answers before it is ended: more than the gateway's answers are believed
(`FRESH_MS`), so that nobody's request meets its end; the room that it holds comes back as much later."""
GOING_S = 0.5
"""Tuning: seconds between two looks whether the replicas of an app that is deleted have gone."""
REFUSED_S = 30.0
"""Tuning: seconds until what was refused is tried again, as when a quota is smaller than a replica."""
LOADS_KEPT = 1_000
"""Safety: moments of which it is known how busy an app was: bounds memory; of a longer idle time the older half is thinned out."""
SHOWN_S = 20.0
"""Tuning: seconds for which it is shown how busy an app was: the gateway tells every 5 s while it is."""


class AppWorker:
    """Brings apps on, only while this service decides. `last_asked` has when somebody last asked an app, by its uid."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        queue: WorkQueue,
        board: Board,
        submissions: Submissions,
        executor: Executor,
        lease: Leadership,
        clock: Callable[[], float],
        *,
        probing: Probing | None = None,
        most: ServiceLimits = DEFAULTS,
    ) -> None:
        self._retry_max_s = most.app_retry_max_s
        self._queue, self._board, self._submissions, self._executor, self._clock = (
            queue,
            board,
            submissions,
            executor,
            clock,
        )
        self._effects = FencedEffects(executor, lease)
        self.endpoints = Endpoints()
        self.probing = probing or Probing(self.look_at, patience_s=most.app_start_s)
        self.last_asked: dict[str, float] = {}
        self._known: dict[str, float] = {}  # since when it is known how busy an app is
        self._loads: dict[str, list[tuple[float, float]]] = {}  # when, and how many requests were under way
        self._draining: dict[str, dict[str, float]] = {}  # since when nothing is sent to which attempts
        queue.serve(KIND, self._work)

    async def start(self) -> None:
        """Look at all apps."""
        self._board.on_change(self._board_says)
        for app in await self._board.db.read(lambda tx: tx.apps.all(SYSTEM)):
            self.look_at(app.uid)

    def stop(self) -> None:
        """Ask no replica any more, and tell nobody where one is: another service may lead."""
        self.probing.stop()
        self.endpoints.clear()
        self.last_asked.clear()
        self._known.clear()
        self._loads.clear()
        self._draining.clear()

    def changed(self, uid: str) -> None:
        """Note that a user set the wanted state of an app: only later requests to it count when it shrinks."""
        self.last_asked[uid] = self._known[uid] = self._clock()
        self.look_at(uid)

    def put_off(self, by: float) -> None:
        """Move all noted times by `by` seconds: the clock was set."""
        for times in (self.last_asked, self._known):
            times.update({uid: at + by for uid, at in times.items()})
        for uid, loads in self._loads.items():
            self._loads[uid] = [(at + by, load) for at, load in loads]

    def busy(self, uid: str, under_way: float) -> None:
        """Note the recent number of requests in progress at an app."""
        now = self._clock()
        loads = self._loads.setdefault(uid, [])
        loads.append((now, under_way))
        if len(loads) > LOADS_KEPT:
            half = len(loads) // 2
            older = [
                max(pair, key=lambda one: one[1])
                for pair in zip(loads[:half:2], loads[1:half:2], strict=False)
            ]
            loads[:half] = older
        self.look_at(uid)

    def under_way(self, uid: str) -> float | None:
        """Return the recent number of requests in progress; None where it is unknown."""
        loads = self._loads.get(uid)
        return loads[-1][1] if loads and self._clock() - loads[-1][0] <= SHOWN_S else None

    def look_at(self, uid: str) -> None:
        """Have an app looked at soon."""
        self._queue.add((KIND, uid))

    def ready(self, uid: str) -> set[str]:
        """Return the attempts of an app that answer."""
        return self.probing.ready(uid)

    def _board_says(self, job: Job, before: Job | None) -> None:
        if job.spec.replica is not None and (
            before is None or before.phase is not job.phase or before.target is not job.target
        ):
            self.look_at(job.spec.replica.app)

    async def _work(self, uid: str) -> bool:
        try:
            return await self._turn(uid)
        except (LeaseLost, Superseded):
            return False
        except Stale:
            return True

    async def _turn(self, uid: str) -> bool:
        found = await self._board.db.read(lambda tx: _read(tx, uid))
        if found is None:
            self._gone(uid)
            return False
        app, jobs, has_left = found
        running = [job for job in jobs if job.phase is Phase.RUNNING and is_live(job)]
        probes = {job.attempt: probe_of(app, job, self._executor) for job in running}
        placed = {attempt: probe for attempt, probe in probes.items() if probe.address}
        self.probing.keep(uid, placed)
        answering = self.probing.ready(uid)
        ready = {job.uid for job in running if job.attempt in answering}
        await self._end_overdue(app, running)
        app, idle_s = (replace(app, wanted=0), None) if has_left else self._scaled(app, ready)
        plan = decide(app, jobs, ready, self._clock(), retry_max_s=self._retry_max_s)
        if has_left and plan.app.phase is AppPhase.WAITING:
            plan = replace(plan, app=replace(plan.app, message=left_message(app.user, app.tenant)))
        self._publish(plan, running, placed, answering)
        plan, drains_s = self._drained(plan, ready)
        if not await self._store(found[0], plan):
            return True
        if plan.gone:
            self._gone(uid)
            return False
        await self._start(plan)
        going_s = GOING_S if app.phase is AppPhase.DELETING else None
        waits = [s for s in (plan.again_s, idle_s, drains_s, going_s) if s]
        if len(placed) < len(probes):
            waits.append(PLACED_S)
        if waits:
            self._queue.add_after((KIND, uid), min(waits))
        return False

    def _scaled(self, app: App, ready: set[str]) -> tuple[App, float | None]:
        """Return the app with as many replicas as its load needs, and in how long to look again."""
        spec = app.spec
        if app.phase is AppPhase.DELETING or not spec.scales or not ready:
            return app, None
        now = self._clock()
        loads = self._loads.get(app.uid, [])
        loads[:] = [one for one in loads if now - one[0] <= spec.idle_s]
        wanted, again_s = replicas_for(
            app.wanted,
            Scaling(spec.least, spec.most, spec.concurrency, spec.idle_s),
            [AppLoad(now - at, number) for at, number in loads],
            known_s=now - self._known.setdefault(app.uid, now),
            quiet_s=now - self.last_asked.setdefault(app.uid, now),
        )
        return replace(app, wanted=wanted), again_s

    async def _end_overdue(self, app: App, running: Sequence[Job]) -> None:
        late = self.probing.overdue(app.uid)
        said = (
            msg(
                "nothing answered on port {port} for too long; the command must listen on the port in the variable PORT, on 127.0.0.1 or 0.0.0.0",
                port=app.spec.inner_port,
            )
            if app.spec.command
            else msg("it did not answer for too long")
        )
        for job in running:
            if job.attempt in late:
                failure = Failure(Cause.START_FAILED, message=str(said), said=to_data(said))
                await self._effects.stop(job.attempt, 0.0, failure)

    def _publish(
        self,
        plan: AppPlan,
        running: Sequence[Job],
        placed: Mapping[str, ReplicaProbe],
        answering: set[str],
    ) -> None:
        """Say where the app is; before what is to end is told so, that nothing more is sent there."""
        app = plan.app
        if plan.gone:
            return
        stopped = {job.uid for job in plan.stop}
        addresses = tuple(
            placed[job.attempt].address
            for job in running
            if job.attempt in answering and job.uid not in stopped
        )
        where = () if app.phase is AppPhase.DELETING else addresses
        self.endpoints.store_endpoint(
            Endpoint(app.uid, app.user, app.name, app.tenant, app.phase.value, app.spec.version, where)
        )

    def _drained(self, plan: AppPlan, ready: set[str]) -> tuple[AppPlan, float | None]:
        """Return the plan without the ends of replicas to which something may be sent still, and in how long there are such."""
        uid, now = plan.app.uid, self._clock()
        asked = [] if plan.app.phase is AppPhase.DELETING else [job for job in plan.stop if job.uid in ready]
        before = self._draining.pop(uid, {})
        since = {job.attempt: before.get(job.attempt, now) for job in asked}
        left = {attempt: at + DRAINS_S - now for attempt, at in since.items() if at + DRAINS_S > now}
        if not left:
            return plan, None
        self._draining[uid] = {attempt: since[attempt] for attempt in left}
        stop = tuple(job for job in plan.stop if job.attempt not in left)
        return replace(plan, stop=stop), min(left.values())

    async def _store(self, before: App, plan: AppPlan) -> bool:
        """Store what was decided; False where somebody changed the app meanwhile."""
        if plan.app == before and not (plan.stop or plan.forget or plan.gone):
            return True

        def work(tx: Tx, changes: Changes) -> bool:
            if tx.apps.get(SYSTEM, before.uid) != before:
                return False
            for asked, target in ((plan.stop, Target.CANCEL), (plan.forget, Target.DELETE)):
                for each in asked:
                    job = tx.jobs.get(SYSTEM, each.uid)
                    if job is None or (job.phase in FINAL) is not (target is Target.DELETE):
                        continue  # it went on meanwhile, and is looked at again
                    store_aimed(
                        tx, changes, job, replace(job, target=target), now=self._clock(), message=_ASKED
                    )
            if plan.gone:
                tx.apps.remove(before.uid)
            else:
                tx.apps.put(plan.app)
            return True

        return await self._board.commit(work)

    async def _start(self, plan: AppPlan) -> None:
        for slot in plan.start:
            try:
                runtime = await self._runtime(plan.app)
                await self._submissions.submit_replica(replica_spec(plan.app, slot, runtime))
            except Refused as refused:
                await self._cannot_start(plan.app, refused)
                return

    async def _runtime(self, app: App) -> Runtime | None:
        if app.spec.runtime in BUILT_IN:
            return None
        own = await self._submissions.runtimes_of(app.tenant)
        return resolving.runtime_for(app.spec.runtime, own)

    async def _cannot_start(self, app: App, refused: Refused) -> None:
        def work(tx: Tx) -> None:
            found = tx.apps.get(SYSTEM, app.uid)
            if found == app:
                tries = max(found.failures, LOOP)
                later = self._clock() + REFUSED_S
                tx.apps.put(
                    replace(found, failures=tries, not_before=later, message=refused.message, tail="")
                )

        await self._board.db.write(work)
        self.look_at(app.uid)

    def _gone(self, uid: str) -> None:
        self.probing.keep(uid, {})
        self.endpoints.drop(uid)
        for kept in (self.last_asked, self._known, self._loads, self._draining):
            kept.pop(uid, None)


_ASKED = msg("its app asked for it")


def _read(tx: Tx, uid: str) -> tuple[App, list[Job], bool] | None:
    """Return an app, its replicas, and whether its user has left its tenant."""
    app = tx.apps.get(SYSTEM, uid)
    if app is None:
        return None
    left = bool(gone_from(tx, [(app.user, app.tenant)]))
    return app, tx.jobs.replicas(SYSTEM, app.user, app.name), left
