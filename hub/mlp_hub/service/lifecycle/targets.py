"""Stores what is wanted of a job, and what follows of that at once."""

from __future__ import annotations

from mlp_hub.domain.jobs.job import HOLDING, Job, Phase
from mlp_hub.executors.base import AttemptPhase, Observation
from mlp_hub.service.lifecycle import next_action as d
from mlp_hub.service.state.board import Changes
from mlp_hub.service.state.moves import Move, Step
from mlp_hub.store.tx import Tx
from mlp_language.message import Message


def store_aimed(tx: Tx, changes: Changes, job: Job, aimed: Job, *, now: float, message: Message) -> Job:
    """Store a job with its new target; one that runs nowhere moves at once, the reconciler does the rest.

    `message` says in the timeline of a job that holds something what was asked.
    """
    stored = changes.update(tx, aimed)
    if job.phase in HOLDING:
        changes.add_event(tx, job.uid, now, Step("asked", message))
    absent = Observation(stored.attempt, AttemptPhase.ABSENT)
    while stored.phase not in HOLDING and stored.phase is not Phase.DELETING:
        moves = [a for a in d.decide(stored, absent, now, 0.0) if isinstance(a, Move)]
        if not moves:
            break
        stored = changes.move(tx, moves[0], now)
    if stored.phase is Phase.DELETING:
        tx.ended.forget(stored.uid)
    return stored
