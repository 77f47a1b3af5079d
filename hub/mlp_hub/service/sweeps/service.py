"""Use of sweeps by people: start, show, cancel, extend, delete; and the cost of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mlp_api.jobs import sweeps as api
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.jobs.sweep import (
    ENDED_SWEEPS,
    MOST_TRIALS,
    Budget,
    Sweep,
    SweepPhase,
    SweepTrial,
    check_sweep_move,
)
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.service.jobs.submissions import Submissions
from mlp_hub.service.state.board import Board
from mlp_hub.service.support.acts import Act
from mlp_hub.service.support.limits import DEFAULTS
from mlp_hub.service.support.uids import UidMaker
from mlp_hub.service.sweeps import wire
from mlp_hub.service.sweeps.asked import budget_of, sweep_spec
from mlp_hub.service.sweeps.preview import preview
from mlp_hub.service.sweeps.reported import thinned
from mlp_hub.service.sweeps.worker import SweepWorker
from mlp_hub.store.tx import Tx
from mlp_language.catalogue import DEFAULT
from mlp_language.message import NOTHING, msg

S = SweepPhase
MOST_TOLD = 2000
"""Safety: sweeps that have ended whose line of a list is remembered: bounds memory."""
# named here, because inside the class `list` is a method
Page = tuple[list[api.Sweep], str | None]
Curves = list[api.SweepCurve]


class SweepService:
    """Use cases of sweeps. Whether who asks may is for the caller to say."""

    def __init__(
        self,
        board: Board,
        submissions: Submissions,
        worker: SweepWorker,
        clock: Callable[[], float],
        most: int = DEFAULTS.sweeps_per_user,
    ) -> None:
        self._most = most
        self._board, self._submissions, self._worker, self._clock = board, submissions, worker, clock
        self.start = worker.start
        self.stop = worker.stop
        self.look_at = worker.look_at
        self._uids = UidMaker()
        self._lines: dict[str, tuple[Sweep, api.Sweep]] = {}

    async def create(
        self, context: TenantContext, user: str, asked: api.SweepCreate, *, language: str = DEFAULT
    ) -> api.Sweep:
        """Take a sweep in as the next run of its name; durable when this returns, and its trials are made after that."""
        spec = sweep_spec(asked, await self._submissions.checked_trial(user, asked, language))
        now = self._clock()
        new = Sweep(self._uids.make(now), spec, 1, S.RUNNING, budget_of(asked, spec, now), now)

        def work(tx: Tx) -> Sweep:
            if tx.sweeps.count(user) >= self._most:
                raise Refused(
                    Reason.CONFLICT,
                    msg("you have {n} sweeps, which is the limit; delete one first", n=self._most),
                )
            latest = tx.sweeps.find(context, user, asked.name)
            if latest is not None and latest.phase not in ENDED_SWEEPS:
                raise Refused(
                    Reason.CONFLICT,
                    msg(
                        "sweep {name} has not ended, it is {phase}; to run it again, cancel it first or give another name",
                        name=latest.title,
                        phase=latest.phase.value,
                    ),
                )
            sweep = new if latest is None else replace(new, run=latest.run + 1)
            if latest is not None and asked.replace:
                check_sweep_move(latest, S.DELETING)
                tx.sweeps.put(replace(latest, phase=S.DELETING))
            tx.users.ensure(user, now)
            tx.sweeps.put(sweep)
            return sweep

        sweep = await self._board.db.write(work)
        for uid in await self._board.db.read(lambda tx: tx.sweeps.active_uids(SYSTEM, user)):
            self._worker.look_at(uid)
        return await self._wire(sweep)

    async def preview(self, context: TenantContext, user: str, asked: api.SweepCreate) -> api.SweepPreview:
        """Say what such a sweep would be and take, without starting it."""
        spec = sweep_spec(asked, await self._submissions.checked_trial(user, asked))
        now = self._clock()
        return await preview(self._submissions, self._board.db, context, spec, budget_of(asked, spec, now))

    async def get(self, context: TenantContext, user: str, name: str) -> api.Sweep:
        """Return a sweep with its trials. Raises NotFound."""
        return await self._wire(await self._find(context, user, name))

    async def uid_of(self, context: TenantContext, user: str, name: str) -> str:
        """Return the uid of a sweep. Raises NotFound."""
        return (await self._find(context, user, name)).uid

    async def tenant_of(self, user: str, name: str) -> tuple[str, str] | None:
        """Return the tenant of a sweep and what means that very run; None where there is none."""
        found = await self._board.db.read(lambda tx: tx.sweeps.find(SYSTEM, user, name))
        return None if found is None else (found.spec.job.tenant, found.reference)

    async def list(
        self,
        context: TenantContext,
        user: str,
        *,
        tenant: str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Return a user's sweeps, the newest first, and the cursor of the next page."""
        found, more = await self._board.db.read(
            lambda tx: tx.sweeps.page(context, user, tenant=tenant, before=cursor, limit=limit)
        )
        return [await self._line(each) for each in found], found[-1].uid if more else None

    async def _line(self, sweep: Sweep) -> api.Sweep:
        """Return a sweep without its trials; of one that has ended these are read once."""
        cached = self._lines.get(sweep.uid)
        if cached is not None and cached[0] == sweep:
            return cached[1]
        line = await self._wire(sweep, with_trials=False)
        if sweep.phase in ENDED_SWEEPS:
            if len(self._lines) >= MOST_TOLD:
                self._lines.clear()
            self._lines[sweep.uid] = (sweep, line)
        return line

    async def curves(self, context: TenantContext, user: str, name: str, most: int) -> Curves:
        """Return what all trials of a sweep reported of its metric, `most` values of each at most."""
        sweep = await self._find(context, user, name)
        trials = await self._board.db.read(lambda tx: tx.sweeps.trials(SYSTEM, sweep.uid))
        live = self._worker.curves(sweep.uid)
        return [
            api.SweepCurve(trial.number, [[*at] for at in thinned(live.get(trial.number, trial.curve), most)])
            for trial in trials
            if trial.curve or live.get(trial.number)
        ]

    async def cancel(self, context: TenantContext, user: str, name: str) -> api.Sweep:
        """Make no more trials, and end the live ones."""

        def aim(sweep: Sweep) -> Sweep:
            if sweep.phase is S.CANCELLED or (sweep.phase is S.ENDING):
                return sweep
            if sweep.phase is not S.RUNNING:
                raise _wrong(sweep, "cancelled")
            check_sweep_move(sweep, S.ENDING)
            return replace(sweep, phase=S.ENDING, outcome=S.CANCELLED.value, message=msg("asked to cancel"))

        return await self._change(user, name, aim, Act(context, "sweep.cancel"))

    async def extend(self, context: TenantContext, user: str, name: str, more: api.SweepExtend) -> api.Sweep:
        """Give a sweep more budget; one that has ended continues."""
        now = self._clock()

        def aim(sweep: Sweep) -> Sweep:
            if sweep.phase not in {S.RUNNING, S.FINISHED, S.CANCELLED}:
                raise _wrong(sweep, "extended")
            budget = _extended(sweep, more, now)
            check_sweep_move(sweep, S.RUNNING)
            return replace(sweep, phase=S.RUNNING, budget=budget, ended_at=None, outcome="", message=NOTHING)

        return await self._change(user, name, aim, Act(context, "sweep.extend"))

    async def delete(self, context: TenantContext, user: str, name: str) -> api.Sweep:
        """Delete a sweep that has ended, with the jobs of its trials."""

        def aim(sweep: Sweep) -> Sweep:
            if sweep.phase is S.DELETING:
                return sweep
            if sweep.phase not in ENDED_SWEEPS:
                raise _wrong(sweep, "deleted")
            check_sweep_move(sweep, S.DELETING)
            return replace(sweep, phase=S.DELETING)

        return await self._change(user, name, aim, Act(context, "sweep.delete"))

    async def remove(self, user: str) -> bool:
        """End all of a user who leaves, and forget those that have ended; return whether none is left."""

        def work(tx: Tx) -> list[str]:
            for uid in tx.sweeps.all_of(SYSTEM, user):
                sweep = tx.sweeps.get(SYSTEM, uid)
                if sweep is None:
                    continue
                if sweep.phase is S.RUNNING:
                    tx.sweeps.put(replace(sweep, phase=S.ENDING, outcome=S.CANCELLED.value))
                elif sweep.phase in ENDED_SWEEPS:
                    tx.sweeps.remove(sweep.uid)
            return tx.sweeps.active_uids(SYSTEM, user)

        if not await self._board.db.read(lambda tx: tx.sweeps.count(user)):
            return True
        left = await self._board.db.write(work)
        for uid in left:
            self._worker.look_at(uid)
        return not left

    async def _change(self, user: str, name: str, aim: Callable[[Sweep], Sweep], act: Act) -> api.Sweep:
        now = self._clock()

        def work(tx: Tx) -> Sweep:
            found = tx.sweeps.find(act.context, user, name)
            if found is None:
                raise not_found("sweep", name)
            new = aim(found)
            if new is not found:
                tx.sweeps.put(new)
                act.record(tx, found.title, owner=user, tenant=found.spec.job.tenant, now=now)
            return new

        sweep = await self._board.db.write(work)
        self._worker.look_at(sweep.uid)
        return await self._wire(sweep)

    async def _find(self, context: TenantContext, user: str, name: str) -> Sweep:
        found = await self._board.db.read(lambda tx: tx.sweeps.find(context, user, name))
        if found is None:
            raise not_found("sweep", name)
        return found

    async def _wire(self, sweep: Sweep, *, with_trials: bool = True) -> api.Sweep:
        trials = await self._board.db.read(lambda tx: tx.sweeps.trials(SYSTEM, sweep.uid))
        trials = self._worker.as_known(sweep.uid, trials)
        jobs = {t.number: job for t in trials if t.is_live and (job := self._job(t)) is not None}
        return wire.to_wire(sweep, trials, jobs, self._clock(), with_trials=with_trials)

    def _job(self, trial: SweepTrial) -> Job | None:
        job = None if trial.job is None else self._board.jobs.get(trial.job)
        return None if job is None else self._submissions.as_it_waits(job)


