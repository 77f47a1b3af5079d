"""Pages by which a browser logs in with the provider: it is sent there, it comes back, and it leaves."""

from __future__ import annotations

import posixpath
from typing import Any
from urllib.parse import quote, unquote

from jupyterhub.handlers.login import LoginHandler, LogoutHandler

from mlp_hub.hub_integration.accounts import logins
from mlp_hub.hub_integration.accounts.logins import ENTERED
from mlp_hub.hub_integration.accounts.refusal import AccountRefused
from mlp_hub.hub_integration.pages.language import said
from mlp_hub.hub_integration.providers.login.paths import ARRIVE, BEGIN
from mlp_hub.hub_integration.providers.protocols.provider import ARRIVAL, AuthState, TokenRefused
from mlp_hub.hub_integration.providers.protocols.provider_client import ProviderAway, for_people
from mlp_hub.hub_integration.providers.records import provider_sessions
from mlp_language.message import Message, msg

_FIELD_MAX = 4096
_UNKNOWN = msg(
    "This login was not started in this browser, was started too long ago, or was already used. Log in again."
)


class _CompanyPage(LoginHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Common part of both pages: the login page with the error."""

    def set_default_headers(self) -> None:
        """Have nobody keep the page, nor tell others its address, which has a code in it."""
        super().set_default_headers()
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")

    def append_query_parameters(self, url: str, exclude: Any = None) -> str:  # noqa: ARG002
        """Leave out what this page was asked with."""
        return url

    def _argument(self, name: str) -> str:
        return str(self.get_query_argument(name, ""))[:_FIELD_MAX]

    async def _refuse(self, status: int, message: Message, detail: Message | None = None) -> None:
        """Show the page with the remedy for people; `detail` is for readers of the log."""
        self.log.warning("No login with %s: %s", self.authenticator.company, detail or message)
        self.set_status(status)
        if status == 503:
            self.set_header("Retry-After", "10")
        self.finish(await self._render(company_error=said(self, message)))

    async def _refuse_for_now(self, away: ProviderAway) -> None:
        """Show that the provider is the reason, and note for `/health` where the hub's settings are."""
        accounts = self.authenticator
        if away.misconfigured and accounts.watching is not None:
            accounts.watching.refresher.login_refused = away.message
        await self._refuse(503, for_people(accounts.company, away), away.message)

    async def post(self) -> None:
        """Take no form."""
        self.send_error(405)


class BeginPage(_CompanyPage):
    """Sends a browser to the provider: to log in, or to say again who it is (`confirm`)."""

    async def get(self) -> None:
        """Note that a login begins here, and go."""
        accounts, user = self.authenticator, self.current_user
        wanted = self._wanted()
        confirms = user.name if user is not None and self._argument("confirm") else ""
        if user is not None and not confirms:
            self.redirect(wanted or self.get_next_url(user))
            return
        # never of what a request says of itself
        back = f"{accounts.hub_settings.origins.platform}{self.hub.base_url}{ARRIVE}"
        pending = accounts.states.begin(self, accounts.provider.issuer, back, wanted, confirms=confirms)
        try:
            url = await accounts.provider.login_url(pending)
        except ProviderAway as away:
            await self._refuse_for_now(away)
            return
        self.redirect(url)

    def _wanted(self) -> str:
        """Return the page to continue with; never the logout.

        It would not ask first if a page of the hub led there (`leaving.py`).
        """
        wanted = str(self._validate_next_url(self._argument("next")))
        path = posixpath.normpath(unquote(wanted.partition("?")[0].partition("#")[0]))
        return "" if path.startswith(f"{self.hub.base_url}logout") else wanted


class ArrivePage(_CompanyPage):
    """Where the provider leads back to."""

    async def get(self) -> None:
        """Find out who it is, and let them in."""
        accounts = self.authenticator
        pending = accounts.states.take_pending(self, self._argument("state"))
        if pending is None or pending.issuer != accounts.provider.issuer:
            await self._refuse(400, _UNKNOWN)
            return
        if error := self._argument("error"):
            why = self._argument("error_description") or error
            text = msg("{title} did not log you in: {why}", title=accounts.company, why=why[:300])
            await self._refuse(503 if error in ("server_error", "temporarily_unavailable") else 403, text)
            return
        if not (code := self._argument("code")):
            await self._refuse(400, _UNKNOWN)
            return
        try:
            arrival = await accounts.provider.arrived(pending, code, self._argument("iss"))
            setattr(self, ENTERED, arrival.entered_at)
            user = await self.login_user(
                {"username": arrival.identity.claimed_name, ARRIVAL: (arrival, pending)}
            )
        except ProviderAway as away:
            await self._refuse_for_now(away)
        except (TokenRefused, AccountRefused) as refused:
            await self._refuse(403, refused.message)
        else:
            if user is None:
                await self._refuse(403, msg("You may not log in here."))
                return
            self._jupyterhub_user = user
            await self._note_browser(user, arrival.auth_state)
            if accounts.watching is not None:
                await accounts.watching.refresher.welcome(user.name, arrival.identity)
            await self._go_on(str(self._validate_next_url(pending.next)) or self.get_next_url(user))

    async def _note_browser(self, user: Any, state: AuthState) -> None:
        """Keep what a logout in this browser, or the provider's note of one, will need."""
        login, number = logins.digest_of(self), user.orm_user.id
        provider_sessions.note_browser(
            self.db,
            number,
            login=login,
            session=str(state.get("session") or ""),
            hub_session=self.get_session_cookie(),
        )
        await provider_sessions.keep_login(self.db, number, login, state)

    async def _go_on(self, where: str) -> None:
        """Show a page that leads on by itself.

        After a redirect the browser would still be on the way from the provider, and send none of the cookies that are
        not for those who come from elsewhere, as that of a recent login.
        """
        where = quote(where, safe="%/:?#[]@!$&()*+,;=~")
        self.set_header("Refresh", f"0; url={where}")
        self.finish(await self.render_template("arrived.html", where=where))


class LeavePage(LogoutHandler):  # type: ignore[misc]
    """Logs out here, and at the provider."""

    async def handle_logout(self) -> None:
        """Find out where that is, as long as it is known who leaves."""
        self._leaves_to = ""
        user, accounts = self.current_user, self.authenticator
        if user is not None and accounts.managed_by(user.name):
            login = logins.digest_of(self)
            state = dict(await user.get_auth_state() or {})
            mine = provider_sessions.of_browser(self.db, login)
            if own := (await provider_sessions.login_of(self.db, login)).get("id_token"):
                state["id_token"] = own  # of this browser's session, which is the one that ends
            elif mine and mine != state.get("session"):
                state.pop("id_token", None)  # it names another browser's session, which must not end
            provider_sessions.forget_browsers(self.db, login=login)
            self.db.commit()
            back = f"{accounts.hub_settings.origins.platform}{self.hub.base_url}login"
            self._leaves_to = await accounts.provider.logout_url(state, back)

    async def render_logout_page(self) -> None:
        """Go there."""
        if self._leaves_to:
            self.redirect(self._leaves_to)
        else:
            await super().render_logout_page()


def handlers() -> list[tuple[Any, ...]]:
    """List the pages below the hub's prefix."""
    return [(f"/{BEGIN}", BeginPage), (f"/{ARRIVE}", ArrivePage), (r"/logout", LeavePage)]
