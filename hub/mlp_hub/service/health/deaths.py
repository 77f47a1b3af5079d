"""Audit log entries for components of the hub that ended by themselves, or were ended because they hung.

The supervisor stores the events in a file beside its own; it has no database. Events while this
service is away are logged later.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

import msgspec

from mlp_hub.domain.errors import Unavailable
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx

log = logging.getLogger(__name__)
ACTION = "component.end"
KNOWN = "deaths_known"
"""Key of the row that says up to when all deaths are written down."""
LOOK_S = 30.0
"""Tuning: seconds between two looks for deaths: sooner with less, cheaper with more."""


class Death(msgspec.Struct, frozen=True):
    """One end that nobody asked for; `at` in seconds since the epoch."""

    component: str
    at: float
    why: str


class _State(msgspec.Struct):
    deaths: list[Death] = []


class Deaths:
    """Reads the supervisor's note now and then."""

    def __init__(self, db: Database, note: Path) -> None:
        self._db = db
        self._note = note
        self._known: float | None = None  # up to when all is written down

    async def watch(self) -> None:
        """Look for ever."""
        while True:
            try:
                await self.record_deaths()
            except Unavailable as error:
                log.warning("what ended cannot be written down yet: %s", error)
            except Exception:  # the next look is not this one's fault
                log.exception("looking for components that ended failed")
            await asyncio.sleep(LOOK_S)

    async def record_deaths(self) -> None:
        """Write down what is new."""
        found = await asyncio.to_thread(self._read)
        if found and (self._known is None or found[-1].at > self._known):
            self._known = await self._db.write(lambda tx: self._store(tx, found))

    def _read(self) -> Sequence[Death]:
        try:
            state = msgspec.json.decode(self._note.read_bytes(), type=_State)
        except (OSError, msgspec.MsgspecError):
            return ()
        return sorted(state.deaths, key=lambda death: death.at)

    def _store(self, tx: Tx, found: Sequence[Death]) -> float:
        known = float(tx.settings.get(KNOWN) or 0.0)
        for death in found:
            if death.at > known:
                tx.audit.add(
                    death.at, THE_HUB, ACTION, death.component, detail={"message": f"it {death.why}"}
                )
        newest = max(known, found[-1].at)
        tx.settings.put(KNOWN, newest)
        return newest
