"""`mlp-hub down`: stop the platform, and with JOBS=stop what runs in it too."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from mlp_hub.cli import processes, state_dir
from mlp_hub.cli.errors import Failure
from mlp_hub.cli.http import request
from mlp_hub.settings import Settings

if TYPE_CHECKING:
    from mlp_hub.executors.sandbox import SandboxState

API = "/services/mlp/api/v1"
MARGIN_S = 5.0  # beyond the grace, for the sandbox itself to end
_ACTIVE = ("admitted", "starting", "running")


def down(settings: Settings, *, stop_jobs: bool) -> int:
    """Stop all processes of the platform; jobs and notebook servers go on unless told otherwise.

    With `stop_jobs` every job that runs is suspended, whether the platform was still running or not: it saves a
    checkpoint where it can, and `%mlp resume` lets it go on. Raises Failure, before anything of a job is stopped,
    where that cannot be written down.
    """
    if not settings.home.exists():
        _say(f"There is no state in {settings.home}; nothing runs")
        return 0
    with state_dir.exclusive(settings, _say):
        suspended = _suspend_jobs(settings) if stop_jobs else set()
        stopped = processes.stop_all(settings)
        if stop_jobs:
            suspended |= _record_suspensions(settings)
        jobs, servers = _stop_sandboxes(settings) if stop_jobs else (0, 0)
        left = [run_dir for run_dir in _run_dirs(settings) if _lives(run_dir)]
        if not left and settings.home not in settings.run_dir.parents:
            # it lies in /tmp, because the state directory's path is long; sandboxes hold it while they live
            shutil.rmtree(settings.run_dir, ignore_errors=True)
    _say("MLP Hub is down" if stopped else "MLP Hub was not running")
    if suspended:
        _say(f"{_count(len(suspended), 'running job')} suspended; after the next up: %mlp resume NAME")
    if servers or jobs > len(suspended):
        _say(f"{_things(servers, max(jobs - len(suspended), 0))} stopped")
    if left:
        at_work = sum(1 for run_dir in left if _is_server(settings, run_dir))
        _say(f"{_things(at_work, len(left) - at_work)} still running; the next up finds them again")
    return 0


def _suspend_jobs(settings: Settings) -> set[tuple[str, str]]:
    """Ask the service, if it runs, to suspend every job that holds anything; return their (user, name)."""
    try:
        token = settings.secret("operator_token")
    except OSError:
        return set()

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
    return set(jobs)


def _record_suspensions(settings: Settings) -> set[tuple[str, str]]:
    """Write down, while no service runs, that what still holds anything is to be suspended; return its (user, name).

    The next service finds their ranks ended by `stop` and takes it from there, as if it had been asked itself.
    """
    if not (settings.database_url or settings.service_db_file.exists()):
        return set()
    from mlp_hub.domain.errors import MLPError  # noqa: PLC0415 - the database is seldom needed here
    from mlp_hub.domain.job import HOLDING, Phase, Target  # noqa: PLC0415
    from mlp_hub.store import Database, WrongSchema  # noqa: PLC0415

    wanted = HOLDING - {Phase.FINISHING, Phase.CANCELLING}
    db = Database(settings.service_db_url)
    try:
        db.check_schema(or_older=True)  # the service that ran may have been an older one
        with db.begin() as tx:
            found = tx.jobs.suspend_all(sorted(wanted), (Target.RUN, Target.PREEMPT))
            for uid, _, _ in found:
                tx.events.add(uid, time.time(), "asked", "asked to suspend: the hub was stopped")
    except WrongSchema as error:
        raise Failure(
            f"What runs was left running: {error}.",
            "Start the hub with that version's `up`, then stop it with its `down JOBS=stop`.",
        ) from error
    except MLPError as error:
        raise Failure(
            f"The running jobs cannot be suspended, and were left running: {error}.",
            "Start the hub with `up`, then stop it with JOBS=stop.",
        ) from error
    finally:
        db.close()
    return {(user, name) for _, user, name in found}


def _run_dirs(settings: Settings) -> list[Path]:
    """List what may be a sandbox's run directory: jobs' lie side by side, servers' below their users."""
    return [*settings.jobs_run_dir.glob("*/"), *settings.servers_run_dir.glob("*/*/")]


def _inspect(run_dir: Path) -> SandboxState:
    from mlp_hub.executors.sandbox import inspect  # noqa: PLC0415 - only where there are any

    return inspect(str(run_dir))


def _lives(run_dir: Path) -> bool:
    return _inspect(run_dir).phase in ("starting", "running")


def _is_server(settings: Settings, run_dir: Path) -> bool:
    return settings.servers_run_dir in run_dir.parents


def _stop_sandboxes(settings: Settings) -> tuple[int, int]:
    """End all that lives; return how many jobs and how many notebook servers."""
    from mlp_hub.executors import sandbox  # noqa: PLC0415 - only where there are any

    living = [run_dir for run_dir in _run_dirs(settings) if _lives(run_dir)]
    for run_dir in living:
        sandbox.stop(str(run_dir), settings.grace_s)
    deadline = time.monotonic() + settings.grace_s + MARGIN_S
    while any(_lives(run_dir) for run_dir in living) and time.monotonic() < deadline:
        time.sleep(0.1)
    for run_dir in living:
        if _lives(run_dir):
            sandbox.kill(str(run_dir))
    for run_dir in _run_dirs(settings):
        if not _lives(run_dir):  # what a shim that was killed, or a slow end of a process, left behind
            sandbox.sweep(str(run_dir))
    servers = sum(1 for run_dir in living if _is_server(settings, run_dir))
    return len(living) - servers, servers


def _things(servers: int, jobs: int) -> str:
    counted = ((servers, "notebook server"), (jobs, "job"))
    return " and ".join(_count(number, what) for number, what in counted if number)


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
