"""Holding of a server's quota around whatever starts the server: taken, confirmed, given back, and noted over restarts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

from jupyterhub.spawner import Spawner
from traitlets import Callable, Float, Unicode

from mlp_language.catalogue import DEFAULT
from mlp_language.message import NOTHING as UNSAID
from mlp_language.message import Message, msg, verbatim
from mlp_language.render import Reader, render
from mlp_spawner.errors import (
    ServerFailed,
    ServerRefused,
    ServiceRefused,
    ServiceUnreachable,
    Told,
    sentence,
)
from mlp_spawner.quota import debts
from mlp_spawner.quota.holding import NOTHING, TRIED, UNKNOWN, ServerHolding
from mlp_spawner.quota.service_client import Account, Amount, ServiceClient

_NO_SERVICE = msg(
    "The platform's service does not answer, so a server cannot get quota. The service restarts by itself: try again in a few seconds."
)
_ENDED = "ended"


class HeldQuota(Spawner):  # type: ignore[misc]  # jupyterhub is untyped
    """Half of a spawner that holds quota; the amount and its time are those of a subclass.

    What may be held is in the hub's database before it is asked for, so that a hub that dies in the middle of
    anything gives it back at its next look.
    """

    service_url = Unicode(help="URL of the platform's service; http+unix for a socket.", config=True)
    service_token = Unicode(help="The spawner's token for the service.", config=True)
    language_of = Callable(
        default_value=lambda _handler: DEFAULT,
        help="Function of a page's handler that returns the language of who asked for it; servers speak it too.",
        config=True,
    )
    reclaim_timeout = Float(
        60.0,
        help="Seconds that a start waits for room, where there may be some within them: while others give back what "
        "they borrowed of its tenant's quota; 0.6 of start_timeout at most.",
        config=True,
    )

    _busy = False
    _has_room = False
    _news = UNSAID
    _stopped_for = ""
    _language = DEFAULT
    _looked_for_debts = False

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        name = "" if self.user is None else self.user.name
        self._holding = ServerHolding(debts.key_of(name, self.name), self._service, self._note)
        if not HeldQuota._looked_for_debts:
            # once in the life of a hub: the one before may have died owing quota of servers that ended
            with contextlib.suppress(RuntimeError):  # no loop runs: no hub
                debts.settle_later(self.db, self._service, self.log)
                HeldQuota._looked_for_debts = True

    @property
    def _service(self) -> ServiceClient:
        return ServiceClient(self.service_url, self.service_token, self._reader.language)

    @property
    def _reader(self) -> Reader:
        """Reader of this server's messages: the last user of the hub's pages for it."""
        if self.handler is not None:
            self._language = self.language_of(self.handler)
        return Reader(self._language)

    @property
    def how_it_ended(self) -> Message:
        """Message to the user about the end of the last server, in sentences; the pages show it."""
        if self._stopped_for:
            return msg("The notebook server was stopped by the platform: {why}.", why=self._stopped_for)
        found: Message = getattr(super(), "how_it_ended", UNSAID)
        return found

    async def _account(self) -> Account:
        try:
            return await self._service.account(self.user.name)
        except ServiceUnreachable as error:
            raise self._unreachable(error) from error
        except ServiceRefused as refused:
            raise ServerRefused(sentence(refused.msg), refused.reason) from refused

    def _unreachable(self, error: ServiceUnreachable) -> ServerRefused:
        self.log.warning("The service does not answer: %s", error)
        return ServerRefused(_NO_SERVICE, "service-unreachable", 503)

    # --------------------------------------------------------------- start, poll, stop

    async def start(self) -> Any:
        """Have the server started within the quota, and keep what was taken; return what its start returned."""
        self._busy = True
        self._news = msg("Asking for room within the quota")
        try:
            prepared = await self._prepare_quota()
            try:
                await self._take_quota(prepared)
                place = await super().start()
                await self._confirm()
            except BaseException:
                await asyncio.shield(self._undo())
                raise
            self._stopped_for = ""
            return place
        finally:
            self._busy = self._has_room = False

    async def _prepare_quota(self) -> Any:
        """Find out what a start needs; return it for `_take_quota`. Nothing is held or made yet."""
        return None

    async def _take_quota(self, prepared: Any) -> None:
        """Take the quota before the other half starts; after an error it is given back."""

    async def _hold(self, amount: Amount) -> None:
        """Take room for the server; raise `ServerRefused` where there is none."""
        user = self.user.name
        holder = f"{user}'s notebook" + (f" {self.name}" if self.name else "")
        self._holding.service = self._service  # it answers in the language of who asks now
        try:
            async with debts.paying:
                await self._holding.give_back()
            patience = min(self.reclaim_timeout, 0.6 * self.start_timeout)
            await self._holding.hold_amount(
                user, holder, amount, patience_s=patience, waits=self._show_progress
            )
        except ServiceRefused as refused:
            raise ServerRefused(sentence(refused.msg), refused.reason) from refused
        except ServiceUnreachable as error:
            raise self._unreachable(error) from error

    def _show_progress(self, news: str) -> None:
        self._news = verbatim(news)

    async def _confirm(self) -> None:
        try:
            await self._holding.keep()
        except (ServiceRefused, ServiceUnreachable) as error:
            text = msg("The server's quota could not be confirmed: {why}. Start it again.", why=str(error))
            raise ServerFailed(text) from error

    async def _undo(self) -> None:
        """End the remains of a failed start; a part that cannot be ended now keeps its holdings until its end."""
        try:
            await super().stop(now=True)
        except Exception:
            self.log.exception("What is left of the server of %s could not be ended", self._log_name)
        else:
            await self._give_back()

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the page of a pending start what is waited for; the hub stops asking when the start is over."""
        before = UNSAID
        while not self._has_room:
            if self._news != before:
                before = self._news
                yield {"progress": 10, "message": render(before, self._reader)}
            await asyncio.sleep(0.2)
        async for event in super().progress():
            news = event.get("message")
            yield (
                {**event, "message": render(news.message, self._reader)} if isinstance(news, Told) else event
            )

    async def poll(self) -> int | None:
        """Return None while the server runs, else its exit status; then it holds nothing any more."""
        status: int | None = await super().poll()
        if self._busy:
            return status  # a spawner's own `start` and `stop` may look too
        if status is None and self._holding.step == TRIED:
            self.log.warning("Ending the server of %s: its start was never finished", self._log_name)
            self._busy = True
            try:
                await super().stop(now=True)
            finally:
                self._busy = False
            status = 1
        if status is not None:
            await self._give_back()
        return status

    async def stop(self, now: bool = False) -> None:
        """End the server: asked first, unless `now`. The platform tells why it stops one, such as one that fills the disk: that at once."""
        # of a stop that failed half-way and is made again the first reason stays
        why, at_once = await self._service.stopped_for(self.user.name)
        self._stopped_for = why or self._stopped_for
        await super().stop(now=now or at_once)
        await self._give_back()

    async def _give_back(self) -> None:
        try:
            await self._holding.give_back()
        except ServiceUnreachable as error:
            # it stays noted; given back at the next start, or when debts are settled
            self.log.warning("%s still holds quota: the service does not answer: %s", self._log_name, error)
            debts.settle_later(self.db, self._service, self.log)

    # -------------------------------------------------------------------- persistence

    def _note(self) -> None:
        if self.orm_spawner is not None:
            self.orm_spawner.state = self.get_state()
            self.db.commit()

    def get_state(self) -> dict[str, Any]:
        """Return the state for a restarted hub: that of the other half, and the amounts that might be held."""
        state: dict[str, Any] = super().get_state()
        state[debts.STATE] = self._holding.step
        if self._stopped_for:
            state[_ENDED] = self._stopped_for
        return state

    def load_state(self, state: dict[str, Any]) -> None:
        """Take over from the hub that ran before; of one that noted nothing it is unknown what its servers hold."""
        state = dict(state)
        self._stopped_for = state.pop(_ENDED, "")
        self._holding.step = state.pop(debts.STATE, UNKNOWN if state else NOTHING)
        super().load_state(state)
