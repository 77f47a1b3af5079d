"""A real Keycloak for tests: fetched once by Maven, started once for all processes of a test run, gone with the last of them.

    python -m support.login.keycloak fetch      # what `make test-tools` does, in `tests`
    python -m support.login.keycloak keep DIR   # what the first test that wants one starts

Each hub under test has a realm of its own, so that no test is in another's way.
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import hashlib
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from support.maven import alone, fetched

if TYPE_CHECKING:
    import httpx

VERSION = "26.7.3"
SHA256 = "27a6535553c3cdcd083872ba40629efafb3475e3b758e0c6f691395561dd0f1f"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mlp-hub" / "keycloak"
ROOT = CACHE / f"keycloak-{VERSION}"
ADMIN_PASSWORD = "admin of a test"
PASSWORD = "correct horse battery"
SECRET = "a-secret-of-tests"
TESTS = Path(__file__).resolve().parents[2]
GUIDE = TESTS.parent / "docs" / "how-to" / "company-login.md"
TEMPLATE = Path(__file__).with_name("keycloak_realm.json")
SMALL = "-Xms64m -Xmx384m -XX:MaxMetaspaceSize=256m -XX:TieredStopAtLevel=1"
PATIENCE_S = 600.0
START = ("start-dev", "--http-host=127.0.0.1", "--cache=local")
START += ("--features-disabled=admin",)  # its own pages for administrators; REST stays
PREPARED = (
    CACHE / f"started-{hashlib.sha256(repr((SHA256, START, ADMIN_PASSWORD)).encode()).hexdigest()[:12]}"
)
AGAIN_S = 20.0
"""Seconds for which a token of Keycloak's administrator is used again, of the 60 that it holds."""


# ---------------------------------------------------------------- the program


def fetch() -> Path:
    """Have the program in the cache, and return where it is."""
    with alone(CACHE):
        if ROOT.is_dir():
            return ROOT
        artifact = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
        with fetched("Keycloak", CACHE, "dependency:copy", f"-Dartifact={artifact}") as made:
            (archive,) = made.glob("*.zip")
            with archive.open("rb") as content:
                found = hashlib.file_digest(content, "sha256").hexdigest()
            if found != SHA256:
                raise SystemExit(
                    f"{archive.name} is not what was tried: its SHA-256 is {found}, not {SHA256}"
                )
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(made)
            (made / f"keycloak-{VERSION}" / "bin" / "kc.sh").chmod(0o755)
            (made / f"keycloak-{VERSION}").rename(ROOT)
    return ROOT


def prepared() -> Path:
    """Have one in the cache that has started once, and return where it is.

    A first start builds the server anew and makes its tables. It costs three times the processor time of any later one.
    """
    fetch()
    with alone(CACHE):
        if not PREPARED.is_dir():
            from support.ports import free_port

            with tempfile.TemporaryDirectory(dir=CACHE) as made:
                one = KeycloakProcess(Path(made), free_port())
                try:
                    one.start(ROOT)
                    one.end()
                finally:
                    one.stop()
                (Path(made) / "keycloak").rename(PREPARED)
    return PREPARED


def _copy(source: str, target: str) -> str:
    """Share what it only reads; it writes itself anew below `lib/quarkus`."""
    if source.endswith(".jar") and "/quarkus/" not in source:
        with contextlib.suppress(OSError):
            os.link(source, target)
            return target
    return str(shutil.copy2(source, target))


