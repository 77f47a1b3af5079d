"""Pages for signing up, changing a password, and logging out everywhere."""

from __future__ import annotations

from typing import Any

from jupyterhub.handlers import BaseHandler
from jupyterhub.handlers.login import LoginHandler
from jupyterhub.scopes import needs_scope
from nativeauthenticator.orm import UserInfo
from tornado import web

from mlp_hub.api.edge.connections import address_of
from mlp_hub.domain.tenants.account_names import NAME_MAX, NAME_RULE
from mlp_hub.hub_integration.accounts import recording
from mlp_hub.hub_integration.accounts.ending import end_servers, end_sessions
from mlp_hub.hub_integration.accounts.hashing import TooManyAtOnce
from mlp_hub.hub_integration.accounts.refusal import AccountRefused
from mlp_hub.hub_integration.pages.language import said
from mlp_language.message import msg

_FIELD_MAX = 1024
_WRONG = msg("The current password is not right.")
_RESET = msg("The password is set. All logins with the old one have ended.")
_NOT_THE_SAME = msg("The two passwords are not the same.")


class SignUpPage(BaseHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Where a person asks for an account."""

    async def _page(self, *, done: str = "", error: str = "", username: str = "", status: int = 200) -> None:
        self.set_status(status)
        rules = {
            "name_max": NAME_MAX,
            "name_rule": said(self, NAME_RULE),
            "password_min": self.authenticator.minimum_password_length,
        }
        self.finish(
            await self.render_template("signup.html", done=done, error=error, username=username, **rules)
        )

    async def _is_managed(self) -> bool:
        """Show that there is nothing to sign up for where accounts are a provider's."""
        if self.authenticator.enable_signup or not self.authenticator.company:
            return False
        self.set_status(200 if self.request.method == "GET" else 403)
        self.finish(await self.render_template("signup.html", managed_by=self.authenticator.company))
        return True

    def _check_open(self) -> None:
        if not self.authenticator.enable_signup:
            raise web.HTTPError(404)

    async def get(self) -> None:
        """Show the form."""
        if await self._is_managed():
            return
        self._check_open()
        await self._page()

    async def post(self) -> None:
        """Make the account, or show the form again with the error."""
        if await self._is_managed():
            return
        self._check_open()
        username = self.get_body_argument("username", "")[:_FIELD_MAX]
        password = self.get_body_argument("signup_password", "", strip=False)[:_FIELD_MAX]
        again = self.get_body_argument("signup_password_confirmation", "", strip=False)[:_FIELD_MAX]
        if password != again:
            await self._page(error=said(self, _NOT_THE_SAME), username=username, status=400)
            return
        try:
            name = await self.authenticator.sign_up(username, password, address_of(self.request))
        except AccountRefused as refused:
            await self._page(error=said(self, refused.message), username=username, status=refused.status)
            return
        self.log.info("Account %s waits for approval", name)
        await self._page(done=name, status=201)


class ChangePasswordPage(BaseHandler):  # type: ignore[misc]
    """Where a person changes the own password, and an administrator anybody's."""

    async def _end_all_of(self, user: Any) -> None:
        """End all sessions of a user; if the user does it, this browser stays logged in by a new login."""
        end_sessions(self.db, user.orm_user)
        if user.name == self.current_user.name:
            self.set_session_cookie()
            self.set_hub_cookie(user)
            self.__dict__.pop("_xsrf_token", None)  # it was derived from what ended
        await end_servers(self, user)
        self.log.info("All sessions of %s were ended by %s", user.name, self.current_user.name)

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
                managed_by=self.authenticator.managed_by(name),
            )
        )

    async def _change(self, name: str, *, own: bool) -> None:
        before = UserInfo.find(self.authenticator.db, name)
        if before is None:
            raise web.HTTPError(404, said(self, msg("Account {name} does not exist", name=name)))
        if self.authenticator.managed_by(name):
            await self._page(name, own=own, status=403)
            return
        known = before.password
        new = self.get_body_argument("new_password", "", strip=False)[:_FIELD_MAX]
        again = self.get_body_argument("new_password_confirmation", "", strip=False)[:_FIELD_MAX]
        error = "" if new == again else said(self, _NOT_THE_SAME)
        if own and not error:
            error = await self._why_not(name)
        if not error:
            try:
                if not own:
                    self.authenticator.check_password_rule(new)
                    await recording.record(self, name, "user.password")
                await self.authenticator.set_password(name, new, instead_of=known if own else None)
            except AccountRefused as refused:
                error = said(self, refused.message)
        if error:
            await self._page(name, own=own, error=error, status=400)
            return
        user = self.find_user(name)
        if user is not None:
            await self._end_all_of(user)
        done = msg("The password is changed, and all other logins have ended.") if own else _RESET
        await self._page(name, own=own, done=said(self, done))

    async def _why_not(self, name: str) -> str:
        """Say why the owner may not change it: a present password that is wrong, or that was tried too often."""
        old = self.get_body_argument("old_password", "", strip=False)[:_FIELD_MAX]
        try:
            right = await self.authenticator.authenticate(self, {"username": name, "password": old})
        except TooManyAtOnce:
            raise
        except web.HTTPError as refused:
            return refused.log_message or said(self, _WRONG)
        return "" if right else said(self, _WRONG)


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
            raise web.HTTPError(404, said(self, msg("Account {name} does not exist", name=user_name)))
        await self._page(user_name, own=False)

    @needs_scope("admin:users")  # type: ignore[untyped-decorator]
    async def post(self, user_name: str) -> None:
        """Change it."""
        if user_name == self.current_user.name:  # who found a browser open does not know the password
            text = msg("You change your own password on the page that asks for the present one.")
            raise web.HTTPError(403, said(self, text))
        await self._change(user_name, own=False)


class LogoutEverywherePage(ChangePasswordPage):
    """Log out of all other browsers, and end tokens and notebook servers."""

    @web.authenticated
    async def get(self) -> None:
        """Go to where the button is."""
        self.redirect(f"{self.hub.base_url}change-password")

    @web.authenticated
    async def post(self) -> None:
        """Do it."""
        await self._end_all_of(self.current_user)
        await self._page(
            self.current_user.name, own=True, done=said(self, msg("You are logged out everywhere but here."))
        )


def handlers() -> list[tuple[Any, ...]]:
    """List the pages below the hub's prefix."""
    return [
        (r"/login", LoginHandler),
        (r"/logout-everywhere", LogoutEverywherePage),
        (r"/signup", SignUpPage),
        (r"/change-password", OwnPasswordPage),
        (r"/change-password/([^/]+)", OtherPasswordPage),
    ]
