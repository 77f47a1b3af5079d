"""Pages for signing up and changing a password."""

from __future__ import annotations

from typing import Any

from jupyterhub.handlers import BaseHandler
from jupyterhub.handlers.login import LoginHandler
from jupyterhub.scopes import needs_scope
from nativeauthenticator.orm import UserInfo
from tornado import web

from mlp_hub.api.connections import address_of
from mlp_hub.hubside.authenticator import AccountRefused
from mlp_hub.hubside.names import NAME_MAX, NAME_RULE

_FIELD_MAX = 1024


class SignUpPage(BaseHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Where a person asks for an account."""

    async def _page(self, *, done: str = "", error: str = "", username: str = "", status: int = 200) -> None:
        self.set_status(status)
        rules = {
            "name_max": NAME_MAX,
            "name_rule": NAME_RULE,
            "password_min": self.authenticator.minimum_password_length,
        }
        self.finish(
            await self.render_template("signup.html", done=done, error=error, username=username, **rules)
        )

    def _check_open(self) -> None:
        if not self.authenticator.enable_signup:
            raise web.HTTPError(404)

    async def get(self) -> None:
        """Show the form."""
        self._check_open()
        await self._page()

    async def post(self) -> None:
        """Make the account, or show the form again with what was wrong."""
        self._check_open()
        username = self.get_body_argument("username", "")[:_FIELD_MAX]
        password = self.get_body_argument("signup_password", "", strip=False)[:_FIELD_MAX]
        again = self.get_body_argument("signup_password_confirmation", "", strip=False)[:_FIELD_MAX]
        if password != again:
            await self._page(error="The two passwords are not the same.", username=username, status=400)
            return
        try:
            name = await self.authenticator.sign_up(username, password, address_of(self.request))
        except AccountRefused as refused:
            await self._page(error=refused.msg, username=username, status=refused.status)
            return
        self.log.info("Account %s waits for approval", name)
        await self._page(done=name, status=201)


class ChangePasswordPage(BaseHandler):  # type: ignore[misc]
    """Where a person changes the own password, and an administrator anybody's."""

    async def _page(
        self, name: str, *, own: bool, done: str = "", error: str = "", status: int = 200
    ) -> None:
        self.set_status(status)
        self.finish(
            await self.render_template(
                "change-password.html",
                for_name=name,
                own=own,
                done=done,
                error=error,
                password_min=self.authenticator.minimum_password_length,
            )
        )

    async def _change(self, name: str, *, own: bool) -> None:
        if UserInfo.find(self.authenticator.db, name) is None:
            raise web.HTTPError(404, f"There is no account {name}")
        new = self.get_body_argument("new_password", "", strip=False)[:_FIELD_MAX]
        again = self.get_body_argument("new_password_confirmation", "", strip=False)[:_FIELD_MAX]
        error = "" if new == again else "The two passwords are not the same."
        if own and not error:
            old = self.get_body_argument("old_password", "", strip=False)[:_FIELD_MAX]
            try:
                right = await self.authenticator.authenticate(self, {"username": name, "password": old})
            except web.HTTPError as refused:
                error = refused.log_message or "The present password is not right."
            else:
                error = "" if right else "The present password is not right."
        if not error:
            try:
                self.authenticator.check_password_rule(new)
            except AccountRefused as refused:
                error = refused.msg
        if error:
            await self._page(name, own=own, error=error, status=400)
            return
        self.authenticator.change_password(name, new)
        await self._page(name, own=own, done="The password is changed.")


class OwnPasswordPage(ChangePasswordPage):
    """Change the own password; the present one is asked for."""

    @web.authenticated
    async def get(self) -> None:
        """Show the form."""
        await self._page(self.current_user.name, own=True)

    @web.authenticated
    async def post(self) -> None:
        """Change it."""
        await self._change(self.current_user.name, own=True)


class OtherPasswordPage(ChangePasswordPage):
    """An administrator sets the password of somebody who forgot it."""

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str) -> None:
        """Show the form."""
        if UserInfo.find(self.authenticator.db, user_name) is None:
            raise web.HTTPError(404, f"There is no account {user_name}")
        await self._page(user_name, own=False)

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    async def post(self, user_name: str) -> None:
        """Change it."""
        await self._change(user_name, own=False)


def handlers() -> list[tuple[Any, ...]]:
    """List the pages below the hub's prefix."""
    return [
        (r"/login", LoginHandler),
        (r"/signup", SignUpPage),
        (r"/change-password", OwnPasswordPage),
        (r"/change-password/([^/]+)", OtherPasswordPage),
    ]
