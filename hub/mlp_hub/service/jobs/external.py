"""Worker of the queue that takes in jobs which people made past the hub, where jobs run: level-triggered, one object at a time."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from mlp_hub.domain.errors import MessageError, Refused
from mlp_hub.domain.jobs.job import FINAL, Job, Phase, Target
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.base import Superseded
from mlp_hub.executors.external import ExternalJobs, ObservedExternalJob
from mlp_hub.scheduler.model.types import Wait
from mlp_hub.service.admission.commit import waiting_words
from mlp_hub.service.admission.loop import Admission
from mlp_hub.service.jobs.service import JobService
from mlp_hub.service.jobs.submissions import Submissions
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.state.board import Board
from mlp_hub.service.state.leadership import Leadership, LeaseLost
from mlp_language.message import msg

log = logging.getLogger(__name__)
KIND = "brought"
"""Kind of the keys of these objects in the work queue."""


class ExternalJobIntake:
    """Submits what people bring through the one way of all jobs, cancels what they take away, removes what was cancelled here."""

    def __init__(  # noqa: PLR0917 - the composition root gives it all
        self,
        queue: WorkQueue,
        board: Board,
        submissions: Submissions,
        jobs: JobService,
        external_jobs: ExternalJobs,
        lease: Leadership,
        admission: Admission,
    ) -> None:
        self._queue, self._board, self._submissions, self._jobs = queue, board, submissions, jobs
        self._external_jobs, self._lease, self._admission = external_jobs, lease, admission
        self._job_of: dict[str, str] = {}  # of jobs that have not ended, by the uid of their object
        queue.serve(KIND, self._work)
        external_jobs.on_news(lambda uid: queue.add((KIND, uid)))
        admission.on_waits.append(self._admission_says)

    async def start(self) -> None:
        """Cancel what was taken away while nobody looked, before anybody looks after it, and look at all there are."""
        await self._external_jobs.seen()
        self._job_of = {
            job.spec.brought.uid: uid for uid, job in self._board.jobs.items() if job.spec.brought
        }
        self._board.on_change(self._board_says)
        for uid in list(self._job_of):
            if not self._external_jobs.is_there(uid):
                await self._gone(uid)
        for found in self._external_jobs.all():
            self._queue.add((KIND, found.what.uid))

    def _board_says(self, job: Job, _before: Job | None) -> None:
        if (what := job.spec.brought) is None:
            return
        if job.phase in FINAL or job.phase is Phase.DELETING:
            self._job_of.pop(what.uid, None)
            self._queue.add((KIND, what.uid))
        else:
            self._job_of[what.uid] = job.uid

    def _admission_says(self, waits: Sequence[Wait]) -> None:
        for wait in waits:
            job = self._board.waiting.get(wait.uid)
            if job is not None and job.spec.brought is not None:
                self._queue.add((KIND, job.spec.brought.uid))

    async def _work(self, uid: str) -> bool:
        try:
            found = self._external_jobs.find(uid)
            if found is not None:
                await self._look(found)
            elif not self._external_jobs.is_there(uid):
                await self._gone(uid)
        except (LeaseLost, Superseded):
            return False
        return False

    async def _look(self, found: ObservedExternalJob) -> None:
        if found.job is None:
            if not found.refused:
                await self._take(found)
            return
        job = self._board.jobs.get(found.job)
        if job is None:
            uid = found.job
            job = await self._board.db.read(lambda tx: tx.jobs.get(SYSTEM, uid))
        if job is None or job.phase in (Phase.CANCELLED, Phase.DELETING):
            await self._lease.ensure_held()
            await self._external_jobs.remove(found.what, self._lease.epoch)
        elif (why := self._why(job)) != found.waits:
            await self._lease.ensure_held()
            await self._external_jobs.explain(found.what, why, self._lease.epoch)

    def _why(self, job: Job) -> str:
        """Return why a job waits, as it was stored last; empty for one that does not wait."""
        wait = self._admission.last_said.get(job.uid)
        return "" if wait is None or job.uid not in self._board.waiting else str(waiting_words(wait))

    async def _take(self, found: ObservedExternalJob) -> None:
        await self._lease.ensure_held()
        try:
            job = await self._submissions.submit_brought(found)
        except Refused as refused:
            log.info("%s is refused: %s", found.what.title, refused)
            await self._external_jobs.refuse(found.what, refused.message, self._lease.epoch)
            return
        try:
            await self._external_jobs.accept(found.what, job.uid, job.spec.name, self._lease.epoch)
        except MessageError:
            if self._external_jobs.is_there(found.what.uid):
                raise  # the next look finds the job by its key

    async def _gone(self, uid: str) -> None:
        """Cancel the job whose object somebody deleted."""
        job = self._board.jobs.get(self._job_of.get(uid, ""))
        if job is None or job.target is Target.CANCEL or job.phase in FINAL:
            return
        assert job.spec.brought is not None  # noqa: S101 - so it came into the index
        why = msg(
            "somebody deleted its {kind} {name}", kind=job.spec.brought.kind, name=job.spec.brought.name
        )
        try:
            await self._jobs.cancel(SYSTEM, job.spec.user, job.reference, why)
        except Refused as refused:
            log.info("%s: %s", job.title, refused)
