"""`mlp login` as a person has it: a terminal, a browser that opens, a hub; and what the token is good for."""

from __future__ import annotations

import json
import os
import pty
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from support import local_names
from support.hubs.live_hub import BIN, PASSWORD, LiveHub, live_hub
from support.waiting import PATIENCE_S, wait_for

BROWSER = '''
"""A browser without a screen: logs a person in and says yes to what the page asks."""
import os, re, sys
from html import unescape
from urllib.parse import urlsplit
import httpx
sys.path.insert(0, os.environ["TESTS"])
from support.local_names import LocalNames

page, hub = sys.argv[1], "{0.scheme}://{0.netloc}".format(urlsplit(sys.argv[1]))
with httpx.Client(transport=LocalNames(), trust_env=False, timeout=60, headers={"Sec-Fetch-Mode": "navigate"}) as http:
    http.follow_redirects = True
    http.get(hub + "/hub/login")
    xsrf = lambda: next(c.value for c in http.cookies.jar if c.name == "_xsrf" and c.path == "/hub/")
    http.post(hub + "/hub/login?next=/hub/home", data={"username": os.environ["WHO"], "password": os.environ["WITH"], "_xsrf": xsrf()})
    shown = http.get(page)
    fields = {k: unescape(v) for k, v in re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', shown.text)}
    done = http.post(hub + "/hub/mlp-login", data={**fields, "_xsrf": xsrf()})
    found = re.search(r'id="mlp-login-code"[^>]*>([^<]+)<', done.text)
    with open(os.environ["SAW"] + ".part", "w") as out:
        out.write(found[1] if found else done.text)
    os.replace(out.name, os.environ["SAW"])  # whole or not there
'''


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveHub]:
    with live_hub(tmp_path_factory.mktemp("hub") / "home") as hub:
        for name in ("ann", "bob"):
            hub.add_user(name)
        yield hub


