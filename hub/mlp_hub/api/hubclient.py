"""The service's own thin client of the hub's REST API; JupyterHub itself is not imported.

The hub is reached over its UNIX socket (`http+unix://%2Fpath...`) or, where the hub is elsewhere, over http(s).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import logging
import math
import secrets
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec
from tornado.httpclient import HTTPError, HTTPRequest, HTTPResponse
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from mlp_hub.api.auth.authentication import TooMany
from mlp_hub.api.auth.principal import CallerKind, Principal, parse_scopes
from mlp_hub.api.edge.one_socket import OneSocket
from mlp_hub.domain.errors import Reason, Refused, Unavailable
from mlp_hub.service.health.problems import Problem
from mlp_language.message import from_data, msg, verbatim

log = logging.getLogger(__name__)
ISSUED_BY_THE_HUB = "JupyterHub"
"""Name by which the hub calls itself where a token is not a login to something else."""
TIMEOUT_S = 10.0
"""Safety: seconds that an answer of the hub is waited for: a hub that hangs does not hang the service."""
LOOK_S = 3.0
"""Tuning: seconds that an answer is waited for to whether the hub is there at all: sooner told, or mistaken more often."""
AGAIN_S = 0.2
"""Tuning: seconds until a hub that takes no connection is asked again: sooner found, or asked more often in vain."""
HEARD_S = 5.0
"""Tuning: seconds after an answer in which the hub counts as there: fewer questions, for how late its end is noticed."""
STOP_TIMEOUT_S = 60.0
"""Safety: seconds that the hub may take to stop a server, which it waits for: a hub that hangs does not hang the request."""
FOUND_AT_ONCE = 500
"""Tuning: names that the hub is asked for at once: fewer requests, for how long others wait behind one."""
DOWN = msg("the hub does not answer; jobs continue, try again in a few seconds")


class HubAccount(msgspec.Struct, frozen=True):
    """An account as the hub knows it."""

    name: str
    authorized: bool
    admin: bool = False
    created: Any = None
    servers: int = 0  # notebook servers that run
    was_authorized: bool = False  # before the act that this answers
    last_activity: datetime | None = None


class Person(msgspec.Struct, frozen=True):
    """Somebody whom the hub lets in."""

    name: str
    admin: bool = False


class HubToken(msgspec.Struct, frozen=True):
    """Token as the hub describes it, without the token itself; times are the hub's, in RFC 3339."""

    id: str
    note: str | None = None
    scopes: list[str] = msgspec.field(default_factory=list)
    created: datetime | None = None
    last_activity: datetime | None = None
    expires_at: datetime | None = None
    oauth_client: str = ISSUED_BY_THE_HUB


class _Tokens(msgspec.Struct):
    api_tokens: list[HubToken]


class _Model(msgspec.Struct):
    name: str
    kind: str = "user"
    scopes: list[str] = msgspec.field(default_factory=list)
    groups: list[str] = msgspec.field(default_factory=list)
    token_id: str | None = None


class _AccountRefusal(msgspec.Struct):
    msg: str = ""
    detail: dict[str, Any] = {}
    reason: str = ""


class _MadeTogether(msgspec.Struct):
    refused: dict[str, _AccountRefusal]


class _Error(msgspec.Struct):
    message: str = ""


