"""Where `mlp login` gets its token: a page on which a person says yes, and the exchange of the code that it makes.

    GET  /hub/mlp-login?challenge=&machine=&redirect_uri=&state=&days=     the question
    POST /hub/mlp-login                                                    yes: on to `redirect_uri`, or the code is shown
    GET  /hub/api/mlp/cli-login                                            200 {"device": null, or where it begins}
    POST /hub/api/mlp/cli-token {"code", "verifier", "redirect_uri"}       201 {"token", "user", "expires_in"}

It works with whatever a person logs in by, because all of that is done before the page is shown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from jupyterhub import orm
from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.handlers import BaseHandler, default_handlers
from jupyterhub.utils import isoformat
from tornado import web
from tornado.httputil import url_concat

from mlp_hub.api.edge.connections import address_of
from mlp_hub.api.edge.limits import Limiter, Rate
from mlp_hub.domain.text import storable
from mlp_hub.hub_integration.pages.language import said
from mlp_hub.hub_integration.scopes import USER_SCOPES
from mlp_hub.hub_integration.tokens.cli_codes import SPENT, TYPED_S, Asked, Codes, Wrong
from mlp_hub.hub_integration.tokens.tokens import take_back, too_many
from mlp_hub.settings import Settings
from mlp_hub.unix_sockets import url_of
from mlp_language.message import Message, msg, to_data
from mlp_spawner.errors import ServiceRefused, ServiceUnreachable
from mlp_spawner.quota.service_client import ServiceClient

PAGE = "/mlp-login"
EXCHANGE = r"/api/mlp/cli-token"
WAYS = r"/api/mlp/cli-login"
_FIELD_MAX = 1024
_DAY_S = 24 * 3600
RATES = {"exchange": Rate(0.2, 20)}
"""Codes that one address may try: a right one does not count."""
_NOT_WRITTEN = msg("No token was made: the platform's service does not answer, try again")
MAY_NOT = msg("this account may not log in")


class TerminalLoginPage(BaseHandler):  # type: ignore[misc]  # jupyterhub is untyped
    """Page where a person decides whether `mlp` on a machine gets a token of theirs."""

    codes: Codes

    async def _page(self, status: int = 200, **shown: Any) -> None:
        self.set_status(status)
        # what stands here is a secret, or leads to one
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")
        self.finish(await self.render_template("mlp-login.html", **shown))

    async def _asked(self, given: Any) -> Asked | None:
        try:
            return Asked.from_fields(lambda name: given(name, "")[: _FIELD_MAX + 1])
        except Wrong as wrong:
            await self._page(400, error=said(self, wrong.message))
            return None

    @web.authenticated
    async def get(self) -> None:
        """Ask."""
        asked = await self._asked(self.get_query_argument)
        if asked is not None:
            await self._page(asked=asked, for_name=self.current_user.name)

    @web.authenticated
    async def post(self) -> None:
        """Make the code that was said yes to, and have the browser bring it, or show it."""
        asked = await self._asked(self.get_body_argument)
        if asked is None:
            return
        user = self.current_user
        code = self.codes.make(user.name, user.cookie_id, asked)
        if asked.redirect_uri:
            self.set_header("Cache-Control", "no-store")
            self.set_header("Referrer-Policy", "no-referrer")
            self.redirect(url_concat(asked.redirect_uri, {"code": code, "state": asked.state}))
        else:
            await self._page(asked=asked, code=code, minutes=int(TYPED_S // 60))


class TokenGiver(APIHandler):  # type: ignore[misc]
    """Handler that gives a terminal its token.

    Nobody is logged in here, and the caller is identified by its code or tokens.
    """

    limiter: Limiter
    service: ServiceClient

    async def post(self) -> None:
        """Give the token to an authorised caller; only refused requests count against its address."""
        source = address_of(self.request)
        wait = self.limiter.take_token("exchange", source)
        if wait:
            self.set_header("Retry-After", str(wait))
            self.refuse(429, msg("Too many codes from your address. Try again in {wait} s.", wait=wait))
            return
        body = self.get_json_body()
        given = body if isinstance(body, dict) else {}
        try:
            user, machine, days = await self.granted(lambda name: _text(given.get(name)))
        except Wrong as wrong:
            self.refuse(403, wrong.message)
            return
        self.limiter.return_token("exchange", source)
        await self._give(user, machine, days)

    async def granted(self, given: Callable[[str], str]) -> tuple[Any, str, int]:
        """Return who the token is of, for which machine and how many days; raise Wrong."""
        raise NotImplementedError

    async def let_in(self, user: Any) -> Any:
        """Return a user who may log in now; raise Wrong where they may not, or there is none."""
        if user is None or not await self.authenticator.refresh_user(user, self):
            raise Wrong(MAY_NOT)
        return user

    async def _give(self, user: Any, machine: str, days: int) -> None:
        """Give the token, when it is written down that it is given."""
        lasts = days * _DAY_S
        lasts = min(lasts, self.settings.get("token_expires_in_max_seconds") or lasts)
        made = user.new_api_token(note=f"mlp on {machine}", expires_in=lasts, scopes=list(USER_SCOPES))
        token = orm.APIToken.find(self.db, made)
        if many := too_many(self.db, user.orm_user):
            take_back(self.db, token)
            if many.wait:
                self.set_header("Retry-After", str(many.wait))
            self.refuse(429, many.message)
            return
        try:
            await self.service.token_made(
                user.name,
                actor=user.name,
                note=token.note,
                scopes=", ".join(sorted(token.scopes)),
                expires=isoformat(token.expires_at),
            )
        except (ServiceUnreachable, ServiceRefused) as error:
            self.log.warning("A token for %s is not written down, so it is not given: %s", user.name, error)
            take_back(self.db, token)
            self.refuse(503, _NOT_WRITTEN)
            return
        self.log.info("mlp on %s has a token of %s", machine, user.name)
        self.set_status(201)
        self.set_header("Cache-Control", "no-store")
        self.write(json.dumps({"token": made, "user": user.name, "expires_in": lasts}))

    def refuse(self, status: int, message: Message) -> None:
        """Answer with a refusal of a token, and its reason."""
        self.set_status(status)
        text = said(self, message)
        body = {"status": status, "message": text, "msg": text, "detail": to_data(message)}
        self.finish(json.dumps({**body, "reason": "Forbidden"}))


class CodeExchange(TokenGiver):
    """Exchange of a code for a token; the caller is identified by the code and its verifier alone."""

    codes: Codes

    async def granted(self, given: Callable[[str], str]) -> tuple[Any, str, int]:
        """Return who said yes, unless they may not log in any more, or have logged out everywhere since."""
        granted = self.codes.redeem_code(given("code"), given("verifier"), given("redirect_uri"))
        user = await self.let_in(self.find_user(granted.user))
        if user.cookie_id != granted.session_mark:
            raise Wrong(SPENT)
        return user, granted.asked.machine, granted.asked.days


class LoginWays(APIHandler):  # type: ignore[misc]
    """First request of `mlp login`: `flow` is the provider's device flow, if any (`providers/login/device.py`)."""

    flow: Any = None

    async def get(self) -> None:
        """Return the other way to log in than the browser's."""
        self.finish(json.dumps({"device": None if self.flow is None else await self.flow.device_endpoints()}))


def _text(value: object) -> str:
    """Return a text that was sent, or an empty one if it cannot be part of a token or code."""
    return value if isinstance(value, str) and storable(value) else ""


def install(settings: Settings) -> None:
    """Add the page and the exchange."""
    TerminalLoginPage.codes = CodeExchange.codes = Codes(time.monotonic)
    TokenGiver.limiter = Limiter(time.monotonic, RATES)
    TokenGiver.service = ServiceClient(url_of(settings.service_at), settings.secret("spawner_token"))
    default_handlers.extend([(PAGE, TerminalLoginPage), (EXCHANGE, CodeExchange), (WAYS, LoginWays)])
