"""A PgBouncer in front of a PostgreSQL of the tests: Debian's, which is installed where that can be done."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from support.ports import free_port
from support.stores.postgres import PostgresServer
from support.waiting import PATIENCE_S, wait_for

CONFIG = """[databases]
* = host={sockets} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = {mode}
default_pool_size = 20
ignore_startup_parameters = extra_float_digits
"""


def program() -> str:
    """Return PgBouncer; skip the test where it is not installed and cannot be."""
    path = f"{os.environ['PATH']}:/usr/sbin"
    if shutil.which("pgbouncer", path=path) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install = ["apt-get", "install", "-yq", "--no-install-recommends", "pgbouncer"]
        subprocess.run(
            install, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"}, capture_output=True, check=False
        )
    found = shutil.which("pgbouncer", path=path)
    if found is None:
        pytest.skip("PgBouncer is not installed: apt-get install pgbouncer")
    return found


@contextmanager
def pgbouncer(server: PostgresServer, mode: str, folder: Path) -> Iterator[int]:
    """Run one in a mode; hand out its port."""
    port = free_port()
    config, log = folder / "pgbouncer.ini", folder / "pgbouncer.log"
    config.write_text(CONFIG.format(sockets=server.sockets, port=port, mode=mode))
    config.chmod(0o644)
    who = ["setpriv", "--pdeathsig", "KILL"]
    if os.geteuid() == 0:  # it refuses root, and PostgreSQL's sockets are nobody's
        who += ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    with log.open("wb") as said, config.open() as given:
        # its file is in a folder of root's
        command = [*who, "--", program(), "/dev/stdin"]
        process = subprocess.Popen(command, stdin=given, stdout=said, stderr=said, cwd="/")
    try:

        def answers() -> bool:
            assert process.poll() is None, log.read_text()
            try:
                psycopg.connect(f"postgresql://postgres@127.0.0.1:{port}/postgres").close()
            except psycopg.OperationalError:
                return False
            return True

        wait_for(answers, message="for PgBouncer")
        yield port
    finally:
        process.kill()
        process.wait(PATIENCE_S)
