"""`mlp-hub down`: stop the platform, and with JOBS=stop what runs in it too."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from mlp_hub.cli import processes, state_dir
from mlp_hub.cli.http import request
from mlp_hub.settings import Settings

if TYPE_CHECKING:
    from mlp_hub.executors.sandbox import SandboxState

API = "/services/mlp/api/v1"
MARGIN_S = 5.0  # beyond the grace, for the sandbox itself to end
_ACTIVE = ("admitted", "starting", "running")


def down(settings: Settings, *, stop_jobs: bool) -> int:
    """Stop all processes of the platform; jobs and notebook servers go on unless told otherwise."""
    if not settings.home.exists():
        _say(f"There is no state in {settings.home}; nothing runs")
        return 0
    with state_dir.exclusive(settings, _say):
        suspended = _suspend_jobs(settings) if stop_jobs else 0
        stopped = processes.stop_all(settings)
        ended = _stop_sandboxes(settings) if stop_jobs else 0
        left = sum(1 for run_dir in _run_dirs(settings) if _lives(run_dir))
        if not left and settings.home not in settings.run_dir.parents:
            # it lies in /tmp, because the state directory's path is long; sandboxes hold it while they live
            shutil.rmtree(settings.run_dir, ignore_errors=True)
    _say("MLP Hub is down" if stopped else "MLP Hub was not running")
    if suspended:
        _say(f"{_count(suspended, 'running job')} suspended; resume with %mlp resume NAME")
    if ended:
        _say(f"{_count(ended, 'notebook server or job')} stopped")
    if left:
        _say(f"{_count(left, 'notebook server or job')} still running; the next up finds them again")
    return 0


def _suspend_jobs(settings: Settings) -> int:
    """Ask the service to suspend every job that holds anything, so that each may save a checkpoint."""
    try:
        token = settings.secret("operator_token")
    except OSError:
        return 0

    def active() -> list[tuple[str, str]]:
        answer = request(settings.service_socket, "GET", f"{API}/queue", token=token, timeout=10)
        found = answer.json() if answer.status == 200 else None
        entries = found.get("items", []) if isinstance(found, dict) else found or []
        return [(e["user"], e["name"]) for e in entries if e["phase"] in _ACTIVE]

    jobs = active()
    for user, name in jobs:
        path = f"{API}/users/{quote(user)}/jobs/{quote(name)}:suspend"
        request(settings.service_socket, "PUT", path, token=token, timeout=10)
    deadline = time.monotonic() + settings.grace_s + MARGIN_S
    while jobs and time.monotonic() < deadline and set(active()) & set(jobs):
        time.sleep(0.1)
    return len(jobs)


def _run_dirs(settings: Settings) -> list[Path]:
    """List what may be a sandbox's run directory: jobs' lie side by side, servers' below their users."""
    return [*settings.jobs_run_dir.glob("*/"), *settings.servers_run_dir.glob("*/*/")]


def _inspect(run_dir: Path) -> SandboxState:
    from mlp_hub.executors.sandbox import inspect  # noqa: PLC0415 - only where there are any

    return inspect(str(run_dir))


def _lives(run_dir: Path) -> bool:
    return _inspect(run_dir).phase in ("starting", "running")


def _stop_sandboxes(settings: Settings) -> int:
    living = [run_dir for run_dir in _run_dirs(settings) if _lives(run_dir)]
    if not living:
        return 0
    from mlp_hub.executors import sandbox  # noqa: PLC0415

    for run_dir in living:
        sandbox.stop(str(run_dir), settings.grace_s)
    deadline = time.monotonic() + settings.grace_s + MARGIN_S
    while any(_lives(run_dir) for run_dir in living) and time.monotonic() < deadline:
        time.sleep(0.1)
    for run_dir in living:
        if _lives(run_dir):
            sandbox.kill(str(run_dir))
    return len(living)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
