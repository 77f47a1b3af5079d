"""Queries to the provider for the current standing of people, with and without a request of theirs.

A refresh token may be valid for one use only. So each person has one query in progress at a time, and the
answer is stored before anything else happens. While the hub's database takes no writes, the answer is kept in
memory and the write is tried again. People with servers or jobs come first: their work may have to end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Literal, Protocol

from mlp_hub.background import BackgroundTask
from mlp_hub.hub_integration.providers.protocols.provider import (
    AuthState,
    LoginEnded,
    NotStoredError,
    ProviderIdentity,
    ProviderUnreachable,
)
from mlp_hub.service.tenants.groups import GroupPolicy
from mlp_language.message import Message
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable

log = logging.getLogger(__name__)
RATE = 20.0
"""Safety: people of whom the provider is asked in a second, without a request of theirs: bounds what it has to bear."""
TOGETHER = 4
"""Tuning: people that are asked about at a time: the duration of a turn, for the provider's load."""
PATIENCE_S = 2.0
"""Tuning: seconds that a request waits for the provider's answer about its person.

A longer wait only delays people, who stay until the answer comes.
"""
AWAY_AGAIN_S = 5.0
"""Tuning: seconds between two requests to a provider that is down, by users' requests.

They trade the delay until its return is seen for its load.
"""
AWAY_AFTER = 3
"""Tuning: failures in sequence until a turn is given up: requests to a provider that is down.

A provider that fails once is still asked.
"""
STORE_AGAIN_S = 5.0
"""Tuning: seconds between two tries to store a login: how soon a restart of the hub loses it no more, for the database's load."""

Why = Literal["disabled", "session"]


class Asks(Protocol):
    """Part of a provider that is needed."""

    async def refreshed(
        self, auth_state: AuthState
    ) -> tuple[ProviderIdentity, dict[str, Any]] | LoginEnded | ProviderUnreachable:
        """Ask for the person's present standing."""

    async def unreachable(self) -> ProviderUnreachable | None:
        """Look whether it is there; return why not. None too where that cannot be asked but about a person."""


class People(Protocol):
    """Part of the hub that is needed: people of the provider, by their user names."""

    async def state_of(self, name: str) -> AuthState | None:
        """Return the stored data of a login; None for other users than the provider's, or without a login."""

    async def keep(
        self, name: str, identity: ProviderIdentity, groups: Sequence[str], state: Mapping[str, Any]
    ) -> None:
        """Store what the provider said. Raises NotStoredError."""

    async def go_on_by_another(self, name: str, ended: AuthState) -> AuthState | None:
        """End the browsers of a session that has ended, and return the login of another by which to ask from here on."""

    async def end(self, name: str, why: Why) -> None:
        """End what somebody has open: all, servers too (`disabled`), or the logins of their browsers."""

    def note_identity(self, name: str, identity: ProviderIdentity, groups: Sequence[str]) -> None:
        """Store the provider's answer about a person without a separate login of the hub: they are in again."""

    def end_servers_left(self) -> None:
        """Begin to end the servers of those who are let in nowhere any more, as far as they are not ending."""

    def busy(self) -> set[str]:
        """Return who of them has servers."""

    def present(self) -> set[str]:
        """Return who of them has a login or a token."""

    def among(self, names: Collection[str]) -> set[str]:
        """Return which of these are people of the provider."""

    def disabled(self) -> set[str]:
        """Return whose account the provider has taken away."""


class IdentityReports(Protocol):
    """Part of the platform's service that is needed."""

    async def report_identity(self, user: str, **fields: object) -> None:
        """Report a person's standing."""

    async def working(self) -> list[str]:
        """Ask who has jobs that have not ended."""

    async def report_provider(self, *, away: bool, refuses: str) -> None:
        """Report whether the provider answers, and its words where it does not accept this hub."""


