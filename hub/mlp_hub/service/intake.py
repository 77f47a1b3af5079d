"""Takes new jobs into the store, many in one transaction, and each Idempotency-Key once."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.job import Job
from mlp_hub.service.apart import is_everybodys
from mlp_hub.service.batch import Batch
from mlp_hub.service.board import Board, Changes, Step
from mlp_hub.service.config import RunPolicy
from mlp_hub.service.left import gone_from, refusal
from mlp_hub.service.submit import name_taken
from mlp_hub.service.weights import Scales
from mlp_hub.store.records import Remembered
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Once:
    """The key under which the answer to a request is remembered, and what tells it from other requests."""

    key: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class _New:
    """A job that is to be stored, once where it came with a key."""

    job: Job
    once: Once | None


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

    async def take(self, job: Job, once: Once | None = None) -> Job:
        """Store a job, which is durable when this returns, and return it, or the one that the same request made before.

        Raises `Refused` when its name is taken, or so much is open already that it finds no room.
        """
        try:
            return await self._lots.put(_New(job, once))
        except Refused:
            raise
        except Exception as error:
            if not is_everybodys(error):
                log.exception("job %s of %s could not be stored", job.spec.name, job.spec.user)
            raise

    async def _store_all(self, lot: Sequence[_New]) -> Sequence[Job | Exception]:
        # here and not before: lots come one after another, so that requests side by side cannot all find room
        scales = Scales(self._board.weights, self._policy.open_bytes_max, self._policy.open_kinds_max)
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
        msg = f"Idempotency-Key {once.key[:100]} was used for another request; use a new key for each job"
        raise Refused(Reason.CONFLICT, msg)
    job = tx.jobs.get(known.answer)
    if job is None:
        msg = (
            f"the job that was submitted with Idempotency-Key {once.key[:100]} was deleted meanwhile; "
            "use a new key to run it again"
        )
        raise Refused(Reason.CONFLICT, msg)
    return job


def _insert(tx: Tx, changes: Changes, lot: Sequence[_New]) -> list[Job | Exception]:
    """Store new jobs; in place of those that cannot be, the refusal."""
    answers: dict[str, Job | Exception] = {}
    # looked at before, but somebody may have left meanwhile
    gone = gone_from(tx, {(spec.user, spec.tenant) for spec in (one.job.spec for one in lot)})
    for one in lot:
        if (one.job.spec.user, one.job.spec.tenant) in gone:
            answers[one.job.uid] = refusal(one.job.spec)
        elif one.once is not None:  # a key may come twice in one lot
            answers[one.job.uid] = _insert_once(tx, changes, one.job, one.once)
    plain = [one.job for one in lot if one.once is None and one.job.uid not in answers]
    if plain:
        tx.users.ensure_all(dict.fromkeys(job.spec.user for job in plain), plain[0].submitted_at)
    stored = tx.jobs.insert_many(plain)
    for job in plain:
        if job.uid in stored:
            answers[job.uid] = job
        else:
            answers[job.uid] = name_taken(job.spec.name, tx.jobs.names(job.spec.user))
    new = [job for job in plain if job.uid in stored]
    changes.jobs += new
    if new:
        changes.add_events(tx, [(job.uid, _submission(job)) for job in new], new[0].submitted_at)
    return [answers[one.job.uid] for one in lot]


def _insert_once(tx: Tx, changes: Changes, job: Job, once: Once) -> Job | Exception:
    user = job.spec.user
    try:
        again = _answered(tx, user, once)
    except Refused as refused:
        return refused
    if again is not None:
        return again
    tx.users.ensure(user, job.submitted_at)
    if not tx.jobs.insert(job):
        return name_taken(job.spec.name, tx.jobs.names(user))
    changes.jobs.append(job)
    changes.add_event(tx, job.uid, job.submitted_at, _submission(job))
    tx.idempotency.put(user, once.key, Remembered(once.fingerprint, job.uid), job.submitted_at)
    return job


def _submission(job: Job) -> Step:
    least, most = job.spec.ranks_min, job.spec.ranks_max
    count = str(least) if least == most else f"{least} to {most}"
    what = f"{count} rank" + ("s" if most != 1 else "")
    return Step("submitted", f"submitted to {job.spec.tenant}: {what} with runtime {job.spec.runtime}")
