"""Takes new jobs into the store, many in one transaction, and each Idempotency-Key once."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

import msgspec

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import FINAL, PHASES, Job, JobSpec, Target
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.jobs.kept import NOTHING_KEPT, KeptRun, keep
from mlp_hub.service.lifecycle.targets import store_aimed
from mlp_hub.service.state.board import Board, Changes
from mlp_hub.service.state.former_members import gone_from, refusal
from mlp_hub.service.state.moves import Step
from mlp_hub.service.state.user_limits import Scales
from mlp_hub.service.storage import data, environments
from mlp_hub.service.support.batching import Batch, is_everybodys
from mlp_hub.store.records import Remembered
from mlp_hub.store.tx import Tx
from mlp_language.message import msg, msgs

log = logging.getLogger(__name__)
ADDED_LATER = ("replace", "params", "provenance", "env_name", "workdir", "amounts")
"""Fields of a request that earlier versions did not have. Keys are remembered over an upgrade: unset, such a field counts as absent."""


@dataclass(frozen=True, slots=True)
class Once:
    """The key under which the answer to a request is remembered, and what tells it from other requests."""

    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class _New:
    """Job to store, once if it has a key; `replaces` the ended runs of its name."""

    job: Job
    once: Once | None
    replaces: bool
    kept: KeptRun = NOTHING_KEPT


class Intake:
    """Stores new jobs; those that come while others are being stored make up the next transaction."""

    def __init__(self, board: Board, policy: RunPolicy) -> None:
        self._board = board
        self._policy = policy
        self._lots: Batch[_New, Job] = Batch(self._store_all)

    async def stop(self) -> None:
        """Take in no more."""
        await self._lots.stop()

    async def answered(self, user: str, once: Once) -> Job | None:
        """Return the job that this very request made before, None where it made none.

        Raises `Refused` when the key was used for another request, or the job is deleted.
        """
        return await self._board.db.read(lambda tx: _answered(tx, user, once))

    async def store_run(
        self, job: Job, once: Once | None = None, *, replaces: bool = False, kept: KeptRun = NOTHING_KEPT
    ) -> Job:
        """Store a job as the next run of its name; return it, or the one that the same request made before.

        It is durable on return. With `replaces` the earlier runs are deleted. Raises `Refused` if a run of
        its name has not ended, or if too many jobs are open.
        """
        try:
            return await self._lots.submit_item(_New(job, once, replaces, kept))
        except Refused:
            raise
        except Exception as error:
            if not is_everybodys(error):
                log.exception("job %s of %s could not be stored", job.spec.name, job.spec.user)
            raise

    async def looked_at(self, job: Job) -> Job:
        """Return a job as the run that `store_run` would store now, without storing it; raises `Refused` as that does."""
        if (refused := self._scales().refusal(job.spec)) is not None:
            raise refused
        found = await self._board.db.read(lambda tx: _looked_at(tx, job))
        if isinstance(found, Refused):
            raise found
        return found

    def _scales(self) -> Scales:
        return Scales(self._board.weights, self._policy.open_bytes_max, self._policy.open_kinds_max)

    async def _store_all(self, lot: Sequence[_New]) -> Sequence[Job | Exception]:
        # here and not before: lots come one after another, so that requests side by side cannot all find room
        scales = self._scales()
        refused = [scales.refusal(one.job.spec) for one in lot]
        fitting = [one for one, refusal in zip(lot, refused, strict=True) if refusal is None]
        if not fitting:
            return [refusal for refusal in refused if refusal is not None]
        stored = iter(await self._board.commit(lambda tx, changes: _insert(tx, changes, fitting)))
        return [next(stored) if refusal is None else refusal for refusal in refused]


def _answered(tx: Tx, user: str, once: Once) -> Job | None:
    known = tx.idempotency.get(user, once.key)
    if known is None:
        return None
    if known.fingerprint != once.fingerprint:
        text = msg(
            "Idempotency-Key {key} was used for another request; use a new key for each job",
            key=once.key[:100],
        )
        raise Refused(Reason.CONFLICT, text)
    job = tx.jobs.get(SYSTEM, known.answer)
    if job is None:
        text = msg(
            "the job that was submitted with Idempotency-Key {key} was deleted meanwhile; use a new key to run it again",
            key=once.key[:100],
        )
        raise Refused(Reason.CONFLICT, text)
    return job


def _insert(tx: Tx, changes: Changes, lot: Sequence[_New]) -> list[Job | Exception]:
    """Store new jobs; in place of those that cannot be, the refusal."""
    answers: dict[str, Job | Exception] = {}
    # looked at before, but somebody may have left meanwhile
    gone = gone_from(tx, {(spec.user, spec.tenant) for spec in (one.job.spec for one in lot)})
    for one in lot:
        if (wrong := _refusal(tx, one.job.spec, gone)) is not None:
            answers[one.job.uid] = wrong
        elif one.once is not None:  # a key may come twice in one lot
            answers[one.job.uid] = _insert_once(tx, changes, one, one.once)
    plain = [one for one in lot if one.once is None and one.job.uid not in answers]
    if plain:
        tx.users.ensure_all(dict.fromkeys(one.job.spec.user for one in plain), plain[0].job.submitted_at)
    new = _numbered(tx, changes, plain, answers)
    stored = tx.jobs.insert_many(new)
    for job in new:
        answers[job.uid] = job if job.uid in stored else _raced()
    new = [job for job in new if job.uid in stored]
    kept = {one.job.uid: one.kept for one in plain}
    for job in new:
        _keep(tx, changes, job, kept[job.uid])
    changes.jobs += new
    if new:
        changes.add_events(tx, [(job.uid, _submission(job)) for job in new], new[0].submitted_at)
    return [answers[one.job.uid] for one in lot]


def _keep(tx: Tx, changes: Changes, job: Job, kept: KeptRun) -> None:
    keep(tx, job, kept)
    if kept.origin.program is not None:
        changes.programs[job.uid] = kept.origin.program


def _looked_at(tx: Tx, job: Job) -> Job | Refused:
    """Return a job as the next run of its name, or why it would not be stored."""
    spec = job.spec
    gone = gone_from(tx, [(spec.user, spec.tenant)])
    return _refusal(tx, spec, gone) or _as_next(job, tx.jobs.find(SYSTEM, spec.user, spec.name))


def _refusal(tx: Tx, spec: JobSpec, gone: AbstractSet[tuple[str, str]]) -> Refused | None:
    """Return why its user may not run a job any more; `gone` are the (user, tenant) of those who left."""
    if (spec.user, spec.tenant) in gone:
        return refusal(spec)
    return data.refusal(tx, spec) or environments.refusal(tx, spec)


def _raced() -> Refused:
    return Refused(
        Reason.CONFLICT, msg("another hub accepted a job of this name at the same moment; try again")
    )


def _numbered(
    tx: Tx, changes: Changes, lot: Sequence[_New], answers: dict[str, Job | Exception]
) -> list[Job]:
    """Return the jobs with their numbers, without those whose names are still in use: these are answered so."""
    of_user: dict[str, dict[str, Job]] = {}
    for one in lot:
        of_user.setdefault(one.job.spec.user, {})
    for user in of_user:
        of_user[user] = tx.jobs.latest(
            SYSTEM, user, (o.job.spec.name for o in lot if o.job.spec.user == user)
        )
    new: list[Job] = []
    for one in lot:
        latest = of_user[one.job.spec.user]
        job = _next_run(tx, changes, one, latest.get(one.job.spec.name))
        if isinstance(job, Refused):
            answers[one.job.uid] = job
            continue
        latest[job.spec.name] = job
        new.append(job)
    return new


def _next_run(tx: Tx, changes: Changes, one: _New, latest: Job | None) -> Job | Refused:
    """Return the job as the run after the latest of its name, or the refusal if that has not ended.

    The runs that it replaces are deleted.
    """
    job = _as_next(one.job, latest)
    if latest is not None and one.replaces and not isinstance(job, Refused):
        for uid in tx.jobs.ended_runs(SYSTEM, latest.spec.user, latest.spec.name):
            ended = tx.jobs.get(SYSTEM, uid)
            if ended is not None and ended.phase in FINAL:
                aimed = replace(ended, target=Target.DELETE)
                store_aimed(tx, changes, ended, aimed, now=one.job.submitted_at, message=msg("replaced"))
    return job


def _as_next(job: Job, latest: Job | None) -> Job | Refused:
    """Return the job as the run after the latest of its name, or the refusal if that has not ended.

    Nothing is raised: an exception holds the frames that it passed, and so the refused program.
    """
    if latest is None:
        return job
    return replace(job, run=latest.run + 1) if latest.leaves_its_name else still_there(latest)


def _insert_once(tx: Tx, changes: Changes, one: _New, once: Once) -> Job | Exception:
    user, now = one.job.spec.user, one.job.submitted_at
    try:
        again = _answered(tx, user, once)
    except Refused as refused:
        return refused
    if again is not None:
        return again
    job = _next_run(tx, changes, one, tx.jobs.find(SYSTEM, user, one.job.spec.name))
    if isinstance(job, Refused):
        return job
    tx.users.ensure(user, now)
    if not tx.jobs.insert(job):
        return _raced()
    _keep(tx, changes, job, one.kept)
    changes.jobs.append(job)
    changes.add_event(tx, job.uid, now, _submission(job))
    tx.idempotency.put(user, once.key, Remembered(once.fingerprint, job.uid), now)
    return job


def _submission(job: Job) -> Step:
    least, most = job.spec.ranks_min, job.spec.ranks_max
    where = {"tenant": job.spec.tenant, "runtime": job.spec.runtime}
    if least == most:
        return Step(
            "submitted",
            msgs(
                "submitted to {tenant}: {n} rank with runtime {runtime}",
                "submitted to {tenant}: {n} ranks with runtime {runtime}",
                n=most,
                **where,
            ),
        )
    return Step(
        "submitted",
        msg(
            "submitted to {tenant}: {least} to {most} ranks with runtime {runtime}",
            least=least,
            most=most,
            **where,
        ),
    )


def still_there(job: Job) -> Refused:
    """Return the refusal of another run of a name while this one has not ended."""
    return Refused(
        Reason.CONFLICT,
        msg(
            "{name} run {run} has not ended, it is {phase}; to run it again, cancel it first or give another name",
            name=job.spec.name,
            run=job.run,
            phase=PHASES[job.phase],
        ),
    )


def fingerprint(asked: JobCreate | Mapping[str, object], *, of: str = "") -> str:
    """Return what tells two requests apart; `of` is the job that is to run again."""
    said = msgspec.to_builtins(asked)
    if of:
        said = {"resubmit": of, **said}
    else:
        for later in ADDED_LATER:
            if not said.get(later, True):
                del said[later]
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()
