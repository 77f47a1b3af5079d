"""`mlp-hub up`: from whatever there is to a hub that answers and could run a job."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mlp_hub import bindings
from mlp_hub.cli.commands import accounts
from mlp_hub.cli.doctor import certificates
from mlp_hub.cli.doctor.checks import FAIL, run_check
from mlp_hub.cli.errors import CommandFailed, MachineFailure
from mlp_hub.cli.http import request
from mlp_hub.cli.lifecycle.grounds import GROUNDS
from mlp_hub.cli.progress import Progress
from mlp_hub.cli.state import belonging, copies, database, ports, state_dir, uids
from mlp_hub.cli.state import plan as plans
from mlp_hub.cli.supervisor import processes, procs
from mlp_hub.proxy import ProxyMissing
from mlp_hub.settings import Settings, variable_of
from mlp_hub.settings.origins import ONE_NAME_MEANS
from mlp_language.render import padded, say

if TYPE_CHECKING:
    from mlp_hub.sandbox import Capabilities

_NAMED = (
    "MLP_HOME",
    "MLP_PORT",
    "MLP_CONFIG",
    "MLP_DATABASE_URL",
    "MLP_HUB_DATABASE_URL",
    "MLP_EXECUTOR",
    "KUBECONFIG",
    "MLP_KUBERNETES_CONFIG",
    "MLP_KUBERNETES_CONTEXT",
    "MLP_KUBERNETES_NAME",
)
"""Variables that a command on this hub needs where they were set at its `up`."""
START_S = 90.0  # how long the first answer may take on a slow machine
_STARTED: Mapping[str, Callable[[], str]] = {
    "same": lambda: say("already running"),
    "woken": lambda: say("parts that waited for a restart were started at once"),
    "restarted": lambda: say("proxy, service and hub restarted"),
    "adopted": lambda: say("proxy, service and hub found again"),
    "started": lambda: say("proxy, service and hub started"),
}
DEATHS_MAX = 3  # a component that died so often during `up` will not come up by itself


def up(settings: Settings, environ: Mapping[str, str], take: Collection[str] = ()) -> int:
    """Start the parts that do not run, wait until all answer, and print the address to the operator.

    `take` has `belonging.NEW_DATABASE` or `NEW_EXECUTOR` where the directory has to adopt the one of
    the settings.
    """
    _check_receivers(settings)
    progress, ground = Progress(5), GROUNDS[settings.runs.ground]
    with progress.step(say("state")) as told:
        mind = [*state_dir.prepare(settings), *uids.claim(settings)]
        told.append(str(settings.home))
    with state_dir.exclusive(settings, _say), ThreadPoolExecutor(1) as pool:
        _settle(settings)
        probe = pool.submit(_capabilities)
        with progress.step(say("database")) as told:
            mind += _check_belonging(settings, take)
            told.append(_bring_databases(settings))
        with progress.step(ground.title()) as told:
            told.append(ground.prepare(settings, probe.result, take))
        with progress.step(say("processes")) as told:
            plan = make_plan(settings, environ)
            before = processes.state(settings)
            started, child = ensure_supervised(settings, environ, plan)
            told.append(_STARTED[started]())
        provider = pool.submit(_provider_faults, settings if started != "same" else None)
        with progress.step(say("answers")) as notes:
            try:
                wait_until_ready(settings, plan, partial(_how_it_ended, settings, child), before)
            except CommandFailed:
                if started == "started":
                    processes.stop_all(settings)
                raise
            new = accounts.ensure_admin(settings)
            belonging.bind(settings, "hub")
            if new:
                notes.append(say("administrator account made"))
            notes.append(say("login page and service answer"))
        mind = [*mind, *provider.result()]
    _summary(settings, environ, progress.seconds, new_admin=new, mind=mind)
    return 0


def supervise(settings: Settings, environ: Mapping[str, str], take: Collection[str] = ()) -> NoReturn:
    """Run the supervisor in the foreground, for systemd and containers; a child does the rest of `up`. `take` as there."""
    _check_receivers(settings)
    mind = [*state_dir.prepare(settings), *uids.claim(settings)]
    # until the supervisor takes this process's place; the child, which has it too, holds it until all answers
    with state_dir.exclusive(settings, _say):
        if processes.find(settings, "supervisor"):
            raise CommandFailed(
                say("A supervisor of {home} is running already", home=str(settings.home)),
                say("Stop it: mlp-hub down"),
            )
        _settle(settings)
        mind += _check_belonging(settings, take)
        _bring_databases(settings)
        _say(GROUNDS[settings.runs.ground].prepare(settings, _capabilities, take))
        plan = make_plan(settings, environ)
        plans.write(settings, plan)
        supervisor = os.getpid()
        if os.fork() == 0:
            try:
                wait_until_ready(
                    settings, plan, lambda: None if os.getppid() == supervisor else say("has ended")
                )
                new = accounts.ensure_admin(settings)
                belonging.bind(settings, "hub")
                _summary(settings, environ, None, new_admin=new, mind=mind)
            except CommandFailed as failure:
                sys.stderr.write(failure.text() + "\n")
            os._exit(0)
        os.chdir(settings.home)
        os.umask(0o022)
        command = plans.supervisor_command(plans.plan_file(settings))
        env = dict(environ) | processes.supervisor_environ(settings, environ)
        os.execve(command[0], command, env)  # noqa: S606 - no shell is wanted


def _settle(settings: Settings) -> None:
    note = copies.settle(settings)
    if note is not None:
        _say(say("note: {what}", what=note))


def _check_receivers(settings: Settings) -> None:
    """Refuse an address of the operator that the sending process would refuse each time. Raises `SettingsError`."""
    if not settings.audit_webhook:
        return
    from mlp_hub.site_receivers import check_heads_webhook  # noqa: PLC0415 - libraries that most hubs do not need here

    check_heads_webhook(settings)


def _check_belonging(settings: Settings, take: Collection[str]) -> list[str]:
    """Refuse databases and an executor that are not this directory's, before anything is made; return what the operator should know."""
    belonging.check(settings, take)
    moved = belonging.leave_jobs_of_before(settings) if belonging.NEW_DATABASE in take else None
    return [moved] if moved else []


