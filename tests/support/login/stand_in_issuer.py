"""A provider of OpenID Connect that signs any claims that a test asks for, in a thread of the test."""

from __future__ import annotations

import asyncio
import base64
import json
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import unquote

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from tornado.httpserver import HTTPServer
from tornado.httputil import url_concat
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

CLIENT, SECRET = "mlp-hub", "a-secret-of-tests"
RS256 = "RS256"


@cache
def private_key(name: str) -> rsa.RSAPrivateKey:
    """A key of this name, the same for a whole test run: making one takes a while."""
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def published(name: str, **more: str) -> dict[str, Any]:
    """What the provider tells of a key."""
    told = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(private_key(name).public_key()))
    return {**told, "kid": name, "use": "sig", "alg": RS256, **more}


def unsigned(claims: dict[str, Any]) -> str:
    """A token that nobody signed."""

    def part(value: object) -> str:
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    return f"{part({'alg': 'none', 'typ': 'JWT'})}.{part(claims)}."


class StandIn:
    """What the provider knows and says. Tests change it as they like."""

    def __init__(self, port: int) -> None:
        self.issuer = f"http://127.0.0.1:{port}"
        self.signs_with = "first"
        self.keys: list[dict[str, Any]] = [published("first")]
        self.document: dict[str, Any] = {}
        """What is announced otherwise than it is."""
        self.person: dict[str, Any] = {"sub": "s-ann", "preferred_username": "ann", "groups": ["/ml/red"]}
        """Who logs in next, as the user-info endpoint tells it."""
        self.claims: dict[str, Any] = {}
        """What the next ID tokens say otherwise; None: what they do not say."""
        self.sign: Callable[[dict[str, Any]], str] = self.signed
        self.says_iss = True
        self.refresh_tokens = True
        self.refuses_refresh: dict[str, str] | None = None
        self.down = False
        self.auth_time: float | None = None
        """When the password was entered; None: just now."""
        self.requests: Counter[str] = Counter()
        self.codes: dict[str, dict[str, str]] = {}
        self.tokens: dict[str, dict[str, Any]] = {}

    def environ(self, **more: str) -> dict[str, str]:
        """Return the settings of a hub whose people log in here."""
        return {
            "MLP_LOGIN": "oidc",
            "MLP_LOGIN_ISSUER": self.issuer,
            "MLP_LOGIN_CLIENT_ID": CLIENT,
            "MLP_LOGIN_CLIENT_SECRET": SECRET,
            "MLP_LOGIN_TITLE": "Stand-in",
            **more,
        }

    def announced(self) -> dict[str, Any]:
        """Return the discovery document."""
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "userinfo_endpoint": f"{self.issuer}/userinfo",
            "jwks_uri": f"{self.issuer}/keys",
            "end_session_endpoint": f"{self.issuer}/logout",
            "id_token_signing_alg_values_supported": [RS256],
            "authorization_response_iss_parameter_supported": self.says_iss,
            **self.document,
        }

    def signed(self, claims: dict[str, Any], key: str = "", algorithm: str = RS256, **header: Any) -> str:
        """Sign claims as the provider does, or with another key."""
        name = key or self.signs_with
        return jwt.encode(claims, private_key(name), algorithm, headers={"kid": name, **header})

    def id_token(self, nonce: str = "", **claims: Any) -> str:
        """Make an ID token of the person."""
        now = int(time.time())
        said = {
            "iss": self.issuer,
            "aud": CLIENT,
            "sub": self.person["sub"],
            "iat": now,
            "exp": now + 300,
            "auth_time": int(self.auth_time if self.auth_time is not None else now),
            **({"nonce": nonce} if nonce else {}),
            **self.claims,
            **claims,
        }
        return self.sign({key: value for key, value in said.items() if value is not None})

    def grant(self, nonce: str = "") -> dict[str, Any]:
        """Make the tokens of the person."""
        access = secrets.token_urlsafe(8)
        self.tokens[access] = dict(self.person)
        refresh = {"refresh_token": f"refresh-{access}"} if self.refresh_tokens else {}
        return {"access_token": access, "token_type": "Bearer", "id_token": self.id_token(nonce), **refresh}

    def code_for(self, *, nonce: str, challenge: str, redirect_uri: str) -> str:
        """Make a code as if somebody had logged in."""
        code = secrets.token_urlsafe(8)
        self.codes[code] = {"nonce": nonce, "challenge": challenge, "redirect_uri": redirect_uri}
        return code


