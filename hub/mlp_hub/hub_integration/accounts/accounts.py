"""The accounts API of the hub, `/hub/api/mlp/accounts`: how the platform lists, makes and approves accounts.

    GET    /accounts?authorized=&waiting=&search=&after=&limit=
                                         200 [{"name", "authorized", "admin", "created", "servers", "last_activity"}], X-Total-Count
    POST   /accounts                     201 an account
    POST   /accounts:lot                 200 {"refused": {name: {"msg", "detail", "reason"}}} of {"people": [[name, password]]}
    POST   /accounts:find                200 the accounts of {"names": [...]} that are there
    GET    /accounts/{name}              200 an account
    POST   /accounts/{name}/authorize    200 an account, with "was_authorized"
    POST   /accounts/{name}/deauthorize  200 the same
    POST   /accounts/{name}/password     200 {"password"} is the new one
    POST   /accounts/{name}/logout       200    /accounts/{name}/stop           200
    POST   /accounts/{name}/admin        200 {"admin": true or false}
    DELETE /accounts/{name}              204

All need the scope `admin:users`. An account that is made without `authorized` is somebody's sign-up, from `address`,
and held to the rules of the page. A refusal is `{"status", "message", "msg", "detail", "reason"}` with status 400, 403, 404,
409 or 429. An account that is deauthorised or deleted, gets another password or is logged out loses its sessions, its
tokens and its servers; `stop` ends its notebook servers alone.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from typing import Any

from jupyterhub import orm
from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.metrics import TOTAL_USERS
from jupyterhub.roles import assign_default_roles
from jupyterhub.scopes import needs_scope
from jupyterhub.utils import maybe_future
from nativeauthenticator.orm import UserInfo

from mlp_hub.hub_integration.accounts import listing, outbox, recording, records
from mlp_hub.hub_integration.accounts.ending import end_servers, end_sessions
from mlp_hub.hub_integration.accounts.listing import Wanted
from mlp_hub.hub_integration.accounts.refusal import AccountRefused
from mlp_hub.hub_integration.pages.language import said
from mlp_language.message import msg, to_data

_FIELDS: dict[str, type] = {
    "name": str,
    "password": str,
    "authorized": bool,
    "admin": bool,
    "address": str,
}


def _answers_refusals(
    method: Callable[..., Awaitable[None]],
) -> Callable[..., Awaitable[None]]:
    @wraps(method)
    async def wrapped(self: Any, *args: Any) -> None:
        try:
            await method(self, *args)
        except AccountRefused as refused:
            self.set_status(refused.status)
            if refused.retry_after:
                self.set_header("Retry-After", str(refused.retry_after))
            text = said(self, refused.message)
            body = {
                "status": refused.status,
                "message": text,
                "msg": text,
                "detail": to_data(refused.message),
                "reason": refused.reason,
            }
            self.finish(json.dumps(body))

    return wrapped


class _Accounts(APIHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Common part of all routes."""

    def _info(self, name: str) -> Any:
        info = UserInfo.find(self.db, name)
        if info is None:
            raise AccountRefused(msg("account {name} does not exist", name=name), "NotFound", 404)
        return info

    def _record_of(self, name: str) -> Any:
        """Return JupyterHub's record of a user, made where there is none; the caller commits.

        JupyterHub's own way to make one commits four times, each of which waits for the disk.
        """
        user = orm.User.find(self.db, name)
        if user is None:
            user = orm.User(name=name)
            user.roles.append(orm.Role.find(self.db, "user"))
            self.db.add(user)
            TOTAL_USERS.inc()
        return user

    def _record_all(self, names: Sequence[str]) -> None:
        """Do for each of them what `_record_of` does, none an administrator: with a few queries, however many they are."""
        with self.db.no_autoflush:
            known = {user.name: user for user in self.db.query(orm.User).filter(orm.User.name.in_(names))}
            role = orm.Role.find(self.db, "user")
            for name in names:
                if name not in known:
                    self.db.add(orm.User(name=name, admin=False, roles=[role]))
                    TOTAL_USERS.inc()
        for user in known.values():
            user.admin = False
            assign_default_roles(self.db, entity=user)

    async def _recorded(
        self, info: Any, action: str, *, check: Callable[[Any], None] = lambda _: None, **fields: object
    ) -> Any:
        """Record a change of an account before it is made, and return the account as it is then, after `check` of it."""
        name = info.username
        await recording.record(self, name, action, **fields)
        info = self._info(name)
        check(info)  # others may have changed it meanwhile
        return info

    async def _removal_recorded(
        self, info: Any, action: str, *, check: Callable[[Any], None] = lambda _: None, **fields: object
    ) -> Any:
        """Record a change that takes something away, and return the account as it is then, after `check` of it.

        If the service is away, the entry is part of the transaction that the caller commits before it awaits anything.
        """
        name = info.username
        late = await recording.record_removal(self, name, action, **fields)
        info = self._info(name)
        check(info)  # others may have been changed meanwhile
        if late is not None:
            outbox.keep(self.db, late)
        return info

    def _write(self, name: str, **more: object) -> None:
        self.write(json.dumps({**(listing.one(self.db, name) or {}), **more}))

    def _check_may_touch_admins(self) -> None:
        # services that hold admin:users are the platform's own; a person needs to be an administrator
        if self.current_user.kind == "user" and not self.current_user.admin:
            raise AccountRefused(
                msg("only an administrator may change administrators' accounts"), "Forbidden", 403
            )

    def _check_may_close(self, info: Any) -> None:
        """Keep the last administrator, and who asks, from locking themselves out."""
        user = orm.User.find(self.db, info.username)
        if self.current_user.kind == "user" and self.current_user.name == info.username:
            raise AccountRefused(msg("you cannot close your own account"), "Forbidden", 403)
        if user is None or not user.admin:
            return
        self._check_may_touch_admins()
        others = (
            self.db.query(UserInfo.id)
            .join(orm.User, orm.User.name == UserInfo.username)
            .filter(orm.User.admin, UserInfo.is_authorized, orm.User.name != user.name)
        )
        left = others.first() is not None
        if not left:
            raise AccountRefused(
                msg("{name} is the only administrator left", name=user.name), "Conflict", 409
            )

    async def _end_all_of(self, name: str) -> None:
        """End sessions, tokens and servers of a user."""
        user = self.find_user(name)
        if user is not None:
            end_sessions(self.db, user.orm_user)
            await end_servers(self, user)

    def _body(self) -> dict[str, Any]:
        body = self.get_json_body()
        if not isinstance(body, dict):
            raise AccountRefused(
                msg("the body must be an object with some of {fields}", fields=", ".join(_FIELDS))
            )
        for key, value in body.items():
            if key not in _FIELDS or not isinstance(value, _FIELDS[key]):
                raise AccountRefused(
                    msg(
                        "{key} is not one of {fields}, or not of its type", key=key, fields=", ".join(_FIELDS)
                    )
                )
        return body

    def _needed(self, body: dict[str, Any], *fields: str) -> None:
        if missing := set(fields) - set(body):
            raise AccountRefused(msg("{missing} is missing", missing=" and ".join(sorted(missing))))