def _bring_databases(settings: Settings) -> str:
    """Have both databases of this version, and the platform's know whose it is; say what that took."""
    outcome = say("up to date")
    if database.changes(settings):
        from mlp_hub.cli.backups.upgrade import bring  # noqa: PLC0415 - a second of imports, needed once a version

        outcome = bring(settings)
    belonging.bind(settings, "platform")
    belonging.keep_numbers(settings)
    return outcome


def _capabilities() -> Capabilities:
    from mlp_hub.sandbox import capabilities  # noqa: PLC0415 - in its own thread, beside other work

    return capabilities()


def make_plan(settings: Settings, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the plan; raise MachineFailure where the proxy is not installed or its certificate cannot be used."""
    certificates.check_files(settings)
    try:
        return plans.make(settings, environ)
    except ProxyMissing as error:
        raise MachineFailure(say("The proxy cannot be started: {error}", error=str(error))) from error


def ensure_supervised(
    settings: Settings, environ: Mapping[str, str], plan: dict[str, Any]
) -> tuple[str, subprocess.Popen[bytes] | None]:
    """Have a supervisor that follows this plan: `same`, `restarted` (what changed), `adopted` or `started`; and it, if just started."""
    before = plans.read(settings)
    supervisor = processes.find(settings, "supervisor")
    if supervisor and before and before.get("id") == plan["id"]:
        if not any(each["waits"] for each in processes.state(settings).get("components", {}).values()):
            return "same", None
        procs.send(
            supervisor.pid, signal.SIGHUP
        )  # it begins anew: what lives goes on, what waits is started, all waits are short again
        return "woken", None
    ours = processes.find(settings, "proxy") or processes.runs_unnoted(settings, "proxy")
    if not ours or _public(before) != _public(plan):
        ports.check_free(settings.bind, settings.port, settings.home)
    plans.write(settings, plan)
    if supervisor:
        procs.send(supervisor.pid, signal.SIGHUP)
        return "restarted", None
    adopted = any(processes.find(settings, name) for name in processes.names(settings))
    child = processes.start_supervisor(settings, environ)
    return "adopted" if adopted else "started", child


def _public(plan: dict[str, Any] | None) -> str | None:
    return plan.get("listens") if plan else None


def wait_until_ready(
    settings: Settings,
    plan: dict[str, Any],
    supervisor_end: Callable[[], str | None],
    before: Mapping[str, Any] | None = None,
) -> None:
    """Return when the login page and the service answer on the public port; raise Failure otherwise.

    `supervisor_end` returns how the supervisor has ended, None while it lives. A component that had
    already died in the state `before` does not count now.
    """
    deadline = time.monotonic() + START_S
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(settings.bind, settings.bind)  # noqa: S104 - compared, not bound
    # asked at their own sockets first, so that the proxy's log does not fill with what is only early
    waiting = {
        say("the login page"): (f"{settings.base}/hub/login", settings.hub_at),
        say("the service"): (settings.base + plans.SERVICE_READY, settings.service_at),
    }
    said = dict.fromkeys(waiting, say("not asked yet"))
    while waiting:
        _check_supervisor(settings, supervisor_end())
        state = processes.state(settings)
        # the state may be an earlier supervisor's with the same plan: a new one that is not noted yet is waited for
        if state.get("plan") == plan["id"] and processes.find(settings, "supervisor"):
            _check_deaths(settings, state, before or {})
            for what, (path, socket) in list(waiting.items()):
                tls = settings.tls is not None
                asked = (
                    request(to, "GET", path, timeout=10, tls=tls) for to in (socket, (host, settings.port))
                )
                bad = next((answer for answer in asked if answer.status != 200), None)
                if bad is None:
                    del waiting[what], said[what]
                else:
                    said[what] = bad.message
        if waiting and time.monotonic() > deadline:
            raise CommandFailed(
                say(
                    "No valid answer within {n} s from {what}.",
                    n=round(START_S),
                    what=tuple(f"{what} ({said[what]})" for what in waiting),
                ),
                say(
                    "The logs are in {log_dir}; `mlp-hub doctor` checks the machine.",
                    log_dir=str(settings.log_dir),
                ),
                details="\n\n".join(_tail(settings, name) for name in processes.names(settings)),
            )
        if waiting:
            time.sleep(0.03)


def _how_it_ended(settings: Settings, child: subprocess.Popen[bytes] | None) -> str | None:
    """Tell how the supervisor ended, `child` if this command started it; None while it lives."""
    if child is None:
        return None if processes.find(settings, "supervisor") else say("is not running any more")
    code = child.poll()
    if code is None:
        return None
    if code < 0:
        return say("was ended by signal {signal}", signal=-code)
    return say("ended with status {code}", code=code)


def _check_supervisor(settings: Settings, how: str | None) -> None:
    """Raise `CommandFailed` where the supervisor has ended: nothing would start what is missing."""
    if how is None:
        return
    raise CommandFailed(
        say("The supervisor {how}, so nothing keeps the hub running.", how=how),
        say(
            "Full log: {log_dir}. `mlp-hub up` starts another supervisor.",
            log_dir=str(settings.log_dir / "supervisor.log"),
        ),
        details=_tail(settings, "supervisor"),
    )


def _check_deaths(settings: Settings, state: dict[str, Any], before: Mapping[str, Any]) -> None:
    earlier: Mapping[str, Any] = (
        before.get("components", {}) if state.get("began") == before.get("began") else {}
    )
    for name, component in state["components"].items():
        deaths = component["restarts"] - earlier.get(name, {"restarts": 0})["restarts"]
        if component["waits"] and deaths >= DEATHS_MAX:
            raise CommandFailed(
                say(
                    "The {name} failed {n} times: it {how}.",
                    name=name,
                    how=component["last_exit"],
                    n=deaths,
                ),
                say("Full log: {log_dir}", log_dir=str(settings.log_dir / f"{name}.log")),
                details=_tail(settings, name),
            )


def _tail(settings: Settings, name: str) -> str:
    return f"--- {name}.log\n{processes.log_tail(settings.log_dir / f'{name}.log', 15)}"


def _holds_a_password(value: str) -> bool:
    """Whether a line that people copy must not show it; `down` then takes it from the plan."""
    return bindings.shown(value) != value


def stop_command(settings: Settings, environ: Mapping[str, str], program: str) -> str:
    """Return the line that stops this hub, as it works from any directory and any shell."""
    root = Path(program).resolve().parent.parent.parent  # of a checkout's .venv/bin/mlp-hub
    if (root / "Makefile").is_file() and Path(program).parent.parent.name == ".venv":
        command = f"make -C {shlex.quote(str(root))} down"
    else:
        command = f"{shlex.quote(str(Path(program).resolve()) if os.sep in program else program)} down"
    # what says which hub is meant, where it is not the one that the program takes by itself, and where its jobs run
    named = {key: environ[key] for key in _NAMED if environ.get(key) and not _holds_a_password(environ[key])}
    paths = {"MLP_HOME": settings.home, "MLP_CONFIG": settings.config}
    if (config := settings.runs.config) is not None:
        paths |= dict.fromkeys((config.variable, variable_of(config.setting)), settings.config_file)
    # as they were meant, absolute
    named |= {key: str(path) for key, path in paths.items() if key in named and path is not None}
    return " ".join([*(f"{key}={shlex.quote(value)}" for key, value in named.items()), command])


def _provider_faults(settings: Settings | None) -> list[str]:
    """Return what is wrong with the provider that people log in with, as `doctor` finds it; None: it is not asked."""
    if settings is None or not settings.login_provider:
        return []
    from mlp_hub.cli.doctor import login as checks_login  # noqa: PLC0415 - most hubs have no provider

    bad = [found for found in run_check("login", checks_login.login, settings) if found.status == FAIL]
    return [" ".join(filter(None, (found.found, found.remedy))) for found in bad]


def _people(settings: Settings, panel: str) -> str:
    if settings.login_provider:
        return say("log in with {title}", title=settings.login_name)
    return say("sign up on the login page; you approve them under {panel}", panel=panel)


def _summary(
    settings: Settings, environ: Mapping[str, str], seconds: float | None, *, new_admin: bool, mind: list[str]
) -> None:
    took = f" ({seconds:.1f} s)" if seconds is not None else ""
    secret = settings.secret_file("admin-password")
    # only while nobody can have changed it: later the terminal's history would hold a wrong or a live password
    password = (
        say(
            "first password {password} (kept in {file})",
            password=settings.secret("admin-password"),
            file=str(secret),
        )
        if new_admin
        else say("the first password is in {file}", file=str(secret))
    )
    command = stop_command(settings, environ, sys.argv[0])
    if settings.bind not in ("127.0.0.1", "::1", "localhost") and not settings.url.startswith("https:"):
        mind = [
            say("it listens for other machines too: put TLS in front, or passwords are sent unencrypted"),
            *mind,
        ]
        if not settings.public_url and settings.origins.apart:
            mind = [
                *mind,
                say("browsers of other machines need names: set MLP_PUBLIC_URL and MLP_USERS_DOMAIN"),
            ]
    if not settings.origins.apart:
        mind = [ONE_NAME_MEANS, *mind]
    panel = f"{settings.url}services/mlp/admin/users"
    rows = [
        (say("Open"), settings.url),
        (say("Notebooks"), settings.origins.servers),
        (say("Log in"), f"{settings.admin_name}, {password}"),
        (say("People"), _people(settings, panel)),
        (say("State"), str(settings.home)),
        (say("Stop"), command),
        ("", say("(running jobs continue; with JOBS=stop they are suspended)")),
        *((say("Warning"), what) for what in mind),
    ]
    lines = "".join(f"  {padded(name, 9)} {what}\n" for name, what in rows)
    _say(f"\n{say('MLP Hub is up')}{took}\n\n{lines}")


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
