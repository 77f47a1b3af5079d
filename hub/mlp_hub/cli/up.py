"""`mlp-hub up`: from whatever there is to a hub that answers and could run a job."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mlp_hub.cli import accounts, database, ports, processes, procs, state_dir
from mlp_hub.cli import plan as plans
from mlp_hub.cli.errors import Failure, MachineFailure
from mlp_hub.cli.http import request
from mlp_hub.cli.progress import Progress
from mlp_hub.proxy import ProxyMissing
from mlp_hub.settings import Settings

if TYPE_CHECKING:
    from mlp_hub.executors.sandbox import Capabilities

START_S = 90.0  # how long the first answer may take on a slow machine
DEATHS_MAX = 3  # a component that died so often during `up` will not come up by itself
HEALTH = "/services/mlp/api/v1/health"


def up(settings: Settings, environ: Mapping[str, str]) -> int:
    """Start what is not running, wait until all of it answers, and tell the operator where it is."""
    progress = Progress(5)
    with progress.step("state") as told:
        state_dir.prepare(settings)
        told.append(str(settings.home))
    with state_dir.exclusive(settings, _say), ThreadPoolExecutor(1) as pool:
        probe = pool.submit(_capabilities)
        _migrate(settings, progress)
        with progress.step("sandbox") as told:
            told.append(check_sandbox(settings, probe.result()))
        with progress.step("processes") as told:
            plan = make_plan(settings, environ)
            started = ensure_supervised(settings, environ, plan)
            told.append("already running" if started == "same" else f"proxy, service and hub {started}")
        with progress.step("answers") as told:
            try:
                wait_until_ready(settings, plan)
            except Failure:
                if started == "started":
                    processes.stop_all(settings)
                raise
            new = accounts.ensure_admin(settings)
            if new:
                told.append("account of the administrator made")
            told.append("login page and service answer")
    _summary(settings, environ, progress.seconds, new_admin=new)
    return 0


def supervise(settings: Settings, environ: Mapping[str, str]) -> NoReturn:
    """Run the supervisor in the foreground, for systemd and containers; a child does the rest of `up`."""
    state_dir.prepare(settings)
    if processes.find(settings, "supervisor"):
        raise Failure(f"A supervisor of {settings.home} is running already", "Stop it: mlp-hub down")
    if not database.is_current(settings):
        database.upgrade(settings)
    _say(check_sandbox(settings, _capabilities()))
    plan = make_plan(settings, environ)
    plans.write(settings, plan)
    if os.fork() == 0:
        try:
            wait_until_ready(settings, plan)
            new = accounts.ensure_admin(settings)
            _summary(settings, environ, None, new_admin=new)
        except Failure as failure:
            sys.stderr.write(failure.text() + "\n")
        os._exit(0)
    os.chdir(settings.home)
    os.umask(0o022)
    command = plans.supervisor_command(plans.plan_file(settings))
    os.execv(command[0], command)  # noqa: S606 - no shell is wanted


def _migrate(settings: Settings, progress: Progress) -> None:
    with progress.step("database") as told:
        if database.is_current(settings):
            told.append("up to date")
            return
        # an old service must not meet the new tables; jobs and notebook servers do not notice
        processes.stop_all(settings)
        before = database.upgrade(settings)
        told.append(
            "made" if before is None else f"brought from revision {before} to {database.newest_revision()}"
        )


def _capabilities() -> Capabilities:
    from mlp_hub.executors.sandbox import capabilities  # noqa: PLC0415 - in its own thread, beside other work

    return capabilities()


def check_sandbox(settings: Settings, found: Capabilities) -> str:
    """Describe the sandbox in force; raise MachineFailure where there is none and that was not allowed."""
    if found.mode == "open" or (found.mode is None and settings.executor == "simulated"):
        return "NONE: users are not kept apart"
    if found.mode is None:
        lacking = [f"  {m.what}: {m.effect}. {m.remedy}" for m in found.missing]
        raise MachineFailure(
            "This machine has no sandbox, so users and jobs could not be kept apart.",
            "Mend what is named above, or accept that all users can read and stop everything: "
            "MLP_ALLOW_NO_SANDBOX=1 mlp-hub up",
            details="\n".join(lacking),
        )
    limits = (
        f"cgroup {found.cgroup}" if found.cgroup != "none" else "no cgroups: limits are watched, not enforced"
    )
    return f"bubblewrap {found.bwrap_version} ({found.mode}), {limits}"


def make_plan(settings: Settings, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the plan; raise MachineFailure where the proxy is not installed."""
    try:
        return plans.make(settings, environ)
    except ProxyMissing as error:
        raise MachineFailure(f"The proxy cannot be started: {error}") from error


