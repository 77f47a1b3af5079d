"""The supervisor and its components as an operator's command sees them."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlp_hub import durable
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state import identity
from mlp_hub.cli.state import plan as plans
from mlp_hub.cli.supervisor import procs
from mlp_hub.settings import Settings
from mlp_language.render import say


@dataclass(frozen=True, slots=True)
class Running:
    """A living process of the platform."""

    name: str
    pid: int
    start: int  # clock ticks since boot

    @property
    def uptime_s(self) -> float:
        """For how many seconds it has been running."""
        return max(0.0, time.clock_gettime(time.CLOCK_BOOTTIME) - self.start / os.sysconf("SC_CLK_TCK"))


def names(settings: Settings) -> tuple[str, ...]:
    """Name the processes that a hub of these settings consists of."""
    return ("supervisor", "proxy", "data", *settings.services, "hub")


def find(settings: Settings, name: str) -> Running | None:
    """Return the living process of that name that belongs to this state directory; None where there is none."""
    instance = identity.own(settings)
    if instance is None:
        return None  # a new directory, or a copy: what its pid files name is another's
    try:
        found = durable.read_object(settings.private_dir / f"{name}.pid")
        pid, start, boot = int(found["pid"]), int(found["start"]), str(found["boot"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Running(name, pid, start) if procs.is_ours(pid, start, boot, instance) else None


def state(settings: Settings) -> dict[str, Any]:
    """Return what the supervisor last wrote down; empty where it never did, or where that cannot be read."""
    try:
        found = durable.read_object(settings.private_dir / "state.json", "components", "deaths")
    except (OSError, ValueError):
        return {}
    whole = isinstance(found["components"], dict) and isinstance(found["deaths"], list)
    return found if whole and all(isinstance(one, dict) for one in found["components"].values()) else {}


def start_supervisor(settings: Settings, environ: Mapping[str, str]) -> subprocess.Popen[bytes]:
    """Start the supervisor in a separate session; it outlives this command."""
    log = settings.log_dir / "supervisor.log"
    if log.exists() and log.stat().st_size > settings.log_max << 20:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as out:
        return subprocess.Popen(
            plans.supervisor_command(plans.plan_file(settings)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=supervisor_environ(settings, environ),
            cwd=settings.home,
            start_new_session=True,
            umask=0o022,
        )


def supervisor_environ(settings: Settings, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the little that a supervisor needs, and what tells whose it is."""
    kept = {key: environ[key] for key in ("PATH", "LANG", "TZ") if key in environ}
    return kept | {identity.VARIABLE: identity.own(settings) or ""}


def stop_all(settings: Settings) -> bool:
    """Stop the supervisor and all components; return whether there was anything to stop."""
    supervisor = find(settings, "supervisor")
    living = [name for name in names(settings) if find(settings, name)]
    if supervisor is not None:
        procs.send(supervisor.pid, signal.SIGTERM)
        deadline = time.monotonic() + len(names(settings)) * plans.GRACE_S
        while find(settings, "supervisor"):
            if time.monotonic() > deadline:
                raise CommandFailed(
                    say("The supervisor, process {pid}, does not end.", pid=supervisor.pid),
                    say("Its log is {log_dir}.", log_dir=str(settings.log_dir / "supervisor.log")),
                )
            time.sleep(0.02)
    # without a supervisor, or started by a lost one: the same code stops them from here
    plan = plans.read(settings)
    planned = [entry["name"] for entry in plan["components"]] if plan is not None else []
    if plan is not None and any(find(settings, name) or runs_unnoted(settings, name) for name in planned):
        from mlp_hub.cli.supervisor import Supervisor  # noqa: PLC0415 - rarely needed

        Supervisor(plan).stop()
    return bool(living)


def runs_unnoted(settings: Settings, name: str) -> bool:
    """Return whether a component runs without a pid file: its supervisor was killed while starting it.

    The next supervisor ends it, and starts it again.
    """
    instance, plan = identity.own(settings), plans.read(settings)
    if instance is None or plan is None:
        return False
    entries = [entry for entry in plan["components"] if entry["name"] == name]
    return any(procs.of_component(name, entry["argv"], instance) for entry in entries)


def log_tail(path: Path, lines: int) -> str:
    """Return the last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
