"""Writes heads of the audit log's chain outside of the database, and removes entries that are too old, at a checkpoint alone."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from mlp_hub.domain.audit_chain import ChainLink
from mlp_hub.service.audit.checked import CHECKED, CheckedChain
from mlp_hub.service.audit.heads import PublishedHead, append_head, last_head
from mlp_hub.service.audit.receivers import send_to_syslog, syslog_message
from mlp_hub.service.audit.shipping import shipped_up_to
from mlp_hub.service.config import AuditPolicy, SyslogReceiver
from mlp_hub.service.health.problems import Problem
from mlp_hub.service.notices.sender import Sender
from mlp_hub.store.database import Database
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

log = logging.getLogger(__name__)
MOST_BETWEEN = 5000
"""Tuning: links after which a head is written before its time: what one cut removes at once, for lines of the file."""
MOST_DELETED = 1000
"""Tuning: entries of the audit log that are removed at a time: size of a lot, for how long others wait behind it."""


class ChainKeeper:
    """Keeps the heads of the chain outside, and the log as short as the policy says. The leading service alone calls it.

    A head is durable in the database before it is written elsewhere. While a break of the chain is known, nothing is removed.
    """

    def __init__(
        self,
        db: Database,
        clock: Callable[[], float],
        policy: AuditPolicy,
        keep_s: float | None,
        sender: Sender,
    ) -> None:
        self._db = db
        self._clock = clock
        self._policy = policy
        self._keep_s = keep_s
        self._sender = sender
        self.published: PublishedHead | None = None  # written by this process
        self._tried_at: float | None = None
        self._cut_noted = -1
        self._broken = False
        self._unwritten = False

    async def stop(self) -> None:
        """End the process that posts heads."""
        await self._sender.stop()

    async def keep(self) -> None:
        """Write a head where one is due, and remove entries that are too old. Raises what the database raises."""
        now = self._clock()

        def look(tx: Tx) -> tuple[ChainLink | None, CheckedChain | None]:
            return tx.audit_chain.last(), CheckedChain.of(tx.settings.get(CHECKED))

        last, checked = await self._db.read(look)
        self._broken = checked is not None and not checked.sound
        if self._is_due(last, now):
            await self._publish(now)
        if self._keep_s is not None and not self._broken:
            await self._remove(now, now - self._keep_s)

    async def problems(self) -> Sequence[Problem]:
        """Tell of a break that is known, and of heads that cannot be written."""
        found = []
        if self._broken:
            message = msg(
                "a check of the audit log found changed or missing entries; an operator of the hub has to run mlp-hub audit --verify on its machine"
            )
            found.append(Problem("audit", "AuditLogBroken", message, fails=False))
        if self._unwritten:
            message = msg(
                "heads of the audit log cannot be copied outside the database; until then a removed end of it is not noticed"
            )
            found.append(Problem("audit", "AuditHeadsUnwritten", message, fails=False))
        return found

    def _is_due(self, last: ChainLink | None, now: float) -> bool:
        if last is None or self.published is None or self._tried_at is None:
            return True
        since = last.seq - self.published.seq
        late = not 0 <= now - self._tried_at < self._policy.heads_every_s
        return self._unwritten or since > MOST_BETWEEN or (since != 0 and late)

    async def _publish(self, now: float) -> None:
        link = await self._db.write(lambda tx: tx.audit_chain.checkpoint(now))
        head = PublishedHead.of(link)
        self._tried_at = now
        written = await self._append(head)
        if self.published != head:
            # the log of the service is a further place: journald, or the collector of a cluster
            log.info("head of the audit log: %s", head.line().decode().strip())
            written &= await self._tell(head)
        self.published = head
        self._unwritten = not written

    async def _append(self, head: PublishedHead) -> bool:
        """Append a head to the file, after a look whether the chain still has the last one; return whether it is there."""
        path = self._policy.heads_file
        if path is None:
            return True
        try:
            last = await asyncio.to_thread(last_head, path)
            if last is not None and not await self._has(last):
                await self._report_break(last)
            if last is None and head.seq:
                log.warning(
                    "%s had no head of the audit log yet, though the log is older; it begins now", path
                )
            if last is None or (last.seq, last.hash) != (head.seq, head.hash):
                await asyncio.to_thread(append_head, path, head)
        except OSError as error:
            log.warning("a head of the audit log cannot be written to %s: %s", path, error)
            return False
        return True

    async def _has(self, head: PublishedHead) -> bool:
        def look(tx: Tx) -> bool:
            first = tx.audit_chain.first()
            found = tx.audit_chain.hashes([head.seq]).get(head.seq)
            return found == head.hash or (first is not None and head.seq < first.seq)

        return await self._db.read(look)

    async def _report_break(self, head: PublishedHead) -> None:
        log.error(
            "the audit log does not continue from its head %d of %s: entries were removed or rewritten, or an older backup "
            "was restored; run mlp-hub audit --verify",
            head.seq,
            datetime.fromtimestamp(head.time, UTC).isoformat(timespec="seconds"),
        )
        self._broken = True
        found = CheckedChain(self._clock(), False, 0, head.seq)
        await self._db.write(lambda tx: tx.settings.put(CHECKED, found.stored()))

    async def _remove(self, now: float, before: float) -> None:
        def look(tx: Tx) -> ChainLink | None:
            found, shipped = tx.audit_chain.next_cut(before, MOST_DELETED), shipped_up_to(tx, self._policy)
            # entries stay until all receivers have them
            return None if found is not None and shipped is not None and shipped < found.seq else found

        found = await self._db.read(look)
        if found is not None and found.seq != self._cut_noted and self._policy.heads_file is not None:
            cut = PublishedHead.of(found, cut=True)
            try:
                await asyncio.to_thread(append_head, self._policy.heads_file, cut)
            except OSError as error:
                log.warning("old entries of the audit log stay: %s: %s", self._policy.heads_file, error)
                self._unwritten = True
                return
            self._cut_noted = found.seq
        seq = -1 if found is None else found.seq
        await self._db.write(lambda tx: tx.audit.delete_before(before, MOST_DELETED, now, seq))

    async def _tell(self, head: PublishedHead) -> bool:
        """Send a head to the other places that are configured; return whether all accepted it."""
        told = True
        data = {**json.loads(head.line()), "type": "audit-head"}
        if self._policy.heads_webhook:
            why = await self._sender.send("webhook", self._policy.heads_webhook, "", "", data)
            if why is not None:
                log.warning("a head of the audit log cannot be posted: %s", why)
                told = False
        if self._policy.heads_syslog:
            try:
                message = syslog_message(head.time, "audit-head", head.line().strip())
                await asyncio.to_thread(send_to_syslog, head_receiver(self._policy.heads_syslog), [message])
            except OSError as error:
                log.warning(
                    "a head of the audit log cannot be sent to %s: %s", self._policy.heads_syslog, error
                )
                told = False
        return told


def head_receiver(place: str) -> SyslogReceiver:
    """Return the syslog at a socket's path, or at HOST:PORT over UDP."""
    if place.startswith("/"):
        return SyslogReceiver("unix", place)
    host, _, port = place.rpartition(":")
    return SyslogReceiver("udp", host.strip("[]"), int(port))
