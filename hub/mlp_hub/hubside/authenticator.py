"""Accounts of the hub: people sign up, an administrator approves."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Any

import bcrypt
from jupyterhub import orm
from nativeauthenticator import NativeAuthenticator
from nativeauthenticator.orm import UserInfo
from tornado import web
from traitlets import Float, Integer, Set, Unicode, default

from mlp_hub.api.connections import address_of
from mlp_hub.api.limits import Limiter, Rate
from mlp_hub.hubside import records
from mlp_hub.hubside.lockout import Lockout
from mlp_hub.hubside.names import NAME_RULE, is_valid, normalize

PASSWORD_BYTES_MAX = 72  # bcrypt reads no further

# compared against when there is no such account, so that the answer takes as long as for one that exists
_NOBODY = b"$2b$12$C6UzMDM.H6dfI/f/IKcEeOZ1p1sLZ5hS9yq7i6Cw3CwJ0f1oYbY8K"


@dataclass(frozen=True, slots=True)
class AccountRefused(Exception):  # noqa: N818 - what happened
    """An account that cannot be made or changed like this. `status` is the HTTP status of the answer."""

    msg: str
    reason: str = "Invalid"
    status: int = 400
    retry_after: int = 0  # seconds


class NativeAccounts(NativeAuthenticator):  # type: ignore[misc]  # NativeAuthenticator is untyped
    """NativeAuthenticator with names nobody can imitate, a lockout, and approval through our own API.

    An account exists from the sign-up on and can log in once an administrator authorised it. A name is taken
    as soon as the hub knows it in any way; reserved names are given by the accounts API only.
    """

    reserved_names = Set(Unicode(), help="Names that nobody can sign up with.", config=True)
    waiting_max = Integer(200, help="How many accounts may wait for approval at once.", config=True)
    signup_burst = Integer(10, help="How many sign-ups one address may send at once.", config=True)
    signup_every_s = Float(
        5.0, min=0.001, help="For each of these seconds it may send one more.", config=True
    )
    login_burst = Integer(
        20, help="How many logins of one address may fail, or be under way, at once.", config=True
    )
    login_every_s = Float(2.0, min=0.001, help="For each of these seconds one more may.", config=True)
    lockout_s = Float(300.0, help="For how many seconds a name is locked.", config=True)

    @default("allow_all")
    def _allow_all(self) -> bool:
        # who is authorised is decided by `authenticate`, for each login
        return True

    @default("minimum_password_length")
    def _minimum_password_length(self) -> int:
        return 8

    @default("allowed_failed_logins")
    def _allowed_failed_logins(self) -> int:
        return 5

    @default("check_common_password")
    def _check_common_password(self) -> bool:
        return True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if getattr(self, "db", None) is not None:
            records.ensure_table(self.db)
        self.lockout = Lockout(self.allowed_failed_logins, self.lockout_s)
        rates = {
            "signup": Rate(1 / self.signup_every_s, self.signup_burst),
            "login": Rate(1 / self.login_every_s, self.login_burst),
        }
        self.limiter = Limiter(time.monotonic, rates)

    def normalize_username(self, username: str) -> str:
        """Return the stored form of what was typed; see `names`."""
        name = normalize(username)
        return str(self.username_map.get(name, name))

    def validate_username(self, username: str) -> bool:
        """Whether the name may be an account's."""
        return bool(username) and is_valid(username)

    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        """Return the name when name and password are right and the account is authorised.

        A locked name, and an account that waits for approval, are told so: the latter only to who knows its
        password. An address from which many logins fail waits, whatever names it tries: comparing a password
        takes long, so a flood of them would hold up everybody's.
        """
        address = address_of(handler.request)
        wait = self.limiter.take("login", address)
        if wait:
            raise web.HTTPError(429, f"Too many logins from your address. Try again in {wait} s.")
        name = await self._authenticate(data)
        if name is not None:
            self.limiter.give("login", address)
        return name

    async def _authenticate(self, data: dict[str, str]) -> str | None:
        name = self.normalize_username(data.get("username", ""))
        password = data.get("password", "")
        if not is_valid(name):
            return None
        locked = self.lockout.locked_for(name, time.monotonic())
        if locked:
            minutes = max(1, round(locked / 60))
            raise web.HTTPError(
                403, f"Too many failed logins for {name}. Try again in {minutes} minute{'s' * (minutes > 1)}."
            )
        # taken down before the slow comparison, so that guesses sent side by side count too
        self.lockout.failed(name, time.monotonic())
        info = UserInfo.find(self.db, name)
        right = await asyncio.to_thread(_matches, password, info.password if info else _NOBODY)
        if info is None or not right:
            return None
        self.lockout.succeeded(name)
        info = UserInfo.find(self.db, name)  # anew: it may have been let in, or refused, meanwhile
        if info is None:
            return None
        if not info.is_authorized:
            raise web.HTTPError(403, f"The account {name} waits for the approval of an administrator.")
        return name

    async def refresh_user(self, user: Any, handler: Any = None) -> bool:  # noqa: ARG002
        """End the session of an account that is no longer authorised."""
        info = UserInfo.find(self.db, user.name)
        return bool(info and info.is_authorized)

    def check_password_rule(self, password: str) -> None:
        """Raise AccountRefused unless the password may be one."""
        if len(password) < self.minimum_password_length:
            low = self.minimum_password_length
            raise AccountRefused(f"The password has {len(password)} characters; it needs at least {low}.")
        if len(password.encode()) > PASSWORD_BYTES_MAX:
            size = len(password.encode())
            raise AccountRefused(f"The password has {size} bytes; it may have {PASSWORD_BYTES_MAX}.")
        if "\0" in password or (self.check_common_password and self.is_password_common(password)):
            raise AccountRefused("This password is too common. Choose another one.")

    async def sign_up(self, typed: str, password: str, address: str) -> str:
        """Make an account that waits for approval and return its name, or raise AccountRefused.

        All sign-ups come here, by the page and by the REST API, and count for the address of who sent them.
        """
        wait = self.limiter.take("signup", address)
        if wait:
            raise AccountRefused(
                f"Too many sign-ups from your address. Try again in {wait} s.", "TooMany", 429, wait
            )
        name = self.normalize_username(typed)
        if not is_valid(name):
            raise AccountRefused(f"This user name cannot be used: {NAME_RULE}.")
        waiting = self.db.query(UserInfo).filter(UserInfo.is_authorized.is_(False)).count()
        if waiting >= self.waiting_max:
            raise AccountRefused(
                f"{waiting} accounts wait for approval; no more are taken. Ask an administrator to look at them.",
                "Conflict",
                409,
            )
        if (
            name in self.reserved_names
            or name in self.admin_users
            or orm.User.find(self.db, name) is not None
        ):
            raise _taken(name)
        self.store_account(name, await self.prepare_account(name, password), authorized=False)
        return name

    async def prepare_account(self, name: str, password: str) -> bytes:
        """Check a new account and return its hashed password, or raise AccountRefused."""
        if not is_valid(name):
            raise AccountRefused(f"{name!r} cannot be a user name: {NAME_RULE}.")
        if self.user_exists(name):
            raise _taken(name)
        self.check_password_rule(password)
        return await asyncio.to_thread(bcrypt.hashpw, password.encode(), bcrypt.gensalt())

    def store_account(self, name: str, hashed: bytes, *, authorized: bool) -> None:
        """Store a prepared account, or raise AccountRefused when its name was taken meanwhile."""
        if self.user_exists(name):
            raise _taken(name)
        self.db.add(UserInfo(username=name, password=hashed, is_authorized=authorized))
        records.remember(self.db, name)
        self.db.commit()

    def change_password(self, username: str, new_password: str) -> bool:
        """Set another password; False when there is no such account or the password may not be one."""
        info = UserInfo.find(self.db, username)
        try:
            self.check_password_rule(new_password)
        except AccountRefused:
            return False
        if info is None:
            return False
        info.password = bcrypt.hashpw(new_password.encode(), bcrypt.gensalt())
        self.db.commit()
        return True

    def create_user(self, username: str, password: str, **kwargs: Any) -> None:
        """Refuse: accounts are made by `sign_up` and the accounts API."""
        raise NotImplementedError("accounts are made by sign_up or the accounts API")

    def delete_user(self, user: Any) -> Any:
        """Drop the account of a user whom the hub deletes."""
        records.forget(self.db, user.name)
        return super().delete_user(user)

    def get_handlers(self, app: Any) -> list[tuple[Any, ...]]:  # noqa: ARG002
        """List the pages and the accounts API. NativeAuthenticator's own are not among them.

        Its pages approve and discard accounts by GET, which any foreign page can make an administrator's
        browser do.
        """
        from mlp_hub.hubside import accounts, pages  # noqa: PLC0415 - handlers need the hub's scopes defined

        return [*pages.handlers(), *accounts.handlers()]


def _taken(name: str) -> AccountRefused:
    return AccountRefused(f"The user name {name} is taken. Choose another one.", "Conflict", 409)


def _matches(password: str, hashed: bytes) -> bool:
    try:
        return bool(bcrypt.checkpw(password.encode(), hashed))
    except ValueError:  # longer than bcrypt takes, or with a NUL: nobody's password
        return False
