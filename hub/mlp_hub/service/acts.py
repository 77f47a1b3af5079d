"""What is done outside the database: only while this service decides, and under its epoch.

No transaction fences these acts. So the lease is looked at right before each, and the executor refuses them once it has
seen a newer epoch; between the two nothing is left that the next service would not notice or wait for.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mlp_hub.executors.base import Executor, LaunchSpec
from mlp_hub.service import clearing
from mlp_hub.service.erase import remove_workspace
from mlp_hub.service.lease import Leadership, LeaseLost

log = logging.getLogger(__name__)


class Acts:
    """Acts on attempts and on jobs' directories.

    All raise `LeaseLost` where another service decides, and `Superseded` where one has begun to act.
    """

    def __init__(self, executor: Executor, lease: Leadership) -> None:
        self._executor = executor
        self._lease = lease
        self._erasers = ThreadPoolExecutor(
            clearing.MOST, "erase"
        )  # its own: it may take minutes, and others start jobs

    async def start(self, spec: LaunchSpec) -> None:
        """Start an attempt."""
        await self._lease.sure()
        await self._executor.start(spec, self._lease.epoch)

    async def stop(self, attempt: str, grace_s: float) -> None:
        """Ask all ranks of an attempt to end."""
        await self._lease.sure()
        await self._executor.stop(attempt, grace_s, self._lease.epoch)

    async def forget(self, attempt: str) -> None:
        """Kill what is left of an attempt and remove its traces."""
        await self._lease.sure()
        await self._executor.forget(attempt, self._lease.epoch)

    async def erase(self, workspace: Path) -> None:
        """Remove a job's directory. What a program left may take long: who loses the lease meanwhile leaves the rest."""
        await self._lease.sure()
        epoch = self._lease.epoch

        def goes_on() -> None:
            if not self._lease.is_held or self._lease.epoch != epoch:
                raise LeaseLost

        def remove() -> None:
            with self._executor.acting(epoch):
                remove_workspace(workspace, goes_on)

        await asyncio.get_running_loop().run_in_executor(self._erasers, remove)

    async def still_decides(self) -> bool:
        """After `Superseded`: whether the database says that this service decides, whoever else acts."""
        try:
            await self._lease.confirm()
        except LeaseLost:
            return False
        log.error("a service with a newer epoch than %d acts on this hub's jobs", self._lease.epoch)
        return True
