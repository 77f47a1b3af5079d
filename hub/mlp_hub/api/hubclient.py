"""The service's own thin client of the hub's REST API; JupyterHub itself is not imported.

The hub is reached over its UNIX socket (`http+unix://%2Fpath...`) or, where the hub is elsewhere, over http(s).
"""

from __future__ import annotations

import base64
import contextlib
import logging
import socket
from typing import Any
from urllib.parse import quote, unquote, urlencode, urlsplit

import msgspec
from tornado.httpclient import HTTPError, HTTPRequest, HTTPResponse
from tornado.netutil import Resolver
from tornado.simple_httpclient import SimpleAsyncHTTPClient

from mlp_hub.api.auth import TooMany
from mlp_hub.api.principal import Kind, Principal, parse_scopes
from mlp_hub.domain.errors import Reason, Refused, Unavailable

log = logging.getLogger(__name__)
TIMEOUT_S = 10.0
DOWN = "the hub does not answer; jobs go on, try again in a few seconds"


class Account(msgspec.Struct, frozen=True):
    """An account as the hub knows it."""

    name: str
    authorized: bool
    admin: bool = False
    created: Any = None


class Person(msgspec.Struct, frozen=True):
    """Somebody whom the hub lets in."""

    name: str
    admin: bool = False


class _Model(msgspec.Struct):
    name: str
    kind: str = "user"
    scopes: list[str] = msgspec.field(default_factory=list)
    groups: list[str] = msgspec.field(default_factory=list)


class _Error(msgspec.Struct):
    message: str = ""


class _AccountRefusal(msgspec.Struct):
    msg: str = ""
    reason: str = ""


class _Socket(Resolver):
    """Resolves every host name to one UNIX socket."""

    def initialize(self, path: str) -> None:
        self._path = path

    async def resolve(self, host: str, port: int, family: int = 0) -> list[tuple[int, Any]]:
        del host, port, family
        return [(socket.AF_UNIX, self._path)]


class HubClient:
    """Asks the hub who a token belongs to, trades OAuth codes for tokens, keeps accounts.

    `api_url` is the hub's API, e.g. `http+unix://%2Frun%2Fhub.sock/hub/api`; `token` the service's own.
    Whatever the hub cannot answer raises Unavailable.
    """

    def __init__(self, api_url: str, token: str, client_id: str = "service-mlp") -> None:
        parts = urlsplit(api_url)
        self._token = token
        self._client_id = client_id
        # SimpleAsyncHTTPClient queues above max_clients; a slow hub must not hold every request up for long
        options: dict[str, Any] = {"force_instance": True, "max_clients": 64}
        if parts.scheme == "http+unix":
            options["resolver"] = _Socket(path=unquote(parts.netloc))
            self._base = f"http://hub{parts.path}"
        else:
            self._base = api_url.rstrip("/")
        self._http = SimpleAsyncHTTPClient(**options)

    def close(self) -> None:
        """Close the client."""
        self._http.close()

    async def user_of_token(self, token: str) -> Principal | None:
        """Tell who a hub token belongs to and what it may; None when the hub does not know it."""
        answer = await self._ask("GET", "/user", token=token)
        if answer.code in (401, 403, 404):
            return None
        model = self._read(answer, _Model)
        kind = Kind.SERVICE if model.kind == "service" else Kind.USER
        everywhere, own = parse_scopes(model.name, model.scopes)
        return Principal(kind, model.name, everywhere, own, tuple(model.groups))

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
        body: dict[str, object] = {"note": note}
        if scopes is not None:
            body["scopes"] = scopes
        if expires_in is not None:
            body["expires_in"] = expires_in
        answer = await self._ask("POST", f"/users/{quote(user, safe='')}/tokens", json=body)
        if answer.code in (403, 404):
            raise Refused(Reason.NOT_FOUND, f"there is no user {user}")
        if answer.code == 400:
            with contextlib.suppress(msgspec.MsgspecError):
                said = msgspec.json.decode(answer.body, type=_Error).message
                raise Refused(Reason.INVALID, f"no token for {user}: {said}")
        return str(self._read(answer, dict[str, Any])["token"])

    async def drop_token(self, token: str) -> None:
        """Revoke a user's token by its own right, as well as the hub lets us; a hub that is down is no error."""
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

    # ------------------------------------------------------------ accounts

    async def accounts(self) -> list[Account]:
        """List all accounts, whether let in or not."""
        found: list[Account] = self._read(await self._ask("GET", "/mlp/accounts"), list[Account])
        return found

    async def account(self, name: str) -> Account | None:
        """Find one account."""
        return next((a for a in await self.accounts() if a.name == name), None)

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
        return str(self._read(answer, Account).name)

    async def authorize(self, name: str) -> None:
        """Let an account in."""
        self._done(await self._ask("POST", f"/mlp/accounts/{quote(name, safe='')}/authorize", json={}), name)

    async def deauthorize(self, name: str) -> None:
        """Shut an account out; it stays."""
        self._done(
            await self._ask("POST", f"/mlp/accounts/{quote(name, safe='')}/deauthorize", json={}), name
        )

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

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        token: str | None = None,
        json: object = None,
        form: dict[str, str] | None = None,
    ) -> HTTPResponse:
        headers = {"Accept": "application/json"}
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
            request_timeout=TIMEOUT_S,
            connect_timeout=TIMEOUT_S,
            follow_redirects=False,
            allow_nonstandard_methods=True,
        )
        try:
            answer = await self._http.fetch(request, raise_error=False)
        except (OSError, HTTPError) as err:
            raise Unavailable(DOWN) from err
        if answer.code >= 500:  # 599 is Tornado's own: it could not connect, or the time was over
            log.warning("the hub answered %s %s with %s", method, path.split("/")[1], answer.code)
            raise Unavailable(DOWN)
        return answer

    @staticmethod
    def _read(answer: HTTPResponse, kind: Any) -> Any:
        if answer.code >= 400:
            log.error("the hub refused the service with %s: %s", answer.code, answer.body[:200])
            raise Unavailable(
                "the hub refused to serve the platform; its operator finds the cause in the log"
            )
        try:
            return msgspec.json.decode(answer.body, type=kind)
        except msgspec.MsgspecError as err:
            log.exception("the hub's answer cannot be read")
            raise Unavailable("the hub's answer could not be read") from err

    @classmethod
    def _done(cls, answer: HTTPResponse, name: str) -> None:
        if answer.code < 400:
            return
        if answer.code == 404:
            raise Refused(Reason.NOT_FOUND, f"there is no user {name}")
        try:
            model = msgspec.json.decode(answer.body, type=_AccountRefusal)
        except msgspec.MsgspecError:
            model = _AccountRefusal()
        if answer.code in (400, 403, 409) and model.msg:
            known = {str(reason): reason for reason in Reason}
            raise Refused(known.get(model.reason, Reason.INVALID), model.msg)
        cls._read(answer, Any)