class Laptop:
    """A machine with a home of its own, on which somebody types `mlp`."""

    def __init__(self, hub: LiveHub, home: Path, who: str = "ann") -> None:
        script = home / "browser.py"
        script.write_text(BROWSER)
        self.hub, self.home = hub, home
        kept = {
            k: v for k, v in os.environ.items() if not k.startswith(("MLP_", "JUPYTERHUB_", "XDG_", "SSH_"))
        }
        self.env = {
            **kept,
            "HOME": str(home),
            "BROWSER": f"{sys.executable} {script} %s",
            "WHO": who,
            "WITH": PASSWORD,
            "SAW": str(home / "saw"),
            "TESTS": str(Path(local_names.__file__).parents[1]),
        }

    def mlp(self, *words: str, status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run `mlp` on a terminal."""
        ours, theirs = pty.openpty()
        try:
            done = subprocess.run(
                [str(BIN / "mlp"), *words], env=self.env, stdin=theirs, capture_output=True, text=True,
                timeout=2 * PATIENCE_S, check=False,
            )  # fmt: skip
        finally:
            os.close(ours)
            os.close(theirs)
        assert done.returncode == status, f"{done.stdout}\n{done.stderr}"
        return done

    def json(self, *words: str) -> Any:
        return json.loads(self.mlp(*words, "--json").stdout)

    def saw(self) -> str:
        """Return what the browser came to at last; `mlp` does not wait for it."""
        wait_for((self.home / "saw").exists)
        return (self.home / "saw").read_text()

    @property
    def stored(self) -> Path:
        return self.home / ".config" / "mlp" / "login.json"


@pytest.fixture
def laptop(hub: LiveHub, tmp_path: Path) -> Laptop:
    return Laptop(hub, tmp_path)


def test_from_a_login_to_a_job_and_to_the_logout(laptop: Laptop, hub: LiveHub) -> None:
    told = laptop.mlp("login", hub.url, "--expires", "7d")
    assert "Logged in as ann" in told.stdout
    assert stat.S_IMODE(laptop.stored.stat().st_mode) == 0o600
    assert "can close this window" in laptop.saw()
    token = next(iter(json.loads(laptop.stored.read_text())["hubs"].values()))["token"]
    assert token not in told.stdout + told.stderr
    assert laptop.json("whoami")["user"] == "ann"
    laptop.mlp("quota")
    laptop.mlp("language", "en")
    script = laptop.home / "hello.py"
    script.write_text("print('hello from a laptop')\n")
    laptop.mlp("submit", str(script), "--name", "hello", "--wait")
    assert "hello from a laptop" in laptop.mlp("logs", "hello").stdout
    (mine,) = [one for one in laptop.json("token", "list") if one["current"]]
    assert mine["note"].startswith("mlp on ")
    audit = hub.run("audit", "--action", "user.token", "--object", "ann").stdout
    assert mine["note"] in audit
    assert "the token is ended" in laptop.mlp("logout").stdout
    refused = hub.http.get("/services/mlp/api/v1/auth", headers={"Authorization": f"Bearer {token}"})
    assert refused.status_code == 401
    assert "nobody has logged in" in laptop.mlp("whoami", status=4).stderr


def test_a_second_login_is_the_first_while_its_token_holds(laptop: Laptop, hub: LiveHub) -> None:
    laptop.mlp("login", hub.url)
    first = laptop.stored.read_text()
    laptop.saw()
    (laptop.home / "saw").unlink()
    laptop.mlp("login", hub.url)
    assert laptop.stored.read_text() == first
    assert not (laptop.home / "saw").exists()
    in_script = [str(BIN / "mlp"), "login", hub.url]
    subprocess.run(in_script, env=laptop.env, input="", text=True, timeout=2 * PATIENCE_S, check=True)
    assert laptop.stored.read_text() == first, "without a terminal too, where no token is given"
    laptop.mlp("login", hub.url, "--expires", "1d")
    assert laptop.stored.read_text() != first


def test_tokens_are_made_and_ended_on_the_terminal(laptop: Laptop, hub: LiveHub) -> None:
    laptop.mlp("login", hub.url, "--expires", "2d")
    made = laptop.json("token", "create", "nightly", "--scope", "jobs:read", "--expires", "1d")
    narrow = {"Authorization": f"Bearer {made['token']}"}
    api = "/services/mlp/api/v1/users/ann"
    assert hub.http.get(f"{api}/jobs", headers=narrow).status_code == 200
    for method, path in (("POST", "/jobs"), ("POST", "/tokens"), ("GET", "/tokens"), ("GET", "/token")):
        body = {"note": "x"} if path == "/tokens" and method == "POST" else {"name": "x", "code": "x"}
        refused = hub.http.request(
            method, api + path, headers=narrow, json=body if method == "POST" else None
        )
        assert refused.status_code == 403, path
    assert "cannot outlive" in laptop.mlp("token", "create", "long", "--expires", "30d", status=3).stderr
    (one,) = [t for t in laptop.json("token", "list") if t["note"] == "nightly"]
    laptop.mlp("token", "revoke", one["id"])
    assert hub.http.get(f"{api}/jobs", headers=narrow).status_code == 401
    assert one["id"] not in {t["id"] for t in laptop.json("token", "list")}


def test_an_account_of_a_tenant_works_there_and_is_nobody_anywhere_else(laptop: Laptop, hub: LiveHub) -> None:
    hub.call("POST", "/tenants", body={"name": "red", "cpu": 4, "ram": 4096})
    hub.call("PUT", "/tenants/red/members/ann", body={"role": "admin"})
    laptop.mlp("login", hub.url, "--expires", "2d")
    made = laptop.json("token", "create", "--service", "nightly", "--tenant", "red", "--expires", "90d")
    assert made["user"] == "svc-nightly"
    program = Laptop(hub, laptop.home)
    program.env |= {"MLP_API_URL": f"{hub.url}/services/mlp/api/v1", "MLP_TOKEN": made["token"]}
    assert program.json("whoami")["user"] == "svc-nightly"
    script = laptop.home / "build.py"
    script.write_text("print('built')\n")
    program.mlp("submit", str(script), "--name", "build", "--wait")
    assert "built" in program.mlp("logs", "build").stdout
    held = {"Authorization": f"Bearer {made['token']}"}
    # no notebook, no page, no other token: not of the hub's
    for path in ("server", "servers/other", "tokens"):
        refused = hub.http.post(f"/hub/api/users/svc-nightly/{path}", headers=held, json={})
        assert refused.status_code == 403, (path, refused.text)
    for page in ("/hub/home", "/hub/spawn", "/hub/token", "/services/mlp/"):
        away = hub.http.get(page, headers=held, follow_redirects=False)
        assert away.status_code == 302, page
        assert "/login?" in away.headers["Location"], page
    assert hub.http.get("/hub/user/svc-nightly/lab", headers=held).status_code != 200
    for path in ("/users/ann/jobs", "/tenants/default", "/users/svc-nightly/tokens", "/audit"):
        refused = hub.http.get(f"/services/mlp/api/v1{path}", headers=held)
        assert refused.status_code == 403, (path, refused.text)
    turned = laptop.json("token", "rotate", "nightly", "--tenant", "red", "--grace", "0")
    assert "not valid" in program.mlp("whoami", status=3).stderr
    program.env["MLP_TOKEN"] = turned["token"]
    assert program.json("whoami")["user"] == "svc-nightly"
    laptop.mlp("token", "revoke", "--service", "nightly", "--tenant", "red")
    assert "not valid" in program.mlp("whoami", status=3).stderr
    audit = hub.run("audit", "--object", "svc-nightly").stdout
    assert all(f"ann  service_account.{act}" in audit for act in ("create", "rotate", "end"))


def test_a_login_without_a_confirmation_creates_no_token(hub: LiveHub, tmp_path: Path) -> None:
    laptop = Laptop(hub, tmp_path, who="bob")
    laptop.env["BROWSER"] = f"{sys.executable} -c pass %s"
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [str(BIN / "mlp"), "login", hub.url], env=laptop.env, stdin=theirs, stderr=subprocess.PIPE, text=True
    )
    try:
        assert running.stderr is not None
        for line in running.stderr:
            if "/hub/mlp-login?" in line:
                break
        back = unquote(re.search(r"redirect_uri=([^&]+)", line)[1])  # type: ignore[index]
        forged = httpx.get(f"{back}?code=theirs&state={'x' * 43}", trust_env=False)
        assert forged.status_code == 400
        assert running.poll() is None
    finally:
        running.kill()
        running.wait()
        assert running.stderr is not None
        running.stderr.close()
        os.close(ours)
        os.close(theirs)
    assert not laptop.stored.exists()