class Refresher:
    """Asks about people one by one. `every_s`: so old what is known of a person may be."""

    def __init__(
        self,
        provider: Asks,
        people: People,
        service: IdentityReports,
        policy: GroupPolicy,
        clock: Callable[[], float],
        *,
        every_s: float,
    ) -> None:
        self._provider = provider
        self._people = people
        self._service = service
        self._policy = policy
        self._clock = clock
        self._every_s = every_s
        self._flying: dict[str, asyncio.Task[bool]] = {}
        self._patience: dict[str, float] = {}
        """Times, by the event loop's clock, until which a request waits for the one in progress."""
        self._away_asked = 0.0
        self._looked: dict[str, float] = {}
        self._unstored: dict[str, tuple[ProviderIdentity, tuple[str, ...], dict[str, Any]]] = {}
        """Last answer of the provider about a person that is not stored yet; the stored tokens may be invalid."""
        self._storing = BackgroundTask(self._store_all)
        self._reported: dict[str, tuple[str, ...]] = {}
        self.away: Message | None = None
        """Why the provider does not answer; None while it does."""
        self.login_refused: Message | None = None
        """Why the last login of anybody failed because of the hub's settings; None after one that did not."""
        self._asks_refused: Message | None = None

    @property
    def refused(self) -> Message | None:
        """Provider's message against this hub, where it answers and does not accept the hub."""
        return self.login_refused or self._asks_refused

    async def stays(self, name: str) -> bool:
        """Say whether a person may stay, as of now or of less than `every_s` ago; False once they have to log in again.

        While the provider is away, who is inside stays. One that takes its time holds nobody up: its answer counts when it comes.
        """
        if not self.is_due(name):
            return True
        if self.away is not None and name not in self._flying:
            if self._clock() - self._away_asked < AWAY_AGAIN_S:
                return True
            self._away_asked = self._clock()
        task = self._asking(name)
        left = 0.0 if self.away is not None else self._patience[name] - asyncio.get_running_loop().time()
        done, _ = await asyncio.wait([task], timeout=max(0.0, left))  # does not cancel it
        return task.result() if done else True

    async def refresh_person(self, name: str) -> None:
        """Ask of a person who is due, however long that takes."""
        if self.is_due(name):
            await asyncio.shield(self._asking(name))

    def _asking(self, name: str) -> asyncio.Task[bool]:
        """Begin a request about a person, or return the one in progress."""
        return self._flying.get(name) or self._begin(name, self._ask(name))

    def _begin(self, name: str, work: Coroutine[Any, Any, bool]) -> asyncio.Task[bool]:
        """Begin what only one may do of a person at a time."""
        task = self._flying[name] = asyncio.create_task(work)
        self._patience[name] = asyncio.get_running_loop().time() + PATIENCE_S
        task.add_done_callback(lambda ended: self._landed(name, ended))
        return task

    async def _wait(self, name: str) -> None:
        """Return when no query or write about a person is in progress. A later login would otherwise be overwritten by its result."""
        while task := self._flying.get(name):
            await asyncio.wait([task])

    def _landed(self, name: str, ended: asyncio.Task[bool]) -> None:
        self._flying.pop(name, None)
        self._patience.pop(name, None)
        if (
            not ended.cancelled() and (error := ended.exception()) is not None
        ):  # perhaps nobody waits for it any more
            log.error("asking how %s stands failed", name, exc_info=error)

    def is_due(self, name: str) -> bool:
        """Whether what is known of a person is too old."""
        looked = self._looked.get(name)
        return looked is None or self._clock() - looked >= self._every_s

    async def expect(self, name: str) -> None:
        """Prepare for a login of somebody: the tokens of their other browsers are stored before those of this one."""
        await self._wait(name)
        if name in self._unstored:
            await asyncio.wait([self._begin(name, self._store(name))])

    def arrived(self, name: str) -> None:
        """Record that a person whom `expect` announced has logged in: their standing is new, and is reported again."""
        self._looked[name] = self._clock()
        self._unstored.pop(name, None)
        self._reported.pop(name, None)
        self.login_refused = None

    async def welcome(self, name: str, identity: ProviderIdentity) -> None:
        """Report a new login to the service before the person's first page offers them their groups' rights."""
        groups, dropped = self._policy.concerned(identity.groups)
        with contextlib.suppress(TimeoutError):  # it is told at the next turn
            async with asyncio.timeout(PATIENCE_S):
                await self._report_groups(name, tuple(groups), dropped)

    async def accept_identity(self, name: str, identity: ProviderIdentity) -> None:
        """Store the provider's answer about a person from elsewhere; checks of the kept login continue."""
        await self._wait(name)
        groups, _ = self._policy.concerned(identity.groups)
        self._people.note_identity(name, identity, groups)
        await self.welcome(name, identity)

    def forget(self, names: Iterable[str]) -> None:
        """Forget who is not there any more."""
        for name in names:
            self._looked.pop(name, None)
            self._reported.pop(name, None)
            self._unstored.pop(name, None)

    @property
    def looked(self) -> Mapping[str, float]:
        """When the provider was asked about whom, by the clock."""
        return self._looked

    async def _ask(self, name: str) -> bool:
        state = await self._people.state_of(name)
        if state is None:  # there is nobody to ask until they log in again
            self._unstored.pop(name, None)
            self._looked[name] = self._clock()
            return True
        if name in self._unstored:
            state = self._unstored[name][2]
        while True:
            answer = await self._provider.refreshed(state)
            if not isinstance(answer, LoginEnded) or answer.why == "disabled":
                break
            if (other := await self._people.go_on_by_another(name, state)) is None:
                break
            self._unstored.pop(name, None)
            state = other
        if isinstance(answer, ProviderUnreachable):
            self._note_away(answer)
            return True
        self._note_away(None)
        if isinstance(answer, LoginEnded):
            await self._end(name, answer.why)
            return False
        identity, kept = answer
        groups, dropped = self._policy.concerned(identity.groups)
        # writing what is there costs more than asking
        if name in self._unstored or kept != state or self._reported.get(name) != tuple(groups):
            self._unstored[name] = identity, tuple(groups), kept
            await self._store(name)
        self._looked[name] = self._clock()
        await self._report_groups(name, tuple(groups), dropped)
        return True

    async def _store(self, name: str) -> bool:
        """Store what the provider said last of somebody, or see to it that this is tried again. Return True: they may stay.

        Only a failure of the database is tried again.
        """
        if (left := self._unstored.get(name)) is None:
            return True
        identity, groups, kept = left
        try:
            await self._people.keep(name, identity, groups, kept)
        except NotStoredError as error:
            if not self._storing.is_running:
                log.warning("what the provider says of %s is kept in memory, not stored yet: %s", name, error)
                self._storing.start()
        except Exception:  # it would fail at each try; `_landed` logs it
            self._unstored.pop(name, None)
            raise
        else:
            self._unstored.pop(name, None)
        return True

    async def _store_all(self) -> None:
        """Try it again until all is stored."""
        while self._unstored:
            await asyncio.sleep(STORE_AGAIN_S)
            for name in list(self._unstored):
                if name not in self._flying:  # who is asked about now is stored with the answer
                    await asyncio.wait([self._begin(name, self._store(name))])

    async def seek(self) -> None:
        """Ask whether the provider is there, without asking about anybody."""
        self._note_away(await self._provider.unreachable())

    def _note_away(self, found: ProviderUnreachable | None) -> None:
        why = None if found is None else found.message
        self._asks_refused = why if found is not None and found.misconfigured else None
        if why is not None and self.away is None:
            log.warning("the provider cannot be asked, so all stay as they are: %s", why)
        if why is None and self.away is not None:
            log.warning("the provider answers again")
        self.away, self._away_asked = why, self._clock()

    async def end(self, name: str, why: Why) -> None:
        """End what somebody has open, because the provider said so without being asked."""
        await self._wait(name)
        await self._end(name, why)

    async def end_session(self, name: str, ended: AuthState) -> None:
        """End the browsers of the session that a person is asked about by.

        Continue with that of another browser, or end all.
        """
        await self._wait(name)
        if await self._people.go_on_by_another(name, ended) is None:
            await self._end(name, "session")
        else:
            self.forget([name])

    async def _end(self, name: str, why: Why) -> None:
        await self._people.end(name, why)
        self.forget([name])
        await self.report_ended(name, why)

    async def _report_groups(self, name: str, groups: tuple[str, ...], dropped: Message | None) -> None:
        if self._reported.get(name) == groups:
            return
        left_out = [] if dropped is None else [str(dropped)]
        if await self._report(name, groups=list(groups), left_out=left_out):
            self._reported[name] = groups

    async def report_ended(self, name: str, why: Why) -> None:
        """Tell the service of somebody's end; of one that was taken away it is told again for as long as they have jobs."""
        await self._report(name, ended=why)

    async def _report(self, name: str, **fields: object) -> bool:
        try:
            await self._service.report_identity(name, **fields)
        except (ServiceUnreachable, ServiceRefused) as error:  # it is told at the next turn
            log.warning("the service is not told yet how %s stands: %s", name, error)
            return False
        return True