class AccountList(_Accounts):
    """All accounts."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def get(self) -> None:
        """List them by name, a page at a time."""
        wanted = Wanted(
            authorized={"true": True, "false": False}.get(self.get_query_argument("authorized", "")),
            waiting=self.get_query_argument("waiting", "") == "true",
            search=self.get_query_argument("search", ""),
        )
        limit = self.get_query_argument("limit", "100")
        if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit) <= listing.LIMIT_MAX:
            raise AccountRefused(
                msg(
                    "limit is {limit}; it must be 1 to {limit_max}",
                    limit=limit[:20],
                    limit_max=listing.LIMIT_MAX,
                )
            )
        after = self.get_query_argument("after", "")
        self.set_header("X-Total-Count", str(listing.count(self.db, wanted)))
        self.write(json.dumps(listing.page(self.db, wanted, after=after, limit=int(limit))))

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def post(self) -> None:
        """Make one."""
        body = self._body()
        self._needed(body, "name", "password")
        admin = body.get("admin", False)
        authorized = body.get("authorized", False) or admin
        if admin:
            self._check_may_touch_admins()
        if authorized:
            await self._record_new(body["name"], body["password"], admin=admin)
            name = await self._make(body["name"], body["password"], admin=admin)
        else:
            name = await self.authenticator.sign_up(body["name"], body["password"], body.get("address", ""))
        self.set_status(201)
        self._write(name)

    async def _record_new(self, name: str, password: str, *, admin: bool) -> None:
        """Record an account that is let in from its begin; the first administrator is made even if that is impossible."""
        self.authenticator.check_account(name, password)
        try:
            await recording.record(self, self.authenticator.normalize_username(name), "user.approve")
            if admin:
                await recording.record(
                    self, self.authenticator.normalize_username(name), "user.admin", admin=True
                )
        except AccountRefused:
            admins = self.db.query(UserInfo.id).join(orm.User, orm.User.name == UserInfo.username)
            if not admin or admins.filter(orm.User.admin).first() is not None:
                raise

    async def _make(self, name: str, password: str, *, admin: bool) -> str:
        hashed = await self.authenticator.prepare_account(name, password)
        # with the account, in one commit
        user = self._record_of(name)
        user.admin = admin
        assign_default_roles(self.db, entity=user)
        self.authenticator.store_account(name, hashed, authorized=True)
        return name


class AccountLot(_Accounts):
    """Accounts that are made and let in together, each with a password that the service made up."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def post(self) -> None:
        """Make those that can be made, in one commit; say why the others are not."""
        if self.current_user.kind == "user":  # a person would choose passwords, which take a slower hash
            raise AccountRefused(msg("only the service makes accounts in bulk"), "Forbidden", 403)
        people = self.get_json_body()["people"]
        refused = await self.authenticator.store_lot(
            [(str(name), str(password)) for name, password in people]
        )
        self._record_all([str(name) for name, _ in people if name not in refused])
        self.db.commit()
        said_of = {
            name: {"msg": said(self, why.message), "detail": to_data(why.message), "reason": why.reason}
            for name, why in refused.items()
        }
        self.write(json.dumps({"refused": said_of}))


