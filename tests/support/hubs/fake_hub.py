"""The part of JupyterHub that the service talks to, as a small Tornado application."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any
from urllib.parse import parse_qs

from tornado.web import Application, RequestHandler

from mlp_hub.api.auth import scopes

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
        self.ends_sessions = False
        """True: tokens go as the real hub's do; where many tests share them they must not."""
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
                (f"{base}/", _Root, given),
                (f"{base}/user", _User, given),
                (f"{base}/mlp/accounts", _Accounts, given),
                (f"{base}/mlp/accounts:lot", _Lot, given),
                (f"{base}/mlp/accounts:find", _Find, given),
                (f"{base}/mlp/accounts/([^/]+)", _Account, given),
                (
                    f"{base}/mlp/accounts/([^/]+)/(authorize|deauthorize|password|logout|stop|admin)",
                    _Act,
                    given,
                ),
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


class _Root(_Base):
    def get(self) -> None:
        self.finish({"version": "0"})


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
        if not self.check_service():
            return
        found = sorted(self.hub.accounts.values(), key=lambda a: a["name"])
        authorized = self.get_query_argument("authorized", "")
        found = [a for a in found if self.get_query_argument("search", "") in a["name"]]
        found = [a for a in found if not authorized or a["authorized"] is (authorized == "true")]
        if self.get_query_argument("waiting", "") == "true":
            found = [a for a in found if not a["authorized"]]
        self.set_header("X-Total-Count", str(len(found)))
        found = [a for a in found if a["name"] > self.get_query_argument("after", "")]
        self.finish(json.dumps(found[: int(self.get_query_argument("limit", "100"))]))

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


class _Lot(_Base):
    def post(self) -> None:
        if not self.check_service():
            return
        refused = {}
        for name, _ in json.loads(self.request.body)["people"]:
            if name in self.hub.accounts:
                refused[name] = {"msg": f"the name {name} is taken", "reason": "Conflict"}
            else:
                made = {"name": name, "authorized": True, "admin": False, "created": "x"}
                self.hub.accounts[name] = made
        self.finish({"refused": refused})


class _Find(_Base):
    def post(self) -> None:
        if self.check_service():
            names = json.loads(self.request.body)["names"]
            self.finish(json.dumps([self.hub.accounts[name] for name in names if name in self.hub.accounts]))


class _Account(_Base):
    def get(self, name: str) -> None:
        if not self.check_service():
            return
        if name in self.hub.accounts:
            self.finish(self.hub.accounts[name])
        else:
            self.refuse(404, "this account does not exist", "NotFound")

    def delete(self, name: str) -> None:
        if self.check_service():
            self.hub.accounts.pop(name)
            self.set_status(204)


class _Act(_Base):
    def post(self, name: str, action: str) -> None:
        if not self.check_service():
            return
        if name not in self.hub.accounts:
            self.refuse(404, "this account does not exist", "NotFound")
            return
        account = self.hub.accounts[name]
        body = json.loads(self.request.body)
        before = account["authorized"]
        if action in ("authorize", "deauthorize"):
            account["authorized"] = action == "authorize"
        elif action == "password" and len(body["password"]) < 8:
            self.refuse(400, "the password has fewer than 8 characters", "Invalid")
            return
        elif action == "admin":
            account["admin"] = body["admin"]
        if self.hub.ends_sessions and action in ("password", "logout", "deauthorize"):
            self.hub.tokens = {k: v for k, v in self.hub.tokens.items() if v["name"] != name}
        self.finish({**account, "was_authorized": before})


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
    def get(self, name: str) -> None:
        if self.check_service():
            mine = {token: model for token, model in self.hub.tokens.items() if model["name"] == name}
            known = [
                {
                    "id": f"a-{token}",
                    "note": model.get("note", ""),
                    "scopes": model["scopes"],
                    "created": model.get("created", "2026-01-01T00:00:00Z"),
                    "last_activity": None,
                    "expires_at": model.get("expires_at"),
                    "oauth_client": model.get("oauth_client", "JupyterHub"),
                }
                for token, model in mine.items()
            ]
            self.finish({"api_tokens": known})

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
        self.hub.tokens[token]["note"] = body.get("note")
        self.set_status(201)
        self.finish({"token": token, "id": f"a-{token}"})


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
