"""Ships each entry of the audit log to a syslog, and into a file; off unless a receiver is set.

The chain has a link for each entry, and for each repetition that is counted in its entry. Links are shipped in their order. The
number of the last link that a receiver has is stored once it has it. So a kill loses nothing, and at most the last lot is shipped
twice: each line has the number of its link. Retention waits until entries are shipped.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlp_hub.background import BackgroundTask
from mlp_hub.pools import WorkKind, run_in
from mlp_hub.service.audit.receivers import append_lines, send_to_syslog, syslog_message, time_text
from mlp_hub.service.config import AuditPolicy, SyslogReceiver
from mlp_hub.service.health.problems import Problem
from mlp_hub.service.support.retrying import RetryWaits
from mlp_hub.store.database import Database
from mlp_hub.store.records import ShippedLink
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg
from mlp_language.render import plain

log = logging.getLogger(__name__)
MOST_AT_ONCE = 200
"""Tuning: links that are shipped together: connections and synced writes, for the number of doubles after a kill."""
LOT_BYTES = 2**20
"""Safety: bytes of details that are read at a time, about: bounds memory."""
LONGEST = 60_000
"""Safety: bytes of a message to a syslog, which a datagram can hold; of a longer entry `detail` is left out."""
TEXT_MOST = 1000
"""Safety: characters of each other text of such an entry: twelve bytes each at most, so that it is never too long."""
RETRY_MOST_S = 60.0
"""Tuning: seconds until the next try with a receiver that is away, at most."""
LATE_S = 900.0
"""Tuning: seconds after which a waiting entry is a problem: a restart of the receiver is none."""
PREFIX = "audit.shipped."
"""Keys of the last shipped links among the values of the hub."""


@dataclass(frozen=True, slots=True)
class ShippingDelay:
    """How far a receiver is behind: links that it does not have, and the time of the oldest entry among them."""

    place: str
    links: int
    since: float | None


class _ShippingLine:
    """Way to one receiver. `deliver` sends a lot, and raises OSError."""

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        place: str,
        deliver: Callable[[Sequence[ShippedLink]], None],
        policy: AuditPolicy,
    ) -> None:
        self.delay = ShippingDelay(place, 0, None)
        self._db = db
        self._clock = clock
        self._deliver = deliver
        self._policy = policy
        self._task = BackgroundTask(self._run)

    def start(self) -> None:
        self._task.start()

    async def stop(self) -> None:
        await self._task.stop()

    async def _run(self) -> None:
        retry = RetryWaits(self._policy.ship_retry_s, RETRY_MOST_S)
        while True:
            passed = more = False
            try:
                more, passed = await self.turn(), True
            except Exception as error:
                if isinstance(error, OSError):
                    log.warning("the audit log is not shipped to the %s: %s", self.delay.place, error)
                else:
                    log.exception("shipping the audit log to the %s failed", self.delay.place)
            await retry.after(passed=passed)
            if passed and not more:
                await asyncio.sleep(self._policy.ship_poll_s)

    async def turn(self) -> bool:
        """Ship a lot; return whether more wait. Raises OSError, and what the database raises."""
        place = self.delay.place
        after, links, last = await self._db.read(lambda tx: _lot(tx, place))
        if not links:
            self.delay = ShippingDelay(place, 0, None)
            return False
        entries = [one for one in links if one.checkpoint is None]
        behind = last - after
        since = min((one.time for one in entries if one.time is not None), default=None)
        self.delay = ShippingDelay(place, behind, since)
        if entries:
            await run_in(WorkKind.SHIPPING, self._deliver, entries)
        end = links[-1].seq
        await self._db.write(lambda tx: tx.settings.put(PREFIX + place, {"link": end}))
        self.delay = ShippingDelay(place, last - end, since if end < last else None)
        return end < last


class AuditShipping:
    """Ships the log to all receivers that are set, while this service leads."""

    def __init__(self, db: Database, clock: Callable[[], float], policy: AuditPolicy) -> None:
        self._clock = clock
        self._lines = [
            _ShippingLine(db, clock, place, _delivery(receiver), policy)
            for place, receiver in _receivers_of(policy).items()
        ]

    def start(self) -> None:
        """Ship from now on, from the first link that a receiver does not have."""
        for line in self._lines:
            line.start()

    async def stop(self) -> None:
        """Ship no more; the next leader continues."""
        await asyncio.gather(*(line.stop() for line in self._lines))

    async def turn(self) -> bool:
        """Ship a lot to each receiver; return whether more wait. Raises OSError, and what the database raises."""
        return any([await line.turn() for line in self._lines])

    def delays(self) -> list[ShippingDelay]:
        """Return how far each receiver is behind."""
        return [line.delay for line in self._lines]

    async def problems(self) -> Sequence[Problem]:
        """Report entries that wait for long."""
        late = [one for one in self.delays() if one.since is not None and self._clock() - one.since > LATE_S]
        message = msg(
            "entries of the audit log are not shipped: their receiver does not accept them; they wait, and none is removed"
        )
        return [Problem("audit", "AuditUnshipped", message, fails=False)] if late else []


def _receivers_of(policy: AuditPolicy) -> dict[str, SyslogReceiver | Path]:
    """Return the receivers that are set, by their names. Retention reads it too: it removes no entry that one of them lacks."""
    found = {"syslog": policy.ship_syslog, "file": policy.ship_file}
    return {place: receiver for place, receiver in found.items() if receiver is not None}


def _delivery(receiver: SyslogReceiver | Path) -> Callable[[Sequence[ShippedLink]], None]:
    """Return what sends a lot to a receiver, and raises OSError."""
    if isinstance(receiver, Path):
        return lambda lot: append_lines(receiver, [line_of(one) for one in lot])
    return lambda lot: send_to_syslog(
        receiver,
        [syslog_message(one.time or 0.0, "audit", line_of(one, LONGEST)) for one in lot],
    )


def shipped_up_to(tx: Tx, policy: AuditPolicy) -> int | None:
    """Return the last link that all receivers have; None where none is set."""
    return min((_cursor(tx, place) for place in _receivers_of(policy)), default=None)


def line_of(one: ShippedLink, most: int | None = None) -> bytes:
    """Return an entry as a line of JSON in ASCII, without its end. `most`: bytes; of a longer one the detail is left out."""
    fields: dict[str, object] = {"type": "audit", "link": one.seq, "hash": one.hash.hex(), "id": one.entry}
    if one.again:
        fields["again"] = True
    if one.time is None:
        fields["missing"] = True  # somebody removed the entry, and left its link
    else:
        fields |= {
            "time": time_text(one.time),
            "actor": one.actor,
            "action": one.action,
            "object": one.name,
            "tenant": one.tenant,
            "detail": _shown(one.detail),
        }
    line = json.dumps(fields).encode()
    if most is None or len(line) <= most:
        return line
    short = {name: value[:TEXT_MOST] if isinstance(value, str) else value for name, value in fields.items()}
    return json.dumps({**short, "detail": {"left_out": len(line)}}).encode()


def _shown(detail: dict[str, Any]) -> dict[str, object]:
    return {key: plain(value) if isinstance(value, Message) else value for key, value in detail.items()}


def _cursor(tx: Tx, place: str) -> int:
    found = tx.settings.get(PREFIX + place)
    link = found.get("link") if isinstance(found, dict) else None
    return link if isinstance(link, int) and not isinstance(link, bool) else -1


def _lot(tx: Tx, place: str) -> tuple[int, Sequence[ShippedLink], int]:
    """Return the last link that the receiver has, the next ones, and the number of the last link of all."""
    chain = tx.audit_chain
    last, first, cursor = chain.last(), chain.first(), _cursor(tx, place)
    if last is None or first is None:
        return -1, (), -1
    # a chain that ends before it was replaced: it is shipped from its begin
    after = max(cursor if cursor <= last.seq else -1, first.seq - 1)
    return after, chain.shipped(after, MOST_AT_ONCE, LOT_BYTES), last.seq
