"""Worker of the queue for sweeps: makes trials as there is room, ends trials, and counts their use.

A trial is stored with its parameters before its job is submitted, and each job names its trial,
once for each. After a crash in between, the next worker finds the job, or submits it. Only the
worker writes the trials of a sweep, so its copies stay true. Its memory can be made again of them
and of the points that jobs reported.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import FINAL, Job, JobSpec, Target, Trial
from mlp_hub.domain.jobs.sweep import (
    ENDED_SWEEPS,
    SubmittedFrom,
    Sweep,
    SweepPhase,
    SweepTrial,
    TrialState,
    label_of,
    trial_name,
)
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.jobs.submissions import Submissions
from mlp_hub.service.lifecycle.targets import store_aimed
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.metrics.service import MetricsService
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.service.sweeps.adviser import Adviser, needs_optuna
from mlp_hub.service.sweeps.next_action import SweepPlan, TrialJob, decide
from mlp_hub.service.sweeps.reported import Reported
from mlp_hub.store.records import StoredPoint
from mlp_hub.store.repos.jobs.metrics import PAGE_BYTES
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

KIND = "sweep"
JOBS_S = 0.05
"""Tuning: seconds after a move of a trial's job until it is looked at, with all that moved meanwhile: fewer transactions; two trials wait
in the queue at any time, so none starts later for it."""
POINTS_S = 0.2
"""Tuning: seconds after a trial's report until it is looked at, with all that came meanwhile."""
GOING_S = 0.5
"""Tuning: seconds between two looks whether the trials of a sweep that is deleted have gone."""
REFUSED_S = 30.0
"""Tuning: seconds until a trial that was refused is tried again, as when its user's storage is full."""
LOT = 5000
"""Tuning: points of one trial that are read at a time."""
_DELETED = msg("its sweep was deleted")


@dataclass(slots=True)
class _Known:
    """Sweep in memory: its trials as stored, except `unsaved` ones, and the reports of live ones."""

    trials: dict[int, SweepTrial]
    reported: dict[int, Reported] = field(default_factory=dict)
    adviser: Adviser | None = None
    unsaved: set[int] = field(default_factory=set)


