"""Count of real starts inside and outside of the told ranges, kept over restarts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial

import msgspec

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.jobs.job import HOLDING, Job, Phase
from mlp_hub.scheduler.model.outlook import TimeRange
from mlp_hub.service.state.board import Board
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
KEY = "forecast.calibration"
COUNTED = 2_000
"""Tuning: counted starts at which all counts are halved: steadiness, for how soon old starts no longer count."""
MOST_TOLD = 20_000
"""Safety: waiting jobs whose first told range is remembered."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Starts before, inside and after the range that was told first in that wait, and since when they are counted."""

    since: float | None = None
    before: int = 0
    inside: int = 0
    after: int = 0

    def with_start(self, where: int, now: float) -> Calibration:
        """Return it with one start more: -1 before, 0 inside, 1 after its range."""
        base = self
        if self.before + self.inside + self.after >= COUNTED:
            base = replace(self, before=self.before // 2, inside=self.inside // 2, after=self.after // 2)
        return Calibration(
            now if base.since is None else base.since,
            base.before + (where < 0),
            base.inside + (where == 0),
            base.after + (where > 0),
        )


class StartsCounted:
    """Compares starts with their forecasts."""

    def __init__(self, board: Board, clock: Callable[[], float]) -> None:
        self._board = board
        self._clock = clock
        self._told: dict[str, TimeRange] = {}
        self._storing = BackgroundTask(self._store)
        self.counts = Calibration()

    async def start(self) -> None:
        """Read the counts, and follow the board."""
        self._told.clear()
        self.counts = _read(await self._board.db.read(lambda tx: tx.settings.get(KEY)))
        self._board.on_change(self._changed)

    async def stop(self) -> None:
        """Finish what is being stored."""
        await self._storing.finish()

    def told(self, uid: str, start: TimeRange) -> None:
        """Note the forecast of a job that waits; the first range of a wait counts."""
        if uid in self._board.waiting and len(self._told) < MOST_TOLD:
            self._told.setdefault(uid, start)

    def _changed(self, job: Job, before: Job | None) -> None:
        if job.phase is Phase.QUEUED:
            return
        told = self._told.pop(job.uid, None)
        if told is None or job.phase not in HOLDING or before is None or before.phase is not Phase.QUEUED:
            return
        now = self._clock()
        at = now if job.admitted_at is None else job.admitted_at
        self.counts = self.counts.with_start(told.holds(at), now)
        self._storing.start()

    async def _store(self) -> None:
        try:
            stored = None
            while stored is not self.counts:
                stored = self.counts
                await self._board.db.write(partial(_put, asdict(stored)), durable=False)
        except Exception as error:  # noqa: BLE001 - nothing depends on it: the counts are stored with the next start
            log.warning("the count of forecast starts could not be stored: %s", error)


def _put(value: dict[str, object], tx: Tx) -> None:
    tx.settings.put(KEY, value)


def _read(value: object) -> Calibration:
    """Return stored counts; a torn value begins again."""
    try:
        found = msgspec.convert(value, Calibration | None) or Calibration()
    except msgspec.ValidationError:
        return Calibration()
    return found if min(found.before, found.inside, found.after) >= 0 else Calibration()
