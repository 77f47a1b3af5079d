"""Intake of jobs: submissions, resubmissions, jobs made past the hub, replicas of apps, trials of sweeps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from msgspec import UNSET, structs

from mlp_api.jobs import jobs as jobs_api
from mlp_api.jobs.earlier_runs import MemoryOfEarlierRuns
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Job, JobSpec, Phase, Target
from mlp_hub.domain.jobs.run import Origin
from mlp_hub.domain.jobs.sweep import SubmittedFrom
from mlp_hub.domain.runtime.runtime import Runtime, RuntimeState
from mlp_hub.domain.tenants.tenant_context import TenantContext
from mlp_hub.executors.base import Executor
from mlp_hub.executors.external import ObservedExternalJob
from mlp_hub.scheduler.model.types import Why
from mlp_hub.service.admission.feasibility import Feasibility
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.forecast.service import Forecasts
from mlp_hub.service.jobs import memory, validation, wire
from mlp_hub.service.jobs.intake import Intake, Once, fingerprint
from mlp_hub.service.jobs.kept import check_same, kept_of, with_params
from mlp_hub.service.jobs.resolving import check_runtime, requested_spec
from mlp_hub.service.state.board import Board
from mlp_hub.service.storage import data, environments
from mlp_hub.service.storage_accounting.full import FullStorages
from mlp_hub.service.support.runs import found_job
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.service.tenants.networks import Networks
from mlp_hub.service.tenants.places import default_tenant, memberships_of
from mlp_hub.store.tx import Tx
from mlp_language.catalogue import DEFAULT
from mlp_language.message import NOTHING, msg

MOST_PLACES = 10_000
"""Safety: users whose tenants are remembered: bounds memory."""
MOST_SHARED = 41
"""Given: characters of a name that are left beside a dash and eight more."""
Places = tuple[frozenset[str], str]


class Submissions:
    """Checks jobs of all kinds and takes them in. Whether the asker may is not asked here.

    `check_home` refuses a new job of a user whose home is too large, `full` of one whose storage is; `runtimes` returns those of a
    tenant by name. `cost` is that of a job's shape, and `check_budget` refuses new work of a tenant whose budget is spent.
    """

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        board: Board,
        admission: Admission,
        feasibility: Feasibility,
        forecasts: Forecasts,
        executor: Executor,
        clock: Callable[[], float],
        policy: RunPolicy,
        networks: Networks,
        check_home: Callable[[str], Awaitable[None]],
        full: FullStorages,
        runtimes: Callable[[str], Awaitable[Mapping[str, Runtime]]],
        cost: Callable[[JobSpec], Awaitable[jobs_api.OfferedCost | None]],
        check_budget: Callable[[str], None],
    ) -> None:
        self._board = board
        self._admission = admission
        self._feasibility = feasibility
        self._forecasts = forecasts
        self._executor = executor
        self._clock = clock
        self._grace_s = policy.grace_s
        self._networks = networks
        self._uids = UidMaker()
        self._places: dict[str, Places] = {}
        self._intake = Intake(board, policy)
        self._check_home = check_home
        self._full = full
        self._runtimes = runtimes
        self._cost = cost
        self._check_budget = check_budget

    async def stop(self) -> None:
        """Take in no more."""
        await self._intake.stop()

    # ----------------------------------------------------------- of people

    async def submit(
        self,
        user: str,
        asked: jobs_api.JobCreate,
        *,
        idempotency_key: str | None = None,
        language: str = DEFAULT,
    ) -> jobs_api.Job:
        """Take a job in; it is durable when this returns. The same key with the same body gives the same job.

        In `language` its ranks are told what `mlp` has to say to them.
        """
        once = None if idempotency_key is None else Once(idempotency_key, fingerprint(asked))
        again = await self._answered(user, once)
        return await self._take(user, asked, once, language) if again is None else again

    async def _answered(self, user: str, once: Once | None) -> jobs_api.Job | None:
        job = None if once is None else await self._intake.answered(user, once)
        return None if job is None else self.to_wire(job)

    async def _take(  # noqa: PLR0917 - each is needed
        self,
        user: str,
        asked: jobs_api.JobCreate,
        once: Once | None,
        language: str,
        again: Runtime | None = None,
        exactly: Job | None = None,
    ) -> jobs_api.Job:
        spec = await self._ready(user, asked, language, again)
        if exactly is not None:
            await self._check_same(exactly, spec, asked.provenance)
        kept = await kept_of(self._executor.workspace, spec, asked.provenance)
        return self.to_wire(
            await self._intake.store_run(self._new(spec), once, replaces=asked.replace, kept=kept)
        )

    async def _check_same(self, job: Job, spec: JobSpec, said: jobs_api.Provenance | None) -> None:
        def work(tx: Tx) -> tuple[Origin, str | None]:
            origin = tx.runs.origin(job.uid)
            return origin, tx.runs.text(origin.environment)

        origin, before = await self._board.db.read(work)
        await check_same(self._executor.workspace, job, spec, origin, before, said)

    async def resubmit(
        self,
        context: TenantContext,
        user: str,
        name: str,
        changes: jobs_api.Resubmit | None = None,
        *,
        idempotency_key: str | None = None,
        language: str = DEFAULT,
    ) -> jobs_api.Job:
        """Submit the job again as the next run of its name, with changes; keys are as for `submit`."""
        given = {} if changes is None else {f: getattr(changes, f) for f in changes.__struct_fields__}
        other = {field: value for field, value in given.items() if value is not UNSET}
        # by what was asked: which run `name` is may be another one by now
        once = None if idempotency_key is None else Once(idempotency_key, fingerprint(other, of=name))
        again = await self._answered(user, once)
        if again is not None:
            return again
        job = await self._board.db.read(lambda tx: found_job(tx, context, user, name))
        if job.spec.brought is not None:
            raise Refused(
                Reason.INVALID,
                msg(
                    "job {name} was made with kubectl, as {what}: create it again there",
                    name=job.title,
                    what=job.spec.brought.title,
                ),
            )
        exactly = bool(other.pop("exactly", False))
        if exactly and other.keys() - {"provenance"}:
            raise Refused(
                Reason.INVALID,
                msg(
                    "exactly and {others} are both given; to change something, leave out exactly",
                    others=", ".join(sorted(other.keys() - {"provenance"})),
                ),
            )
        if "params" in other:
            other |= with_params(job.spec, other["params"])
        if "amounts" in other:
            other["amounts"] = {**dict(job.spec.per_worker.amounts), **other["amounts"]}
        wanted = structs.replace(wire.create_of(job.spec), **other)
        return await self._take(user, wanted, once, language, job.spec.own_runtime, job if exactly else None)

    # ----------------------------------------------------------- of others

    async def submit_brought(self, found: ObservedExternalJob) -> Job:
        """Take in a job that its user made past the hub, once for each; raises `Refused` where it may not run."""
        spec = await self._brought_spec(found)
        self._check_budget(spec.tenant)
        await self._check_room(spec)
        once = Once(f"brought/{found.what.uid}", found.what.uid)
        try:
            return await self._intake.store_run(self._new(spec), once)
        except Refused as refused:
            if refused.reason is not Reason.CONFLICT:
                raise
        # another of its name has not ended: of objects of different kinds, and of the hub's own, all may have one name
        other = f"{spec.name[:MOST_SHARED]}-{found.what.uid[:8]}"
        return await self._intake.store_run(self._new(replace(spec, name=other)), once)

    async def _brought_spec(self, found: ObservedExternalJob) -> JobSpec:
        known = await self._board.db.read(lambda tx: tx.users.get(found.user))
        if known is None:
            raise Refused(
                Reason.FORBIDDEN,
                msg(
                    "the hub has no user {user}; log in there once, or give your name there in the annotation mlp-hub/user",
                    user=found.user,
                ),
            )
        tenants, _ = await self._places_of(found.user)
        return validation.brought_spec(found, tenants)

    async def submit_replica(self, spec: JobSpec) -> Job:
        """Take in a replica of an app as a job like all others; raises `Refused` where it may not run."""
        await self._check_home(spec.user)
        spec, _ = await self._with_environment(spec)
        await self._feasibility.check(spec)
        return await self._intake.store_run(self._new(spec))

    async def checked_trial(self, user: str, asked: jobs_api.JobCreate, language: str = DEFAULT) -> JobSpec:
        """Return what a trial of a sweep runs, but for its parameters; raises `Refused` where it could never run."""
        return await self._ready(user, asked, language)

    async def submit_trial(self, spec: JobSpec, said: SubmittedFrom | None = None) -> Job:
        """Take in a trial of a sweep as a job like all others; raises `Refused` where it may not run now."""
        await self._check_room(spec)
        kept = await kept_of(self._executor.workspace, spec, said)
        return await self._intake.store_run(self._new(spec), kept=kept)

    async def offer_of(self, spec: JobSpec) -> tuple[Why, dict[str, int]]:
        """Say of a job that was checked what `offer` does: why it would wait and until when, and its ranks by node."""
        return await self._forecasts.offer(spec, self._uids.make(self._clock()))

    async def check_replica(self, spec: JobSpec) -> None:
        """Raise `Refused` where a replica of an app could never run."""
        self._check_budget(spec.tenant)
        spec, packages = await self._with_environment(spec)
        await self._check_runtime(spec, packages)
        await self._feasibility.check(spec)

    async def runtimes_of(self, tenant: str) -> Mapping[str, Runtime]:
        """Return a tenant's own runtimes by name, in whatever state."""
        return await self._runtimes(tenant)

    # --------------------------------------------------------------- asked

    async def offer(self, user: str, asked: jobs_api.JobCreate, *, named: bool = True) -> jobs_api.Offer:
        """Say what such a job would get, and when, without submitting it; by its earlier runs if its name is its own."""
        if asked.ram == memory.AUTO and not named:
            text = msg("ram is auto, which needs the name of the job whose earlier runs count; add name")
            raise Refused(Reason.INVALID, text)
        spec = await self._checked(user, asked)
        return await self._offer_to(spec, asked, named=named)

    async def preview(self, user: str, asked: jobs_api.JobCreate) -> jobs_api.Preview:
        """Say what such a job would be and get, without taking it in; raises `Refused` where `submit` does."""
        spec = await self._ready(user, asked, DEFAULT)
        job = await self._intake.looked_at(self._new(spec))
        return wire.preview_to(job, await self._offer_to(spec, asked))

    async def _offer_to(
        self, spec: JobSpec, asked: jobs_api.JobCreate, *, named: bool = True
    ) -> jobs_api.Offer:
        why, placement = await self.offer_of(spec)
        past = self._forecasts.past.memory_of(spec) if named else None
        return wire.offer_to(
            spec,
            placement,
            why,
            self._grace_s,
            await self._networks.network_of(spec.tenant),
            cost=await self._cost(spec),
            memory=memory.memory_to(past),
            ram_because=memory.chosen_words(past, spec) if asked.ram == memory.AUTO else NOTHING,
        )

    def with_memory(self, job: Job) -> jobs_api.Job:
        """Return a job as its user sees it, with the memory that runs like it used."""
        past = self._forecasts.past.memory_of(job.spec)
        return self.to_wire(job, memory.memory_to(past))

    def to_wire(self, job: Job, earlier: MemoryOfEarlierRuns | None = None) -> jobs_api.Job:
        """Return a job as its user sees it, with its place in the queue and its expected start where these are known already."""
        start, outlook = self._forecasts.start_of(job), self._forecasts.outlook_of(job)
        return wire.job_to(job, self._admission.waiting(job.uid), start, outlook, earlier)

    def as_it_waits(self, job: Job) -> Job:
        """Return a job with the reason and the message of the last scheduling cycle, if it waits."""
        wait = self._admission.waiting(job.uid) if job.phase is Phase.QUEUED else None
        if wait is None:
            return job
        return replace(job, reason=wait.verdict.reason.value, message=wait.verdict.headline)

    # --------------------------------------------------------------- parts

    def _new(self, spec: JobSpec) -> Job:
        now = self._clock()
        return Job(
            uid=self._uids.make(now),
            spec=spec,
            phase=Phase.QUEUED,
            target=Target.RUN,
            submitted_at=now,
            queued_at=now,
            waiting_since=now,
            version=1,
        )

    async def _ready(
        self, user: str, asked: jobs_api.JobCreate, language: str, again: Runtime | None = None
    ) -> JobSpec:
        """Return what is asked for, in its user's language; raises `Refused` where it may not run, or never could."""
        spec = await self._checked(user, asked, again)
        if language != DEFAULT:
            spec = replace(spec, language=language)
        self._check_budget(spec.tenant)
        await self._check_room(spec)
        return spec

    async def _check_room(self, spec: JobSpec) -> None:
        await self._check_home(spec.user)
        await self._full.check(spec.user, spec.tenant)
        await self._feasibility.check(spec)

    async def _checked(self, user: str, asked: jobs_api.JobCreate, again: Runtime | None = None) -> JobSpec:
        """Return what is asked for; `again` is the runtime of a job that is to run once more."""

        async def own_of(spec: JobSpec) -> Mapping[str, Runtime]:
            own = await self._runtimes(spec.tenant)
            disabled = {r.name for r in own.values() if r.state is RuntimeState.DISABLED}
            return own if again is None or again.name in disabled else {again.name: again}

        places, workspace = await self._places_of(user), self._executor.workspace
        spec = await requested_spec(memory.unsized(asked), user, places, workspace, own_of)
        if asked.ram == memory.AUTO:
            await self._forecasts.past.loaded()
            fitting = memory.sized(asked, spec, self._forecasts.past.memory_of(spec))
            spec = await requested_spec(fitting, user, places, workspace, own_of)
        spec, packages = await self._with_environment(spec)
        await self._check_runtime(spec, packages)
        return await self._board.db.read(lambda tx: data.found_now(tx, spec)) if spec.data else spec

    async def _check_runtime(self, spec: JobSpec, packages: Mapping[str, str]) -> None:
        """Raise `Refused` where neither what all jobs have nor these packages are enough for the runtime."""

        async def lacks(package: str) -> bool:
            return package not in packages and await self._executor.lacks(package, spec.user)

        await check_runtime(spec.started_by, lacks, spec.env)

    async def _with_environment(self, spec: JobSpec) -> tuple[JobSpec, Mapping[str, str]]:
        if spec.environment is None:
            return spec, {}
        images = self._executor.images
        if self._executor.environments is None and not images:
            raise environments.not_here()
        return await self._board.db.read(lambda tx: environments.found_now(tx, spec, images=images))

    async def _places_of(self, user: str) -> Places:
        """Return the user's tenants and which of them is meant when none is named."""
        known = self._places.get(user)
        if known is not None:
            return known
        before = self._places
        found = await self._board.db.read(lambda tx: _places(tx, user))
        if len(before) >= MOST_PLACES:
            before.clear()
        before[user] = found  # into what was forgotten meanwhile, if it was
        return found

    def forget_places(self) -> None:
        """Read memberships again from now on: some have changed."""
        self._places = {}


def _places(tx: Tx, user: str) -> Places:
    return frozenset(member.tenant for member in memberships_of(tx, user)), default_tenant(tx, user)
