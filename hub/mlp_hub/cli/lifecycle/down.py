"""`mlp-hub down`: stop the platform, and with JOBS=stop what runs in it too."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from mlp_hub.cli.commands.isolation import close_all
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.http import request
from mlp_hub.cli.lifecycle.grounds import GROUNDS, ranks_continue
from mlp_hub.cli.state import identity, state_dir
from mlp_hub.cli.state.database import DatabaseSilent
from mlp_hub.cli.supervisor import processes
from mlp_hub.settings import Settings
from mlp_hub.settings.executor_kinds import Ranks
from mlp_language.message import msg
from mlp_language.render import say, says

if TYPE_CHECKING:
    from mlp_hub.sandbox import SandboxState

API = "/services/mlp/api/v1"
MARGIN_S = 5.0  # beyond the grace, for the sandbox itself to end
_ACTIVE = ("admitted", "starting", "running")


def down(settings: Settings, *, stop_jobs: bool) -> int:
    """Stop all processes of the platform; jobs and notebook servers continue by default.

    With `stop_jobs` every running job is suspended, whether the platform was still running or not. The
    job saves a checkpoint where it can, and `%mlp resume` continues it. If the suspension cannot be
    written down, jobs are left running, everything else is stopped, and the exit status is 1. The exit
    status is also 1 if pods of notebook servers cannot be ended.
    """
    if not settings.home.exists():
        _say(say("{home} has no state; nothing runs", home=str(settings.home)))
        return 0
    if source := identity.origin(settings):
        copied = say(
            "{home} is a copy of {source}, and nothing of it runs; {source} is left alone",
            home=str(settings.home),
            source=str(source),
        )
        _say(copied)
        return 0
    if stop_jobs:
        _check_what_runs(settings)
    with state_dir.exclusive(settings, _say):
        ended = _suspend_jobs(settings) if stop_jobs else StoppedWork()
        stopped = processes.stop_all(settings)
        if stop_jobs:
            _stop_work(settings, ended)
        left = [run_dir for run_dir in _run_dirs(settings) if _lives(run_dir)]
        if not left:
            close_all(settings)
        if not left and settings.home not in settings.run_dir.parents:
            # it lies in /tmp, because the state directory's path is long; sandboxes hold it while they live
            shutil.rmtree(settings.run_dir, ignore_errors=True)
    _say(say("MLP Hub is down") if stopped else say("MLP Hub was not running"))
    _print_ended(ended)
    if left:
        at_work = sum(1 for run_dir in left if _is_server(settings, run_dir))
        what = _things(at_work, len(left) - at_work)
        _say(say("{what} still running; the next up finds them again", what=what))
    for fault in ended.faults:
        sys.stderr.write(fault.text() + "\n")
    return ended.faults[0].status if ended.faults else 0


def _check_what_runs(settings: Settings) -> None:
    """Raise `CommandFailed` where this shell names other databases than those of this directory, or where its jobs are elsewhere."""
    from mlp_hub.cli.state import belonging  # noqa: PLC0415 - only where jobs are stopped

    executor = belonging.is_other_executor(settings)
    if executor:
        raise CommandFailed(
            say(
                "The jobs of {home} run with the executor {known}, but this shell has {executor}. Nothing was stopped.",
                home=str(settings.home),
                known=executor,
                executor=settings.executor,
            ),
            say(
                "Stop them with the settings of their start: {as_it_was} mlp-hub down --jobs stop",
                as_it_was=belonging.way_to(belonging.known_of(settings)),
            ),
        )
    try:
        belonging.check_database(settings)
    except DatabaseSilent:
        return  # the rest says what cannot be written down, and stops all else


@dataclass(slots=True)
class StoppedWork:
    """Work that was stopped with the platform, and work that could not be stopped."""

    suspended: set[tuple[str, str]] = field(default_factory=set)  # (user, NAME@RUN) of jobs
    going_on: set[tuple[str, str]] = field(default_factory=set)  # of those whose ranks nobody ended yet
    jobs: int = 0  # sandboxes of jobs, of those that are suspended too
    servers: int = 0
    faults: list[CommandFailed] = field(default_factory=list)


def _stop_work(settings: Settings, ended: StoppedWork) -> None:
    """Stop jobs and notebook servers of a platform that does not run any more."""
    elsewhere = settings.runs.ranks is Ranks.ELSEWHERE
    try:
        recorded = _record_suspensions(settings)
        if elsewhere:
            ended.going_on |= recorded
        else:  # these end below
            ended.suspended |= recorded | ended.going_on
    except CommandFailed as failure:
        ended.faults.append(failure)
    if elsewhere and ended.going_on:
        ended.faults.append(ranks_continue(len(ended.going_on)))
    # a job that ended now and is not written down would seem to be lost
    ended.jobs, ended.servers = _stop_sandboxes(settings, jobs=not ended.faults)
    try:
        ended.servers += GROUNDS[settings.runs.ground].stop_servers(settings)
    except CommandFailed as failure:
        ended.faults.append(failure)


def _print_ended(ended: StoppedWork) -> None:
    if n := len(ended.suspended):
        _say(
            says(
                "1 running job suspended; after the next up: %mlp resume NAME",
                "{n} running jobs suspended; after the next up: %mlp resume NAME",
                n,
            )
        )
    if ended.servers or ended.jobs > n:
        _say(say("{what} stopped", what=_things(ended.servers, max(ended.jobs - n, 0))))


def _suspend_jobs(settings: Settings) -> StoppedWork:
    """Ask the service, if it runs, to suspend every job that holds resources.

    Return the suspended jobs and those that continue.
    """
    try:
        token = settings.secret("operator_token")
    except OSError:
        return StoppedWork()

    def active() -> list[tuple[str, str]]:
        answer = request(settings.service_at, "GET", f"{API}/queue", token=token, timeout=10)
        found = answer.json() if answer.status == 200 else None
        entries = found.get("items", []) if isinstance(found, dict) else found or []
        return [
            (e["user"], f"{e['name']}@{e['run']}")
            for e in entries
            if e.get("kind", "job") == "job" and e["phase"] in _ACTIVE
        ]

    jobs = active()
    for user, name in jobs:
        path = f"{API}/users/{quote(user)}/jobs/{quote(name)}:suspend"
        request(settings.service_at, "PUT", path, token=token, timeout=10)
    deadline = time.monotonic() + settings.grace_s + MARGIN_S
    left = set(jobs)
    while left and time.monotonic() < deadline:
        left &= set(active())
        time.sleep(0.1 if left else 0)
    return StoppedWork(suspended=set(jobs) - left, going_on=left)


def _record_suspensions(settings: Settings) -> set[tuple[str, str]]:
    """Record, while no service runs, a suspension of each job that still holds resources.

    Return the (user, name) of each. The next service finds their ranks ended by `stop`, and continues
    as if it had been asked itself.
    """
    if not (settings.database_url or settings.service_db_file.exists()):
        return set()
    from mlp_hub.domain.errors import MLPError  # noqa: PLC0415 - the database is seldom needed here
    from mlp_hub.domain.jobs.job import HOLDING, Phase, Target  # noqa: PLC0415
    from mlp_hub.store import Database, WrongSchema  # noqa: PLC0415

    wanted = HOLDING - {Phase.FINISHING, Phase.CANCELLING}
    db = Database(settings.service_db_url)
    try:
        db.check_schema(or_older=True)  # the service that ran may have been an older one
        with db.begin() as tx:
            found = tx.jobs.suspend_all(sorted(wanted), (Target.RUN, Target.PREEMPT))
            for uid, _, _ in found:
                tx.events.add(uid, time.time(), "asked", msg("asked to suspend: the hub was stopped"))
    except WrongSchema as error:
        raise CommandFailed(
            say("Running work was not stopped: {error}.", error=str(error)),
            say("Start the hub with that version's `up`, then stop it with its `down JOBS=stop`."),
        ) from error
    except MLPError as error:
        raise CommandFailed(
            say("The running jobs cannot be suspended, and still run: {error}.", error=str(error)),
            say("Start the hub with `up`, then stop it with JOBS=stop."),
        ) from error
    finally:
        db.close()
    return {(user, name) for _, user, name in found}


def _run_dirs(settings: Settings) -> list[Path]:
    """List what may be a sandbox's run directory: jobs' lie side by side, servers' below their users."""
    return [*settings.jobs_run_dir.glob("*/"), *settings.servers_run_dir.glob("*/*/")]


