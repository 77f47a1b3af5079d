"""The people, as the service knows them: a number (which makes their uid) and their default tenant.

Whether an account is let in, and its password, are the hub's matter.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace

from mlp_hub.domain.errors import MessageError, MLPError, Reason, Refused, not_found
from mlp_hub.domain.tenants.account_names import THE_HUB
from mlp_hub.domain.tenants.tenant import DEFAULT_TENANT, User
from mlp_hub.service.support.told import notifying
from mlp_hub.service.tenants.places import default_tenant, memberships_of
from mlp_hub.store import Database, Tx
from mlp_hub.store.records import Remembered
from mlp_language.message import Message, msg

FIRST_LOGIN = msg("at the first login")
"""Occasion on which somebody becomes a user, if nobody approves them."""
TOKEN_USES_S = 400 * 24 * 3600
"""Tuning: seconds that it is kept from where a token was used: longer than tokens usually hold, for how many rows there are."""
_NEWS = "/hub"
"""Owner of the keys of the hub's reports; no user has this name."""
MOST_LANGUAGES = 10_000
"""Safety: users whose language is remembered: bounds memory."""


@dataclass(frozen=True, slots=True)
class UserStanding:
    """Standing of somebody on the platform: in which tenants, of which `default_tenant`.

    `known` once they were let in; `placed` where they are in a tenant because somebody put them there.
    """

    known: bool
    placed: bool
    tenants: list[str]
    default_tenant: str


