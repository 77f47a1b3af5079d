"""People of the provider in the hub's own database: their stored data, and their open sessions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from jupyterhub import orm
from jupyterhub.roles import assign_default_roles
from sqlalchemy.exc import DataError, DBAPIError, PendingRollbackError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from mlp_hub.hub_integration.accounts import ending, logins, outbox
from mlp_hub.hub_integration.providers.protocols.provider import AuthState, NotStoredError, ProviderIdentity
from mlp_hub.hub_integration.providers.protocols.tokens import OWN_OF_A_SESSION, SAME_PERSON
from mlp_hub.hub_integration.providers.records import ended_logins, provider_sessions, used_tokens
from mlp_hub.hub_integration.providers.records.identities import PersonIdentity, of_name
from mlp_hub.hub_integration.providers.sync.refresh import Why

log = logging.getLogger(__name__)
_TOGETHER = 500  # names in one query
_DATABASE_FAILURES = (DBAPIError, PendingRollbackError, PoolTimeoutError)
"""Errors that can pass without a change of the code, except DataError: values that do not fit never will."""


class HubPeople:
    """People of a running hub; `decides_admins`: groups of the provider determine the administrators.

    `unseen_s`: seconds for which tokens are accepted, and servers run, after the provider can no longer
    be asked about a person.
    """

    def __init__(self, app: Any, *, decides_admins: bool, unseen_s: float) -> None:
        self._app = app
        self._db = app.db
        self._decides_admins = decides_admins
        self._unseen_s = unseen_s
        self._stopping: dict[str, asyncio.Task[None]] = {}
        ended_logins.ensure_table(self._db)
        provider_sessions.ensure_table(self._db)
        used_tokens.ensure_table(self._db)
        outbox.open_table(self._db)

    async def state_of(self, name: str) -> AuthState | None:
        """Return the stored data of a login; None for other users than the provider's, or without a login."""
        user = self._user(name)
        if user is None or of_name(self._db, name) is None:
            return None
        found: AuthState | None = await user.get_auth_state()
        return found

    async def keep(
        self, name: str, identity: ProviderIdentity, groups: Sequence[str], state: Mapping[str, Any]
    ) -> None:
        """Store what the provider said, its tokens first.

        Raises NotStoredError where the database takes no writes; storing all of it again is right then. Other errors are
        raised as they are: another try would end the same way.
        """
        user = self._user(name)
        if user is None:  # deleted meanwhile
            return
        try:
            await user.save_auth_state(dict(state))
            provider_sessions.note(self._db, name, str(state.get("session") or ""))
            await provider_sessions.renew_logins(self._db, user.orm_user.id, state)
            self.note_identity(name, identity, groups)
        except Exception as error:
            self._db.rollback()
            if isinstance(error, _DATABASE_FAILURES) and not isinstance(error, DataError):
                raise NotStoredError(str(error)) from error
            raise

    def note_identity(self, name: str, identity: ProviderIdentity, groups: Sequence[str]) -> None:
        """Store the provider's answer about a person without a separate login of the hub: they are in again."""
        user = self._user(name)
        if user is None:
            return
        ended_logins.clear(self._db, name)
        of_name(self._db, name).claimed_name = identity.claimed_name
        if self._decides_admins and user.admin is not identity.admin:
            user.admin = identity.admin
            assign_default_roles(self._db, entity=user.orm_user)
            outbox.keep(self._db, outbox.news("group_admin", name, admin=identity.admin))
        self._db.commit()
        user.sync_groups(list(groups))

    async def go_on_by_another(self, name: str, ended: AuthState) -> AuthState | None:
        """End the browsers of an ended session, and ask about the person by another browser's from now on.

        Return the data that is kept then. Return None without another browser, or without one that logged
        in as the same person.
        """
        user = self._user(name)
        session = str(ended.get("session") or "")
        if user is None or not session:
            return None
        provider_sessions.end_browsers(self._db, user.orm_user, session)
        kept: AuthState | None = await user.get_auth_state()
        if kept is None or kept.get("session") != session:  # they have logged in meanwhile, or all has ended
            return kept
        other = await provider_sessions.newest_login(self._db, user.orm_user.id)
        if any(other.get(field) != ended.get(field) for field in SAME_PERSON):
            return None
        # how they stand was said last by what has ended
        state = {**ended, **{field: other.get(field, "") for field in OWN_OF_A_SESSION}}
        await user.save_auth_state(state)
        provider_sessions.note(self._db, name, str(state["session"]))
        self._db.commit()
        return state

    async def end(self, name: str, why: Why) -> None:
        """End what somebody has open, and forget the provider's tokens, which are worth nothing now.

        What is stored of it is stored first: whatever fails later, nobody comes in by it. The service is told
        of an account that was taken away just now, with the number of its tokens.
        """
        user = self._user(name)
        if user is None:
            return
        if ended_logins.note(self._db, name, why) and why == "disabled":
            outbox.keep(self._db, outbox.news("login_ended", name, tokens=len(user.orm_user.api_tokens)))
        if why == "disabled":
            user.sync_groups([])
            ending.end_sessions(self._db, user.orm_user)
        else:
            ending.end_logins(self._db, user.orm_user)
        provider_sessions.forget_browsers(self._db, user_id=user.orm_user.id)
        await user.save_auth_state(None)
        if why == "disabled":
            self._begin_to_end_servers(name)

    def may_go_on(self, name: str) -> bool:
        """Say of somebody of whom the provider cannot be asked whether their tokens are still taken."""
        if ended_logins.has(self._db, name):
            return not ended_logins.is_over(self._db, name, self._unseen_s)
        ended_logins.note(
            self._db, name, "session"
        )  # what was kept of the login is lost: the time begins now
        self._db.commit()
        return self._unseen_s > 0

    def end_servers_left(self) -> None:
        """Begin to end the servers of those who are let in nowhere any more, as far as they are not ending.

        So it ends those that could not be ended before, and those that a hub left that died meanwhile.
        """
        for name in sorted(ended_logins.over(self._db, self._unseen_s) & self._with_servers()):
            self._begin_to_end_servers(name)

    def _begin_to_end_servers(self, name: str) -> None:
        if name in self._stopping:
            return
        # a server may take its time to end, and others wait to be asked about
        self._stopping[name] = task = asyncio.ensure_future(self._end_servers(name))
        task.add_done_callback(lambda _: self._stopping.pop(name, None))

    async def _end_servers(self, name: str) -> None:
        user = self._user(name)
        if user is None:
            return
        try:
            await ending.end_servers_of(self._app, user)
        except Exception:  # it is tried again at the next turn
            log.exception("ending the servers of %s failed", name)

    def busy(self) -> set[str]:
        """Return who of them has servers."""
        return self.among(self._with_servers())

    def _with_servers(self) -> set[str]:
        query = self._db.query(orm.User.name).join(orm.Spawner).filter(orm.Spawner.server_id.isnot(None))
        return {row.name for row in query}

    def present(self) -> set[str]:
        """Return who of them has a login or a token."""
        found: set[str] = set()
        for held in (logins.Login, orm.APIToken):
            query = (
                self._db.query(PersonIdentity.name)
                .join(orm.User, orm.User.name == PersonIdentity.name)
                .join(held, held.user_id == orm.User.id)
            )
            found |= {row.name for row in query.distinct()}
        return found - self.disabled() - ended_logins.of(self._db, "session")

    def among(self, names: Collection[str]) -> set[str]:
        """Return which of these are people of the provider."""
        found: set[str] = set()
        wanted = list(names)
        for begin in range(0, len(wanted), _TOGETHER):
            part = wanted[begin : begin + _TOGETHER]
            found |= {
                row.name for row in self._db.query(PersonIdentity.name).filter(PersonIdentity.name.in_(part))
            }
        return found

    def disabled(self) -> set[str]:
        """Return whose account the provider has taken away."""
        return ended_logins.of(self._db, "disabled")

    def _user(self, name: str) -> Any:
        found = orm.User.find(self._db, name)
        return None if found is None else self._app.users[found]
