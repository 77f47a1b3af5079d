"""The supervisor and its components as an operator's command sees them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlp_hub.cli import plan as plans
from mlp_hub.cli import procs
from mlp_hub.cli.errors import Failure
from mlp_hub.settings import Settings

NAMES = ("supervisor", "proxy", "service", "hub")


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


def find(settings: Settings, name: str) -> Running | None:
    """Return the living process of that name; None where there is none."""
    try:
        found = json.loads((settings.private_dir / f"{name}.pid").read_text())
        pid, start, boot = int(found["pid"]), int(found["start"]), str(found["boot"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Running(name, pid, start) if procs.is_alive(pid, start, boot) else None


def state(settings: Settings) -> dict[str, Any]:
    """Return what the supervisor last wrote down; empty where it never did."""
    try:
        found: dict[str, Any] = json.loads((settings.private_dir / "state.json").read_text())
    except (OSError, ValueError):
        return {}
    return found


def start_supervisor(settings: Settings, environ: Mapping[str, str]) -> None:
    """Start it in a session of its own; it outlives this command."""
    log = settings.log_dir / "supervisor.log"
    if log.exists() and log.stat().st_size > settings.log_max << 20:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as out:
        subprocess.Popen(
            plans.supervisor_command(plans.plan_file(settings)),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={key: environ[key] for key in ("PATH", "LANG", "TZ") if key in environ},
            cwd=settings.home,
            start_new_session=True,
            umask=0o022,
        )


def stop_all(settings: Settings) -> bool:
    """Stop the supervisor and all components; return whether there was anything to stop."""
    supervisor = find(settings, "supervisor")
    living = [name for name in NAMES if find(settings, name)]
    if supervisor is not None:
        procs.send(supervisor.pid, signal.SIGTERM)
        deadline = time.monotonic() + 3 * plans.GRACE_S + 5
        while find(settings, "supervisor"):
            if time.monotonic() > deadline:
                raise Failure(
                    f"The supervisor, process {supervisor.pid}, does not end.",
                    f"Its log is {settings.log_dir / 'supervisor.log'}.",
                )
            time.sleep(0.02)
    # without a supervisor, or started by a lost one: the same code stops them from here
    if any(find(settings, name) for name in plans.STOP_ORDER):
        from mlp_hub.cli.supervisor import Supervisor  # noqa: PLC0415 - rarely needed

        plan = plans.read(settings)
        if plan is not None:
            Supervisor(plan).stop()
    return bool(living)


def log_tail(path: Path, lines: int) -> str:
    """Return the last lines of a log."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 64 * 1024))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except OSError:
        return ""