def whom_to_ask(
    busy: Collection[str],
    present: Collection[str],
    looked: Mapping[str, float],
    *,
    due_before: float,
    most: int,
) -> list[str]:
    """Return the people to ask about now: busy ones first, of each kind those asked longest ago.

    The result has at most `most` names.
    """

    def due(names: Collection[str]) -> list[str]:
        old = [name for name in names if looked.get(name, float("-inf")) <= due_before]
        return sorted(old, key=lambda name: (looked.get(name, float("-inf")), name))

    first = due(busy)
    rest = due([name for name in present if name not in busy])
    return [*first, *rest][:most]


class ProviderPass:
    """Asks about people who send no request."""

    def __init__(
        self, refresher: Refresher, people: People, service: IdentityReports, *, every_s: float
    ) -> None:
        self._refresher = refresher
        self._people = people
        self._service = service
        self._every_s = every_s
        self._period_s = (
            every_s / 2
        )  # what is just not due at one turn is at most half of that too old at the next

    async def run(self, clock: Callable[[], float]) -> None:
        """Look again and again, for ever."""
        while True:
            pending = clock()
            try:
                await self.turn(clock())
            except Exception:  # the next turn looks again
                log.exception("looking how people stand at the provider failed")
            await asyncio.sleep(max(0.0, pending + self._period_s - clock()))

    async def turn(self, now: float) -> int:
        """Ask of all who are due, as many as the rate lets; return of how many it was asked."""
        self._people.end_servers_left()
        working = set(await self._working())
        # jobs of theirs may have come back into the queue
        for name in sorted(self._people.disabled() & working):
            await self._refresher.report_ended(name, "disabled")
        busy = self._people.busy() | self._people.among(working)
        present = self._people.present()
        self._refresher.forget(self._refresher.looked.keys() - busy - present)
        names = whom_to_ask(
            busy,
            present,
            self._refresher.looked,
            due_before=now - self._every_s,
            most=max(1, int(RATE * self._period_s)),
        )
        asked = failed = 0
        for begin in range(0, len(names), TOGETHER):
            lot = names[begin : begin + TOGETHER]
            await asyncio.gather(
                *map(self._refresher.refresh_person, lot), return_exceptions=True
            )  # they are logged
            asked += len(lot)
            failed = failed + len(lot) if self._refresher.away is not None else 0
            if failed >= AWAY_AFTER:
                break
            if begin + TOGETHER < len(names):
                await asyncio.sleep(TOGETHER / RATE)
        if not names:
            await self._refresher.seek()
        await self._report_availability()
        return asked

    async def _report_availability(self) -> None:
        """Report it at each turn: a service that has restarted knows nothing of it."""
        try:
            away, refused = self._refresher.away is not None, self._refresher.refused
            await self._service.report_provider(away=away, refuses="" if refused is None else str(refused))
        except (ServiceUnreachable, ServiceRefused) as error:
            log.warning("the service is not told whether the provider answers: %s", error)

    async def _working(self) -> list[str]:
        try:
            return await self._service.working()
        except (ServiceUnreachable, ServiceRefused) as error:
            log.warning("the service does not say who has jobs: %s", error)
            return []