class AccountFind(_Accounts):
    """Accounts that are asked for by name."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    async def post(self) -> None:
        """List those that are there."""
        names = [str(name) for name in self.get_json_body()["names"]]
        self.write(json.dumps(listing.several(self.db, names)))


class AccountAction(_Accounts):
    """Action on an account."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def post(self, name: str, action: str) -> None:
        """Do it; doing it twice is fine."""
        info = self._info(name)
        before = bool(info.is_authorized)
        await getattr(self, f"_{action}")(info)
        self._write(name, was_authorized=before)

    async def _authorize(self, info: Any) -> None:
        if not info.is_authorized:
            info = await self._recorded(info, "user.approve")
        # with the hub's own user record, so that its tokens and groups can be made before the first login
        self._record_of(info.username)
        info.is_authorized = True
        self.db.commit()

    async def _deauthorize(self, info: Any) -> None:
        if info.is_authorized:
            self._check_may_close(info)
            info = await self._removal_recorded(info, "user.deactivate", check=self._check_may_close)
            info.is_authorized = False
            self.db.commit()
        # also of who is shut out already: whoever did that may have been killed before this
        await self._end_all_of(info.username)

    async def _password(self, info: Any) -> None:
        body = self._body()
        self._needed(body, "password")
        self._check_may_touch(info)
        if self.current_user.kind == "user" and self.current_user.name == info.username:
            raise AccountRefused(
                msg("you change your own password on the page that asks for the present one"),
                "Forbidden",
                403,
            )
        self.authenticator.check_password_rule(body["password"])
        info = await self._recorded(info, "user.password", check=self._check_may_touch)
        await self.authenticator.set_password(info.username, body["password"])
        await self._end_all_of(info.username)

    async def _logout(self, info: Any) -> None:
        self._check_may_touch(info)
        info = await self._removal_recorded(info, "user.logout", check=self._check_may_touch)
        self.db.commit()
        await self._end_all_of(info.username)

    async def _stop(self, info: Any) -> None:
        self._check_may_touch(info)
        info = await self._removal_recorded(info, "user.stop_servers", check=self._check_may_touch)
        self.db.commit()
        user = self.find_user(info.username)
        if user is not None:
            await end_servers(self, user)

    async def _admin(self, info: Any) -> None:
        body = self._body()
        self._needed(body, "admin")
        _check_is_approved(info)
        self._check_may_touch_admins()
        if body["admin"]:
            info = await self._recorded(info, "user.admin", check=_check_is_approved, admin=True)
        else:
            self._check_may_be_no_admin(info)
            info = await self._removal_recorded(
                info, "user.admin", check=self._check_may_be_no_admin, admin=False
            )
        user = self._record_of(info.username)
        user.admin = body["admin"]
        assign_default_roles(self.db, entity=user)
        self.db.commit()

    def _check_may_be_no_admin(self, info: Any) -> None:
        user = orm.User.find(self.db, info.username)
        if user is not None and user.admin:
            self._check_may_close(info)

    def _check_may_touch(self, info: Any) -> None:
        user = orm.User.find(self.db, info.username)
        if user is not None and user.admin:
            self._check_may_touch_admins()


class AccountItem(_Accounts):
    """One account."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def get(self, name: str) -> None:
        """Show it."""
        self._write(self._info(name).username)

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def delete(self, name: str) -> None:
        """Delete it. The user's files stay."""
        info = self._info(name)
        self._check_may_close(info)
        info = await self._removal_recorded(info, "user.delete", check=self._check_may_close)
        name = info.username
        info.is_authorized = False
        self.db.commit()
        await self._end_all_of(name)
        user = self.find_user(name)
        if user is None:
            records.forget(self.db, name)
            self.db.delete(info)
            self.db.commit()
        else:
            await maybe_future(self.authenticator.delete_user(user))
            await user.delete_spawners()
            self.users.delete(user)
        self.set_status(204)


def _check_is_approved(info: Any) -> None:
    if not info.is_authorized:
        raise AccountRefused(
            msg("{username} is not approved; approve the account first", username=info.username),
            "WrongState",
            409,
        )


def handlers() -> list[tuple[Any, ...]]:
    """List the routes below the hub's prefix."""
    base = r"/api/mlp/accounts"
    return [
        (base, AccountList),
        (base + r":lot", AccountLot),
        (base + r":find", AccountFind),
        (base + r"/([^/]+)/(authorize|deauthorize|password|logout|stop|admin)", AccountAction),
        (base + r"/([^/]+)", AccountItem),
    ]
