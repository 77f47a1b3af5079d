"""Notebook servers of people who left the tenant whose quota they hold: the platform ends them.

Such a server does not end by itself. These servers follow from the ledger and the memberships
alone, whatever removed the member and when, so that none is forgotten. The check repeats from time
to time until the server has given back its amounts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from mlp_hub.background import BackgroundTask
from mlp_hub.domain.errors import MLPError
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT
from mlp_hub.domain.workload.ledger import ResourceRequest
from mlp_hub.domain.workload.workload import SERVER
from mlp_hub.store import Database, Tx
from mlp_language.message import msg

log = logging.getLogger(__name__)
AGAIN_S = 600.0
"""Tuning: seconds until a server that the hub ended, or has no more, is ended again: its place in the ledger may stay."""
End = Callable[[str, str], Awaitable[None]]


class FormerMembersServers:
    """Ends them, by `end(user, server)`: asks the hub, may be repeated, raises `MLPError` where the hub does not do it now.

    `end` is given once the hub can be asked; until then nothing happens.
    """

    def __init__(self, db: Database, clock: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock
        self._one_by_one = asyncio.Lock()
        self._soon = BackgroundTask(self._look_until_quiet)
        self._again = False
        self._ended: dict[
            tuple[str, float], float
        ] = {}  # when the hub last said so, of those that are still held
        self.end: End | None = None

    def look_soon(self) -> None:
        """Look right now, beside what else is done; after a removal."""
        self._again = True
        self._soon.start()

    async def _look_until_quiet(self) -> None:
        while self._again:
            self._again = False
            try:
                await self.end_all()
            except Exception:  # the next sweep looks again
                log.exception("looking for servers of people who left their tenant failed")

    async def end_all(self) -> None:
        """Have all of them ended that there are now."""
        end = self.end
        if end is None:
            return
        async with self._one_by_one:
            rows = await self._db.read(self._found)
            self._ended = {key: at for row in rows if (at := self._ended.get(key := _key(row))) is not None}
            for row in rows:
                try:
                    await self._end(row, end)
                except MLPError as error:
                    log.warning("the server %s is not ended yet: %s", row.id, error)
                except Exception:  # one of them shall not keep the others
                    log.exception("ending the server %s failed", row.id)

    async def _end(self, row: ResourceRequest, end: End) -> None:
        key, now = _key(row), self._clock()
        before = self._ended.get(key)
        if before is not None and now - before < AGAIN_S:
            return
        if key not in await self._db.read(lambda tx: set(map(_key, self._found(tx)))):
            return  # the ends of others took time: it is a member again, or another server has the name by now
        await end(row.user, _server(row))
        if before is None:
            await self._db.write(lambda tx: self._note(tx, row))
        self._ended[key] = now

    async def stop(self) -> None:
        """Look no more."""
        await self._soon.stop()

    def _found(self, tx: Tx) -> list[ResourceRequest]:
        held = tx.ledger.held(self._clock(), applier=SERVER.applier)
        # nobody leaves `default`: it is everybody's
        left = tx.members.missing([(r.user, r.tenant) for r in held if r.tenant != DEFAULT_TENANT])
        return [r for r in held if (r.user, r.tenant) in left]

    def _note(self, tx: Tx, row: ResourceRequest) -> None:
        detail = {
            "message": msg("{user} is no longer a member of {tenant}", user=row.user, tenant=row.tenant)
        }
        tx.audit.add(
            self._clock(), THE_HUB, "server.stop", row.holder or row.id, tenant=row.tenant, detail=detail
        )


def _key(row: ResourceRequest) -> tuple[str, float]:
    """Return what tells a server from a later one of the same name."""
    return row.id, row.created_at


def _server(row: ResourceRequest) -> str:
    """Return the name of a server in the hub, empty for its user's only one; the ledger's id is `user/server`."""
    return row.id.removeprefix(f"{row.user}/")
