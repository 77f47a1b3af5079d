"""Accounts of the hub: people sign up, an administrator approves."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from jupyterhub import orm
from nativeauthenticator import NativeAuthenticator
from nativeauthenticator.orm import UserInfo
from tornado import web
from traitlets import Float, Integer, Set, Unicode, default

from mlp_hub.api.edge.connections import address_of, network_of
from mlp_hub.api.edge.limits import Limiter, Rate
from mlp_hub.domain.tenants.account_names import is_valid, normalize, why_not
from mlp_hub.domain.tenants.service_account import is_service
from mlp_hub.hub_integration.accounts import records
from mlp_hub.hub_integration.accounts.hashing import Hasher
from mlp_hub.hub_integration.accounts.lockout import Lockout
from mlp_hub.hub_integration.accounts.refusal import AccountRefused
from mlp_hub.hub_integration.pages.language import said
from mlp_language.message import msg, msgs

PASSWORD_BYTES_MAX = 72  # bcrypt reads no further

# compared against when there is no such account, so that the answer takes as long as for one that exists
NOBODY = b"$2b$12$C6UzMDM.H6dfI/f/IKcEeOZ1p1sLZ5hS9yq7i6Cw3CwJ0f1oYbY8K"


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
            records.ensure_tables(self.db)
        self.hasher = Hasher()
        self.lockout = Lockout(self.allowed_failed_logins, self.lockout_s)
        rates = {
            "signup": Rate(1 / self.signup_every_s, self.signup_burst),
            "login": Rate(1 / self.login_every_s, self.login_burst),
        }
        self.limiter = Limiter(time.monotonic, rates)

    def normalize_username(self, username: str) -> str:
        """Return the stored form of a typed name; see `names`."""
        name = normalize(username)
        return str(self.username_map.get(name, name))

    def validate_username(self, username: str) -> bool:
        """Whether the name may be an account's."""
        return bool(username) and is_valid(username)

    async def authenticate(self, handler: Any, data: dict[str, str]) -> str | None:
        """Return the name when name and password are right and the account is authorised.

        A locked name, and an account that waits for approval, get an answer with that reason. The latter
        gets it only with the right password. An address with many failed logins waits, whatever names it
        tries. To compare a password takes long, so a flood of them would delay everybody. A logged-in user
        who enters the own password again is counted separately: nobody else can use that up.
        """
        name = self.normalize_username(data.get("username", ""))
        user = handler.current_user
        confirms = _confirming(name) if user is not None and user.name == name else None
        source = confirms or address_of(handler.request)
        wait = self.limiter.take_token("login", source)
        if wait:
            text = (
                msg("Too many attempts with your password. Try again in {wait} s.", wait=wait)
                if confirms
                else msg("Too many logins from your address. Try again in {wait} s.", wait=wait)
            )
            raise web.HTTPError(429, said(handler, text))
        try:
            found = await self._authenticate(name, data.get("password", ""), confirms or name)
        except AccountRefused as refused:
            raise web.HTTPError(refused.status, said(handler, refused.message)) from None
        if found is not None:
            self.limiter.return_token("login", source)
        return found

    async def _authenticate(self, name: str, password: str, counted: str) -> str | None:
        if not is_valid(name) or is_service(name):
            return None
        locked = self.lockout.locked_for(counted, time.monotonic())
        if locked:
            minutes = max(1, round(locked / 60))
            text = msgs(
                "Too many failed logins for {name}. Try again in 1 minute.",
                "Too many failed logins for {name}. Try again in {n} minutes.",
                n=minutes,
                name=name,
            )
            raise AccountRefused(text, status=403)
        self.hasher.check_room()
        # taken down before the slow comparison, so that guesses sent side by side count too
        self.lockout.failed(counted, time.monotonic())
        info = UserInfo.find(self.db, name)
        compared = self.password_of(info)
        if not await self.hasher.matches(password, compared) or info is None or compared == NOBODY:
            return None
        # anew: it may have been let in, or refused, meanwhile, or given a new password because somebody knew this one
        info = UserInfo.find(self.db, name)
        if info is None or info.password != compared:
            return None
        self.lockout.succeeded(counted)
        if not info.is_authorized:
            text = msg("The account {name} waits for the approval of an administrator.", name=name)
            raise AccountRefused(text, status=403)
        return name

    def password_of(self, info: Any) -> bytes:
        """Return the hash that a password is compared with, of an account or of none."""
        return NOBODY if info is None else bytes(info.password)

    async def refresh_user(self, user: Any, handler: Any = None) -> bool:  # noqa: ARG002
        """End the session of an account that is no longer authorised."""
        info = UserInfo.find(self.db, user.name)
        return bool(info and info.is_authorized)

    def check_password_rule(self, password: str) -> None:
        """Raise AccountRefused unless the password may be one."""
        if len(password) < self.minimum_password_length:
            low = self.minimum_password_length
            raise AccountRefused(
                msg(
                    "The password has {count} characters; it needs at least {low}.",
                    count=len(password),
                    low=low,
                )
            )
        if len(password.encode()) > PASSWORD_BYTES_MAX:
            size = len(password.encode())
            raise AccountRefused(
                msg(
                    "The password has {size} bytes; the limit is {password_bytes_max}.",
                    size=size,
                    password_bytes_max=PASSWORD_BYTES_MAX,
                )
            )
        if "\0" in password or (self.check_common_password and self.is_password_common(password)):
            raise AccountRefused(msg("This password is too common. Choose another one."))

    async def sign_up(self, typed: str, password: str, address: str) -> str:
        """Make an account that waits for approval and return its name, or raise AccountRefused.

        All sign-ups come here, by the page and by the REST API, and count for the address of their sender.
        """
        wait = self.limiter.take_token("signup", network_of(address))
        if wait:
            raise AccountRefused(
                msg("Too many sign-ups from your address. Try again in {wait} s.", wait=wait),
                "TooMany",
                429,
                wait,
            )
        name = self.normalize_username(typed)
        if not is_valid(name):
            raise AccountRefused(msg("This user name cannot be used: {rule}.", rule=why_not(name)))
        waiting = self.db.query(UserInfo).filter(UserInfo.is_authorized.is_(False)).count()
        if waiting >= self.waiting_max:
            raise AccountRefused(
                msg(
                    "{waiting} accounts wait for approval; no more are accepted. Ask an administrator to look at them.",
                    waiting=waiting,
                ),
                "Conflict",
                409,
            )
        if (
            is_service(name)
            or name in self.reserved_names
            or name in self.admin_users
            or orm.User.find(self.db, name) is not None
        ):
            raise _taken(name)
        self.store_account(name, await self.prepare_account(name, password), authorized=False)
        return name

    async def prepare_account(self, name: str, password: str) -> bytes:
        """Check a new account and return its hashed password, or raise AccountRefused."""
        self.check_account(name, password)
        return await self.hasher.hashed(password)

    def check_account(self, name: str, password: str) -> None:
        """Raise AccountRefused unless a new account may have this name and this password."""
        if not is_valid(name):
            raise AccountRefused(
                msg("{name} cannot be a user name: {rule}.", name=repr(name), rule=why_not(name))
            )
        if self.user_exists(name):
            raise _taken(name)
        self.check_password_rule(password)

    def store_account(self, name: str, hashed: bytes, *, authorized: bool) -> None:
        """Store a prepared account, or raise AccountRefused when its name was taken meanwhile."""
        if self.user_exists(name):
            raise _taken(name)
        self.db.add(UserInfo(username=name, password=hashed, is_authorized=authorized))
        records.remember(self.db, name)
        self.db.commit()

    async def store_lot(self, people: Sequence[tuple[str, str]]) -> dict[str, AccountRefused]:
        """Add accounts that are let in, of (name, password that a machine made up); return why some are not. The caller commits."""
        refused: dict[str, AccountRefused] = {}
        hashes = await self.hasher.all_hashed([password for _, password in people])
        taken = {
            row.username
            for row in self.db.query(UserInfo.username).filter(
                UserInfo.username.in_([self.normalize_username(name) for name, _ in people])
            )
        }
        made: list[str] = []
        for (name, _), hashed in zip(people, hashes, strict=True):
            if not is_valid(name):
                why = msg("{name} cannot be a user name: {rule}.", name=repr(name), rule=why_not(name))
                refused[name] = AccountRefused(why)
            elif self.normalize_username(name) in taken:
                refused[name] = _taken(name)
            else:
                taken.add(self.normalize_username(name))
                made.append(name)
                self.db.add(UserInfo(username=name, password=hashed, is_authorized=True))
        records.remember_all(self.db, made)
        return refused

    async def set_password(self, name: str, new: str, *, instead_of: bytes | None = None) -> None:
        """Set another password, or raise AccountRefused. The caller ends the sessions.

        `instead_of` is the hash that the owner proved to know the password of: one who lost the account meanwhile must
        not win it back.
        """
        self.check_password_rule(new)
        hashed = await self.hasher.hashed(new)
        info = UserInfo.find(self.db, name)
        if info is None:
            raise AccountRefused(msg("account {name} does not exist", name=name), "NotFound", 404)
        if instead_of is not None and (info.password != instead_of or not info.is_authorized):
            raise AccountRefused(msg("The password was changed elsewhere meanwhile."), "Conflict", 409)
        info.password = hashed
        self.db.commit()
        for counted in (name, _confirming(name)):
            self.lockout.succeeded(counted)

    @property
    def company(self) -> str:
        """Name of the provider whose accounts people log in with; empty without a provider."""
        return ""

    def managed_by(self, name: str) -> str:  # noqa: ARG002
        """Return who manages an account; empty: the hub itself."""
        return ""

    def change_password(self, username: str, new_password: str) -> bool:
        """Refuse: it would hash on the event loop, and end no session."""
        raise NotImplementedError("passwords are set by set_password")

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
        # handlers need the hub's scopes defined
        from mlp_hub.hub_integration.accounts import accounts, recording  # noqa: PLC0415
        from mlp_hub.hub_integration.pages import pages, people  # noqa: PLC0415

        if getattr(self, "db", None) is not None:
            recording.deliver_kept(self.db)
        return [*pages.handlers(), *accounts.handlers(), *people.handlers()]


def _confirming(name: str) -> str:
    """Return the key for counting wrong passwords of a logged-in user; no account can have that name."""
    return f"confirm:{name}"


def _taken(name: str) -> AccountRefused:
    return AccountRefused(
        msg("The user name {name} is taken. Choose another one.", name=name), "Conflict", 409
    )
