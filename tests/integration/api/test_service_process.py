"""The service as a process: `python -m mlp_hub.app`, its sockets, its end, and what it leaves."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub.settings import Settings
from mlp_hub.store import migrate
from support.waiting import PATIENCE_S, wait_for

HEALTH = "/services/mlp/api/v1/health"
READY = "/services/mlp/api/v1/ready"


def ask(path: Path, target: str = HEALTH, host: str = "127.0.0.1") -> int:
    """Send a request over a UNIX socket; 0 when nobody answers."""
    connection = http.client.HTTPConnection("localhost", timeout=PATIENCE_S)
    try:
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.sock.settimeout(PATIENCE_S)
        connection.sock.connect(str(path))
        connection.request("GET", target, headers={"Host": host})
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def wait_ready(settings: Settings, process: subprocess.Popen[bytes]) -> None:
    def is_ready() -> bool:
        assert process.poll() is None, process.stderr and process.stderr.read()
        return ask(settings.service_socket, READY) == 200

    wait_for(is_ready)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    found = Settings.load({"MLP_HOME": str(tmp_path), "MLP_EXECUTOR": "simulated", "MLP_PORT": "21001"})
    for path in (found.private_dir, found.tenant_dir, found.secrets_dir, found.db_dir, found.jobs_run_dir):
        path.mkdir(parents=True, exist_ok=True)
    for name in ("service_token", "cookie_secret", "proxy_token"):
        found.secret_file(name).write_text("x" * 32)
    migrate.upgrade(found.service_db_url)
    return found


@contextlib.contextmanager
def started(settings: Settings) -> Iterator[subprocess.Popen[bytes]]:
    env = {**os.environ, **settings.to_environ()}
    process = subprocess.Popen([sys.executable, "-m", "mlp_hub.app"], env=env, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_it_listens_on_two_sockets_ends_on_sigterm_and_leaves_nothing(settings: Settings) -> None:
    with started(settings) as process:
        wait_ready(settings, process)
        assert stat.S_IMODE(settings.service_socket.stat().st_mode) == 0o600
        assert stat.S_IMODE(settings.tenant_service_socket.stat().st_mode) == 0o666
        assert ask(settings.tenant_service_socket, host="anything") == 200
        assert ask(settings.service_socket, host="evil.example") == 403
        assert ask(settings.service_socket, "/services/mlp/api/v1/auth") == 401
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, errors
    assert list(settings.private_dir.iterdir()) == list(settings.tenant_dir.iterdir()) == []
    assert b"Traceback" not in errors


def test_it_is_found_again_where_another_took_its_sockets_name(settings: Settings) -> None:
    with started(settings) as process:
        wait_ready(settings, process)
        settings.service_socket.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(settings.service_socket))
            wait_ready(settings, process)


def test_it_starts_again_over_the_sockets_of_one_that_was_killed(settings: Settings) -> None:
    with started(settings) as process:
        wait_ready(settings, process)
        process.kill()
        process.wait()
        assert settings.service_socket.exists()
        with started(settings) as second:
            wait_ready(settings, second)


def test_a_second_one_on_the_same_state_says_why_it_cannot_run(settings: Settings) -> None:
    with started(settings) as process:
        wait_ready(settings, process)
        with started(settings) as second:
            _, errors = second.communicate(timeout=PATIENCE_S)
        assert second.returncode == 1
        assert b"cannot run" in errors
        assert b"Traceback" not in errors
        assert ask(settings.service_socket) == 200


def test_it_does_not_import_what_it_does_not_need(settings: Settings) -> None:
    code = (
        "import sys, mlp_hub.app as app\n"
        "from mlp_hub.settings import Settings; import os\n"
        "import asyncio\n"
        "settings = Settings.load(os.environ)\n"
        "app.ServiceProcess(settings, asyncio.run(app.backend_of(settings).make(settings)))\n"
        "heavy = {'jupyterhub', 'pydantic', 'requests', 'alembic', 'numpy', 'traitlets', 'sqlalchemy.orm',\n"
        "  'mlp_hub.sandbox', 'mlp_hub.sandbox.shim'}\n"  # its jobs are simulated
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    env = {**os.environ, **settings.to_environ()}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
