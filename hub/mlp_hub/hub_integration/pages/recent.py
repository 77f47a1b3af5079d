"""Recent logins on the hub's side: stored when a password was entered, required by sensitive actions.

JupyterHub's own pages and API make tokens, delete people and make them administrators for anyone
with its cookie.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from jupyterhub.apihandlers import users
from jupyterhub.handlers import BaseHandler, default_handlers
from jupyterhub.handlers.login import LogoutHandler
from jupyterhub.handlers.pages import TokenPageHandler
from jupyterhub.utils import maybe_future
from tornado import web
from tornado.httputil import url_concat

from mlp_hub.api.auth.recent import CONFIRM, COOKIE, RECENT_S, is_recent, sign
from mlp_hub.hub_integration.accounts import accounts
from mlp_hub.hub_integration.accounts.logins import ENTERED
from mlp_hub.hub_integration.pages import pages
from mlp_hub.hub_integration.pages.language import said
from mlp_hub.hub_integration.providers.login.paths import confirm_url
from mlp_hub.hub_integration.tokens import cli_login
from mlp_hub.settings import Settings
from mlp_language.message import msg

_FIELD_MAX = 1024
_GUARDED: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (users.UserTokenListAPIHandler, ("post",)),
    (users.UserListAPIHandler, ("post",)),
    (users.UserAPIHandler, ("post", "patch", "delete")),
    (accounts.AccountList, ("post",)),
    (accounts.AccountAction, ("post",)),
    (accounts.AccountItem, ("delete",)),
    (pages.OtherPasswordPage, ("post",)),
    (cli_login.TerminalLoginPage, ("post",)),
)
_PAGES: tuple[Any, ...] = (TokenPageHandler, pages.OtherPasswordPage, cli_login.TerminalLoginPage)
_ENDS = ((LogoutHandler, "get"), (pages.LogoutEverywherePage, "post"))
Method = Callable[..., Any]


class Recent:
    """How recent logins are kept by this hub."""

    def __init__(self, settings: Settings) -> None:
        origins = settings.origins
        self._secret = settings.secret("cookie_secret").encode()
        cookie = origins.cookie(f"{COOKIE}-{settings.port}")
        self._secure = origins.guarded_cookies or origins.platform.startswith("https:")
        # as it is for a `__Host-` cookie; else for the hub and the service, so that a notebook server on this name gets none
        self._cookies = (
            {cookie: "/"}
            if origins.guarded_cookies
            else {cookie: f"{settings.base}/services/mlp/", f"{cookie}-hub": f"{settings.base}/hub/"}
        )

    def note(self, handler: Any, user: str, at: float) -> None:
        """Set the cookie in the browser that a password was entered in, at this time."""
        for name, path in self._cookies.items():
            handler.set_cookie(
                name,
                sign(self._secret, user, at),
                path=path,
                max_age=RECENT_S,
                httponly=True,
                secure=self._secure,
                samesite="Strict",
            )

    def forget(self, handler: Any) -> None:
        """Take it out of the browser in which a person logs out."""
        for name, path in self._cookies.items():
            handler.clear_cookie(name, path=path, httponly=True, secure=self._secure, samesite="Strict")

    def holds(self, handler: Any) -> bool:
        """Return whether the caller may continue: a program with a token, or a browser with a recent login."""
        user = handler.current_user
        if user is None or getattr(handler, "_token_authenticated", False):
            return True  # what it may is asked next
        value = handler.get_cookie(list(self._cookies)[-1], "")
        return is_recent(self._secret, value, user.name, time.time())


class ConfirmPage(BaseHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Where a person enters the password again."""

    def initialize(self, recent: Recent) -> None:
        """Take where it is noted."""
        self._recent = recent

    async def _page(self, *, error: str = "", done: bool = False, status: int = 200) -> None:
        self.set_status(status)
        self.finish(
            await self.render_template(
                "confirm.html",
                for_name=self.current_user.name,
                error=error,
                done=done,
                minutes=RECENT_S // 60,
            )
        )

    @web.authenticated
    async def get(self) -> None:
        """Show the form, or where passwords are entered elsewhere, go there."""
        if self._is_managed():
            self.redirect(confirm_url(self.hub.base_url, self._next() or f"{self.hub.base_url}home"))
            return
        if self.authenticator.login_service or self.authenticator.auto_login:
            url = self.authenticator.login_url(self.hub.base_url)
            self.redirect(url_concat(url, {"next": self._next() or f"{self.hub.base_url}home"}))
            return
        await self._page()

    @web.authenticated
    async def post(self) -> None:
        """Compare the password and note it."""
        if self._is_managed():
            raise web.HTTPError(405)
        name = self.current_user.name
        password = self.get_body_argument("password", "", strip=False)[:_FIELD_MAX]
        try:
            found = await self.authenticator.get_authenticated_user(
                self, {"username": name, "password": password}
            )
        except web.HTTPError as refused:
            await self._page(error=refused.log_message or "", status=refused.status_code)
            return
        if not found or found["name"] != name:
            await self._page(error=said(self, msg("The password is not right.")), status=403)
            return
        self._recent.note(self, name, time.time())
        if self._next():
            self.redirect(self._next())
        else:
            await self._page(done=True)

    def _is_managed(self) -> bool:
        managed_by = getattr(
            self.authenticator, "managed_by", None
        )  # it may be an authenticator of the operator's
        return bool(managed_by and managed_by(self.current_user.name))

    def _next(self) -> str:
        """Return the page to continue with: one of the hub's or of the platform's, never of a user's server."""
        wanted = str(self._validate_next_url(self.get_query_argument("next", "")))
        base = self.hub.base_url
        ours = wanted.startswith((base, f"{self.base_url}services/mlp/")) and ".." not in wanted
        return wanted if ours and not wanted.startswith(f"{base}user") else ""


