"""Stands for the platform's service where only the hub and the spawner are tested: one file, run as a program.

It keeps a ledger in memory with one limit per tenant, logs in by the hub's OAuth with PKCE, and tells what it saw.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import secrets
import socket
import sys
from pathlib import Path
from urllib.parse import quote, urlencode

from tornado.httpclient import AsyncHTTPClient
from tornado.httpserver import HTTPServer
from tornado.netutil import Resolver, bind_unix_socket
from tornado.simple_httpclient import SimpleAsyncHTTPClient
from tornado.web import Application, RequestHandler

CALLBACK = "/services/mlp/oauth_callback"


class _Hub(Resolver):
    def initialize(self, path: str) -> None:
        self.path = path

    async def resolve(self, host: str, port: int, family: int = 0):
        return [(socket.AF_UNIX, self.path)]


class State:
    """The ledger, and who may have what."""

    def __init__(self, hub_socket: str, token: str, spawner_token: str, limits: dict) -> None:
        self.token, self.spawner_token, self.limits = token, spawner_token, limits
        self.rows: dict[str, dict] = {}
        self.reclaiming: dict[
            str, int
        ] = {}  # by user: so many tries are told that it waits for room that is being made
        self.calls: list[str] = []
        self.tenants: dict[str, list[str]] = {}
        self.environments: dict[str, list[dict]] = {}
        """By tenant: what its servers may be started with."""
        self.numbers: dict[str, int] = {}
        self.languages: dict[str, str] = {}
        self.announced: dict[str, list[dict]] = {}
        self.addresses: dict[str, dict[str, list]] = {}
        """By user, then by token: from where it was used last, and since when."""
        self.stopped_for: dict[str, tuple[str, bool]] = {}  # by user: why, and whether at once
        self.sessions: dict[str, str] = {}
        self.logins: dict[str, str] = {}
        self.http: AsyncHTTPClient = SimpleAsyncHTTPClient(
            force_instance=True, resolver=_Hub(path=hub_socket)
        )

    async def hub(self, method: str, path: str, token: str, **more):
        headers = {"Authorization": f"Bearer {token}"}
        return await self.http.fetch(
            f"http://hub/hub/api{path}", method=method, headers=headers, raise_error=False, **more
        )


class Base(RequestHandler):
    @property
    def state(self) -> State:
        return self.settings["state"]

    def refuse(self, msg: str, reason: str) -> None:
        self.set_status(403)
        self.finish({"msg": msg, "reason": reason})

    def from_spawner(self) -> bool:
        if self.request.headers.get("Authorization") == f"Bearer {self.state.spawner_token}":
            return True
        self.set_status(401)
        self.finish({"msg": "no"})
        return False


class Spawn(Base):
    def get(self, user: str) -> None:
        if self.from_spawner():
            s = self.state
            number = s.numbers.setdefault(user, len(s.numbers) + 1)
            tenants = s.tenants.get(user, ["default"])
            nothing = {"cpu": None, "cpu_free": None, "ram": None, "ram_free": None}
            back = {"cpu_borrow": 0.0, "ram_borrow": 0, "cpu_back": 0.0, "ram_back": 0, "back_from": []}
            room = {name: nothing | back | {"environments": s.environments.get(name, [])} for name in tenants}
            told = {"number": number, "tenants": tenants, "default_tenant": tenants[0], "room": room}
            self.write(told)


class Stopped(Base):
    def get(self, user: str) -> None:
        if self.from_spawner():
            why, at_once = self.state.stopped_for.get(user, ("", False))
            self.write({"why": why, "at_once": at_once})


class Announced(Base):
    def get(self, user: str) -> None:
        if self.from_spawner():
            self.write(json.dumps(self.state.announced.get(user, [])))


class Preferences(Base):
    def get(self, user: str) -> None:
        if self.from_spawner():
            self.write({"language": self.state.languages.get(user, "")})

    def patch(self, user: str) -> None:
        if self.from_spawner():
            self.state.languages[user] = json.loads(self.request.body)["language"]
            self.get(user)


class TokenMade(Base):
    def put(self, user: str) -> None:
        if self.from_spawner():
            if self.state.limits.get("tokens") == 0:
                self.refuse("not now", "Unavailable")
                return
            self.state.calls.append(f"token {user} {self.request.body.decode()}")
            self.write("null")


class TokenEnded(Base):
    def put(self, user: str) -> None:
        if self.from_spawner():
            if self.state.limits.get("tokens") == 0:
                self.refuse("not now", "Unavailable")
                return
            self.state.calls.append(f"ended {user} {self.request.body.decode()}")
            self.write("null")


class Changing(Base):
    def put(self, user: str) -> None:
        if self.from_spawner():
            if self.state.limits.get("changes") == 0:
                self.refuse("not now", "Unavailable")
                return
            self.state.calls.append(f"changing {user} {self.request.body.decode()}")
            self.write("null")


class TokenUses(Base):
    def get(self, user: str) -> None:
        if self.from_spawner():
            if self.state.limits.get("addresses") == 0:
                self.refuse("not now", "Unavailable")
                return
            known = self.state.addresses.get(user, {})
            self.write(json.dumps([{"id": t, "address": a, "at": at} for t, (a, at) in known.items()]))


class HowPeopleStand(Base):
    def put(self, *_: str) -> None:
        if self.from_spawner():
            self.write("null")


class Working(Base):
    def get(self) -> None:
        if self.from_spawner():
            self.write("[]")


class Ledger(Base):
    def put(self, verb: str) -> None:
        if not self.from_spawner():
            return
        s, body = self.state, json.loads(self.request.body)
        key = body["id"]
        row = s.rows.get(key)
        s.calls.append(f"{verb} {body.get('request_type', '')} {key}".replace("  ", " "))
        if verb == "try" and body["request_type"] == "request" and not row:
            if s.reclaiming.get(body["user"], 0) > 0:
                s.reclaiming[body["user"]] -= 1
                self.set_header("Retry-After", "5")
                self.refuse("Waits for the end of a job of team red.", "WaitingForPreempted")
                return
            limit = s.limits.get(body["tenant"], 10**9)
            used = sum(r["ram"] for r in s.rows.values() if r["tenant"] == body["tenant"])
            if used + body["ram"] > limit:
                self.refuse(
                    f"{body['tenant']} may use {limit} MiB; {used} are in use; this asks for {body['ram']} <b>",
                    "ExceedsMaxQuota",
                )
                return
            s.rows[key] = {**body, "phase": "tried"}
        elif verb == "try" and body["request_type"] == "release" and row:
            row["phase"] = "releasing"
        elif verb == "confirm" and row:
            if row["phase"] == "releasing":
                del s.rows[key]
            else:
                row["phase"] = "confirmed"
        elif verb == "cancel" and row:
            if row["phase"] != "tried":
                self.refuse(f"{key} is {row['phase']} and cannot be cancelled", "WrongState")
                return
            del s.rows[key]
        self.write("null")


class Control(Base):
    """What only the test calls."""

    def get(self) -> None:
        s = self.state
        self.write({"rows": s.rows, "calls": s.calls})

    def put(self) -> None:
        for name, value in json.loads(self.request.body).items():
            getattr(self.state, name).update(value)


class Who(Base):
    async def get(self) -> None:
        token = self.request.headers.get("Authorization", "").removeprefix("Bearer ")
        token = token or self.state.sessions.get(self.get_cookie("mlp-session", ""), "")
        if not token:
            self.set_status(401)
            return
        answer = await self.state.hub("GET", "/user", token)
        self.set_status(answer.code)
        self.write(answer.body)


class Login(Base):
    def get(self) -> None:
        verifier, state = secrets.token_urlsafe(48), secrets.token_urlsafe(16)
        self.state.logins[state] = verifier
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        query = {
            "client_id": "service-mlp",
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        self.redirect(f"/hub/api/oauth2/authorize?{urlencode(query)}")


class Callback(Base):
    async def get(self) -> None:
        body = {
            "client_id": "service-mlp",
            "client_secret": self.state.token,
            "grant_type": "authorization_code",
            "code": self.get_argument("code"),
            "redirect_uri": CALLBACK,
            "code_verifier": self.state.logins.pop(self.get_argument("state")),
        }
        answer = await self.state.http.fetch(
            "http://hub/hub/api/oauth2/token", method="POST", body=urlencode(body), raise_error=False
        )
        if answer.code != 200:
            self.set_status(500)
            self.write(answer.body)
            return
        session = secrets.token_urlsafe(16)
        self.state.sessions[session] = json.loads(answer.body)["access_token"]
        self.set_cookie("mlp-session", session, path="/services/mlp/", httponly=True, samesite="Lax")
        self.redirect("/services/mlp/page")


class Page(Base):
    def get(self) -> None:
        self.write(f"<title>{self.request.path}</title>page")


async def main() -> None:
    config = json.loads(Path(sys.argv[1]).read_text())
    state = State(config["hub_socket"], config["token"], config["spawner_token"], config["limits"])
    prefix = "/services/mlp"
    app = Application(
        [
            (prefix + r"/api/v1/users/([^/]+):spawn", Spawn),
            (prefix + r"/api/v1/users/([^/]+):stopped", Stopped),
            (prefix + r"/api/v1/users/([^/]+):announced", Announced),
            (prefix + r"/api/v1/users/([^/]+)/preferences", Preferences),
            (prefix + r"/api/v1/users/([^/]+):token_made", TokenMade),
            (prefix + r"/api/v1/users/([^/]+):token_ended", TokenEnded),
            (prefix + r"/api/v1/users/([^/]+):changing", Changing),
            (prefix + r"/api/v1/users/([^/]+):token_uses", TokenUses),
            (prefix + r"/api/v1/users/([^/]+):standing", HowPeopleStand),
            (prefix + r"/api/v1/login:standing", HowPeopleStand),
            (prefix + r"/api/v1/users:working", Working),
            (prefix + r"/api/v1/resource_request:(try|confirm|cancel)", Ledger),
            (prefix + r"/control", Control),
            (prefix + r"/api/v1/who", Who),
            (prefix + r"/login", Login),
            (CALLBACK, Callback),
            (prefix + r"/(?:page|admin)?", Page),
            (r"/api/v1/who", Who),
        ],
        state=state,
    )
    server = HTTPServer(app)
    for path, mode in config["sockets"]:
        Path(path).unlink(missing_ok=True)
        server.add_socket(bind_unix_socket(path, mode=mode))
    for host, port in config.get("ports", ()):
        server.listen(port, host)
    print("ready", quote(config["hub_socket"]), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