def _inspect(run_dir: Path) -> SandboxState:
    from mlp_hub.sandbox import inspect  # noqa: PLC0415 - only where there are any

    return inspect(str(run_dir))


def _lives(run_dir: Path) -> bool:
    return _inspect(run_dir).phase in ("starting", "running")


def _is_server(settings: Settings, run_dir: Path) -> bool:
    return settings.servers_run_dir in run_dir.parents


def _stop_sandboxes(settings: Settings, *, jobs: bool) -> tuple[int, int]:
    """End notebook servers, and `jobs` too; return how many jobs and how many notebook servers."""
    from mlp_hub import sandbox  # noqa: PLC0415 - only where there are any

    run_dirs = [run_dir for run_dir in _run_dirs(settings) if jobs or _is_server(settings, run_dir)]
    living = [run_dir for run_dir in run_dirs if _lives(run_dir)]
    for run_dir in living:
        sandbox.stop(str(run_dir), settings.grace_s)
    deadline = time.monotonic() + settings.grace_s + MARGIN_S
    while any(_lives(run_dir) for run_dir in living) and time.monotonic() < deadline:
        time.sleep(0.1)
    for run_dir in living:
        if _lives(run_dir):
            sandbox.kill(str(run_dir))
    for run_dir in run_dirs:
        if not _lives(run_dir):  # what a shim that was killed, or a slow end of a process, left behind
            sandbox.remove_leftovers(str(run_dir))
    servers = sum(1 for run_dir in living if _is_server(settings, run_dir))
    return len(living) - servers, servers


def _things(servers: int, jobs: int) -> str:
    counted = [says("1 notebook server", "{n} notebook servers", servers)] if servers else []
    if jobs:
        counted.append(says("1 job", "{n} jobs", jobs))
    return say("{one} and {other}", one=counted[0], other=counted[1]) if len(counted) > 1 else counted[0]


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
