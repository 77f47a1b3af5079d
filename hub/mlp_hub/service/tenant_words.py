"""Decisions about jobs in words for the tenants whose jobs they are: of others they learn that there are some."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mlp_hub.domain.ledger import ResourceRequest
from mlp_hub.scheduler.model import Admit, Verdict, Wait
from mlp_hub.scheduler.verdicts import waits_for_preempted
from mlp_hub.service.board import Board
from mlp_hub.service.claims import named_for
from mlp_hub.service.discreet import reason_for, stop_for


class Words:
    """Puts what the core says of the jobs on the board into words for their tenants. `claims` are those that wait."""

    def __init__(self, board: Board, claims: Callable[[], Mapping[str, ResourceRequest]]) -> None:
        self._board = board
        self._claims = claims

    def until_stopped(self, admit: Admit) -> Wait:
        """Return why a job waits for which others are being stopped."""
        there = [job for uid in admit.after if (job := self._board.holding.get(uid)) is not None]
        names = [f"job {job.spec.name} of {job.spec.user}" for job in there]
        verdict = waits_for_preempted(names, tuple(job.uid for job in there), for_it=True)
        return self.discreet(Wait(admit.uid, verdict, 1))

    def discreet(self, wait: Wait) -> Wait:
        """Return why a job waits, in words for its tenant."""
        job = self._board.jobs.get(wait.uid)
        if job is None:
            return wait
        tenant = job.spec.tenant
        verdict = reason_for(named_for(wait.verdict, tenant, self._claims()), tenant, self._board.jobs)
        return wait if verdict is wait.verdict else replace(wait, verdict=verdict)

    def stop_for(self, uid: str, verdict: Verdict) -> Verdict:
        """Return why a running job is stopped or resized, in words for its tenant."""
        job = self._board.jobs.get(uid)
        if job is None:
            return verdict
        tenant = job.spec.tenant
        return stop_for(named_for(verdict, tenant, self._claims()), tenant, self._board.jobs)
