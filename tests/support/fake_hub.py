"""The part of JupyterHub that the service talks to, as a small Tornado application."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qs

from tornado.web import Application, RequestHandler

from mlp_hub.api import scopes

SERVICE_TOKEN = "the-services-own-token"


class FakeHub:
    """Tokens, accounts and OAuth codes in memory; `requests` counts what was asked."""

    def __init__(self) -> None:
        self.tokens: dict[str, dict[str, Any]] = {}
        self.accounts: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, tuple[str, str]] = {}  # code: (token, challenge)
        self.requests: list[str] = []
        self.down = False
        self.seen_sign_ups: list[dict[str, Any]] = []
        self.sign_ups_refused_for = 0  # seconds that a Retry-After says
        self.servers: set[tuple[str, str]] = set()
        self.minted: list[dict[str, Any]] = []

    def user(self, name: str, token: str, *, admin: bool = False, held: tuple[str, ...] | None = None) -> str:
        """Make a user with a token that holds what their role gives, or `held`."""
        if held is None:
            held = (scopes.ACCESS, *(scopes.ADMIN_SCOPES if admin else scopes.USER_SCOPES))
        self.tokens[token] = {
            "kind": "user",
            "name": name,
            "admin": admin,
            "groups": [],
            "scopes": list(held),
        }
        self.accounts.setdefault(
            name, {"name": name, "authorized": True, "admin": admin, "created": "2026-01-01T00:00:00Z"}
        )
        return token

    def service(self, name: str, token: str, held: tuple[str, ...]) -> str:
        """Make a service's token."""
        self.tokens[token] = {"kind": "service", "name": name, "admin": False, "scopes": list(held)}
        return token

    def application(self) -> Application:
        """Make the Tornado application."""
        given = {"hub": self}
        base = "/hub/api"
        return Application(
            [
                (f"{base}/user", _User, given),
                (f"{base}/mlp/accounts", _Accounts, given),
                (f"{base}/mlp/accounts/([^/]+)", _Account, given),
                (f"{base}/mlp/accounts/([^/]+)/(authorize|deauthorize)", _Act, given),
                (f"{base}/users/([^/]+)", _HubUser, given),
                (f"{base}/users/([^/]+)/server", _Server, given),
                (f"{base}/users/([^/]+)/servers/([^/]+)", _Server, given),
                (f"{base}/users/([^/]+)/tokens", _Tokens, given),
                (f"{base}/users/([^/]+)/tokens/([^/]+)", _Token, given),
                (f"{base}/oauth2/token", _Trade, given),
            ],
            log_function=lambda _: None,
        )


class _Base(RequestHandler):
    def initialize(self, hub: FakeHub) -> None:
        self.hub = hub

    def prepare(self) -> None:
        self.hub.requests.append(f"{self.request.method} {self.request.path}")
        if self.hub.down:
            self.set_status(503)
            self.finish()

    def refuse(self, status: int, msg: str = "no", reason: str = "") -> None:
        self.set_status(status)
        self.finish({"status": status, "message": msg, "msg": msg if reason else "", "reason": reason})

    @property
    def token(self) -> str:
        return self.request.headers.get("Authorization", "").partition(" ")[2]

    def check_service(self) -> bool:
        if self.token != SERVICE_TOKEN:
            self.refuse(403)
            return False
        return True


class _User(_Base):
    def get(self) -> None:
        model = self.hub.tokens.get(self.token)
        if model is None:
            self.refuse(403)
        else:
            self.finish({**model, "token_id": f"a-{self.token}"})


class _HubUser(_Base):
    def get(self, name: str) -> None:
        if self.check_service():
            account = self.hub.accounts.get(name)
            if account is None or not account["authorized"]:
                self.refuse(404)
            else:
                self.finish({"kind": "user", "name": name, "admin": account["admin"], "groups": []})


class _Accounts(_Base):
    def get(self) -> None:
        if self.check_service():
            self.finish(json.dumps(list(self.hub.accounts.values())))

    def post(self) -> None:
        if not self.check_service():
            return
        body = json.loads(self.request.body)
        if "address" in body:
            self.hub.seen_sign_ups.append(body)
            if self.hub.sign_ups_refused_for:
                self.set_header("Retry-After", str(self.hub.sign_ups_refused_for))
                self.refuse(429, "too many", "TooMany")
                return
        if body["name"] in self.hub.accounts:
            self.refuse(409, f"the name {body['name']} is taken", "Conflict")
            return
        if len(body["password"]) < 8:
            self.refuse(400, "the password has fewer than 8 characters", "Invalid")
            return
        account = {
            "name": body["name"],
            "authorized": body.get("authorized", False),
            "admin": body.get("admin", False),
            "created": "x",
        }
        self.hub.accounts[body["name"]] = account
        self.set_status(201)
        self.finish(account)


class _Account(_Base):
    def delete(self, name: str) -> None:
        if self.check_service():
            self.hub.accounts.pop(name)
            self.set_status(204)


class _Act(_Base):
    def post(self, name: str, action: str) -> None:
        if not self.check_service():
            return
        if name not in self.hub.accounts:
            self.refuse(404, "there is no such account", "NotFound")
            return
        self.hub.accounts[name]["authorized"] = action == "authorize"
        self.finish(self.hub.accounts[name])


class _Server(_Base):
    def delete(self, name: str, server: str = "") -> None:
        if not self.check_service():
            return
        if (name, server) not in self.hub.servers:
            self.refuse(404)
            return
        self.hub.servers.remove((name, server))
        self.set_status(204)


class _Tokens(_Base):
    def post(self, name: str) -> None:
        if not self.check_service():
            return
        body = json.loads(self.request.body)
        held = body.get("scopes")
        if "no-such-scope" in (held or ()):
            self.refuse(400, "there is no scope no-such-scope")
            return
        self.hub.minted.append({"user": name, **body})
        token = f"minted-{len(self.hub.minted)}"
        self.hub.user(name, token, held=None if held is None else tuple(held))
        self.set_status(201)
        self.finish({"token": token})


class _Token(_Base):
    def delete(self, name: str, token_id: str) -> None:
        if self.check_service():
            self.hub.tokens.pop(token_id.removeprefix("a-"), None)
            self.set_status(204)


class _Trade(_Base):
    def post(self) -> None:
        form = {k: v[0] for k, v in parse_qs(self.request.body.decode()).items()}
        token, challenge = self.hub.codes.pop(form.get("code", ""), ("", ""))
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        proven = base64.urlsafe_b64encode(digest).decode().rstrip("=") == challenge
        if not token or not proven or form.get("client_secret") != SERVICE_TOKEN:
            self.refuse(400, "invalid_grant")
            return
        self.finish({"access_token": token, "token_type": "Bearer"})
