"""The sandbox of a notebook server: how it is made, when it is ready, how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import aiohttp

from mlp_hub import sandbox
from mlp_hub.sandbox import Bind, Limits, Link, SandboxSpec
from mlp_language.message import NOTHING, Message, msg
from mlp_spawner.environment import Who
from mlp_spawner.grant import Grant
from mlp_spawner.paths import Paths

HERE = Path(__file__).parent
SESSIONS_BELIEVED_S = 60
"""Seconds for which a server trusts the hub's confirmation of a user: after them a logout takes effect."""
ALIVE = (sandbox.SandboxPhase.STARTING, sandbox.SandboxPhase.RUNNING)


def spec(
    paths: Paths,
    who: Who,
    grant: Grant,
    *,
    env: Mapping[str, str],
    uid: int | None,
    home_dir: Path,
    stored: Sequence[Bind] = (),
    tenant_socket_dir: str,
    args: Sequence[str],
    processes: int = 2048,
    tmp_mib: int = 512,
) -> SandboxSpec:
    """Describe the sandbox of a server, with its most processes and the MiB of its /tmp."""
    binds = (
        *sandbox.environment_binds(who.python),
        Bind(tenant_socket_dir, tenant_socket_dir),
        Bind("/etc/pip.conf", "/etc/pip.conf", optional=True),
        *stored,
    )
    # links, not binds: a newer version puts other directories in the place of these while the server runs, and a bind
    # would stay with what was removed
    links = tuple(Link(f"/etc/{name}", str(HERE / "etc" / name)) for name in ("ipython", "jupyter"))
    # -P: the launcher's own directory must not be searched for modules; -s: nor what its user installed, which may end it.
    # Kernels and terminals have that
    launcher = (who.python, "-P", "-s", str(HERE / "launcher.py"))
    own = [f"--MappingKernelManager.default_kernel_name={grant.kernel}"] if grant.kernel else []
    sessions = f"--HubAuth.cache_max_age={SESSIONS_BELIEVED_S}"
    argv = (*launcher, "--ServerApp.sock=/handed-in", sessions, *own, *args)
    return SandboxSpec(
        id=f"notebook-{who.user}-{paths.server or 'default'}",
        argv=argv,
        env=dict(env),
        home_dir=str(home_dir),
        home_mount=who.home,
        log_dir=str(paths.log_dir),
        user_name=who.user,
        uid=uid,
        binds=binds,
        links=links,
        cwd=who.home,
        limits=Limits(cpu=round(grant.cpu * 1000), ram_mib=grant.ram, pids=processes, tmp_mib=tmp_mib),
        network="outbound" if grant.network == "outbound" and sandbox.capabilities().outbound else "none",
        listen=str(paths.socket),
        memory_events=True,
    )


def samples() -> list[Path]:
    """List the sample notebooks that come with the `mlp` package."""
    found = importlib.util.find_spec("mlp")
    if found is None or found.origin is None:
        return []
    return sorted((Path(found.origin).parent / "samples").glob("*.ipynb"))


async def answers(socket: Path, path: str) -> None:
    """Return when something answers on the socket with less than a server fault.

    The socket listens from the start, so that a request simply waits for its server.
    """
    await answers_at(f"http://server{path}", lambda: aiohttp.UnixConnector(path=str(socket)))


async def answers_at(url: str, connector: Callable[[], aiohttp.BaseConnector | None] = lambda: None) -> None:
    """Return when something answers at the URL with less than a server fault."""
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            async with (
                aiohttp.ClientSession(
                    connector=connector(), timeout=aiohttp.ClientTimeout(total=60)
                ) as session,
                session.get(url, allow_redirects=False) as answer,
            ):
                if answer.status < 500:
                    return
        await asyncio.sleep(0.1)


def note_end(state: sandbox.SandboxState, file: Path) -> None:
    """Write down for its user that a server ran out of memory."""
    if state.exit is not None and state.exit.oom and not state.exit.stopped:
        file.write_text(json.dumps({"ram_mib": state.exit.ram_mib}))


def noted_end(file: Path) -> Message:
    """Say what its user is to know of the end of the last server; nothing where it ended as others do."""
    try:
        ram_mib = json.loads(file.read_bytes())["ram_mib"]
    except (OSError, ValueError, LookupError, TypeError):
        return NOTHING
    return out_of_memory(ram_mib)


def out_of_memory(ram_mib: int | None) -> Message:
    """Say that a server ran out of memory, and what to do."""
    if ram_mib is None:
        return msg("The notebook server ran out of memory. Start it again with more memory.")
    return msg(
        "The notebook server ran out of memory: it used more than its {ram} MiB. Start it again with more memory.",
        ram=ram_mib,
    )


def why_it_ended(state: sandbox.SandboxState, log_dir: Path) -> Message:
    """Say in words how a server ended, with the last lines of its output: one line, for it also goes into the log."""
    end = state.exit
    if end is None:
        return msg("The notebook server vanished. Start it again.")
    if end.oom:
        return out_of_memory(end.ram_mib)
    how = end.message or (f"signal {end.signal}" if end.signal else f"exit status {end.code}")
    how = sandbox.one_line(how)
    if tail := sandbox.one_line(end.tail) or sandbox.one_line(_tail(log_dir / "rank-0.log")):
        return msg(
            "The notebook server ended while it started: {how}. Its last output: {tail}", how=how, tail=tail
        )
    return msg("The notebook server ended while it started: {how}.", how=how)


def fresh_log(log_dir: Path) -> None:
    """Make the directory of a server's output, without what an earlier server wrote."""
    log_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    for old in log_dir.iterdir():
        old.unlink()


def _tail(log: Path, lines: int = 5) -> str:
    """Return the last lines of the output, without the time and stream before each."""
    try:
        with log.open("rb") as f:
            f.seek(max(0, log.stat().st_size - 8192))
            last = f.read().decode(errors="replace").splitlines()[-lines:]
    except OSError:
        return ""
    return "\n".join(line.split(" ", 3)[-1] for line in last)


def exit_status(state: sandbox.SandboxState) -> int:
    """Return the status that the hub shows: a signal as its negative number, 1 where nothing is known."""
    if state.phase is sandbox.SandboxPhase.ABSENT:
        return 0
    if state.exit is None:
        return 1
    return -state.exit.signal if state.exit.signal else state.exit.code or 0


async def wait_ended(run_dir: str, timeout_s: float) -> None:
    """Return when the sandbox ended or the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while loop.time() < deadline:
        if sandbox.inspect(run_dir).phase not in ALIVE:
            return
        await asyncio.sleep(0.05)
