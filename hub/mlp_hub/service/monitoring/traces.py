"""Exporter of runs' traces to a collector of OpenTelemetry; without a collector it does nothing.

A run is exported when it has ended, from its stored timeline. Nothing waits for the collector: ended runs are in a bounded
queue of uids, and a separate process sends them. After a start, the runs that ended shortly before are exported again,
because a kill may have lost them. Their spans have the same ids.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.jobs.job import FINAL, Job
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.jobs.stages import STEPS
from mlp_hub.service.monitoring.instruments import CountedMetric
from mlp_hub.service.monitoring.trace_spans import Span, spans_of
from mlp_hub.service.notices.sender import Sender
from mlp_hub.service.state.board import Board
from mlp_hub.service.support.retrying import RetryWaits
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
MOST_WAITING = 10_000
"""Safety: ended runs that wait for the collector; more are dropped and counted: bounds memory while it does not answer."""
MOST_AT_ONCE = 50
"""Tuning: runs in one request to the collector."""
GATHER_S = 2.0
"""Tuning: seconds between two requests: fewer requests while many runs end."""
LOOK_BACK_S = 900.0
"""Tuning: seconds before a start, runs that ended within which are exported again."""
RETRY_S, RETRY_MOST_S = 1.0, 60.0
"""Tuning: seconds until the next request to a collector that does not answer, at first and at most."""


class TraceExport:
    """Exporter of ended runs. `endpoint` is the collector's address; empty: nothing is exported.

    `ca` are certificates in PEM that sign the collector's; empty: those of public authorities.
    """

    def __init__(
        self,
        board: Board,
        sender: Sender,
        clock: Callable[[], float],
        endpoint: str,
        counted: CountedMetric,
        *,
        ca: str = "",
        gather_s: float = GATHER_S,
        retry_s: float = RETRY_S,
    ) -> None:
        self._board = board
        self._sender = sender
        self._clock = clock
        self._endpoint, self._ca = endpoint, ca
        self._counted = counted
        self._gather_s = gather_s
        self._retry = RetryWaits(retry_s, RETRY_MOST_S)
        self._waiting: dict[str, None] = {}
        self._something = asyncio.Event()
        self._task = BackgroundTask(self._run)

    def start(self) -> None:
        """Export from now on, and the runs that ended shortly before."""
        if self._endpoint and not self._task.is_started:
            for result in ("exported", "dropped"):
                self._counted.begin(result)
            self._board.on_change(self._changed)  # which forgot all who listened when another led
            self._task.start()

    async def stop(self) -> None:
        """Export no more; the next leader exports again what waits here."""
        await self._task.stop()
        self._waiting.clear()
        await self._sender.stop()

    def _changed(self, job: Job, before: Job | None) -> None:
        if job.phase not in FINAL or (before is not None and before.phase in FINAL):
            return
        if not self._task.is_started:
            return
        if len(self._waiting) >= MOST_WAITING:
            self._counted.add("dropped")
            return
        self._waiting[job.uid] = None
        self._something.set()

    async def _run(self) -> None:
        since = self._clock() - LOOK_BACK_S
        try:
            found = await self._board.db.read(lambda tx: tx.runs.ended_since(since, MOST_WAITING))
            self._waiting.update(dict.fromkeys(found))
        except Exception:
            log.exception("runs that ended before the start are not exported as traces")
        while True:
            if not self._waiting:
                self._something.clear()
                await self._something.wait()
            await asyncio.sleep(self._gather_s)
            try:
                passed = await self._turn()
            except Exception:
                log.exception("exporting traces failed; it is tried again")
                passed = False
            await self._retry.after(passed=passed)

    async def _turn(self) -> bool:
        """Export some runs; return False if they have to be exported later."""
        uids = list(self._waiting)[:MOST_AT_ONCE]
        spans = await self._board.db.read(lambda tx: _spans(tx, uids))
        if spans:
            answer = await self._sender.spans(self._endpoint, spans, self._ca)
            if answer == "later":
                return False
            if answer:
                log.warning("the collector of traces refused %d runs: %s", len(uids), answer)
            self._counted.add("dropped" if answer else "exported", amount=len(uids))
        for uid in uids:
            self._waiting.pop(uid, None)
        return True


def _spans(tx: Tx, uids: Sequence[str]) -> list[Span]:
    steps = dict(tx.events.of_kinds(uids, STEPS))
    found: list[Span] = []
    for uid in uids:
        job = tx.jobs.get(SYSTEM, uid)
        if job is not None:  # it may be deleted by now
            found += spans_of(job, steps.get(uid, ()))
    return found
