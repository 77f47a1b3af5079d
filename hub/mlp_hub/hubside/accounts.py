"""The accounts API of the hub, `/hub/api/mlp/accounts`: how the platform lists, makes and approves accounts.

    GET    /accounts                     200 [{"name", "authorized", "admin", "created"}]
    POST   /accounts                     201 {"name", "authorized", "admin", "created"}
    POST   /accounts/{name}/authorize    200    /accounts/{name}/deauthorize    200
    DELETE /accounts/{name}              204

All need the scope `admin:users`. An account that is made without `authorized` is somebody's sign-up, from `address`,
and held to the rules of the page. A refusal is `{"status", "message", "msg", "reason"}` with status 400, 403, 404,
409 or 429. An account that is deauthorised or deleted loses its sessions, its tokens and its servers first.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from jupyterhub import orm
from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.roles import assign_default_roles
from jupyterhub.scopes import needs_scope
from jupyterhub.utils import maybe_future, new_token
from nativeauthenticator.orm import UserInfo

from mlp_hub.hubside import records
from mlp_hub.hubside.authenticator import AccountRefused

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
            body = {
                "status": refused.status,
                "message": refused.msg,
                "msg": refused.msg,
                "reason": refused.reason,
            }
            self.finish(json.dumps(body))

    return wrapped


class _Accounts(APIHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """What all routes share."""

    def _info(self, name: str) -> Any:
        info = UserInfo.find(self.db, self.authenticator.normalize_username(name))
        if info is None:
            raise AccountRefused(f"there is no account {name}", "NotFound", 404)
        return info

    def _model(self, info: Any, created: dict[str, str]) -> dict[str, Any]:
        user = orm.User.find(self.db, info.username)
        since = created.get(info.username)
        if since is None and user is not None:
            since = f"{user.created.isoformat(timespec='seconds')}Z"
        return {
            "name": info.username,
            "authorized": bool(info.is_authorized),
            "admin": bool(user and user.admin),
            "created": since,
        }

    def _check_may_touch_admins(self) -> None:
        # services that hold admin:users are the platform's own; a person needs to be an administrator
        if self.current_user.kind == "user" and not self.current_user.admin:
            raise AccountRefused(
                "only an administrator may change administrators' accounts", "Forbidden", 403
            )

    def _check_may_close(self, info: Any) -> None:
        """Keep the last administrator, and who asks, from locking themselves out."""
        user = orm.User.find(self.db, info.username)
        if self.current_user.kind == "user" and self.current_user.name == info.username:
            raise AccountRefused("you cannot close your own account", "Forbidden", 403)
        if user is None or not user.admin:
            return
        self._check_may_touch_admins()
        admins = {u.name for u in self.db.query(orm.User).filter(orm.User.admin)}
        left = [
            i for i in UserInfo.all_users(self.db) if i.is_authorized and i.username in admins - {user.name}
        ]
        if not left:
            raise AccountRefused(f"{user.name} is the only administrator left", "Conflict", 409)

    async def _end_all_of(self, name: str) -> None:
        """End sessions, tokens and servers of a user."""
        user = self.find_user(name)
        if user is None:
            return
        user.orm_user.cookie_id = new_token()
        for token in list(user.orm_user.api_tokens):
            self.db.delete(token)
        for code in self.db.query(orm.OAuthCode).filter(orm.OAuthCode.user_id == user.orm_user.id):
            self.db.delete(code)
        self.db.commit()
        for server_name, spawner in list(user.spawners.items()):
            if spawner.pending == "spawn" and spawner._spawn_future:  # noqa: SLF001 - the hub has no public way
                spawner._spawn_future.cancel()  # noqa: SLF001
            if spawner.ready:
                await self.stop_single_user(user, server_name)
            elif spawner.active and spawner.pending != "stop":
                await user.stop(server_name)


class AccountList(_Accounts):
    """All accounts."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        """List them, by name."""
        created = records.created(self.db)
        infos = sorted(UserInfo.all_users(self.db), key=lambda info: str(info.username))
        self.write(json.dumps([self._model(info, created) for info in infos]))

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def post(self) -> None:
        """Make one."""
        body = self.get_json_body()
        if not isinstance(body, dict):
            raise AccountRefused("the body must be an object with name, password, authorized, admin")
        for key, value in body.items():
            if key not in _FIELDS or not isinstance(value, _FIELDS[key]):
                raise AccountRefused(f"{key} is not one of {', '.join(_FIELDS)}, or not of its type")
        if missing := {"name", "password"} - set(body):
            raise AccountRefused(f"{' and '.join(sorted(missing))} is missing")
        admin = body.get("admin", False)
        authorized = body.get("authorized", False) or admin
        if admin:
            self._check_may_touch_admins()
        if authorized:
            name = await self._make(body["name"], body["password"], admin=admin)
        else:
            name = await self.authenticator.sign_up(body["name"], body["password"], body.get("address", ""))
        self.set_status(201)
        self.write(json.dumps(self._model(self._info(name), records.created(self.db))))

    async def _make(self, name: str, password: str, *, admin: bool) -> str:
        hashed = await self.authenticator.prepare_account(name, password)
        # before the account: should the hub die in between, the same request makes the rest
        user = self.user_from_username(name)
        user.admin = admin
        assign_default_roles(self.db, entity=user.orm_user)
        self.db.commit()
        self.authenticator.store_account(name, hashed, authorized=True)
        return name


class AccountAction(_Accounts):
    """Approval, and its withdrawal."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def post(self, name: str, action: str) -> None:
        """Do it; doing it twice is fine."""
        info = self._info(name)
        if action == "authorize":
            # the hub's own user record, so that its tokens and groups can be made before the first login
            user = self.user_from_username(info.username)
            await maybe_future(self.authenticator.add_user(user))
            info.is_authorized = True
            self.db.commit()
        elif info.is_authorized:
            self._check_may_close(info)
            info.is_authorized = False
            self.db.commit()
            await self._end_all_of(info.username)
        self.write(json.dumps(self._model(info, records.created(self.db))))


class AccountItem(_Accounts):
    """One account."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    @_answers_refusals
    async def delete(self, name: str) -> None:
        """Delete it. The user's files stay."""
        info = self._info(name)
        self._check_may_close(info)
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


def handlers() -> list[tuple[Any, ...]]:
    """List the routes below the hub's prefix."""
    base = r"/api/mlp/accounts"
    return [
        (base, AccountList),
        (base + r"/([^/]+)/(authorize|deauthorize)", AccountAction),
        (base + r"/([^/]+)", AccountItem),
    ]
