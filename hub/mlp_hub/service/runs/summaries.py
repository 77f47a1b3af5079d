"""Summaries of runs: last and best of each metric, duration, peak use.

They are made from time to time during a run, and when it has ended for good. The stored summary has
the point up to which it counts, so a run continues where it was left after any crash. A turn sums
up a few. Without reports and ends, nothing is done.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.jobs.job import FINAL, HOLDING, Job, RankStatus
from mlp_hub.domain.jobs.run import RunSummary, summed
from mlp_hub.service.metrics.storing import PointStore
from mlp_hub.service.state.board import Board
from mlp_hub.service.state.leadership import LeaseLost
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
EVERY_S = 2.0
"""Tuning: seconds between two turns: fresher columns with less, cheaper with more."""
PACE_S = 0.25
"""Tuning: seconds between two turns while runs end all the time: a lot costs little more than one run."""
MOST_AT_ONCE = 500
"""Tuning: runs that are summed up in one transaction: size of a lot, for how long others wait behind it."""
MOST_READ = 50
"""Tuning: runs of these whose points are read: how long a reader is busy; the others come again at once."""
MOST_FOUND = 10_000
"""Tuning: ended runs that are looked up at a time, after a start."""
PAGE = 20_000
"""Tuning: most points of one run read at a time: a page of the store bounds the memory."""
TROUBLED_S = 30.0
"""Tuning: seconds until the next turn after an error."""


class Summaries:
    """Keeps the summaries of runs up to date."""

    def __init__(self, board: Board, points: PointStore) -> None:
        self._board = board
        self._due: dict[str, None] = {}  # reported something, or ended
        self._more = True  # ended ones may be left that are not known here
        self._something = asyncio.Event()
        self._task = BackgroundTask(self._run)
        points.listeners.append(self.note)

    def start(self) -> None:
        """Start; runs that a killed process left are found first."""
        if not self._task.is_started:
            self._more = True
            self._due.update(
                dict.fromkeys(uid for uid, job in self._board.jobs.items() if job.phase in HOLDING)
            )
            self._board.on_change(self._changed)
            self._something.set()
            self._task.start()

    async def stop(self) -> None:
        """Stop all summaries; the next leader continues."""
        await self._task.stop()
        self._due.clear()

    def note(self, uid: str) -> None:
        """Hear that a run has reported something."""
        if self._task.is_started:
            self._due[uid] = None
            self._something.set()

    def _changed(self, job: Job, before: Job | None) -> None:
        if job.phase in FINAL and (before is None or before.phase is not job.phase):
            if len(self._due) < MOST_FOUND:
                self._due[job.uid] = None
            else:
                self._more = True
            self._something.set()

    async def _run(self) -> None:
        while True:
            await self._something.wait()
            self._something.clear()
            try:
                more = await self.turn()
            except asyncio.CancelledError:
                raise
            except Exception as error:  # what is wrong may pass; nothing depends on it
                if not isinstance(error, LeaseLost):  # who leads next goes on
                    log.exception("summing up runs failed; it is tried again")
                await asyncio.sleep(TROUBLED_S)
                more = self._more = True
            if more:
                self._something.set()
                await asyncio.sleep(0 if len(self._due) >= MOST_AT_ONCE else PACE_S)
            else:
                await asyncio.sleep(EVERY_S)

    async def turn(self) -> bool:
        """Sum up some; return whether there are more."""
        if not self._due and self._more:
            found = await self._board.db.read(lambda tx: tx.runs.unsummed(MOST_FOUND))
            self._more = len(found) == MOST_FOUND
            self._due.update(dict.fromkeys(found))
        uids = list(self._due)[:MOST_AT_ONCE]
        if not uids:
            return False
        for uid in uids:
            del self._due[uid]
        try:
            new = await self._board.db.read(lambda tx: _summed_up(tx, uids))
            if new:
                await self._board.db.write(lambda tx: _store(tx, new), durable=False)
        except BaseException:
            self._due.update(dict.fromkeys(uids))
            raise
        # who has more points than are read at a time comes again
        self._due.update(dict.fromkeys(uid for uid, one, whole in new if not whole))
        return bool(self._due)


N = TypeVar("N", int, float)
Summed = Sequence[tuple[str, RunSummary, bool]]


def _summed_up(tx: Tx, uids: Sequence[str]) -> Summed:
    """Return (uid, its summary now, whether all points are in it) of those that are there."""
    ends = tx.runs.ends(uids)
    summaries = tx.runs.summaries(list(ends))
    reported = tx.metrics.reported(ends)
    found: list[tuple[str, RunSummary, bool]] = []
    read = 0
    for uid, end in ends.items():
        known, metrics, seq, whole = summaries[uid], summaries[uid].metrics, summaries[uid].seq, True
        if uid in reported:
            if read == MOST_READ:
                found.append((uid, known, False))
                continue
            read += 1
            points, whole = tx.metrics.page(uid, known.seq, PAGE)
            metrics = summed(known.metrics, ((p.rank, p.values) for p in points))
            seq = points[-1].seq if points else seq
        ended = end.phase in FINAL and whole
        cpu, ram = _peaks(end.ranks)
        cpu_known, ram_known = known.cpu_peak, known.ram_peak
        if ended and not end.before:
            # what the only attempt was measured to have used: looks at it now and then do not count beside that
            cpu_known, ram_known = cpu or cpu_known, ram or ram_known
        new = RunSummary(
            seq, ended, end.ran if ended else None, _most(cpu_known, cpu), _most(ram_known, ram), metrics
        )
        found.append((uid, new, whole))
    return found


def _store(tx: Tx, new: Summed) -> None:
    # the points of some may have been deleted since they were read
    closed = tx.metrics.closed([uid for uid, summary, _ in new if summary.metrics])
    tx.runs.put_summaries(
        {uid: replace(summary, metrics={}) if uid in closed else summary for uid, summary, _ in new}
    )


def _peaks(ranks: Sequence[RankStatus]) -> tuple[float | None, int | None]:
    """Return the most that one rank used: its peak if that is known, otherwise its present use."""
    cpu = [value for r in ranks for value in (r.cpu_peak, r.cpu) if value is not None]
    ram = [value for r in ranks for value in (r.ram_peak, r.ram) if value is not None]
    return max(cpu, default=None), max(ram, default=None)


def _most(one: N | None, other: N | None) -> N | None:
    return other if one is None else one if other is None else max(one, other)