class HubClient:
    """Asks the hub who a token belongs to, trades OAuth codes for tokens, keeps accounts.

    `api_url` is the hub's API, e.g. `http+unix://%2Frun%2Fhub.sock/hub/api`; `token` the service's own.
    Whatever the hub cannot answer raises Unavailable. A hub that takes no connection is asked again for `hold_s` seconds: a pod may
    be replaced.
    """

    def __init__(
        self, api_url: str, token: str, client_id: str = "service-mlp", *, hold_s: float = 0.0
    ) -> None:
        self._hold_s = hold_s
        parts = urlsplit(api_url)
        self._token = token
        self._client_id = client_id
        # SimpleAsyncHTTPClient queues above max_clients; a slow hub must not hold every request up for long
        options: dict[str, Any] = {"force_instance": True, "max_clients": 64}
        if parts.scheme == "http+unix":
            options["resolver"] = OneSocket(path=unquote(parts.netloc))
            self._base = f"http://hub{parts.path}"
        else:
            self._base = api_url.rstrip("/")
        self._http = SimpleAsyncHTTPClient(**options)
        self._heard = -math.inf  # of time.monotonic: when the hub last answered
        self._look: asyncio.Future[None] | None = None

    def close(self) -> None:
        """Close the client."""
        self._http.close()

    async def user_of_token(self, token: str) -> Principal | None:
        """Tell who a hub token belongs to and what it may; None when the hub does not know it."""
        answer = await self._ask("GET", "/user", token=token)
        if answer.code in (401, 403, 404):
            return None
        model = self._read(answer, _Model)
        kind = CallerKind.SERVICE if model.kind == "service" else CallerKind.USER
        everywhere, own = parse_scopes(model.name, model.scopes)
        return Principal(
            kind, model.name, everywhere, own, tuple(model.groups), token_id=model.token_id or ""
        )

    async def exchange_code(self, code: str, verifier: str, redirect_uri: str) -> str | None:
        """Trade an OAuth code for the user's token; None when the hub refuses it."""
        form = {
            "client_id": self._client_id,
            "client_secret": self._token,
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": verifier,
        }
        answer = await self._ask("POST", "/oauth2/token", form=form)
        if answer.code >= 400:
            log.warning("the hub refused an OAuth code with %s", answer.code)
            return None
        return str(self._read(answer, dict[str, Any]).get("access_token") or "") or None

    async def new_token(
        self, user: str, scopes: list[str] | None, *, expires_in: int | None, note: str
    ) -> str:
        """Ask the hub for a new token of the user, with these scopes only (None: all of the user's); None: for ever."""
        return (await self.new_token_and_id(user, scopes, expires_in=expires_in, note=note))[0]

    async def new_token_and_id(
        self, user: str, scopes: list[str] | None, *, expires_in: int | None, note: str
    ) -> tuple[str, str]:
        """Ask for a new token, and return it with its id at the hub."""
        body: dict[str, object] = {"note": note}
        if scopes is not None:
            body["scopes"] = scopes
        if expires_in is not None:
            body["expires_in"] = expires_in
        answer = await self._ask("POST", f"/users/{quote(user, safe='')}/tokens", json=body)
        if answer.code in (403, 404):
            raise Refused(Reason.NOT_FOUND, msg("user {user} does not exist", user=user))
        if answer.code == 400:
            with contextlib.suppress(msgspec.MsgspecError):
                said = msgspec.json.decode(answer.body, type=_Error).message
                raise Refused(Reason.INVALID, msg("no token for {user}: {said}", user=user, said=said))
        made = self._read(answer, dict[str, Any])
        return str(made["token"]), str(made["id"])

    async def tokens(self, user: str, *, logins: bool = False) -> list[HubToken]:
        """Return a user's tokens, those of `logins` only if asked for: with one of these the hub ends all of the same kind."""
        answer = await self._ask("GET", f"/users/{quote(user, safe='')}/tokens")
        if answer.code in (403, 404):
            raise Refused(Reason.NOT_FOUND, msg("user {user} does not exist", user=user))
        found: list[HubToken] = self._read(answer, _Tokens).api_tokens
        return [token for token in found if logins or token.oauth_client == ISSUED_BY_THE_HUB]

    async def end_token(self, user: str, token: str) -> bool:
        """Revoke one of the tokens that `tokens` lists; tell whether it was there."""
        path = f"/users/{quote(user, safe='')}/tokens/{quote(token, safe='')}"
        answer = await self._ask("DELETE", path)
        if answer.code >= 400 and answer.code != 404:
            self._read(answer, Any)
        return answer.code < 400

    async def drop_token(self, token: str) -> None:
        """Revoke a user's token by its own right, as well as the hub allows; a hub that is down is not an error."""
        try:
            me = await self._ask("GET", "/user", token=token)
            if me.code == 200:
                model = self._read(me, dict[str, Any])
                name, token_id = (
                    quote(str(model["name"]), safe=""),
                    quote(str(model.get("token_id")), safe=""),
                )
                await self._ask("DELETE", f"/users/{name}/tokens/{token_id}")
        except Unavailable:
            log.warning("a session ended while the hub was down; its token ends by its own lifetime")

    # -------------------------------------------------------------- health

    async def problems(self) -> list[Problem]:
        """Say whether the hub answers; it is asked again if nothing was heard of it for some seconds, once for all."""
        if time.monotonic() - self._heard > HEARD_S:
            if self._look is None:
                self._look = asyncio.ensure_future(self._answers())
                self._look.add_done_callback(self._looked)
            await asyncio.shield(self._look)
        if time.monotonic() - self._heard <= HEARD_S:
            return []
        return [Problem("hub", "HubUnavailable", DOWN)]

    async def _answers(self) -> None:
        with contextlib.suppress(Unavailable):
            await self._ask("GET", "/", within_s=LOOK_S)

    def _looked(self, look: asyncio.Future[None]) -> None:
        self._look = None
        if not look.cancelled() and look.exception() is not None:
            log.error("asking whether the hub answers failed: %s", look.exception())

    # ------------------------------------------------------------ accounts

    async def accounts(
        self,
        *,
        authorized: bool | None = None,
        waiting: bool = False,
        search: str = "",
        after: str = "",
        limit: int = 100,
    ) -> tuple[list[HubAccount], int]:
        """Return a page of accounts by name, from behind `after` on, and how many there are on all pages."""
        asked = {"limit": str(limit), "search": search, "after": after}
        if authorized is not None:
            asked["authorized"] = str(authorized).lower()
        if waiting:
            asked["waiting"] = "true"
        answer = await self._ask("GET", f"/mlp/accounts?{urlencode(asked)}")
        found: list[HubAccount] = self._read(answer, list[HubAccount])
        total = answer.headers.get("X-Total-Count", "")
        return found, int(total) if total.isascii() and total.isdigit() else len(found)

    async def account(self, name: str) -> HubAccount | None:
        """Find one account."""
        answer = await self._ask("GET", f"/mlp/accounts/{quote(name, safe='')}")
        if answer.code == 404:
            return None
        found: HubAccount = self._read(answer, HubAccount)
        return found

    async def person(self, name: str) -> Person | None:
        """Find a user of the hub by whichever authenticator: somebody who was let in, not one who waits for it."""
        answer = await self._ask("GET", f"/users/{quote(name, safe='')}")
        if answer.code == 404:
            return None
        found: Person = self._read(answer, Person)
        return found

    async def sign_up(self, name: str, password: str, address: str) -> str:
        """Make an account that waits for approval and return its name, as the hub writes it.

        Raises Refused when the name is taken or the password too weak, TooMany when the address asks too often.
        """
        body = {"name": name, "password": password, "address": address}
        answer = await self._ask("POST", "/mlp/accounts", json=body)
        if answer.code == 429:
            wait = answer.headers.get("Retry-After", "")
            raise TooMany(int(wait) if wait.isascii() and wait.isdigit() else 1)
        self._done(answer, name)
        return str(self._read(answer, HubAccount).name)

    async def make_accounts(self, people: Mapping[str, str]) -> dict[str, Refused]:
        """Make accounts that are let in, of names with passwords that were made up; return why some are not made."""
        body = {"people": list(people.items())}
        answer = await self._ask("POST", "/mlp/accounts:lot", json=body, within_s=STOP_TIMEOUT_S)
        found: _MadeTogether = self._read(answer, _MadeTogether)
        return {name: _refusal(why) for name, why in found.refused.items()}

    async def find_accounts(self, names: Sequence[str]) -> dict[str, HubAccount]:
        """Return those of these accounts that are there, by name."""
        found: dict[str, HubAccount] = {}
        for at in range(0, len(names), FOUND_AT_ONCE):
            body = {"names": list(names[at : at + FOUND_AT_ONCE])}
            some = self._read(await self._ask("POST", "/mlp/accounts:find", json=body), list[HubAccount])
            found |= {one.name: one for one in some}
        return found

    async def make_without_login(self, name: str) -> None:
        """Make an account that is let in and whose password nobody knows, or let one in again that is there."""
        body = {"name": name, "password": secrets.token_urlsafe(48), "authorized": True}
        answer = await self._ask("POST", "/mlp/accounts", json=body)
        if answer.code == 409:
            await self.authorize(name)
        else:
            self._done(answer, name)

    async def authorize(self, name: str) -> HubAccount:
        """Let an account in, and return it; `was_authorized` tells whether it was in already. Raises Refused(NotFound)."""
        found: HubAccount = self._read(await self._act(name, "authorize"), HubAccount)
        return found

    async def deauthorize(self, name: str) -> None:
        """Shut an account out; it stays."""
        await self._act(name, "deauthorize")

    async def set_password(self, name: str, password: str) -> None:
        """Give an account another password, which ends all sessions, tokens and servers of its owner."""
        await self._act(name, "password", password=password)

    async def log_out(self, name: str) -> None:
        """End all sessions, tokens and notebook servers of somebody."""
        await self._act(name, "logout")

    async def stop_servers(self, name: str) -> None:
        """Stop all notebook servers of somebody."""
        await self._act(name, "stop")

    async def set_admin(self, name: str, admin: bool) -> None:
        """Make somebody an administrator of the platform, or no longer one."""
        await self._act(name, "admin", admin=admin)

    async def delete_account(self, name: str) -> None:
        """Delete an account with its tokens."""
        self._done(await self._ask("DELETE", f"/mlp/accounts/{quote(name, safe='')}"), name)

    async def stop_server(self, user: str, server: str) -> None:
        """Have a notebook server ended, or its start given up; `server` is empty for its user's only one.

        One that is not there or is ending already is fine.
        """
        which = f"servers/{quote(server, safe='')}" if server else "server"
        answer = await self._ask("DELETE", f"/users/{quote(user, safe='')}/{which}")
        if answer.code >= 400 and answer.code != 404:
            self._read(answer, Any)

    # ------------------------------------------------------------- inside

    async def _act(self, name: str, action: str, **body: object) -> HTTPResponse:
        path = f"/mlp/accounts/{quote(name, safe='')}/{action}"
        # what stops servers waits for them
        answer = await self._ask("POST", path, json=body, within_s=STOP_TIMEOUT_S)
        self._done(answer, name)
        return answer

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        json: object = None,
        form: dict[str, str] | None = None,
        within_s: float = TIMEOUT_S,
        accept: str = "application/json",
    ) -> HTTPResponse:
        headers = {"Accept": accept}
        body: bytes | None = None
        if form is not None:
            body = urlencode(form).encode()
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            secret = base64.b64encode(f"{quote(self._client_id)}:{quote(self._token)}".encode()).decode()
            headers["Authorization"] = f"Basic {secret}"
        else:
            headers["Authorization"] = f"token {token if token is not None else self._token}"
        if json is not None:
            body = msgspec.json.encode(json)
            headers["Content-Type"] = "application/json"
        request = HTTPRequest(
            self._base + path,
            method,
            headers,
            body,
            request_timeout=within_s,
            connect_timeout=min(within_s, TIMEOUT_S),
            follow_redirects=False,
            allow_nonstandard_methods=True,
        )
        until = time.monotonic() + (0.0 if within_s <= LOOK_S else self._hold_s)
        while True:
            try:
                answer = await self._http.fetch(request, raise_error=False)
                break
            except ConnectionError as err:
                if time.monotonic() >= until:
                    raise Unavailable(DOWN) from err
            except (OSError, HTTPError) as err:
                raise Unavailable(DOWN) from err
            await asyncio.sleep(AGAIN_S)
        if answer.code >= 500:  # 599 is Tornado's own: it could not connect, or the time was over
            log.warning("the hub answered %s %s with %s", method, path.split("/")[1], answer.code)
            raise Unavailable(DOWN)
        self._heard = time.monotonic()
        return answer

    @staticmethod
    def _read(answer: HTTPResponse, kind: Any) -> Any:
        if answer.code >= 400:
            log.error("the hub refused the service with %s: %s", answer.code, answer.body[:200])
            raise Unavailable(
                msg("the hub refused to serve the platform; its operator finds the cause in the log")
            )
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.MsgspecError as err:
            log.exception("the hub's answer cannot be read")
            raise Unavailable(msg("the hub's answer could not be read")) from err

    @classmethod
    def _done(cls, answer: HTTPResponse, name: str) -> None:
        if answer.code < 400:
            return
        if answer.code == 404:
            raise Refused(Reason.NOT_FOUND, msg("user {name} does not exist", name=name))
        try:
            model = msgspec.json.decode(answer.body, type=_AccountRefusal)
        except msgspec.MsgspecError:
            model = _AccountRefusal()
        if answer.code in (400, 403, 409) and model.msg:
            raise _refusal(model)
        cls._read(answer, Any)


def _refusal(model: _AccountRefusal) -> Refused:
    known = {str(reason): reason for reason in Reason}
    message = from_data(model.detail) if model.detail else verbatim(model.msg)
    return Refused(known.get(model.reason, Reason.INVALID), message)