class SweepWorker:
    """Brings sweeps on, only while this service decides."""

    def __init__(
        self,
        queue: WorkQueue,
        board: Board,
        submissions: Submissions,
        metrics: MetricsService,
        clock: Callable[[], float],
    ) -> None:
        self._queue, self._board, self._submissions, self._clock = queue, board, submissions, clock
        self._known: dict[str, _Known] = {}
        queue.serve(KIND, self._work)
        metrics.points.listeners.append(self._points_came)

    async def start(self) -> None:
        """Look at all sweeps that are not at rest."""
        self._board.on_change(self._board_says)
        for uid in await self._board.db.read(lambda tx: tx.sweeps.active_uids(SYSTEM)):
            self.look_at(uid)

    def stop(self) -> None:
        """Forget what is in memory: another service may lead."""
        self._known.clear()

    def look_at(self, uid: str) -> None:
        """Have a sweep looked at soon."""
        self._queue.add((KIND, uid))

    def curves(self, uid: str) -> dict[int, tuple[tuple[int, float], ...]]:
        """Return the reports of live trials so far, by number."""
        known = self._known.get(uid)
        return {} if known is None else {number: each.kept() for number, each in known.reported.items()}

    def as_known(self, uid: str, trials: Sequence[SweepTrial]) -> list[SweepTrial]:
        """Return stored trials as they are now: reports of live ones are stored with their end."""
        known = self._known.get(uid)
        return list(trials) if known is None else [known.trials.get(each.number, each) for each in trials]

    def _board_says(self, job: Job, before: Job | None) -> None:
        if job.spec.trial is not None and (before is None or before.phase is not job.phase):
            self._queue.add_after((KIND, job.spec.trial.sweep), JOBS_S)

    def _points_came(self, uid: str) -> None:
        job = self._board.jobs.get(uid)
        if job is not None and job.spec.trial is not None:
            self._queue.add_after((KIND, job.spec.trial.sweep), POINTS_S)

    async def _work(self, uid: str) -> bool:
        try:
            return await self._turn(uid)
        except LeaseLost:
            return False
        except BaseException:
            self._known.pop(uid, None)  # what was worked out and not stored is worked out anew
            raise

    async def _turn(self, uid: str) -> bool:
        known = self._known.get(uid)
        mine = (
            () if known is None else (t.job for t in known.trials.values() if t.is_live and t.job is not None)
        )
        active = {job: self._board.jobs[job] for job in mine if job in self._board.jobs}
        read = await self._board.db.read(lambda tx: _read(tx, uid, known, active))
        if read is None or read.sweep.phase in ENDED_SWEEPS:
            self._known.pop(uid, None)
            return False
        if read.sweep.phase is SweepPhase.DELETING:
            return await self._delete(read.sweep)
        known = self._known.setdefault(uid, read.known)
        stopped = await self._take_points(read, known)
        trials = [known.trials[number] for number in sorted(known.trials)]
        plan = decide(read.sweep, trials, read.jobs, self._clock())
        if not await self._store(read, known, plan, stopped):
            self._known.pop(uid, None)
            return True
        if plan.sweep.phase in ENDED_SWEEPS:
            self._known.pop(uid, None)
            return False
        await self._submit(plan.sweep, known)
        if plan.again_s is not None:
            self._queue.add_after((KIND, uid), plan.again_s)
        return read.more

    async def _take_points(self, read: _Read, known: _Known) -> dict[int, Message]:
        """Read the trials' reports; return the trials to end early, each with the reason; never a complete one."""
        sweep, stopped = read.sweep, dict[int, Message]()
        fresh: list[tuple[int, list[tuple[int, float]]]] = []
        for number, points in read.points.items():
            reported = known.reported.setdefault(number, Reported(sweep.spec.metric))
            values = reported.add_points(points)
            trial = known.trials[number]
            known.trials[number] = replace(trial, value=reported.last, steps=reported.count)
            if values:
                fresh.append((number, values))
        if fresh and sweep.spec.stop != "none":
            for number, step in await asyncio.to_thread(self._judge, sweep, known, fresh):
                if known.reported[number].complete:
                    continue  # to stop it would save nothing
                stopped[number] = msg(
                    "stopped early: at step {step} its {metric} was {value}, and enough others were as good or better",
                    step=step,
                    metric=sweep.spec.metric,
                    value=f"{known.reported[number].curve[step]:.4g}",
                )
        return stopped

    def _judge(
        self, sweep: Sweep, known: _Known, fresh: Sequence[tuple[int, list[tuple[int, float]]]]
    ) -> list[tuple[int, int]]:
        """Return (number, step) of trials that are to end early. Blocks."""
        adviser = self._adviser(sweep, known, dict(fresh))
        found: list[tuple[int, int]] = []
        for number, values in fresh:
            for at in values:
                trial, ends = adviser.report(known.trials[number], [at])
                if dict(trial.rungs) != dict(known.trials[number].rungs):
                    known.unsaved.add(number)
                known.trials[number] = trial
                if ends:
                    found.append((number, at[0]))
                    break
        return found

    def _adviser(
        self, sweep: Sweep, known: _Known, fresh: Mapping[int, Sequence[tuple[int, float]]]
    ) -> Adviser:
        """Return the adviser that knows all trials and reports, except the `fresh` ones, which it gets next."""
        if known.adviser is None:
            curves = {
                number: sorted(reported.curve.items() - set(fresh.get(number, ())))
                for number, reported in known.reported.items()
            }
            known.adviser = Adviser(sweep, [known.trials[n] for n in sorted(known.trials)], curves)
        return known.adviser

    def _propose(self, sweep: Sweep, known: _Known, make: int) -> list[SweepTrial]:
        """Choose the parameters of new trials. Blocks where they are searched."""
        found = []
        for number in range(len(known.trials), len(known.trials) + make):
            if needs_optuna(sweep.spec):
                params = self._adviser(sweep, known, {}).propose(number)
            else:
                params = sweep.spec.point(number)
            found.append(SweepTrial(number, params))
        return found

    async def _with_changes(self, known: _Known, plan: SweepPlan) -> None:
        """Apply the present state of trials, and choose the parameters of new ones: all still unsaved."""
        for trial in plan.trials:
            known.trials[trial.number] = trial
            if trial.is_live:
                continue
            reported = known.reported.pop(trial.number, None)
            ended = replace(trial, curve=() if reported is None else reported.kept())
            known.trials[trial.number] = ended
            known.unsaved.add(trial.number)
            if known.adviser is not None:
                await asyncio.to_thread(known.adviser.tell, ended)
        if plan.make:
            made = await asyncio.to_thread(self._propose, plan.sweep, known, plan.make)
            known.trials |= {trial.number: trial for trial in made}
            known.unsaved |= {trial.number for trial in made}

    async def _store(
        self, read: _Read, known: _Known, plan: SweepPlan, stopped: Mapping[int, Message]
    ) -> bool:
        """Store what was decided; False where somebody changed the sweep meanwhile."""
        before, sweep = read.sweep, plan.sweep
        await self._with_changes(known, plan)
        ends = _ends(read, plan, stopped)
        if sweep == before and not (known.unsaved or ends):
            return True
        rows = [known.trials[number] for number in sorted(known.unsaved)]

        def work(tx: Tx, changes: Changes) -> bool:
            if tx.sweeps.get(SYSTEM, before.uid) != before:
                return False
            for number, (reason, said) in ends.items():
                seen = read.jobs[number].job
                job = None if seen is None else tx.jobs.get(SYSTEM, seen.uid)
                if job is None or not _may_end(job):
                    continue  # it went on meanwhile, and is looked at again
                aimed = replace(job, target=Target.CANCEL)
                if reason is not None:
                    aimed = replace(aimed, reason=reason.value, message=said)
                store_aimed(tx, changes, job, aimed, now=self._clock(), message=said)
            if sweep != before:
                tx.sweeps.put(sweep)
            tx.sweeps.put_trials(before.uid, rows)
            return True

        if not await self._board.commit(work):
            return False
        known.unsaved.clear()
        return True

    async def _submit(self, sweep: Sweep, known: _Known) -> None:
        """Submit the jobs of trials that have none; whether one is there already was looked up."""
        for number, trial in sorted(known.trials.items()):
            if (
                trial.state is not TrialState.PLANNED
                or trial.job is not None
                or sweep.phase is SweepPhase.ENDING
            ):
                continue
            try:
                job = await self._job(trial_spec(sweep, trial), sweep.spec.submitted_from)
            except Refused as refused:
                await self._cannot_submit(sweep, refused)
                return
            known.trials[number] = replace(trial, job=job.uid, called=job.title, state=TrialState.RUNNING)
            known.unsaved.add(number)

    async def _job(self, spec: JobSpec, said: SubmittedFrom | None) -> Job:
        try:
            return await self._submissions.submit_trial(spec, said)
        except Refused as refused:
            if refused.reason is not Reason.CONFLICT or spec.trial is None:
                raise
        # its user has a job of that name
        return await self._submissions.submit_trial(
            replace(spec, name=f"{spec.name[:43]}-{spec.trial.sweep[-6:].lower()}"), said
        )

    async def _cannot_submit(self, sweep: Sweep, refused: Refused) -> None:
        later = replace(sweep, not_before=self._clock() + REFUSED_S, message=refused.message)

        def work(tx: Tx) -> None:
            if tx.sweeps.get(SYSTEM, sweep.uid) == sweep:
                tx.sweeps.put(later)

        await self._board.db.write(work)
        self._queue.add_after((KIND, sweep.uid), REFUSED_S)

    async def _delete(self, sweep: Sweep) -> bool:
        """Have the jobs of its trials deleted, and forget it once they have gone."""

        def work(tx: Tx, changes: Changes) -> bool:
            left = tx.jobs.of_sweep(SYSTEM, sweep.uid)
            for uid, phase in left:
                job = tx.jobs.get(SYSTEM, uid) if phase in FINAL else None
                if job is not None:
                    aimed = replace(job, target=Target.DELETE)
                    store_aimed(tx, changes, job, aimed, now=self._clock(), message=_DELETED)
            if not left:
                tx.sweeps.remove(sweep.uid)
            return bool(left)

        if await self._board.commit(work):
            self._queue.add_after((KIND, sweep.uid), GOING_S)
        return False