def _wrong(sweep: Sweep, what: str) -> Refused:
    texts = {
        "cancelled": msg("sweep {name} is {phase} and cannot be cancelled any more", name=sweep.title, phase=sweep.phase.value),
        "extended": msg("sweep {name} is {phase} and cannot be extended; run it again", name=sweep.title, phase=sweep.phase.value),
        "deleted": msg("sweep {name} is {phase}; cancel it first, then delete it", name=sweep.title, phase=sweep.phase.value),
    }  # fmt: skip
    return Refused(Reason.WRONG_STATE, texts[what])


def _extended(sweep: Sweep, more: api.SweepExtend, now: float) -> Budget:
    budget, points = sweep.budget, sweep.spec.points
    if more.trials is None and more.core_hours is None and more.deadline is None:
        raise Refused(Reason.INVALID, msg("nothing to extend: give --trials, --core-hours or --deadline"))
    trials = budget.trials + (more.trials or 0)
    if points is not None and trials > points:
        raise Refused(
            Reason.INVALID,
            msg(
                "sweep {name} has {n} points in all, and its limit is already {trials} trials; {more} more are too many",
                name=sweep.title,
                n=points,
                trials=budget.trials,
                more=more.trials or 0,
            ),
        )
    if trials > MOST_TRIALS:
        raise Refused(
            Reason.INVALID,
            msg("{n} trials are more than the limit of {most} of one sweep", n=trials, most=MOST_TRIALS),
        )
    hours = budget.core_hours
    if more.core_hours is not None and hours is not None:
        hours += more.core_hours
    # who says nothing of a deadline that has passed wants no other one
    passed = budget.deadline is not None and budget.deadline <= now
    deadline = None if passed else budget.deadline
    if more.deadline is not None:
        deadline = now + more.deadline
    return Budget(trials, hours, deadline)
