"""`mlp-hub pod PART`: a part of the hub in its own pod, as the Helm chart starts it.

A pod's state directory begins empty. Its secrets come from a Secret of the cluster, its databases and files from elsewhere. The process
takes the place of this one, so that the cluster's signals and probes are its own.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NoReturn

import mlp_hub
from mlp_hub import durable
from mlp_hub.cli.commands import accounts
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.http import request
from mlp_hub.cli.lifecycle import pod_tables
from mlp_hub.cli.state import belonging, identity, state_dir
from mlp_hub.cli.state import plan as plans
from mlp_hub.settings import Settings
from mlp_language.render import say

MOUNTED = Path("/srv/secrets")
"""Contract: directory at which the chart mounts a part's secrets, a file each."""
DATABASE_PASSWORD = "database_password"  # noqa: S105 - a name
"""Contract: name of the secret with the password of the chart's trial database."""
ADMIN_S = 600.0
"""Safety: seconds for which the hub is waited for before the first administrator is made."""
LOOK_S = 1.0
"""Tuning: seconds between two looks at a database or at the hub."""


def run(settings: Settings, environ: Mapping[str, str], part: str, mounted: Path = MOUNTED) -> NoReturn:
    """Become a part; raise `CommandFailed` where it cannot start."""
    prepare(settings, mounted)
    if part == "service":
        pod_tables.wait_for_tables(settings)
    argv, variables = PARTS[part](settings)
    env = {**environ, **os.environ, **variables, "MLP_COMPONENT": part}
    os.chdir(settings.home)
    os.umask(0o022)
    if part == "hub":
        _make_admin_later(settings)
    os.execve(argv[0], argv, env)  # noqa: S606 - no shell is wanted


def prepare(settings: Settings, mounted: Path) -> None:
    """Make the directories, and have the mounted secrets in them and in the environment."""
    state_dir.prepare_folders(settings)
    take_secrets(settings, mounted)
    os.environ.update(password_of(settings))


def take_secrets(settings: Settings, mounted: Path) -> None:
    """Copy the mounted secrets to where all parts look for them; nothing where none are mounted."""
    if not mounted.is_dir():
        return
    for path in mounted.iterdir():
        if path.is_file():  # a mount has directories of its own beside them
            durable.write(settings.secret_file(path.name), path.read_text())


def password_of(settings: Settings) -> dict[str, str]:
    """Return the variable by which PostgreSQL's library finds the trial database's password, if there is one."""
    password = settings.secret_if_made(DATABASE_PASSWORD)
    return {"PGPASSWORD": password} if password else {}


def _hub(settings: Settings) -> tuple[list[str], dict[str, str]]:
    config = Path(mlp_hub.__file__).parent / "hub_integration" / "jupyterhub_config.py"
    instance = identity.own(settings)
    variables = {"JUPYTERHUB_CRYPT_KEY": settings.secret("crypt_key")}
    if instance is not None:
        variables[identity.VARIABLE] = instance
    return [sys.executable, "-m", "mlp_hub.hub_integration", "-f", str(config)], variables


def _service(_: Settings) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "mlp_hub.app", "1"], {}


def _data(_: Settings) -> tuple[list[str], dict[str, str]]:
    return [sys.executable, "-m", "mlp_hub.dav"], {}


def _proxy(settings: Settings) -> tuple[list[str], dict[str, str]]:
    tokens = {"CONFIGPROXY_AUTH_TOKEN": "proxy_token", "MLP_GATEWAY_TOKEN": "gateway_token"}
    return plans.proxy_command(settings), {name: settings.secret(of) for name, of in tokens.items()}


PARTS: Mapping[str, Callable[[Settings], tuple[list[str], dict[str, str]]]] = {
    "hub": _hub,
    "service": _service,
    "data": _data,
    "proxy": _proxy,
}
"""Command line of each part, and its variables in addition to those of its pod."""


def _make_admin_later(settings: Settings) -> None:
    """Make the first administrator in a child, once the hub answers; this process is about to become the hub."""
    if os.fork():
        return
    status = 1
    try:
        until = time.monotonic() + ADMIN_S
        health = settings.base + plans.HUB_HEALTH
        while request(settings.hub_at, "GET", health, timeout=10).status != 200 and time.monotonic() < until:
            time.sleep(LOOK_S)
        if accounts.ensure_admin(settings):
            sys.stdout.write(say("administrator account made") + "\n")
            sys.stdout.flush()  # what follows flushes nothing
        belonging.bind(settings, "hub")
        status = 0
    except CommandFailed as failure:
        sys.stderr.write(failure.text() + "\n")
        sys.stderr.flush()
    finally:
        os._exit(status)