class UserService:
    """The users of the hub. A user's number is theirs for ever: files on disk belong to it.

    `changed` is called after somebody chose another default tenant.
    """

    def __init__(
        self, db: Database, clock: Callable[[], float], *, changed: Callable[[], None] = lambda: None
    ) -> None:
        self._db = db
        self._clock = clock
        self._changed = changed
        self._languages: dict[str, str] = {}

    async def ensure(self, name: str, why: Message = FIRST_LOGIN) -> User:
        """Return the user, made at the first call; `default_tenant` is where their work goes when none is named."""
        known = await self.find(name)
        if known is not None:
            return known

        def work(tx: Tx) -> User:
            new = tx.users.get(name) is None
            user = tx.users.ensure(name, self._clock())
            if new:
                self._note(tx, THE_HUB, "user.create", name, {"message": why, **_number(user)})
            return replace(user, default_tenant=default_tenant(tx, name))

        return await self._db.write(work)

    @asynccontextmanager
    async def approving(
        self, name: str, *, actor: str, applied_for: str | None = None
    ) -> AsyncIterator[None]:
        """Write down that `actor` lets somebody in, before the body of the `with` does it; then make a user of them."""
        again = {"message": msg("approved again")} if await self.find(name) is not None else {}
        asked = {} if applied_for is None else {"applied_for": applied_for}
        async with self.changing("user.approve", name, actor=actor, detail={**again, **asked}):
            yield
        await self.ensure(name, msg("when approved"))

    async def approve(self, name: str, *, actor: str) -> None:
        """Make a user of somebody whom `actor` let in, and write down that they did."""
        async with self.approving(name, actor=actor):
            pass

    @asynccontextmanager
    async def changing(
        self, action: str, name: str, *, actor: str, detail: Mapping[str, object]
    ) -> AsyncIterator[None]:
        """Write down what `actor` does to an account, before the body of the `with` does it, and after it if that failed.

        So no right changes without its entry: if it cannot be stored, this raises `Unavailable`, and the body does not run.
        """
        await self.note(action, name, actor=actor, detail=detail)
        try:
            yield
        except MessageError as error:
            with suppress(MLPError):
                await self.note(action, name, actor=actor, detail={**detail, "failed": error.message})
            raise

    async def note(
        self, action: str, name: str, *, actor: str, detail: Mapping[str, object], once: str | None = None
    ) -> None:
        """Write down what `actor` did to an account at the hub: with a key, `once` only, however often it is reported."""

        def work(tx: Tx) -> None:
            if once is not None:
                key = f"{action} {once}"
                if tx.idempotency.get(_NEWS, key) is not None:
                    return
                tx.idempotency.put(_NEWS, key, Remembered("recorded", ""), self._clock())
            self._note(tx, actor, action, name, detail)

        await self._db.write(work)

    async def note_all(self, action: str, failures: Mapping[str, Message], *, actor: str) -> None:
        """Write down what `actor` did to each of these accounts, by name, and why it failed, in one transaction."""

        def work(tx: Tx) -> None:
            for name, why in failures.items():
                self._note(tx, actor, action, name, {"failed": why} if why else {})

        await self._db.write(work)

    async def get(self, name: str) -> User:
        """Return a user. Raises `NotFound`."""
        user = await self.find(name)
        if user is None:
            raise not_found("user", name)
        return user

    async def find(self, name: str) -> User | None:
        """Return a user, or None where nobody of this name ever worked here."""
        return await self._db.read(lambda tx: _effective(tx, name))

    async def among(self, names: Collection[str]) -> Mapping[str, UserStanding]:
        """Return the standing of each of these people on the platform, whether they are known to it or not."""

        def work(tx: Tx) -> dict[str, UserStanding]:
            known = {user.name: user for user in tx.users.of_names(names)}
            mine: dict[str, list[str]] = {}
            for member in tx.members.of_users(names):
                mine.setdefault(member.user, []).append(member.tenant)
            return {name: _user_standing(known.get(name), mine.get(name)) for name in names}

        return await self._db.read(work)

    async def set_default_tenant(self, name: str, tenant: str, *, actor: str = THE_HUB) -> User:
        """Choose the tenant of the user's work when none is named. Raises `NotFound`, `Invalid`."""

        def work(tx: Tx) -> User:
            user = tx.users.get(name)
            if user is None:
                raise not_found("user", name)
            mine = [m.tenant for m in memberships_of(tx, name)]
            if tenant not in mine:
                raise Refused(
                    Reason.INVALID,
                    msg(
                        "{name} is in {mine}, not in {tenant}; choose one of the teams of {name}",
                        name=name,
                        mine=tuple(mine),
                        tenant=tenant,
                    ),
                )
            if user.default_tenant != tenant:
                tx.users.set_default_tenant(name, tenant)
                detail = {"default_tenant": tenant, "was": user.default_tenant}
                tx.audit.add(self._clock(), actor, "user.default_tenant", name, tenant=tenant, detail=detail)
            return replace(user, default_tenant=tenant)

        return await notifying(self._db.write(work), self._changed)

    async def language_of(self, name: str) -> str:
        """Return the language that somebody chose; empty where they leave it to their browser. Each request asks."""
        known = self._languages.get(name)
        if known is not None:
            return known
        before = self._languages
        user = await self._db.read(lambda tx: tx.users.get(name))
        if len(before) >= MOST_LANGUAGES:
            before.clear()
        before[name] = "" if user is None else user.language  # into what was forgotten meanwhile, if it was
        return before[name]

    async def choose_language(self, name: str, language: str) -> None:
        """Store which language somebody is spoken to in."""
        await self.ensure(name)
        await notifying(
            self._db.write(lambda tx: tx.users.set_language(name, language)), self.forget_languages
        )

    def forget_languages(self) -> None:
        """Read again from now on: some languages were chosen."""
        self._languages = {}

    def _note(self, tx: Tx, actor: str, action: str, name: str, detail: Mapping[str, object]) -> None:
        tx.audit.add(self._clock(), actor, action, name, detail=detail)


def _number(user: User) -> dict[str, object]:
    """Return for the audit log what tells this user from a namesake: the number makes the system user of their files."""
    return {"user_number": user.number}


def _user_standing(user: User | None, mine: list[str] | None) -> UserStanding:
    tenants = mine or [DEFAULT_TENANT]
    chosen = DEFAULT_TENANT if user is None else user.default_tenant
    default = chosen if user is None or chosen in tenants else tenants[0]
    return UserStanding(user is not None, mine is not None, tenants, default)


def _effective(tx: Tx, name: str) -> User | None:
    user = tx.users.get(name)
    return None if user is None else _with_default(tx, user)


def _with_default(tx: Tx, user: User) -> User:
    return replace(user, default_tenant=default_tenant(tx, user.name))