class _Handler(RequestHandler):
    def initialize(self, it: StandIn) -> None:
        self.it = it

    def prepare(self) -> None:
        self.it.requests[self.request.path] += 1
        if self.it.down:
            self.send_error(503)


class _Document(_Handler):
    def get(self) -> None:
        self.write(self.it.announced())


class _Keys(_Handler):
    def get(self) -> None:
        self.write({"keys": self.it.keys})


class _Authorize(_Handler):
    def get(self) -> None:
        asked = {name: self.get_argument(name) for name in ("nonce", "redirect_uri")}
        code = self.it.code_for(challenge=self.get_argument("code_challenge"), **asked)
        iss = {"iss": self.it.issuer} if self.it.says_iss else {}
        back = {"code": code, "state": self.get_argument("state"), **iss}
        self.redirect(url_concat(asked["redirect_uri"], back))


class _Token(_Handler):
    def post(self) -> None:
        both = base64.b64decode(self.request.headers["Authorization"].removeprefix("Basic ")).decode()
        if [unquote(part) for part in both.split(":")] != [CLIENT, SECRET]:
            self._refuse("invalid_client")
        elif self.get_argument("grant_type") == "refresh_token":
            before = self.get_argument("refresh_token").removeprefix("refresh-")
            if self.it.refuses_refresh is not None or self.it.tokens.pop(before, None) is None:
                self.set_status(400)
                self.write(self.it.refuses_refresh or {"error": "invalid_grant"})
            else:
                self.write(self.it.grant())
        else:
            code = self.it.codes.pop(self.get_argument("code"), None)
            challenge = base64.urlsafe_b64encode(sha256(self.get_argument("code_verifier").encode()).digest())
            if (
                code is None
                or code["redirect_uri"] != self.get_argument("redirect_uri")
                or code["challenge"] != challenge.decode().rstrip("=")
            ):
                self._refuse("invalid_grant")
            else:
                self.write(self.it.grant(code["nonce"]))

    def _refuse(self, error: str) -> None:
        self.set_status(400)
        self.write({"error": error})


class _UserInfo(_Handler):
    def get(self) -> None:
        token = self.request.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.it.tokens:
            self.set_status(401)
            self.write({"error": "invalid_token"})
        else:
            self.write(self.it.tokens[token])


class _Logout(_Handler):
    def get(self) -> None:
        self.redirect(self.get_argument("post_logout_redirect_uri"))


@contextmanager
def stand_in() -> Iterator[StandIn]:
    """Run one."""
    ready: Future[tuple[StandIn, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        sockets = bind_sockets(0, "127.0.0.1")
        it = StandIn(sockets[0].getsockname()[1])
        routes = [
            ("/.well-known/openid-configuration", _Document),
            ("/keys", _Keys),
            ("/authorize", _Authorize),
            ("/token", _Token),
            ("/userinfo", _UserInfo),
            ("/logout", _Logout),
        ]
        server = HTTPServer(
            Application(
                [(path, handler, {"it": it}) for path, handler in routes], log_function=lambda _: None
            )
        )
        server.add_sockets(sockets)
        ended = asyncio.Event()
        ready.set_result((it, asyncio.get_running_loop(), ended))
        await ended.wait()
        server.stop()
        await server.close_all_connections()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    it, loop, ended = ready.result(30)
    try:
        yield it
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(30)