def ensure_supervised(settings: Settings, environ: Mapping[str, str], plan: dict[str, Any]) -> str:
    """Have a supervisor that follows this plan: `same`, `restarted` (what changed) or `started`."""
    before = plans.read(settings)
    supervisor = processes.find(settings, "supervisor")
    if supervisor and before and before.get("id") == plan["id"]:
        return "same"
    if not processes.find(settings, "proxy") or _public(before) != _public(plan):
        ports.check_free(settings.bind, settings.port)
    plans.write(settings, plan)
    if supervisor:
        procs.send(supervisor.pid, signal.SIGHUP)
        return "restarted"
    adopted = any(processes.find(settings, name) for name in plans.STOP_ORDER)
    processes.start_supervisor(settings, environ)
    return "found again" if adopted else "started"


def _public(plan: dict[str, Any] | None) -> str | None:
    return plan.get("url") if plan else None


def wait_until_ready(settings: Settings, plan: dict[str, Any]) -> None:
    """Return when the login page and the service answer on the public port; raise Failure otherwise."""
    deadline = time.monotonic() + START_S
    host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "::1"}.get(settings.bind, settings.bind)  # noqa: S104 - compared, not bound
    # asked at their own sockets first, so that the proxy's log does not fill with what is only early
    waiting = {
        "the login page": ("/hub/login", settings.hub_socket),
        "the service": (HEALTH, settings.service_socket),
    }
    while waiting:
        state = processes.state(settings)
        if state.get("plan") == plan["id"]:
            _check_deaths(settings, state)
            for what, (path, socket) in list(waiting.items()):
                if all(
                    request(to, "GET", path, timeout=10).status == 200
                    for to in (socket, (host, settings.port))
                ):
                    del waiting[what]
        if waiting and time.monotonic() > deadline:
            raise Failure(
                f"After {START_S:.0f} s {' and '.join(waiting)} did not answer.",
                f"The logs lie in {settings.log_dir}; `mlp-hub doctor` looks at the machine.",
                details="\n\n".join(_tail(settings, name) for name in processes.NAMES),
            )
        if waiting:
            time.sleep(0.03)


def _check_deaths(settings: Settings, state: dict[str, Any]) -> None:
    for name, component in state["components"].items():
        if component["waits"] and component["restarts"] >= DEATHS_MAX:
            raise Failure(
                f"The {name} does not stay up: it {component['last_exit']}, {component['restarts']} times.",
                f"All of its log: {settings.log_dir / f'{name}.log'}",
                details=_tail(settings, name),
            )


def _tail(settings: Settings, name: str) -> str:
    return f"--- {name}.log\n{processes.log_tail(settings.log_dir / f'{name}.log', 15)}"


def stop_command(settings: Settings, environ: Mapping[str, str], program: str) -> str:
    """Return the line that stops this hub, as it works from any directory and any shell."""
    root = Path(program).resolve().parent.parent.parent  # of a checkout's .venv/bin/mlp-hub
    if (root / "Makefile").is_file() and Path(program).parent.parent.name == ".venv":
        command = f"make -C {shlex.quote(str(root))} down"
    else:
        command = f"{shlex.quote(str(Path(program).resolve()) if os.sep in program else program)} down"
    # what says which hub is meant, where it is not the one that the program takes by itself
    named = {key: environ[key] for key in ("MLP_HOME", "MLP_PORT", "MLP_CONFIG") if environ.get(key)}
    paths = {"MLP_HOME": settings.home, "MLP_CONFIG": settings.config}
    named |= {key: str(path) for key, path in paths.items() if key in named}  # as they were meant, absolute
    return " ".join([*(f"{key}={shlex.quote(value)}" for key, value in named.items()), command])


def _summary(
    settings: Settings, environ: Mapping[str, str], seconds: float | None, *, new_admin: bool
) -> None:
    took = f" ({seconds:.1f} s)" if seconds is not None else ""
    secret = settings.secret_file("admin-password")
    # only while nobody can have changed it: later the terminal's history would hold a wrong or a live password
    password = (
        f"first password {settings.secret('admin-password')} (kept in {secret})"
        if new_admin
        else f"the first password lies in {secret}"
    )
    command = stop_command(settings, environ, sys.argv[0])
    outside = settings.bind not in ("127.0.0.1", "::1", "localhost")
    note = (
        "  Mind      it listens for other machines too: put TLS in front, or passwords travel readable\n"
        if outside
        else ""
    )
    _say(
        f"""
MLP Hub is up{took}

  Open      {settings.url}
  Log in    {settings.admin_name}, {password}
  People    sign up on the login page; you approve them under {settings.url}services/mlp/admin/users
  State     {settings.home}
  Stop      {command}
            (running jobs go on; with JOBS=stop they are suspended)
{note}"""
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
