"""Use of apps by people: deploy, list, show, read logs, scale, delete; and the questions of the gateway."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NoReturn

from msgspec import UNSET

from mlp_api.apps import apps as api
from mlp_hub.domain.apps.app import App, AppPhase, AppSpec, check_app_move
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import FINAL, PRIORITIES, Job, Phase
from mlp_hub.domain.runtime.runtime import BUILT_IN, Runtime
from mlp_hub.domain.stored.model import ModelPhase
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.executors.base import Executor, LogChunk
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.apps.endpoints import Endpoints
from mlp_hub.service.apps.next_action import slot_of
from mlp_hub.service.apps.replicas import replica_spec
from mlp_hub.service.apps.visitors import AppVisitors
from mlp_hub.service.apps.wire import phases_of, range_of, spec_of, to_wire
from mlp_hub.service.apps.worker import AppWorker
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.jobs import resolving, validation
from mlp_hub.service.jobs.service import MOST_LINES
from mlp_hub.service.jobs.submissions import Submissions
from mlp_hub.service.state.board import Board
from mlp_hub.service.support.limits import DEFAULTS, ServiceLimits
from mlp_hub.service.support.runs import attempt_of
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.service.tenants.places import default_tenant, tenants_of
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

A = AppPhase


class AppService:
    """Use cases of apps. Whether who asks may is for the caller to say."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        board: Board,
        submissions: Submissions,
        admission: Admission,
        forecasts: Forecasts,
        worker: AppWorker,
        executor: Executor,
        clock: Callable[[], float],
        pages: str,
        most: ServiceLimits = DEFAULTS,
    ) -> None:
        self._most = most.apps_per_user
        self._board, self._submissions, self._admission, self._forecasts = (
            board,
            submissions,
            admission,
            forecasts,
        )
        self._worker, self._executor, self._clock, self._pages = worker, executor, clock, pages
        self._uids = UidMaker()
        self.visitors = AppVisitors(board.db, self._wire)

    @property
    def endpoints(self) -> Endpoints:
        """Where apps answer."""
        return self._worker.endpoints

    async def deploy(
        self, context: TenantContext, user: str, asked: api.AppCreate, *, actor: str | None = None
    ) -> api.Application:
        """Take an app in, or what one is to become; durable when this returns, and started after that."""
        if not self._executor.serves:
            _refuse(msg("this hub simulates its nodes and runs nothing, so no app could answer"))
        _range(asked.replicas)
        if asked.priority not in PRIORITIES:
            _refuse(
                msg(
                    "priority {priority} does not exist; choose one of {priorities}",
                    priority=asked.priority,
                    priorities=", ".join(PRIORITIES),
                )
            )
        if asked.command is not None and not asked.command.strip():
            _refuse(msg("command is empty; give the command to run, or leave it out to serve the model"))
        if not asked.model_name and asked.command is None:
            _refuse(msg("nothing to run: give model_name, a model that is ready, or command"))
        tenant = await self._board.db.read(lambda tx: _tenant(tx, user, asked.tenant))
        own = {} if asked.runtime in {None, *BUILT_IN} else await self._submissions.runtimes_of(tenant)
        runtime = resolving.runtime_for(asked.runtime or "plain", own)
        validation.check_env(asked.env, (), runtime)
        _check_runtime(runtime)
        served = asked.command is None
        version = await self._board.db.read(
            lambda tx: _version(tx, context, user, tenant, asked.model_name, served=served)
        )
        spec = spec_of(asked, version, runtime.name)
        now = self._clock()
        new = App(
            self._uids.make(now),
            user,
            asked.name,
            tenant,
            spec,
            0,
            A.STARTING,
            now,
            wanted=max(spec.least, 1),
        )
        await self._submissions.check_replica(
            replica_spec(new, 0, None if runtime.tenant is None else runtime)
        )

        def work(tx: Tx) -> App:
            _tenant(tx, user, tenant)
            _version(
                tx,
                context,
                user,
                tenant,
                names.reference(spec.model, version) if version else "",
                served=served,
            )
            found = tx.apps.find(context, user, asked.name)
            if found is not None:
                app = _changed(found, new, replaces=asked.replace)
            else:
                if tx.apps.count(user) >= self._most:
                    raise Refused(
                        Reason.CONFLICT,
                        msg("you have {n} apps, which is the limit; delete one first", n=self._most),
                    )
                tx.users.ensure(user, now)
                app = replace(new, port=tx.apps.free_port())
            tx.apps.put(app)
            detail = {"model": asked.model_name, "generation": str(app.generation)}
            tx.audit.add(now, actor or user, "app.deploy", asked.name, tenant=app.tenant, detail=detail)
            return app

        app = await self._board.db.write(work)
        self._worker.changed(app.uid)
        return await self._wire(app)

    async def get(self, context: TenantContext, user: str, name: str) -> api.Application:
        """Return an app. Raises NotFound."""
        return await self._wire(await self._board.db.read(lambda tx: _existing(tx, context, user, name)))

    async def tenant_of(self, user: str, name: str) -> tuple[str, str] | None:
        """Return the tenant of an app, and what means that very one; None where there is none."""
        found = await self._board.db.read(lambda tx: tx.apps.find(SYSTEM, user, name))
        return None if found is None else (found.tenant, found.name)

    async def list(
        self,
        context: TenantContext,
        user: str,
        *,
        tenant: str | None = None,
        state: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> tuple[Sequence[api.Application], str | None]:
        """Return a user's apps, the newest first, and the cursor of the next page."""
        phases = None if state is None else phases_of(state)
        found = await self._board.db.read(
            lambda tx: tx.apps.page(
                context, user, tenant=tenant, phases=phases, before=cursor, limit=limit + 1
            )
        )
        following = found[limit - 1].uid if len(found) > limit else None
        return [await self._wire(each) for each in found[:limit]], following

    async def scale(
        self,
        context: TenantContext,
        user: str,
        name: str,
        asked: api.AppScale,
        *,
        actor: str | None = None,
    ) -> api.Application:
        """Set the number of replicas."""
        least, most = _range(asked.replicas)
        now = self._clock()

        def work(tx: Tx) -> App:
            found = _live(tx, context, user, name)
            idle = found.spec.idle_s if asked.idle is UNSET else asked.idle
            each = found.spec.concurrency if asked.concurrency is UNSET else asked.concurrency
            spec = replace(found.spec, least=least, most=most, idle_s=idle, concurrency=each)
            app = replace(found, spec=spec, wanted=found.within(spec))
            tx.apps.put(app)
            detail = {"replicas": str(asked.replicas)}
            tx.audit.add(now, actor or user, "app.scale", name, tenant=found.tenant, detail=detail)
            return app

        app = await self._board.db.write(work)
        self._worker.changed(app.uid)
        return await self._wire(app)

    async def delete(self, context: TenantContext, user: str, name: str, *, actor: str) -> api.Application:
        """Delete an app; its replicas are ended after this has returned, and its name and port are given back once they have gone."""
        now = self._clock()

        def work(tx: Tx) -> App:
            found = _existing(tx, context, user, name)
            if found.phase is A.DELETING:
                return found
            tx.audit.add(now, actor, "app.delete", name, tenant=found.tenant)
            return _put_deleting(tx, found)

        app = await self._board.db.write(work)
        self._worker.look_at(app.uid)
        return await self._wire(app)

    async def remove(self, user: str) -> bool:
        """Delete all of a user who leaves; return whether none is left."""

        def work(tx: Tx) -> list[str]:
            found = tx.apps.page(SYSTEM, user, limit=self._most)
            for app in found:
                if app.phase is not A.DELETING:
                    _put_deleting(tx, app)
            return [app.uid for app in found]

        if not await self._board.db.read(lambda tx: tx.apps.count(user)):
            return True
        left = await self._board.db.write(work)
        for uid in left:
            self._worker.look_at(uid)
        return not left

    async def log_chunk(
        self,
        context: TenantContext,
        user: str,
        name: str,
        replica: int,
        *,
        since: int,
        limit: int,
        tail: int | None,
    ) -> LogChunk:
        """Return lines of a replica's output from a cursor on, or its last `tail` lines wherever the cursor is."""

        def work(tx: Tx) -> tuple[App, list[Job]]:
            return _existing(tx, context, user, name), tx.jobs.replicas(context, user, name)

        app, jobs = await self._board.db.read(work)
        mine = [job for job in jobs if slot_of(job) == replica]
        if not mine and replica < max(app.wanted, 1):
            return LogChunk(0, (), 0)  # it is not there yet, or no more
        if not mine:
            there = sorted({slot_of(job) for job in jobs})
            _refuse(
                msg(
                    "app {name} has no replica {replica} now; it has {there}",
                    name=name,
                    replica=replica,
                    there=", ".join(map(str, there)) or msg("none"),
                )
            )
        attempt = attempt_of(mine[-1])
        if tail is not None:
            return await self._executor.tail_log(attempt, 0, max(1, min(tail, MOST_LINES)))
        return await self._executor.read_log(attempt, 0, max(since, 0), max(1, min(limit, MOST_LINES)))

    async def wake(self, uid: str) -> None:
        """Say that somebody asks an app now: one that sleeps wakes. Cheap where it does not."""
        self._worker.last_asked[uid] = self._clock()
        app = await self._board.db.read(lambda tx: tx.apps.get(SYSTEM, uid))
        if app is None:
            self._worker.last_asked.pop(uid, None)
            return
        if app.phase is A.DELETING or app.wanted:
            return

        def work(tx: Tx) -> None:
            found = tx.apps.get(SYSTEM, uid)
            if found is not None and found.phase is not A.DELETING:
                tx.apps.put(replace(found, wanted=found.within(found.spec)))

        await self._board.db.write(work)
        self._worker.look_at(uid)

    async def _wire(self, app: App) -> api.Application:
        jobs = await self._board.db.read(lambda tx: tx.jobs.replicas(SYSTEM, app.user, app.name))
        there = [job for job in jobs if job.phase not in FINAL | {Phase.DELETING}]
        waiting = [job for job in there if job.phase is Phase.QUEUED]
        if waiting:
            self._forecasts.look_soon()
        forecasts = self._forecasts
        rows = [
            (
                job,
                self._admission.waiting(job.uid),
                forecasts.start_of(job),
                forecasts.outlook_of(job) if job.phase is Phase.QUEUED else None,
            )
            for job in there
        ]
        answering, under_way = self._worker.ready(app.uid), self._worker.under_way(app.uid)
        return to_wire(app, rows, answering, under_way, self._pages)


def _range(replicas: int | str) -> tuple[int, int]:
    least, most = range_of(replicas)
    if least > most:
        _refuse(
            msg(
                "replicas {replicas} has a minimum above its maximum; write MIN:MAX, such as {most}:{least}",
                replicas=replicas,
                most=most,
                least=least,
            )
        )
    return least, most


def _put_deleting(tx: Tx, app: App) -> App:
    check_app_move(app, A.DELETING)
    deleting = replace(app, phase=A.DELETING, wanted=0)
    tx.apps.put(deleting)
    return deleting


def _changed(found: App, new: App, *, replaces: bool) -> App:
    """Return an app as it is deployed again."""
    if found.phase is A.DELETING:
        raise _being_deleted(found.name)
    if not replaces:
        raise Refused(
            Reason.CONFLICT,
            msg(
                "an app {name} already exists; delete it first, deploy under another name, or give replace to change it",
                name=found.name,
            ),
        )
    if new.tenant != found.tenant:
        _refuse(
            msg(
                "app {name} belongs to team {tenant} and cannot move; delete it to deploy it in {other}",
                name=found.name,
                tenant=found.tenant,
                other=new.tenant,
            )
        )
    return replace(
        found,
        spec=new.spec,
        generation=found.generation + (not _same_program(found.spec, new.spec)),
        wanted=found.within(new.spec),
        failures=0,
        not_before=0.0,
        tail="",
    )


def _same_program(old: AppSpec, new: AppSpec) -> bool:
    """Whether replicas of the one are replicas of the other."""
    return (
        replace(
            old,
            least=new.least,
            most=new.most,
            idle_s=new.idle_s,
            concurrency=new.concurrency,
            access=new.access,
        )
        == new
    )


def _check_runtime(runtime: Runtime) -> None:
    """Refuse a runtime of which one process is not the program itself, which has to listen."""
    if runtime.launcher is not None or len(runtime.roles) > 1 or runtime.least_workers > 1:
        _refuse(
            msg(
                "runtime {runtime} starts programs of several ranks, but an app has one: use plain, or a runtime of your team without a launcher and with one role",
                runtime=runtime.name,
            )
        )


def _tenant(tx: Tx, user: str, asked: str | None) -> str:
    tenant = asked or default_tenant(tx, user)
    if tenant not in tenants_of(tx, user):
        raise no_such_tenant(tenant, tenants_of(tx, user))
    return tenant


def _version(tx: Tx, context: TenantContext, user: str, tenant: str, model: str, *, served: bool) -> int:
    """Return the ready version of a model (0: without a model), which can be `served` if that is required."""
    if not model:
        return 0
    parsed = names.parse_reference(model)
    found = None if parsed is None else tx.models.find(context, user, *parsed)
    if found is None:
        raise not_found("model", model)
    if found.item.tenant != tenant:
        raise Refused(
            Reason.INVALID,
            msg(
                "model {name} belongs to team {theirs}, but the app to {tenant}; deploy it in {theirs}",
                name=found.item.name,
                theirs=found.item.tenant,
                tenant=tenant,
            ),
        )
    if found.phase is not ModelPhase.READY:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "model {name} is {phase}; only one that is ready can be deployed",
                name=found.item.name,
                phase=found.phase,
            ),
        )
    if served and found.format.is_weights_alone:
        raise Refused(
            Reason.INVALID,
            msg(
                "model {name} is {file}: weights without a program that serves them; give a command that loads them from /model, or register a format that the platform's server loads (Keras, SavedModel, TorchScript, ONNX, scikit-learn, MLflow)",
                name=found.item.name,
                file=found.format.main,
            ),
        )
    return found.version


def _existing(tx: Tx, context: TenantContext, user: str, name: str) -> App:
    found = tx.apps.find(context, user, name)
    if found is None:
        raise not_found("app", name)
    return found


def _live(tx: Tx, context: TenantContext, user: str, name: str) -> App:
    found = _existing(tx, context, user, name)
    if found.phase is A.DELETING:
        raise _being_deleted(name)
    return found


def _being_deleted(name: str) -> Refused:
    return Refused(
        Reason.WRONG_STATE, msg("app {name} is being deleted; wait until it is deleted", name=name)
    )


def _refuse(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)
