"""The sandbox of a notebook server: how it is made, when it is ready, how it ended."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from mlp_hub.executors import sandbox
from mlp_hub.executors.sandbox import Bind, Limits, Link, SandboxSpec
from mlp_spawner.environment import Who
from mlp_spawner.errors import ServiceUnreachable
from mlp_spawner.holding import Holding
from mlp_spawner.options import Choice
from mlp_spawner.paths import Paths
from mlp_spawner.service import Service

HERE = Path(__file__).parent
PIDS = 2048  # a notebook with TensorFlow has some hundred threads
TMP_MIB = 512
STARTING_S = 150.0  # longer than any start may take
ALIVE = (sandbox.SandboxPhase.STARTING, sandbox.SandboxPhase.RUNNING)
_settling: set[asyncio.Task[None]] = set()


def spec(
    paths: Paths,
    who: Who,
    choice: Choice,
    *,
    env: Mapping[str, str],
    uid: int | None,
    home_dir: Path,
    tenant_socket_dir: str,
    args: Sequence[str],
    network: str,
) -> SandboxSpec:
    """Describe the sandbox of a server."""
    binds = (
        *sandbox.environment_binds(who.python),
        Bind(tenant_socket_dir, tenant_socket_dir),
        Bind("/etc/pip.conf", "/etc/pip.conf", optional=True),
    )
    # links, not binds: a newer version puts other directories in the place of these while the server runs, and a bind
    # would stay with what was removed
    links = tuple(Link(f"/etc/{name}", str(HERE / "etc" / name)) for name in ("ipython", "jupyter"))
    # -P: the launcher's own directory must not be searched for modules
    argv = (who.python, "-P", str(HERE / "launcher.py"), "--ServerApp.sock=/handed-in", *args)
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
        limits=Limits(cpu=round(choice.cpu * 1000), ram_mib=choice.ram, pids=PIDS, tmp_mib=TMP_MIB),
        network="outbound" if network == "outbound" and sandbox.capabilities().outbound else "none",
        listen=str(paths.socket),
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
    while True:
        with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
            connector = aiohttp.UnixConnector(path=str(socket))
            async with (
                aiohttp.ClientSession(
                    connector=connector, timeout=aiohttp.ClientTimeout(total=60)
                ) as session,
                session.get(f"http://server{path}", allow_redirects=False) as answer,
            ):
                if answer.status < 500:
                    return
        await asyncio.sleep(0.1)


def why_it_ended(state: sandbox.SandboxState, log_dir: Path) -> str:
    """Say in words how a server ended, with the last lines of its output: one line, for it also goes into the log."""
    end = state.exit
    if end is None:
        return "The notebook server vanished. Start it again."
    if end.oom:
        return "The notebook server ran out of memory. Start it again with more memory."
    how = end.message or (f"signal {end.signal}" if end.signal else f"exit status {end.code}")
    how = sandbox.one_line(how)
    tail = sandbox.one_line(end.tail) or sandbox.one_line(_tail(log_dir / "rank-0.log"))
    return f"The notebook server ended while it started: {how}." + (
        f" Its last output: {tail}" if tail else ""
    )


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


def settle_later(state_dir: Path, service: Service, log: Any) -> None:
    """Give back, once the service answers again, what ended servers still hold."""
    if not any(not task.done() for task in _settling):
        loop = asyncio.get_running_loop()
        task = loop.create_task(_settle(state_dir, service, log))
        _settling.add(task)
        task.add_done_callback(_settling.discard)


async def _settle(state_dir: Path, service: Service, log: Any) -> None:
    while True:
        await asyncio.sleep(10)
        ended = _ended(state_dir)
        if not ended:
            return
        for file in ended:
            if time.time() - file.stat().st_mtime < STARTING_S:
                continue  # it may be about to start
            key = json.loads(file.read_text())["key"]
            with contextlib.suppress(ServiceUnreachable):
                await Holding(file, key, service).give_back()
                log.info("Gave back what the ended server %s held", key)


def _ended(state_dir: Path) -> list[Path]:
    """List what servers hold of which nothing else is there."""
    suffix = ".holding.json"
    return [
        f
        for f in state_dir.glob(f"*/*{suffix}")
        if sandbox.inspect(str(f.with_name(f.name.removesuffix(suffix)))).phase is sandbox.SandboxPhase.ABSENT
    ]


async def wait_ended(run_dir: str, timeout_s: float) -> None:
    """Return when the sandbox ended or the time is over."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout_s
    while loop.time() < deadline:
        if sandbox.inspect(run_dir).phase not in ALIVE:
            return
        await asyncio.sleep(0.05)
