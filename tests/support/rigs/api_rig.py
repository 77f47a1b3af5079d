"""The HTTP side on two UNIX sockets, around a real platform with simulated nodes and a fake hub; in a thread."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.client
import json
import secrets
import socket
import threading
import time
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self, TypeVar
from urllib.parse import quote

from tornado.httpserver import HTTPServer
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, unix_connect

from mlp_hub.api.auth import scopes
from mlp_hub.api.auth.sessions import BrowserSession, xsrf_token
from mlp_hub.api.build import make_server, make_service
from mlp_hub.api.edge.call import API_BASES, Config
from mlp_hub.api.edge.limits import RATES, Rate
from mlp_hub.api.edge.listeners import bind_socket
from mlp_hub.api.edge.sockets import close_all
from mlp_hub.api.figures import ProxyFigures
from mlp_hub.api.hubclient import HubClient
from mlp_hub.domain.runtime.environment import Environment, EnvironmentPhase
from mlp_hub.web.site import make_application
from support.hubs.fake_hub import SERVICE_TOKEN, FakeHub
from support.rigs.platform_rig import FAST, Rig, node
from support.waiting import PATIENCE_S, wait_for

T = TypeVar("T")
BASE = API_BASES[0]
HOST = "127.0.0.1:21000"
PLENTY: Mapping[str, Rate] = {name: Rate(1e6, 1e6) for name in RATES}


ONE_ID = {"X-Request-ID": "one-id-for-both"}
"""Headers of requests whose answers are compared byte for byte: an error names its request."""


@dataclass
class Answer:
    """An HTTP answer."""

    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class ApiRig:
    """Start with `with ApiRig(directory) as rig:`. `rates` are the limiter's; `recheck_s` of open sockets."""

    def __init__(self, root: Path, *, rates: Mapping[str, Rate] = PLENTY, recheck_s: float = 0.1) -> None:
        self.root = root
        self.config: Mapping[str, Any] = {}  # what is other than usual
        self.endpoints: tuple[str, ...] = ()  # object stores that may be at private addresses
        self.figures: ProxyFigures | None = None
        self.hub = FakeHub()
        self.rates = rates
        self.recheck_s = recheck_s
        self.sockets = {True: root / "p.sock", False: root / "t.sock"}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[HTTPServer] = []
        self.ann = self.hub.user("ann", "ann-token")
        self.bob = self.hub.user("bob", "bob-token")
        self.rita = self.hub.user("rita", "rita-token")  # admin of red, ann's tenant
        self.blue = self.hub.user("blue", "blue-token")  # admin of another tenant
        self.root_user = self.hub.user("admin", "admin-token", admin=True)
        self.spawner = self.hub.service("mlp-spawner", "spawner-token", scopes.SPAWNER_SCOPES)
        self.data, self.gateway = (
            self.hub.service(name, f"{name}-token", held) for name, held in scopes.PART_SCOPES.items()
        )
        self.operator = self.hub.service(
            scopes.OPERATOR, "operator-token", (scopes.ACCESS, *scopes.ADMIN_SCOPES)
        )
        self.notebook = self.hub.user("ann", "notebook-token", held=scopes.SERVER_SCOPES)

    def __enter__(self) -> Self:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *error: object) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @contextlib.contextmanager
    def people_as_now(self) -> Iterator[None]:
        """Let all in again at the end that were shut out meanwhile, and give back the tokens that were ended."""
        tokens = dict(self.hub.tokens)
        try:
            yield
        finally:
            self.hub.tokens.update(tokens)
            for account in self.hub.accounts.values():
                account["authorized"] = True

    def silence(self, tenant: str, token: str) -> str:
        """Silence the alerts of a tenant, and return the silence's id."""
        made = self.ask("POST", f"/tenants/{tenant}/silences", a_silence(), token=token)
        assert made.status == 201, made.body
        return str(made.json["id"])

    def environment(self, name: str, user: str = "ann", tenant: str = "red") -> None:
        """Have an environment that is ready, as if it had been made."""
        uid = hashlib.sha256(f"{tenant} {name}".encode()).hexdigest()[:26]
        made = Environment(uid, tenant, name, user, EnvironmentPhase.READY, "iniconfig\n", time.time())
        self.run(self.rig.db.write(lambda tx: tx.environments.put(made)))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run on the rig's loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _start(self) -> None:
        hub_socket = self.root / "hub.sock"
        self._hub_server = HTTPServer(self.hub.application())
        self._hub_server.add_socket(bind_socket(hub_socket, 0o600))
        # a machine that stands still for some seconds takes the lease away, and requests would be refused until it is renewed
        policy = replace(FAST, data_endpoints=self.endpoints, lease_s=60.0)
        self.rig = Rig(self.root, node("n1", 64, 65536), policy=policy)
        self.platform = await self.rig.start()
        self.client = HubClient(f"http+unix://{quote(str(hub_socket), safe='')}/hub/api", SERVICE_TOKEN)
        await self._serve()

    async def _serve(self) -> None:
        config = Config(
            version="0",
            allowed_hosts=frozenset({"127.0.0.1", "localhost", "hub.example"}),
            cookie_secret=b"s" * 32,
            recheck_s=self.recheck_s,
        )
        config = replace(config, **self.config)
        self.service = make_service(
            self.platform, self.client, config, figures=self.figures, rates=self.rates
        )
        application = make_application(self.service)
        for behind_proxy, path in self.sockets.items():
            server = make_server(self.service, application, behind_proxy=behind_proxy)
            path.unlink(missing_ok=True)
            server.add_socket(bind_socket(path, 0o600))
            self._servers.append(server)

    async def _unserve(self) -> None:
        for server in self._servers:
            server.stop()
        close_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2):
                await asyncio.gather(*(s.close_all_connections() for s in self._servers))
        self._servers.clear()

    def restart_service(self) -> None:
        """Take the HTTP side down and start another one on the same directory."""
        self.run(self._unserve())
        self.run(self._serve())

    async def _stop(self) -> None:
        await self._unserve()
        self._hub_server.stop()
        await self._hub_server.close_all_connections()
        self.client.close()
        await self.rig.close()

    # ------------------------------------------------------------ asking

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
        base: str = BASE,
        proxy: bool = True,
    ) -> Answer:
        """Send a request to the API; `raw` instead of a JSON body; `base=""` for pages."""
        connection = _Unix(self.sockets[proxy])
        sent = {"Host": HOST, **({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        data = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        if data is not None and "Content-Type" not in sent:
            sent["Content-Type"] = "application/json"
        try:
            connection.putrequest(method, base + path, skip_host=True, skip_accept_encoding=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            answer = connection.getresponse()
            return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def socket(
        self, path: str, *, token: str | None = None, headers: Mapping[str, str] | None = None
    ) -> ClientConnection:
        """Open a WebSocket."""
        sent = {**({"Authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        return unix_connect(
            str(self.sockets[True]), f"ws://{HOST}{BASE}{path}", additional_headers=sent, compression=None
        )

    def session(self, user: str, token: str) -> tuple[BrowserSession, dict[str, str]]:
        """Make a browser's session; returns it with the headers of a same-origin request."""
        session = self.run(self.service.sessions.create(user, token))
        cookie = f"{self.service.sessions.cookie}={session.id}"
        return session, {
            "Cookie": cookie,
            "X-XSRFToken": xsrf_token(session.id),
            "Sec-Fetch-Site": "same-origin",
        }

    # ----------------------------------------------------------- objects

    def tenant(self, name: str, *admins: str, members: tuple[str, ...] = (), **quota: Any) -> None:
        """Make a tenant with its people."""
        assert self.ask("POST", "/tenants", {"name": name, **quota}, token=self.root_user).status == 201
        for user, role in [*((a, "admin") for a in admins), *((m, "member") for m in members)]:
            answer = self.ask("PUT", f"/tenants/{name}/members/{user}", {"role": role}, token=self.root_user)
            assert answer.status == 200, answer.body

    def asks(self, tenant: str, user: str, token: str) -> None:
        """Make a tenant that may be asked, whose admin is rita, and let somebody ask for a place in it."""
        self.tenant(tenant, "rita", members=() if user == "ann" else ("ann",), joining="asked")
        asked = self.ask("POST", f"/users/{user}/teams", {"tenant": tenant}, token=token)
        assert asked.status == 201, asked.body

    def asks_for_more(self, tenant: str) -> str:
        """Let a tenant ask for more quota than it is given here; return the request's id."""
        assert self.ask("PUT", f"/tenants/{tenant}", {"cpu": 1}, token=self.root_user).status == 200
        body = {"cpu": 2, "reason": "more"}
        asked = self.ask("POST", f"/tenants/{tenant}/quota_requests", body, token=self.root_user)
        assert asked.status == 201, asked.body
        return str(asked.json["id"])

    def job(self, user: str, name: str, token: str, **fields: Any) -> dict[str, Any]:
        """Submit a job that runs until the test ends it unless told otherwise: on a loaded machine a minute is over before a file of tests."""
        env = {"SIM_DURATION": "86400", **fields.pop("env", {})}
        body = {"name": name, "code": "x", "cpu": 1, "ram": 100, "env": env, **fields}
        answer = self.ask("POST", f"/users/{user}/jobs", body, token=token)
        assert answer.status == 201, answer.body
        found: dict[str, Any] = answer.json
        return found

    def key(self, user: str, name: str, key: str, token: str) -> str:
        """Make a key of an app."""
        answer = self.ask("POST", f"/users/{user}/apps/{name}/keys", {"name": key}, token=token)
        assert answer.status == 201, answer.body
        made: str = answer.json["key"]
        return made

    def dataset(self, user: str, name: str, token: str) -> None:
        """Make a dataset whose upload failed: one that may be deleted."""
        made = self.ask("POST", f"/users/{user}/datasets", {"name": name, "size": 1}, token=token)
        assert made.status == 201, made.body
        beat = {"state": "error", "progress": 0}
        answer = self.ask("PUT", f"/users/{user}/datasets/{name}:heartbeat", beat, token=token)
        assert answer.status == 200, answer.body

    def app(self, user: str, name: str, token: str) -> None:
        """Deploy a command as an app; nothing is simulated that would answer, and nothing asks."""
        body = {"name": name, "model_name": "", "command": "sleep 600", "cpu": 0.1, "ram": 100}
        body["env"] = {"SIM_DURATION": "7200"}
        made = self.ask("POST", f"/users/{user}/apps", body, token=token)
        assert made.status == 201, made.body

    def price_list(self) -> None:
        """Have the platform a price list."""
        listed = {"currency": "EUR", "periods": [{"begins": "2031-01-01", "core_hour": "0.05"}]}
        assert self.ask("PUT", "/prices", listed, token=self.root_user).status == 200

    def budget(self, tenant: str) -> None:
        """Let a team have a budget."""
        self.price_list()
        path = f"/tenants/{tenant}/budget"
        assert self.ask("PUT", path, {"amount": "1000"}, token=self.root_user).status == 200

    def site(self, user: str, token: str) -> None:
        """Let the user have an app called site, also where a test shut them out, which takes it away."""

        def is_there() -> bool:
            found = self.ask("GET", f"/users/{user}/apps/site", token=token)
            if found.status == 200:
                return bool(found.json["state"] != "deleting")
            self.app(user, "site", token)
            return True

        wait_for(is_there, message=f"for the app of {user}")

    def sweep(self, user: str, name: str, token: str) -> None:
        """Start a sweep of one trial, which runs until it is ended."""
        shape = {"code": "x", "cpu": 0.1, "ram": 100, "env": {"SIM_DURATION": "7200"}, "grid": {"lr": [0.1]}}
        made = self.ask("POST", f"/users/{user}/sweeps", {"name": name, **shape}, token=token)
        assert made.status == 201, made.body

    def search(self, user: str, token: str) -> None:
        """Let the user have a sweep called search, also where a test shut them out, which takes it away."""

        def is_there() -> bool:
            found = self.ask("GET", f"/users/{user}/sweeps/search", token=token)
            if found.status == 200 and found.json["state"] not in ("finished", "failed", "cancelled"):
                return bool(found.json["state"] == "running")
            self.sweep(user, "search", token)
            return True

        wait_for(is_there, message=f"for the sweep of {user}")

    def until(self, user: str, name: str, *phases: str) -> dict[str, Any]:
        """Wait until the job is in one of the phases."""

        def look() -> dict[str, Any] | None:
            job: dict[str, Any] = self.ask("GET", f"/users/{user}/jobs/{name}", token=self.root_user).json
            return job if job["phase"] in phases else None

        found: dict[str, Any] = wait_for(look, message=f"for {name} to be {' or '.join(phases)}")
        return found

    def job_token(self, uid: str) -> str:
        """Make a token of a job."""
        token = f"mlpj-{secrets.token_urlsafe(16)}"
        digest = hashlib.sha256(token.encode()).hexdigest()
        with self.rig.db.begin() as tx:
            tx.tokens.add(digest, uid, time.time())
        return token


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE_S)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(PATIENCE_S)
        self.sock.connect(self._path)


def drain(socket: ClientConnection) -> tuple[list[Any], int]:
    """Receive until the server closes; returns the frames and the close code."""
    frames = []
    try:
        while True:
            frames.append(json.loads(socket.recv(PATIENCE_S)))
    except ConnectionClosed as closed:
        return frames, closed.rcvd.code if closed.rcvd is not None else 0


def a_model(rig: ApiRig, name: str, user: str = "ann", token: str = "", **fields: Any) -> dict[str, Any]:
    """Register what a user's job digits wrote, and wait until it is copied."""
    token = token or rig.ann
    body = {"name": name, "src": "jobs/digits/ckpt", "any_files": True, **fields}
    answer = rig.ask("POST", f"/users/{user}/models", body, token=token)
    assert answer.status == 201, answer.body

    def look() -> dict[str, Any] | None:
        seen = rig.ask("GET", f"/users/{user}/models/{name}", token=token)
        assert seen.status == 200, seen.body
        model: dict[str, Any] = seen.json
        return None if model["state"] == "creating" else model

    found: dict[str, Any] = wait_for(look, message=f"for model {name} to be copied")
    return found


def a_window(name: str) -> dict[str, Any]:
    """Describe a window that is open for an hour."""
    now = time.time()
    times = (datetime.fromtimestamp(t, UTC).isoformat() for t in (now, now + 3600))
    return {"name": name, **dict(zip(("start", "end"), times, strict=True)), "amount": {"cpu": 0.001}}


def an_announcement(text: str = "The hub restarts at noon.", **fields: Any) -> dict[str, Any]:
    """Describe an announcement for an hour from now."""
    return {"text": text, "until": datetime.fromtimestamp(time.time() + 3600, UTC).isoformat(), **fields}


def a_silence(**fields: Any) -> dict[str, Any]:
    """Describe a silence for an hour from now."""
    until = datetime.fromtimestamp(time.time() + 3600, UTC).isoformat()
    return {"reason": "it is being mended", "until": until, **fields}


def parts_of_story(rig: ApiRig) -> None:
    """Make what most tests need: red with ann and its admin rita, ann's running job with a file, and the model net of it; blue with bob."""
    rig.tenant("red", "rita", members=("ann",))
    rig.tenant("blue", "blue", members=("bob",))
    rig.job("ann", "digits", rig.ann)
    rig.until("ann", "digits", "running")
    (rig.rig.workspace("ann", "digits") / "ckpt" / "last.pt").write_text("weights")
    a_model(rig, "net")
    rig.dataset("ann", "pets", rig.ann)
    rig.environment("tools")


def started(root: Path) -> Iterator[ApiRig]:
    """Give a rig with the parts of the story, for a fixture."""
    with ApiRig(root) as rig:
        parts_of_story(rig)
        yield rig