class KeycloakProcess:
    """One Keycloak in a directory of its own; it dies with who started it."""

    def __init__(self, place: Path, port: int) -> None:
        self.place = place
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, program: Path | None = None) -> None:
        """Start it, the first time or again, and return when it answers: a copy of a prepared one, or of another."""
        home = self.place / "keycloak"
        if not home.is_dir():
            shutil.copytree(program or prepared(), home, copy_function=_copy, symlinks=True)
        env = {
            **{k: os.environ[k] for k in ("PATH", "HOME", "LANG", "JAVA_HOME") if k in os.environ},
            "KC_BOOTSTRAP_ADMIN_USERNAME": "admin",
            "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMIN_PASSWORD,
            "JAVA_OPTS_APPEND": SMALL,
        }
        command = [
            *("setpriv", "--pdeathsig", "KILL", "--"),
            str(home / "bin" / "kc.sh"),
            *START,
            f"--http-port={self.port}",
        ]
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.place,
                process_group=0,
            )
        deadline = time.monotonic() + PATIENCE_S
        while not self.answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                said = (self.place / "log").read_text(errors="replace")
                raise AssertionError(f"Keycloak did not start: {said[-4000:]}")
            time.sleep(0.2)

    def answers(self) -> bool:
        """Whether it is up. It is asked often: by something that costs less than a client for all purposes."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(asked), contextlib.suppress(OSError, http.client.HTTPException):
            asked.request("GET", "/realms/master/.well-known/openid-configuration")
            return asked.getresponse().status == 200
        return False

    def end(self) -> None:
        """Have it end by itself: its database is whole then."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(PATIENCE_S)
        self._process = None

    def stop(self) -> None:
        """End it at once."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE_S)
        self._process = None


# ----------------------------------------------------------- one for all tests


def keep(place: Path) -> None:
    """Run one for as long as somebody holds its lock."""
    from support.ports import free_port

    one = KeycloakProcess(place, free_port())
    try:
        one.start()
        new = place / "url.new"
        new.write_text(one.url)
        new.rename(place / "url")
        wanted = (place / "wanted").open("a")
        while True:
            time.sleep(0.5)
            with contextlib.suppress(BlockingIOError):
                # held until all is removed: who comes meanwhile waits, and finds that its file is gone
                fcntl.flock(wanted, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
    except BaseException as error:
        (place / "failed").write_text(repr(error))
        raise
    finally:
        one.stop()
        # what is left is why it failed: those who wait for it read that
        if not (place / "failed").exists():
            shutil.rmtree(place, ignore_errors=True)


_held: dict[Path, IO[str]] = {}
_keepers: list[subprocess.Popen[bytes]] = []
"""Started by this process; they outlive it by a moment."""


def shared(place: Path) -> Keycloak:
    """Return the one Keycloak of a test run, whose processes all name the same directory. It stays until they all have ended.

    One that nobody held for a moment ends and takes its directory along: who comes then makes both anew.
    """
    while True:
        with contextlib.suppress(FileNotFoundError):
            return _shared(place)


def _shared(place: Path) -> Keycloak:
    place.mkdir(parents=True, exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one process starts it, the others wait here
        if place not in _held:
            wanted = (place / "wanted").open("a")
            fcntl.flock(wanted, fcntl.LOCK_SH)
            if not os.fstat(wanted.fileno()).st_nlink:  # one that ended had it
                wanted.close()
                raise FileNotFoundError(place)
            _held[place] = wanted
        if not (place / "url").exists():
            (place / "failed").unlink(missing_ok=True)
            with (place / "keeper.log").open("ab") as log:
                keeper = subprocess.Popen(
                    [sys.executable, "-m", "support.login.keycloak", "keep", str(place.resolve())],
                    cwd=TESTS,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            _keepers.append(keeper)
            deadline = time.monotonic() + 2 * PATIENCE_S  # it may have to prepare one
            while not (place / "url").exists():
                failed = place / "failed"
                said = failed.read_text() if failed.exists() else ""
                assert not said, said
                assert keeper.poll() is None, f"it ended: {(place / 'keeper.log').read_text()}"
                assert time.monotonic() < deadline, "Keycloak does not start"
                time.sleep(0.1)
    return Keycloak((place / "url").read_text())


@contextlib.contextmanager
def own_keycloak(place: Path) -> Iterator[tuple[Keycloak, KeycloakProcess]]:
    """Start one that a test may stop, start again and do what it likes with."""
    from support.ports import free_port

    place.mkdir(parents=True, exist_ok=True)
    process = KeycloakProcess(place, free_port())
    try:
        process.start()
        with Keycloak(process.url) as keycloak:
            yield keycloak, process
    finally:
        process.stop()
        shutil.rmtree(place, ignore_errors=True)


# ------------------------------------------------------------------- REST of it


class Keycloak:
    """A running Keycloak, by its REST API for administrators."""

    _numbers = itertools.count(1)

    def __init__(self, url: str) -> None:
        import httpx

        from support.local_names import trusted

        self.url = url
        self.http = httpx.Client(base_url=url, trust_env=False, timeout=PATIENCE_S, verify=trusted())
        self._token = ""
        self._until = 0.0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.http.close()

    def admin(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """Call `/admin/realms...` and return the answer's JSON, or the new object's id."""
        answer = self._as_admin(method, path, body, query)
        if answer.status_code == 401:  # one that was killed knows nothing of a login just before
            self._until = 0.0
            answer = self._as_admin(method, path, body, query)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        if "location" in answer.headers:
            return answer.headers["location"].rsplit("/", 1)[1]
        return answer.json() if answer.content else None

    def _as_admin(self, method: str, path: str, body: Any, query: dict[str, Any]) -> httpx.Response:
        by = {"Authorization": f"Bearer {self._admins_token()}"}
        return self.http.request(method, f"/admin/realms{path}", json=body, params=query, headers=by)

    def _admins_token(self) -> str:
        if time.monotonic() > self._until:  # each costs it a slow hash of the password
            self._until = time.monotonic() + AGAIN_S
            got = self.http.post(
                "/realms/master/protocol/openid-connect/token",
                data={
                    "grant_type": "password",
                    "client_id": "admin-cli",
                    "username": "admin",
                    "password": ADMIN_PASSWORD,
                },
            )
            got.raise_for_status()
            self._token = got.json()["access_token"]
        return self._token

    def realm(self, *redirects: str, name: str = "", **more: Any) -> Realm:
        """Make a realm whose client `mlp-hub` may lead back to these addresses (`http://localhost:8000/*`)."""
        made = copy.deepcopy(json.loads(TEMPLATE.read_text()))
        made["realm"] = name or f"mlp-{os.getpid()}-{next(self._numbers)}"
        made["clients"] += _clients(list(redirects) or ["*"])
        made.update(more)
        self.admin("POST", "", made)
        return Realm(self, made["realm"])


def clients_of_the_guide() -> list[dict[str, Any]]:
    """The files that the guide has people import."""
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", GUIDE.read_text(), re.DOTALL)]


def _clients(redirects: list[str]) -> list[dict[str, Any]]:
    """The clients as the guide has people make them, for these addresses of a hub."""
    hub, cli = clients_of_the_guide()
    hub |= {"secret": SECRET, "redirectUris": redirects}
    hub["attributes"] |= {"post.logout.redirect.uris": "+"}  # the same addresses
    return [hub, cli]


class Realm:
    """One realm: its people, groups, clients and keys."""

    client_id = "mlp-hub"
    client_secret = SECRET
    cli_client_id = "mlp-cli"

    def __init__(self, keycloak: Keycloak, name: str) -> None:
        self.keycloak = keycloak
        self.name = name
        self.issuer = f"{keycloak.url}/realms/{name}"

    def environ(self, **more: str) -> dict[str, str]:
        """The settings of a hub whose people log in here."""
        return {
            "MLP_LOGIN": "keycloak",
            "MLP_LOGIN_ISSUER": self.issuer,
            "MLP_LOGIN_CLIENT_ID": self.client_id,
            "MLP_LOGIN_CLIENT_SECRET": self.client_secret,
            "MLP_LOGIN_CLI_CLIENT_ID": self.cli_client_id,
            **more,
        }

    def call(self, method: str, path: str = "", body: Any = None, **query: Any) -> Any:
        """Call the REST API for administrators below this realm."""
        return self.keycloak.admin(method, f"/{self.name}{path}", body, **query)

    def set(self, **fields: Any) -> None:
        """Change the realm's own settings."""
        self.call("PUT", "", fields)

    def delete(self) -> None:
        """Remove it with all that is in it."""
        self.call("DELETE")

    # ---------------------------------------------------------------- people

    def add_user(self, name: str, *groups: str, password: str = PASSWORD, **more: Any) -> str:
        """Make a person who is in these groups (by their paths) and return their id: the token's `sub`."""
        for group in groups:
            self.group_id(group)
        return str(
            self.call(
                "POST",
                "/users",
                {
                    "username": name,
                    "enabled": True,
                    "email": f"{name}@example.org",
                    "emailVerified": True,
                    "firstName": name.title(),
                    "lastName": "Example",
                    "credentials": [{"type": "password", "value": password, "temporary": False}],
                    "groups": list(groups),
                    **more,
                },
            )
        )

    def user_id(self, name: str) -> str:
        """Find a person."""
        (found,) = self.call("GET", "/users", username=name, exact="true")
        return str(found["id"])

    def change(self, name: str, **fields: Any) -> None:
        """Change what is known of a person, as `enabled=False`, `username=...` (a realm with editUsernameAllowed), `email=...`."""
        it = f"/users/{self.user_id(name)}"
        self.call("PUT", it, {**self.call("GET", it), **fields})

    def disable(self, name: str) -> None:
        """Let a person in no longer."""
        self.change(name, enabled=False)

    def remove(self, name: str) -> None:
        """Remove a person."""
        self.call("DELETE", f"/users/{self.user_id(name)}")

    def log_out(self, name: str) -> None:
        """End all sessions of a person, as an administrator does."""
        self.call("POST", f"/users/{self.user_id(name)}/logout")

    # ---------------------------------------------------------------- groups

    def group_id(self, path: str) -> str:
        """Find a group by its path (`/ml/red`); it and those above are made where they are not there."""
        found = ""
        for part in path.strip("/").split("/"):
            below = f"/groups/{found}/children" if found else "/groups"
            there = self.call("GET", below, max=1000)
            same = [group["id"] for group in there if group["name"] == part]
            found = same[0] if same else str(self.call("POST", below, {"name": part}))
        return found

    def join(self, name: str, group: str) -> None:
        """Add a person to a group."""
        self.call("PUT", f"/users/{self.user_id(name)}/groups/{self.group_id(group)}")

    def leave(self, name: str, group: str) -> None:
        """Take a person from a group."""
        self.call("DELETE", f"/users/{self.user_id(name)}/groups/{self.group_id(group)}")

    def rename_group(self, path: str, new: str) -> None:
        """Give a group another name, at the same place."""
        it = f"/groups/{self.group_id(path)}"
        self.call("PUT", it, {**self.call("GET", it), "name": new})

    # --------------------------------------------------------------- clients

    def change_client(self, client_id: str, **fields: Any) -> None:
        """Change a client's settings; `attributes` are added to those that are there."""
        (found,) = self.call("GET", "/clients", clientId=client_id)
        attributes = {**found.get("attributes", {}), **fields.pop("attributes", {})}
        self.call("PUT", f"/clients/{found['id']}", {**found, **fields, "attributes": attributes})

    # ------------------------------------------------------------------ keys

    def rotate_keys(self, *, drop_old: bool = True) -> None:
        """Sign with a new key from here on; what the old one signed holds no longer where that is dropped."""
        realm = self.call("GET")
        old = self.call("GET", "/components", parent=realm["id"], type="org.keycloak.keys.KeyProvider")
        best = max(int(one["config"].get("priority", ["0"])[0]) for one in old)
        self.call(
            "POST",
            "/components",
            {
                "name": f"rsa-{next(Keycloak._numbers)}",
                "providerId": "rsa-generated",
                "providerType": "org.keycloak.keys.KeyProvider",
                "parentId": realm["id"],
                "config": {"priority": [str(best + 10)], "algorithm": ["RS256"], "keySize": ["2048"]},
            },
        )
        for one in old:
            if drop_old and one["providerId"] == "rsa-generated":
                self.call("DELETE", f"/components/{one['id']}")


if __name__ == "__main__":
    if sys.argv[1] == "fetch":
        there = ROOT.is_dir()
        fetch()
        print("there" if there else "fetched")
    else:
        keep(Path(sys.argv[2]))
