"""Notes of jobs: a short text that the owner attaches to one. The note of a job is the note of the run."""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.jobs.job import FINAL, Job
from mlp_hub.service.state.board import Changes
from mlp_hub.store import codec
from mlp_hub.store.tx import Tx


def store_note(tx: Tx, changes: Changes, job: Job, note: str, *, actor: str, now: float) -> Job:
    """Store the note of a job, empty for none, and return the job; another person's change is an entry of the audit log.

    The note of an ended job is stored without a message to those who watch for changes: they would count its end again.
    """
    note = codec.text(note)
    if note == job.note:
        return job
    noted = replace(job, note=note)
    stored = tx.jobs.update(noted) if job.phase in FINAL else changes.update(tx, noted)
    if actor != job.spec.user:
        detail = {"user": job.spec.user, "before": {"note": job.note}, "after": {"note": note}}
        tx.audit.add(now, actor, "job.note", job.title, tenant=job.spec.tenant, detail=detail)
    return stored
