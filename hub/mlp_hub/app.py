"""The service: `python -m mlp_hub.app`. One process, two UNIX sockets, no TCP.

Its death takes nothing along: jobs, notebook servers and the hub go on, and the next start finds them again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tornado.httpserver import HTTPServer

from mlp_hub.api.build import make_server, make_service
from mlp_hub.api.call import API_BASES, Config
from mlp_hub.api.connections import Gate, raise_descriptors
from mlp_hub.api.hubclient import HubClient
from mlp_hub.api.sessions import COOKIE
from mlp_hub.api.sockets import close_all
from mlp_hub.domain.text import escaped
from mlp_hub.executors.base import Executor, NodeInfo
from mlp_hub.scheduler.collector import spare_the_collector
from mlp_hub.scheduler.idle import IdlePolicy
from mlp_hub.scheduler.model import SchedulingPolicy
from mlp_hub.service.config import DAY_S, MIB, KeepPolicy, Paths, RunPolicy
from mlp_hub.service.platform import Platform
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.store import Database, StoreInUse, StoreUnavailable, WrongSchema
from mlp_hub.web.site import make_application

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

log = logging.getLogger("mlp_hub.app")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
DRAIN_S = 3.0
SWITCH_S = 0.0005


class App:
    """The running service, made from its settings."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.db = Database(settings.service_db_url, guard=True)
        self.executor = make_executor(settings)
        self.platform = Platform(
            self.db, self.executor, time.time, paths_of(settings), policy_of(settings), alone=True
        )
        hub_api = f"http+unix://{quote(str(settings.hub_socket), safe='')}/hub/api"
        self.hub = HubClient(hub_api, settings.secret("service_token"))
        self.service = make_service(
            self.platform,
            self.hub,
            config_of(settings),
            settings.secrets_dir / "sessions",
            cookie=f"{COOKIE}-{settings.port}",
        )
        self.servers: list[tuple[HTTPServer, Path, int]] = []

    async def start(self) -> None:
        """Open the database, recover, then listen: the first request finds everything ready."""
        self.db.open()
        await self.platform.start()
        application = make_application(self.service)
        gate = Gate(self.settings.connections_per_user, raise_descriptors() // 4)
        for path, mode, behind_proxy in (
            (self.settings.service_socket, 0o600, True),
            (self.settings.tenant_service_socket, 0o666, False),
        ):
            server = make_server(
                self.service, application, behind_proxy=behind_proxy, gate=None if behind_proxy else gate
            )
            listener = bind_socket(path, mode)
            server.add_socket(listener)
            self.servers.append((server, path, path.stat().st_ino))
        log.info("listening on %s", ", ".join(str(path) for _, path, _ in self.servers))

    async def stop(self) -> None:
        """Answer what was begun, then end. Jobs go on."""
        for server, path, inode in self.servers:
            server.stop()
            with contextlib.suppress(OSError):
                if path.stat().st_ino == inode:  # not that of a service that was started since
                    path.unlink()
        close_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await asyncio.gather(*(server.close_all_connections() for server, _, _ in self.servers))
        await self.platform.stop()
        await self.executor.close()
        self.hub.close()
        self.db.close()


def _simulated(settings: Settings) -> Executor:
    from mlp_hub.executors.simulated import SimulatedExecutor  # noqa: PLC0415 - each loads what it needs only

    journal = settings.jobs_run_dir / "simulated.journal"
    return SimulatedExecutor(simulated_nodes(settings), time.time, journal=journal)


def simulated_nodes(settings: Settings) -> Sequence[NodeInfo]:
    """Read the nodes of the simulated executor; raise `SettingsError` naming every fault of their file."""
    from mlp_hub.domain.resources import MILLI, Resources  # noqa: PLC0415

    if settings.simulated_nodes is None:
        amount = Resources(cpu=16 * MILLI, ram=65_536)
        return [NodeInfo(f"simulated-{n}", amount, amount) for n in range(1, 5)]
    from mlp_hub.scheduler.simulate.errors import ScenarioError  # noqa: PLC0415
    from mlp_hub.scheduler.simulate.reading import read_value  # noqa: PLC0415
    from mlp_hub.scheduler.simulate.text import parse  # noqa: PLC0415

    try:
        given = parse(settings.simulated_nodes.read_text())
        if isinstance(given, dict):  # of a whole scenario, what is not about nodes does not count
            given = {k: v for k, v in given.items() if k in ("version", "nodes", "flavors")}
            given = {"version": 1, **given, "tenants": [{"name": "default"}], "jobs": []}
        nodes = read_value(given).nodes
    except (OSError, ScenarioError) as error:
        raise SettingsError(f"MLP_SIMULATED_NODES: {settings.simulated_nodes}: {error}") from error
    if not nodes:
        raise SettingsError(
            f"MLP_SIMULATED_NODES: {settings.simulated_nodes} has no nodes; list some under `nodes`"
        )
    return [NodeInfo(n.name, n.capacity, n.capacity, n.gpu_kind, n.labels) for n in nodes]


def _local(settings: Settings) -> Executor:
    from mlp_hub.executors.local import LocalExecutor  # noqa: PLC0415
    from mlp_hub.executors.sandbox import Bind, capabilities, remove_forgotten  # noqa: PLC0415

    remove_forgotten(capabilities().bases.values())
    sockets = str(settings.tenant_dir)
    return LocalExecutor(
        settings.jobs_run_dir, nodes=nodes_of(settings), binds=[Bind(sockets, sockets, False)]
    )


EXECUTORS: Mapping[str, Callable[[Settings], Executor]] = {"local": _local, "simulated": _simulated}
"""What makes each executor that a setting may name."""


def make_executor(settings: Settings) -> Executor:
    """Make the executor that the settings name; raise `SettingsError` where there is none of that name."""
    make = EXECUTORS.get(settings.executor)
    if make is None:
        known = ", ".join(EXECUTORS)
        raise SettingsError(f"MLP_EXECUTOR is {settings.executor!r}; there is no such executor, only {known}")
    return make(settings)


def nodes_of(settings: Settings) -> Sequence[NodeInfo]:
    """Describe this machine, with what the settings say instead of what is found."""
    from dataclasses import replace  # noqa: PLC0415

    from mlp_hub.domain.resources import milli  # noqa: PLC0415
    from mlp_hub.executors.nodes import local_node  # noqa: PLC0415

    node = local_node(
        settings.node_name or None,
        cpu_overcommit=settings.node_cpu_overcommit,
        reserve_mib=settings.node_ram_reserve,
        disk=str(settings.home),
    )
    physical, capacity, kind = node.physical, node.capacity, node.gpu_kind
    if settings.node_cpu is not None:
        cpu = milli(settings.node_cpu)
        physical, capacity = physical.but(cpu=cpu), capacity.but(cpu=int(cpu * settings.node_cpu_overcommit))
    if settings.node_ram is not None:
        physical = physical.but(ram=settings.node_ram)
        capacity = capacity.but(ram=max(0, settings.node_ram - settings.node_ram_reserve))
    if settings.node_gpus is not None or settings.node_gpu_kind:
        kind = settings.node_gpu_kind or kind
        gpu = physical.gpu if settings.node_gpus is None else milli(settings.node_gpus)
        kinds = ((kind, gpu),) if kind and gpu else ()
        physical, capacity = replace(physical, gpu=gpu, kinds=kinds), replace(capacity, gpu=gpu, kinds=kinds)
    return [replace(node, physical=physical, capacity=capacity, gpu_kind=kind)]


def paths_of(settings: Settings) -> Paths:
    """Tell the platform where files are."""
    return Paths(homes=settings.homes_dir, jobs=settings.jobs_dir)


def scheduling_of(settings: Settings) -> SchedulingPolicy:
    """Tell the scheduler how to schedule: each of its fields is a setting of the hub."""
    return SchedulingPolicy(
        name=settings.scheduling_policy,
        half_life_s=settings.scheduling_half_life_s,
        backfill=settings.scheduling_backfill,
        preemption=settings.scheduling_preemption,
        placement=settings.scheduling_placement,
        min_run_s=settings.scheduling_min_run_s,
        restart_cost_s=settings.scheduling_restart_cost_s,
        aging_s=settings.scheduling_aging_s,
        seed=settings.scheduling_seed,
        patience=settings.scheduling_patience,
    )


def keep_of(settings: Settings) -> KeepPolicy:
    """Tell the platform how long to keep what nobody deletes; 0 is without a limit."""
    return KeepPolicy(
        job_s=settings.keep_jobs_days * DAY_S or None,
        jobs=settings.keep_jobs_most or None,
        job_bytes=settings.keep_jobs_mib * MIB or None,
        audit_s=settings.keep_audit_days * DAY_S or None,
    )


def policy_of(settings: Settings) -> RunPolicy:
    """Tell the platform how to run jobs."""
    return RunPolicy(
        scheduling=scheduling_of(settings),
        idle=IdlePolicy(settings.idle_quota_after, settings.idle_quota_floor),
        keep=keep_of(settings),
        grace_s=settings.grace_s,
        job_network=settings.job_network,
        metric_points_max=settings.metric_points_max,
        first_uid=settings.first_uid if os.getuid() == 0 else None,
        api_url=f"http+unix://{quote(str(settings.tenant_service_socket), safe='')}{API_BASES[0]}",
    )


def config_of(settings: Settings) -> Config:
    """Tell the HTTP side what it may be called: on loopback only names that are ours, against DNS rebinding."""
    allowed: frozenset[str] | None = None
    if settings.bind in LOOPBACK or settings.allowed_hosts:
        names = {*LOOPBACK, settings.bind, *settings.allowed_hosts}
        allowed = frozenset(name.lower().strip("[]") for name in names)
    return Config(
        version=version("mlp-hub"),
        allowed_hosts=allowed,
        cookie_secret=settings.secret("cookie_secret").encode(),
    )


def bind_socket(path: Path, mode: int) -> socket.socket:
    """Listen on a UNIX socket. A file that a dead service left is replaced; one that answers is not touched."""
    path.parent.mkdir(mode=0o700 if mode == 0o600 else 0o711, parents=True, exist_ok=True)
    if path.exists():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.settimeout(1)
            try:
                probe.connect(str(path))
            except OSError:
                pass
            else:
                raise SettingsError(
                    f"another service listens on {path}; stop it first, or use another MLP_HOME"
                )
    # bound under another name and moved: the path is never there without its mode, nor missing for a moment
    temporary = path.with_name(f".{path.name[:20]}{os.getpid()}")
    temporary.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.setblocking(False)
    old = os.umask(0o177)
    try:
        listener.bind(str(temporary))
    finally:
        os.umask(old)
    temporary.chmod(mode)
    listener.listen(1024)
    temporary.replace(path)
    return listener


class _Lines(logging.Formatter):
    """One line an event: time, level, where, what; line ends inside are shown as such, so that none can be forged."""

    def __init__(self) -> None:
        self.converter = time.gmtime
        super().__init__("%(asctime)s.%(msecs)03dZ %(levelname)s %(name)s %(message)s", "%Y-%m-%dT%H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return escaped(super().formatMessage(record))

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        return "\n".join(f"    {escaped(line)}" for line in super().formatException(ei).split("\n"))


def set_up_logging(level: str) -> None:
    """Log to standard error, which the supervisor keeps and bounds."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("mlp_hub.access").setLevel(logging.WARNING if level == "INFO" else level)


async def serve(settings: Settings) -> None:
    """Run until SIGTERM or SIGINT."""
    app = App(settings)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        await app.start()
        await ended.wait()
        log.info("stopping; jobs go on")
    finally:
        await app.stop()


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run on the event loop that costs least: uvloop's, or Python's own where uvloop is not installed."""
    try:
        import uvloop  # noqa: PLC0415 - it may not be there
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


def main() -> int:
    """Run the service; 1 when it cannot start, with the cause and the remedy in one line."""
    # the store's thread must not keep the loop waiting for 5 ms, Python's default, at each of its system calls
    sys.setswitchinterval(SWITCH_S)
    spare_the_collector()
    set_up_logging(os.environ.get("MLP_LOG_LEVEL", "INFO").upper())
    try:
        _run(serve(Settings.load(os.environ)))
    except (SettingsError, WrongSchema, StoreInUse, StoreUnavailable, OSError) as error:
        log.error("the service cannot run: %s", error)  # noqa: TRY400 - the cause is all there is to say
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
