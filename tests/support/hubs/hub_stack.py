"""A real hub and a real proxy in front of a fake service, started by hand: for tests of the hub's side."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import httpx

from mlp_hub.backends import backend_of
from mlp_hub.cli.state import state_dir
from mlp_hub.cli.state.plan import make as make_plan
from mlp_hub.cli.state.plan import write_secrets
from mlp_hub.settings import Settings
from support.local_names import LocalNames, trusted
from support.ports import free_port
from support.waiting import PATIENCE_S, wait_for

HERE = Path(__file__).parent
PASSWORD = "correct horse battery"
QUICK = """
import bcrypt
salt = bcrypt.gensalt
bcrypt.gensalt = lambda rounds=12, prefix=b"2b": salt(4 if rounds == 12 else rounds, prefix)
"""
"""A hub's configuration: passwords are hashed in a moment. At full cost the hub did little else in these tests."""


class HubStack:
    """Proxy, service and hub, each a process of its own."""

    def __init__(
        self, home: Path, limits: dict[str, int] | None = None, config: str = "", **environ: str
    ) -> None:
        self.port = free_port()
        self.url = f"http://localhost:{self.port}"
        """Where browsers go."""
        keep = ("PATH", "LANG", "LD_LIBRARY_PATH")
        self.env = {k: os.environ[k] for k in keep if k in os.environ}
        self.env |= {"MLP_HOME": str(home), "MLP_PORT": str(self.port), "HOME": str(home), **environ}
        home.mkdir(parents=True, exist_ok=True)
        (home / "extra.py").write_text(QUICK + config)
        self.env["MLP_CONFIG"] = str(home / "extra.py")
        self.settings = Settings.load(self.env)
        self.home = home
        self.limits = limits or {}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.ended: list[Callable[[], object]] = []
        """What else is to be undone, once the hub has ended."""
        self.http = httpx.Client(
            base_url=f"http://127.0.0.1:{self.port}", timeout=PATIENCE_S, trust_env=False, verify=trusted()
        )
        self.clients = [self.http]

    def notebooks(self, user: str) -> str:
        """The origin of a user's notebook servers."""
        return f"http://{self.settings.origins.of_user(user)}:{self.port}"

    # -------------------------------------------------------------- processes

    def prepare(self) -> None:
        state_dir.prepare(self.settings)
        plan = make_plan(self.settings, self.env)
        write_secrets(self.settings)
        self.components = {c["name"]: c for c in plan["components"]}

    def _start(self, name: str, argv: list[str], **environ: str) -> None:
        log = (self.settings.log_dir / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen(
            argv,
            env={**self.env, **environ},
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            cwd=self.home,
        )
        log.close()

    def start_proxy(self) -> None:
        it = self.components["proxy"]
        self._start(
            "proxy", it["argv"], **it["env"], CONFIGPROXY_AUTH_TOKEN=self.settings.secret("proxy_token")
        )

    def start_service(self) -> None:
        s = self.settings
        config = self.home / "fake_service.json"
        sockets = [(str(s.service_socket), 0o600), (str(s.tenant_service_socket), 0o666)]
        data = {
            "hub_socket": str(s.hub_socket),
            "token": s.secret("service_token"),
            "spawner_token": s.secret("spawner_token"),
            "limits": self.limits,
            "sockets": sockets,
            "ports": [port] if (port := backend_of(s).service_listens(s)) else [],
        }
        config.write_text(json.dumps(data))
        self._start("service", [sys.executable, str(HERE / "fake_service.py"), str(config)])

    def start_hub(self) -> None:
        it = self.components["hub"]
        secrets = {name: Path(path).read_text().strip() for name, path in it["secret_env"].items()}
        self._start("hub", it["argv"], **it["env"], **secrets)

    def up(self) -> None:
        self.prepare()
        self.start_proxy()
        self.start_service()
        self.start_hub()
        self.wait_up()

    def wait_up(self) -> None:
        def up() -> bool:
            if self.processes["hub"].poll() is not None:
                raise AssertionError(f"the hub ended:\n{self.log('hub')}")
            with contextlib.suppress(httpx.TransportError):
                return (
                    self.http.get("/hub/login").status_code == 200
                    and self.http.get("/services/mlp/page").status_code == 200
                )
            return False

        wait_for(up)

    def kill(self, name: str) -> None:
        os.killpg(self.processes[name].pid, signal.SIGKILL)
        self.processes[name].wait()

    def down(self) -> None:
        for client in self.clients:
            client.close()
        for name, process in self.processes.items():
            if name != "hub":
                continue
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
        from mlp_hub import sandbox

        for run_dir in self.settings.servers_run_dir.glob("*/*"):
            if run_dir.is_dir() and not run_dir.name.endswith(".log"):
                sandbox.remove(str(run_dir))
        for name, process in self.processes.items():
            if process.poll() is None:
                self.kill(name)
        for undo in self.ended:
            undo()
        shutil.rmtree(self.home, ignore_errors=True)
        if not self.settings.run_dir.is_relative_to(self.home):
            shutil.rmtree(self.settings.run_dir, ignore_errors=True)

    def log(self, name: str) -> str:
        return (self.settings.log_dir / f"{name}.log").read_text(errors="replace")

    # ------------------------------------------------------------------- talk

    def api(self, method: str, path: str, token: str | None = None, **more: Any) -> httpx.Response:
        """Call the hub's API, as the platform's service unless a token is given."""
        token = token or self.settings.secret("service_token")
        headers = {"Authorization": f"Bearer {token}"}
        return self.http.request(method, f"/hub/api{path}", headers=headers, **more)

    def ledger(self) -> dict[str, Any]:
        transport = httpx.HTTPTransport(uds=str(self.settings.service_socket), verify=trusted())
        with httpx.Client(transport=transport) as client:
            return client.get("http://mlp/services/mlp/control").json()

    def tell_service(self, **values: Any) -> None:
        transport = httpx.HTTPTransport(uds=str(self.settings.service_socket), verify=trusted())
        with httpx.Client(transport=transport) as client:
            client.put("http://mlp/services/mlp/control", json=values).raise_for_status()

    def add(self, name: str, **more: Any) -> None:
        body = {"name": name, "password": PASSWORD, "authorized": True, "admin": False, **more}
        answer = self.api("POST", "/mlp/accounts", json=body)
        assert answer.status_code == 201, answer.text


class Reached(Protocol):
    """A hub as far as browsers know it: its address, and who is closed with it."""

    url: str
    clients: list[httpx.Client]


class Browser:
    """A person's browser without the scripts: cookies, redirects, forms with their XSRF field."""

    def __init__(self, stack: Reached, transport: httpx.BaseTransport | None = None) -> None:
        self.http = httpx.Client(
            base_url=stack.url,
            follow_redirects=True,
            timeout=PATIENCE_S,
            transport=transport or LocalNames(),
        )
        self.http.headers.update({"Sec-Fetch-Mode": "navigate", "Accept": "text/html,*/*"})
        stack.clients.append(self.http)

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self.http.get(path, **more)

    def post(self, page: str, path: str, fields: dict[str, Any]) -> httpx.Response:
        """Open a page, and send its form to a path."""
        self.http.get(page)
        xsrf = next(c.value for c in self.http.cookies.jar if c.name == "_xsrf" and c.path.endswith("/hub/"))
        return self.http.post(path, data={"_xsrf": xsrf, **fields})

    def sign_up(self, name: str, password: str = PASSWORD) -> httpx.Response:
        fields = {"username": name, "signup_password": password, "signup_password_confirmation": password}
        return self.post("/hub/signup", "/hub/signup", fields)

    def login(self, name: str, password: str = PASSWORD, next_url: str = "/hub/home") -> httpx.Response:
        return self.post(
            "/hub/login", f"/hub/login?next={next_url}", {"username": name, "password": password}
        )

    def spawn(self, name: str, **fields: Any) -> httpx.Response:
        return self.post(f"/hub/spawn/{name}", f"/hub/spawn/{name}", fields)


def text_of(answer: httpx.Response) -> str:
    """Return what a page shows: its text without tags, scripts and styles, which hold random numbers and the time."""
    shown = re.sub(r"(?is)<(script|style)\b.*?</\1>", " ", answer.text)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", shown))


def user_token(stack: HubStack, name: str, *scopes: str) -> str:
    """Return a token of a user, made by the platform's service."""
    wanted = list(scopes) or ["self"]
    answer = stack.api(
        "POST", f"/users/{name}/tokens", json={"note": "test", "scopes": wanted, "expires_in": 3600}
    )
    assert answer.status_code == 201, answer.text
    return answer.json()["token"]


def start_server(stack: HubStack, name: str, **options: Any) -> str:
    """Start a user's server with a token of theirs, wait until it is ready, return the token."""
    token = user_token(stack, name, "servers!user", "access:servers!user", "read:users!user")
    answer = stack.api("POST", f"/users/{name}/server", token, json={"user_options": options})
    assert answer.status_code in (201, 202), answer.text

    def ready() -> bool:
        model = stack.api("GET", f"/users/{name}", token).json()
        server = model["servers"].get("")
        assert server, f"the server of {name} is gone:\n{stack.log('hub')[-3000:]}"
        return server["ready"]

    wait_for(ready, every=0.1)
    return token


def stop_server(stack: HubStack, name: str, token: str) -> None:
    """Stop it and wait until it is gone."""
    answer = stack.api("DELETE", f"/users/{name}/server", token)
    assert answer.status_code in (202, 204), answer.text
    wait_for(lambda: not stack.api("GET", f"/users/{name}", token).json()["servers"])