def install(settings: Settings) -> None:
    """Add the page, and have logins noted and asked for, by whichever authenticator."""
    recent = Recent(settings)
    default_handlers.append((CONFIRM, ConfirmPage, {"recent": recent}))
    login = BaseHandler.login_user

    @wraps(login)
    async def noted(self: Any, data: Any = None) -> Any:
        user = await login(self, data)
        entered = getattr(
            self, ENTERED, time.time()
        )  # a provider may have let them in for a login of this morning
        if user is not None and entered is not None:
            recent.note(self, user.name, min(entered, time.time()))
        return user

    setattr(BaseHandler, "login_user", noted)  # noqa: B010 - a method of a typed class
    for cls, name in _ENDS:
        setattr(cls, name, _forgetting(getattr(cls, name), recent))
    for cls, names in _GUARDED:
        for name in names:
            setattr(cls, name, _guarded(getattr(cls, name), recent, _refuse))
    for page in _PAGES:
        page.get = _guarded(page.get, recent, _ask)


def _guarded(
    method: Method, recent: Recent, otherwise: Callable[[Any], None]
) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def guarded(self: Any, *args: Any, **kwargs: Any) -> Any:
        if recent.holds(self):
            return await maybe_future(method(self, *args, **kwargs))
        return otherwise(self)

    return guarded


def _forgetting(method: Method, recent: Recent) -> Callable[..., Awaitable[Any]]:
    @wraps(method)
    async def forgetting(self: Any, *args: Any, **kwargs: Any) -> Any:
        recent.forget(self)
        return await maybe_future(method(self, *args, **kwargs))

    return forgetting


def _refuse(handler: Any) -> None:
    where = f"{handler.hub.base_url.rstrip('/')}{CONFIRM}"
    text = msg(
        "This needs a password that was entered recently: enter it at {where} and do it again", where=where
    )
    raise web.HTTPError(403, said(handler, text))


def _ask(handler: Any) -> None:
    where = f"{handler.hub.base_url.rstrip('/')}{CONFIRM}"
    handler.redirect(url_concat(where, {"next": handler.request.uri}))
