"""Sweeps from asyncio, as `mlp.aio` has them."""

from __future__ import annotations

import asyncio
from typing import Any

from mlp.client.outlasting_wait import OutlastingWait
from mlp.client.rest import Client
from mlp.handles import sweeping
from mlp.handles.sweeping import Json, Sweep
from mlp.language import say
from mlp.rendering.tables import Sentences


class AsyncSweep:
    """A sweep whose methods are awaited; attributes are as last seen, as with `mlp.Sweep`, which `sweep` is."""

    def __init__(self, sweep: Sweep) -> None:
        self.sweep = sweep

    @property
    def data(self) -> Json:
        """Data of the service about it."""
        return self.sweep.data

    @property
    def name(self) -> str:
        """As it was given."""
        return self.sweep.name

    @property
    def reference(self) -> str:
        """Reference to this run and no other: search@2."""
        return self.sweep.reference

    @property
    def state(self) -> str:
        """One of: running, ending, finished, failed, cancelled, deleting."""
        return self.sweep.state

    @property
    def ended(self) -> bool:
        """Whether it has ended; an extended one continues."""
        return self.sweep.ended

    @property
    def best(self) -> Json | None:
        """The best trial so far, with its `params`, `value` and `job`."""
        return self.sweep.best

    @property
    def trials(self) -> Any:
        """All trials: a DataFrame where pandas is there, else a list of dicts."""
        return self.sweep.trials

    async def refresh(self) -> AsyncSweep:
        """Request the present state."""
        await asyncio.to_thread(self.sweep.refresh)
        return self

    async def wait(self, timeout: float | None = None) -> AsyncSweep:  # noqa: ASYNC109 - as a job's
        """Return when it has ended; raises TimeoutError when that takes longer."""
        wait = OutlastingWait(self.sweep._client, timeout)  # noqa: SLF001 - one module family
        while not (await asyncio.to_thread(wait.asked, self.sweep.refresh) and self.sweep.ended):
            if wait.over:
                raise TimeoutError(say("{name} has not ended; it continues.", name=self.sweep.title))
            await asyncio.sleep(wait.pause())
        return self

    async def curves(self, most: int = 100) -> dict[int, list[tuple[float, float]]]:
        """Return (step, value) of the metric of each trial, `most` of each."""
        return await asyncio.to_thread(self.sweep.curves, most)

    async def why(self) -> Sentences:
        """Return what its trials wait for: the reason of each, and the numbers of the first that waits."""
        return await asyncio.to_thread(self.sweep.why)

    async def cancel(self) -> AsyncSweep:
        """Make no more trials, and end the live ones."""
        await asyncio.to_thread(self.sweep.cancel)
        return self

    async def extend(self, /, **more: Any) -> AsyncSweep:
        """Give it more: `trials`, `core_hours`, or `deadline` from now."""
        await asyncio.to_thread(lambda: self.sweep.extend(**more))
        return self

    async def delete(self) -> None:
        """Delete it with the jobs of its trials."""
        await asyncio.to_thread(self.sweep.delete)

    def __repr__(self) -> str:
        return repr(self.sweep)


async def sweep(entry: str | None = None, *, wait: bool = False, **options: Any) -> AsyncSweep:
    """Start a sweep with the options of `mlp.sweep`; with `wait`, return it when it has ended."""
    if options.get("dry_run"):
        raise TypeError("a dry run makes no sweep: mlp.sweep(..., dry_run=True)")
    found = AsyncSweep(await asyncio.to_thread(lambda: sweeping.sweep(entry, **options)))
    return await found.wait() if wait else found


async def get_sweep(name: str) -> AsyncSweep:
    """Return one of your sweeps by its name, the latest run, or a certain one: `search@2`."""
    return AsyncSweep(await asyncio.to_thread(sweeping.get_sweep, name))


async def sweeps(tenant: str | None = None) -> list[AsyncSweep]:
    """Return your sweeps, the newest first."""

    def work() -> list[AsyncSweep]:
        client = Client.from_env()
        return [AsyncSweep(Sweep(client, one)) for one in client.sweeps(tenant=tenant)]

    return await asyncio.to_thread(work)
