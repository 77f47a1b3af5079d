"""Logging in through the hub: OAuth's code flow with PKCE (S256), a signed state and a nonce; and out again.

A browser that the hub knows is not asked anything, so no frame may do this: only a page that its person sees.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
import time
from urllib.parse import urlencode

import msgspec

from mlp_hub.api.auth.authentication import Unauthorized, check_browser, may_enter
from mlp_hub.api.auth.principal import CallerKind
from mlp_hub.api.edge import answers
from mlp_hub.api.edge.call import BASE
from mlp_hub.api.edge.connections import address_of
from mlp_hub.api.edge.reader import reader_of
from mlp_hub.domain.errors import Refused
from mlp_hub.web.pages import Page
from mlp_language.message import msg

CALLBACK = "/oauth_callback"
CLIENT_ID = "service-mlp"
STATE_S = 600
NEXT_LONGEST = 2000
# what stays below our own pages, whatever a browser makes of it: no scheme, no `//`, no `\`, no control
# characters, no dot segments
_NEXT = re.compile(r"/(?!/)(?:[A-Za-z0-9_~!$&'()*+,;=:@%?#.-]|/(?!/))*")
_DOTS = re.compile(r"(?:^|/)(?:\.|%2e){1,2}(?:[/?#]|$)", re.IGNORECASE)


class LoginState(msgspec.Struct):
    """Signed state that the login passes through the hub and back."""

    nonce: str
    next: str
    until: float


def safe_next(wanted: str, pages: str = BASE) -> str:
    """Return where to go after the login: below our pages, which begin with `pages`, or their home."""
    ours = len(wanted) <= NEXT_LONGEST and wanted.startswith(f"{pages}/")
    if not ours or not _NEXT.fullmatch(wanted[len(pages) :]) or _DOTS.search(wanted):
        return f"{pages}/"
    return wanted


def sign(secret: bytes, state: LoginState) -> str:
    """Make the state parameter."""
    data = base64.urlsafe_b64encode(msgspec.json.encode(state)).decode().rstrip("=")
    return f"{data}.{_mac(secret, data)}"


def verify(secret: bytes, text: str, now: float) -> LoginState | None:
    """Read a state parameter; None when it is not ours or too old."""
    data, _, mac = text.partition(".")
    if len(text) > 8000 or not text.isascii() or not hmac.compare_digest(mac, _mac(secret, data)):
        return None
    try:
        state = msgspec.json.decode(base64.urlsafe_b64decode(data + "=" * (-len(data) % 4)), type=LoginState)
    except (ValueError, msgspec.MsgspecError):
        return None
    return state if now <= state.until else None


class _Oauth(Page):
    """Common part of both ends of the login: the cookie that proves that this browser began it."""

    def cookie_of(self, state: LoginState) -> str:
        prefix = "__Host-" if self.service.config.host_cookies else ""
        return f"{prefix}mlp-oauth-{state.nonce}"

    @property
    def state_path(self) -> str:
        return "/" if self.service.config.host_cookies else self.callback

    @property
    def callback(self) -> str:
        return f"{self.base}{CALLBACK}"


class LoginPage(_Oauth):
    """Sends the browser to the hub."""

    def get(self) -> None:
        """Begin; `next` says where to come back to."""
        config = self.service.config
        if self.request.headers.get("Sec-Fetch-Dest", "document") != "document":
            self.message(403, msg("Logins cannot be embedded"), msg("A login needs its own page."))
            return
        state = LoginState(
            secrets.token_urlsafe(12),
            safe_next(self.get_query_argument("next", ""), self.base),
            time.time() + STATE_S,
        )
        verifier = secrets.token_urlsafe(48)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        self.set_cookie(
            self.cookie_of(state),
            verifier,
            path=self.state_path,
            max_age=STATE_S,
            httponly=True,
            secure=config.secure_cookies,
            samesite="Lax",
        )
        query = {
            "client_id": CLIENT_ID,
            "redirect_uri": self.callback,
            "response_type": "code",
            "state": sign(config.cookie_secret, state),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        self.redirect(f"{config.hub_prefix}/api/oauth2/authorize?{urlencode(query)}")


class Callback(_Oauth):
    """Where the hub sends the browser back to, with a code."""

    async def get(self) -> None:
        """Exchange the code for a token, begin a session, redirect."""
        config, service = self.service.config, self.service
        state = verify(config.cookie_secret, self.get_query_argument("state", ""), time.time())
        verifier = self.get_cookie(self.cookie_of(state)) if state is not None else None
        code = self.get_query_argument("code", "")
        if state is None or verifier is None:
            # a link that somebody else made, or one that is too old
            self.message(
                403, msg("The login could not be finished"), msg("It was started elsewhere, or too long ago.")
            )
            return
        self.clear_cookie(self.cookie_of(state), path=self.state_path, secure=config.secure_cookies)
        if not code:
            self.message(
                403,
                msg("The login was refused"),
                msg("The hub did not let you in."),
                f"{config.hub_prefix}/home",
                msg("Hub"),
            )
            return
        token = await service.hub.exchange_code(code, verifier, self.callback)
        principal = await service.auth.identify_new(token) if token is not None else None
        if (
            token is None
            or principal is None
            or principal.kind is not CallerKind.USER
            or not may_enter(principal)
        ):
            self.message(
                403, msg("The login could not be finished"), msg("The hub did not confirm who you are.")
            )
            return
        await service.sessions.end(self.get_cookie(service.sessions.cookie, "") or "-")
        session = await service.sessions.create(principal.name, token)
        self.set_cookie(
            service.sessions.cookie,
            session.id,
            path=config.cookie_path,
            max_age=round(service.sessions.lifetime_s),
            httponly=True,
            secure=config.secure_cookies,
            samesite="Lax",
        )
        self.redirect(state.next)


class Logout(Page):
    """Ends the session here; the hub's own page ends all others."""

    async def post(self) -> None:
        """End it and revoke its token. Needs the session's XSRF token like all that changes something."""
        self.set_header("Content-Type", answers.JSON)
        try:
            credential = await self.credential()
            principal = await self.service.auth.identify(credential)
            check_browser(self.request.headers, "POST", principal)
        except (Unauthorized, Refused) as err:
            status, body, _ = answers.of_error(err, "logout", await reader_of(self.request.headers))
            self.service.refusals.note(self.request, status, body.get("reason", ""), address_of(self.request))
            self.set_status(status)
            self.finish(answers.encode(body))
            return
        await self.service.sessions.end(credential.session)
        self.service.auth.forget(credential.token)
        config = self.service.config
        self.clear_cookie(self.service.sessions.cookie, path=config.cookie_path, secure=config.secure_cookies)
        await self.service.hub.drop_token(credential.token)
        self.finish(answers.encode({"next": f"{self.service.config.hub_prefix}/logout"}))

    def get(self) -> None:
        """Send a person to the hub's page, which asks nothing of another site's making."""
        self.redirect(f"{self.service.config.hub_prefix}/logout")


def _mac(secret: bytes, data: str) -> str:
    return hmac.new(secret, b"mlp-oauth-state:" + data.encode(), hashlib.sha256).hexdigest()
