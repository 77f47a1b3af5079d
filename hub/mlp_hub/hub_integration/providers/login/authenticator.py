"""Accounts of the company's provider, and beside them those of the hub's own, for when the provider is away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jupyterhub import orm
from nativeauthenticator.orm import UserInfo
from sqlalchemy.exc import IntegrityError
from traitlets import Callable as CallableTrait

from mlp_hub.domain.tenants.service_account import is_service
from mlp_hub.hub_integration.accounts import outbox, records
from mlp_hub.hub_integration.accounts.authenticator import NOBODY, NativeAccounts
from mlp_hub.hub_integration.accounts.refusal import AccountRefused
from mlp_hub.hub_integration.providers.protocols.kinds import provider_of
from mlp_hub.hub_integration.providers.protocols.provider import (
    ARRIVAL,
    LoginResult,
    PendingLogin,
    ProviderIdentity,
)
from mlp_hub.hub_integration.providers.records import ended_logins, identities, provider_sessions, used_tokens
from mlp_hub.hub_integration.providers.records.login_states import States
from mlp_hub.service.tenants.groups import policy_as_set
from mlp_hub.settings import Settings
from mlp_language.message import msg

if TYPE_CHECKING:
    from mlp_hub.hub_integration.providers.sync.watching import Watching

_TRIES = 3
MANAGED = b""
"""In the place of a password's hash: the account is the provider's, and no password is right."""


class CompanyAccounts(NativeAccounts):
    """One provider whose accounts people log in with, and accounts of the hub that log in with a password.

    A person of the provider has an account like all others, so that the panel lists them and can close it.
    """

    settings_of = CallableTrait(help="Gives the hub's settings.", config=True)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.hub_settings: Settings = self.settings_of()
        provider = provider_of(self.hub_settings)
        if provider is None:
            raise ValueError(f"MLP_LOGIN is {self.hub_settings.login}, which has no provider")
        self.provider = provider
        self.states = States(self.hub_settings.origins)
        self.enable_signup = self.hub_settings.login_accounts == "all"
        self.policy = policy_as_set(self.hub_settings)
        self.watching: Watching | None = None
        if getattr(self, "db", None) is not None:
            identities.ensure_table(self.db)
            ended_logins.ensure_table(self.db)
            provider_sessions.ensure_table(self.db)
            used_tokens.ensure_table(self.db)
            outbox.open_table(self.db)

    # ------------------------------------------------------------- what pages ask

    @property
    def company(self) -> str:
        """Name of the provider for people."""
        return self.provider.title

    @property
    def passwords(self) -> str:
        """Accounts of the hub that log in with a password: `admins`, `all` or `none`."""
        return self.hub_settings.login_accounts

    def managed_by(self, name: str) -> str:
        """Return what people call the provider whose account it is; empty for an account of the hub's own."""
        info = UserInfo.find(self.db, name)
        return self.company if info is not None and info.password == MANAGED else ""

    # ------------------------------------------------------------------- logging in

    async def authenticate(self, handler: Any, data: dict[str, Any]) -> dict[str, Any] | None:  # type: ignore[override]
        """Return who came back from the provider, or whose password it is."""
        arrived = data.get(ARRIVAL)
        if isinstance(arrived, tuple):  # what a form sends is text
            await self._expect(arrived[0].identity)
            return self._found_or_made(*arrived)
        name = await super().authenticate(handler, data)
        return None if name is None else {"name": name, "groups": None}

    async def _expect(self, identity: ProviderIdentity) -> None:
        """Have what is asked of a person now come to its end: it is stored before their new login, and not after it."""
        known = identities.find(self.db, identity.issuer, identity.subject)
        if known is not None and self.watching is not None:
            await self.watching.refresher.expect(known.name)

    def _found_or_made(self, arrival: LoginResult, pending: PendingLogin) -> dict[str, Any]:
        """Let a person in.

        A person who is let in twice at once, by two hubs on one database, is made by one of them and found
        by the other.
        """
        for _ in range(_TRIES):
            try:
                return self._arrived(arrival, pending)
            except IntegrityError:
                self.db.rollback()
        return self._arrived(arrival, pending)

    def _arrived(self, arrival: LoginResult, pending: PendingLogin) -> dict[str, Any]:
        """Find the account of a person of the provider, or make it; or raise AccountRefused."""
        identity = arrival.identity
        known = identities.find(self.db, identity.issuer, identity.subject)
        if pending.confirms and (known is None or known.name != pending.confirms):
            raise AccountRefused(
                msg(
                    "You are logged in as {name}, but {title} reports another user. Log out, and log in again.",
                    name=pending.confirms,
                    title=self.company,
                ),
                "Forbidden",
                403,
            )
        if known is not None and self._is_of_the_hub(known.name):
            self.db.delete(
                known
            )  # an account of the hub's own was made under the name when there was no provider
            self.db.flush()
        name = identities.claim(self.db, identity, self._is_taken)
        if known is None and name != identity.claimed_name:
            self.log.info(
                "%s of %s is %s here: a name that was free", identity.claimed_name, self.company, name
            )
        info = UserInfo.find(self.db, name)
        if info is not None and not info.is_authorized:
            self.db.rollback()
            raise AccountRefused(
                msg("The account {name} was closed by an administrator.", name=name), "Forbidden", 403
            )
        if info is None:
            self.db.add(UserInfo(username=name, password=MANAGED, is_authorized=True))
            records.remember(self.db, name)
        ended_logins.clear(self.db, name)
        provider_sessions.note(self.db, name, str(arrival.auth_state.get("session") or ""))
        if (
            admin := self._admin_change(name, identity)
        ) is not None:  # JupyterHub makes the change right after this
            outbox.keep(self.db, outbox.news("group_admin", name, admin=admin))
        self.db.commit()
        if self.watching is not None:
            self.watching.refresher.arrived(name)
        return self._model(name, identity, arrival.auth_state)

    def _model(self, name: str, identity: ProviderIdentity, state: dict[str, Any]) -> dict[str, Any]:
        """Return a person's standing in JupyterHub's form."""
        admin = identity.admin if self.hub_settings.login_admin_groups else None
        return {
            "name": name,
            "admin": admin,
            "auth_state": state,
            "groups": self.policy.concerned(identity.groups)[0],
        }

    def _admin_change(self, name: str, identity: ProviderIdentity) -> bool | None:
        """Return what this login makes of the admin right: True or False where it differs from before, else None."""
        user = orm.User.find(self.db, name)
        before = user is not None and bool(user.admin)
        return identity.admin if self.hub_settings.login_admin_groups and identity.admin != before else None

    def _is_taken(self, name: str) -> bool:
        return (
            name in self.reserved_names
            or name in self.admin_users
            or UserInfo.find(self.db, name) is not None
            or orm.User.find(self.db, name) is not None
            # files outlive an account that was deleted: whoever had it, they are not this person's
            or (self.hub_settings.homes_dir / name).exists()
        )

    def _is_of_the_hub(self, name: str) -> bool:
        info = UserInfo.find(self.db, name)
        return info is not None and info.password != MANAGED

    # -------------------------------------------------------------------- passwords

    def password_of(self, info: Any) -> bytes:
        """Return the hash that a password is compared with; nobody's for an account of the provider."""
        if info is None or info.password == MANAGED or self.passwords == "none":
            return NOBODY
        return super().password_of(info)

    async def _authenticate(self, name: str, password: str, counted: str) -> str | None:
        found = await super()._authenticate(name, password, counted)
        if found is not None and not self._may_use_password(found):
            raise AccountRefused(
                msg(
                    "Log in with {title} instead: only administrators log in with a password of this hub.",
                    title=self.company,
                ),
                "Forbidden",
                403,
            )
        return found

    def _may_use_password(self, name: str) -> bool:
        if self.passwords != "admins":
            return self.passwords == "all"
        user = orm.User.find(self.db, name)
        return user is not None and bool(user.admin)

    async def sign_up(self, typed: str, password: str, address: str) -> str:
        """Refuse where all accounts are the provider's."""
        if self.passwords != "all":
            raise AccountRefused(
                msg("Accounts are managed by {title}: log in there, without signing up.", title=self.company),
                "Forbidden",
                403,
            )
        return await super().sign_up(typed, password, address)

    async def set_password(self, name: str, new: str, *, instead_of: bytes | None = None) -> None:
        """Refuse it to accounts of the provider."""
        if self.managed_by(name):
            raise AccountRefused(
                msg("{title} manages the password of {name}.", name=name, title=self.company),
                "Forbidden",
                403,
            )
        await super().set_password(name, new, instead_of=instead_of)

    def user_exists(self, username: str) -> bool:
        """Whether somebody has the name, or had it: a person of the provider keeps theirs for good."""
        return bool(super().user_exists(username)) or identities.of_name(self.db, username) is not None

    # ------------------------------------------------------------- how they are now

    async def refresh_user(self, user: Any, handler: Any = None) -> bool:
        """Ask the provider for a person's standing; while it is away, users who are logged in stay.

        A user whose login ended has to log in again. A token that they made for a program works for some
        more time (`login_unseen_s`).
        """
        if not await super().refresh_user(user, handler):
            return False
        if not self.managed_by(user.name):
            # of a tenant's own account nobody ever has a password
            return is_service(user.name) or self._may_use_password(user.name)
        if self.watching is None:
            return True
        if not await user.get_auth_state():
            by_token = bool(getattr(handler, "_token_authenticated", False))
            return by_token and self.watching.people.may_go_on(user.name)
        return await self.watching.refresher.stays(user.name)

    async def vouched_for(self, user: Any, identity: ProviderIdentity) -> bool:
        """Take the provider's answer about a user without a browser login here, and return whether they may.

        It counts as a check of their standing, whatever became of their browser's login.
        """
        if not await super().refresh_user(user) or not self.managed_by(user.name):
            return False
        if self.watching is not None:
            await self.watching.refresher.accept_identity(user.name, identity)
        return True

    # ------------------------------------------------------------------------ pages

    def get_handlers(self, app: Any) -> list[tuple[Any, ...]]:
        """List the pages: those of the provider before those of the hub's own accounts."""
        from mlp_hub.hub_integration.providers.login import pages  # noqa: PLC0415 - handlers need the hub's scopes defined
        from mlp_hub.hub_integration.providers.sync.watching import Watching  # noqa: PLC0415 - the same

        self.watching = Watching(app, self.hub_settings, self.provider)
        self.watching.start()
        return [*pages.handlers(), *self.watching.handlers(), *super().get_handlers(app)]
