"""Worker of the queue that tells the executor which images jobs and notebook servers use most, so that nodes have them before they are needed."""

from __future__ import annotations

import logging
from collections.abc import Callable

from mlp_hub.domain.errors import MessageError
from mlp_hub.executors.base import Executor, Superseded
from mlp_hub.service.lifecycle.workqueue import WorkQueue
from mlp_hub.service.state.leadership import Leadership, LeaseLost
from mlp_hub.store.database import Database

log = logging.getLogger(__name__)
KIND = "images"
"""Kind of the one key in the work queue that stands for all images."""
ALL = (KIND, "all")
MOST_JOBS = 2000
"""Tuning: jobs that are looked at, the newest ones: work of a turn, for how well rare images are told apart."""
AGAIN_S = 1800.0
"""Tuning: seconds between two turns: how soon an image that is new is on all nodes, for work."""


class ImagesUsed:
    """Tells the executor now and then, of the last `since_s` seconds: with less the images change more often, with more they are out of date."""

    def __init__(
        self,
        queue: WorkQueue,
        db: Database,
        executor: Executor,
        lease: Leadership,
        clock: Callable[[], float],
        *,
        since_s: float,
    ) -> None:
        self._since_s = since_s
        self._queue, self._db, self._executor, self._lease, self._clock = queue, db, executor, lease, clock
        queue.serve(KIND, self._report)

    def begin(self) -> None:
        """Tell it from now on, where ranks run in containers."""
        if self._executor.images:
            self._queue.add(ALL)

    async def _report(self, _: str) -> bool:
        since = self._clock() - self._since_s
        used = await self._db.read(lambda tx: tx.jobs.images(since, MOST_JOBS) + tx.ledger.images(since))
        try:
            await self._lease.ensure_held()
            await self._executor.keep_images([image for image, _ in used.most_common()], self._lease.epoch)
        except (LeaseLost, Superseded):
            return False
        except MessageError as error:
            log.warning("images are not fetched before they are needed: %s", error)
            raise
        self._queue.add_after(ALL, AGAIN_S)
        return False
