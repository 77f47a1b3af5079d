"""Addresses from which tokens were last used; the hub stores only that and when they were used.

A row is written when a token comes from another address than before, at most once a minute per
token. A caller from one place costs one write. A caller that changes its address with each request
costs no more than others.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping

from mlp_hub.api.auth.principal import CallerKind, Principal
from mlp_hub.background import BackgroundTasks
from mlp_hub.store.database import Database

log = logging.getLogger(__name__)
EVERY_S = 60.0
"""Tuning: seconds between two writes about one token: how soon another address is told, for fewer writes."""
REMEMBERED = 20_000
"""Safety: tokens whose address is remembered; of one that is forgotten it is written once more: bounds memory."""
ADDRESS_MAX = 64
"""Safety: characters of an address that are kept: bounds a row."""


class TokenUses:
    """Keeps the addresses. `clock` gives seconds since the epoch, `monotonic` those between two writes."""

    def __init__(self, db: Database, clock: Callable[[], float], monotonic: Callable[[], float]) -> None:
        self._db = db
        self._clock = clock
        self._monotonic = monotonic
        self._known: OrderedDict[bytes, tuple[str, float]] = OrderedDict()
        self._writing = BackgroundTasks()

    def note(self, principal: Principal, key: bytes, address: str) -> None:
        """Note that a token was used from an address; nobody waits for it.

        `key` stands for the token itself: the hub gives the id of one that ended to another.
        """
        token = principal.token_id
        if principal.kind is not CallerKind.USER or not token or not address:
            return
        address = address[:ADDRESS_MAX]
        known, until = self._known.get(key, ("", 0.0))
        if known == address or self._monotonic() < until:
            return
        self._known[key] = (address, self._monotonic() + EVERY_S)
        self._known.move_to_end(key)
        if len(self._known) > REMEMBERED:
            self._known.popitem(last=False)
        self._writing.start(self._write(key, token, principal.name, address))

    async def uses_of(
        self, user: str, tokens: Collection[str] | None = None
    ) -> Mapping[str, tuple[str, float]]:
        """Return for a user's tokens, or these of them, from where they were used last, and since when from there."""
        return await self._db.read(lambda tx: tx.token_uses.uses_of(user, tokens))

    async def _write(self, key: bytes, token: str, user: str, address: str) -> None:
        now = self._clock()
        try:
            await self._db.write(lambda tx: tx.token_uses.set(token, user, address, now))
        except Exception as error:  # noqa: BLE001 - nothing depends on it, and the next use tries again
            log.warning("from where a token is used could not be stored: %s", error)
            self._known.pop(key, None)