@dataclass(slots=True)
class _Read:
    sweep: Sweep
    known: _Known
    jobs: dict[int, TrialJob]
    points: dict[int, list[StoredPoint]]
    more: bool = False


def _read(tx: Tx, uid: str, known: _Known | None, active: dict[str, Job]) -> _Read | None:
    """Read a sweep with the jobs of its live trials, and their reports since the last read."""
    sweep = tx.sweeps.get(SYSTEM, uid)
    if sweep is None:
        return None
    known = known or _Known({trial.number: trial for trial in tx.sweeps.trials(SYSTEM, uid)})
    read = _Read(sweep, known, {}, {})
    most_bytes = PAGE_BYTES // max(sum(trial.is_live for trial in known.trials.values()), 1)
    for number, trial in known.trials.items():
        if not trial.is_live or sweep.phase is SweepPhase.DELETING:
            continue
        job = (
            tx.jobs.of_trial(SYSTEM, uid, number)
            if trial.job is None
            else active.get(trial.job) or tx.jobs.get(SYSTEM, trial.job)
        )
        if job is None and trial.job is None:
            continue  # it was not submitted yet
        if job is not None and sweep.spec.metric and job.started_at is not None:
            reported = known.reported.get(number)
            points, whole = tx.metrics.page(job.uid, 0 if reported is None else reported.seq, LOT, most_bytes)
            if points:
                read.points[number] = points
            read.more |= not whole
            if not whole and job.phase in FINAL:
                continue  # all that it reported is read before it is said to have ended
        names = known.reported.get(number)
        late = [name for point in read.points.get(number, ())[:100] for name in point.values]
        told_of = [*dict.fromkeys([*(names.names if names is not None else ()), *late])]
        read.jobs[number] = TrialJob(job, told_of)
    return read


def trial_spec(sweep: Sweep, trial: SweepTrial) -> JobSpec:
    """Return what is submitted for a trial."""
    of = sweep.spec.job
    index = label_of(sweep.spec, trial.number) if sweep.spec.array else None
    return replace(
        of,
        name=trial_name(sweep.spec, trial.number),
        params={**of.params, **trial.params},
        trial=Trial(sweep.uid, sweep.title, trial.number, index),
    )


def _ends(
    read: _Read, plan: SweepPlan, stopped: Mapping[int, Message]
) -> dict[int, tuple[Reason | None, Message]]:
    """Return the trials whose jobs are to end, each with why."""
    over: tuple[Reason | None, Message] = (None, plan.sweep.message or msg("its sweep has ended"))
    why = dict.fromkeys(plan.end, over)
    why |= {number: (Reason.STOPPED_EARLY, said) for number, said in stopped.items()}
    jobs = {number: seen.job for number, seen in read.jobs.items()}
    return {number: said for number, said in why.items() if _may_end(jobs.get(number))}


def _may_end(job: Job | None) -> bool:
    return job is not None and job.phase not in FINAL and job.target not in {Target.CANCEL, Target.DELETE}
