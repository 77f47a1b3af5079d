"""The service: `python -m mlp_hub.app`, with a number where it is not the first of its state directory.

It is one process with two UNIX sockets, and with TCP where configured. Its end stops nothing else:
jobs, notebook servers and the hub continue, and the next start finds them again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from dataclasses import fields, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from tornado.httpserver import HTTPServer

from mlp_hub.api.attached_hub import AttachedHub
from mlp_hub.api.auth import recent
from mlp_hub.api.auth.sessions import COOKIE
from mlp_hub.api.build import make_server, make_service
from mlp_hub.api.edge.call import API_BASES, BASE, Config
from mlp_hub.api.edge.connections import Gate, raise_descriptors
from mlp_hub.api.edge.exchange import finish_requests
from mlp_hub.api.edge.limits import Rate, rates
from mlp_hub.api.edge.listeners import Listener
from mlp_hub.api.edge.server import ALWAYS
from mlp_hub.api.edge.sockets import close_all
from mlp_hub.api.figures import ProxyFigures
from mlp_hub.api.hubclient import HubClient
from mlp_hub.backends import backend_of
from mlp_hub.background import BackgroundTask
from mlp_hub.bindings import KEY, check_service
from mlp_hub.domain.errors import MessageError, Unavailable
from mlp_hub.domain.resources import HOUR_S
from mlp_hub.executors.base import Executor
from mlp_hub.gc_tuning import spare_the_collector
from mlp_hub.in_kafka import broker_of
from mlp_hub.logs import lines
from mlp_hub.scheduler.model.types import SchedulingPolicy
from mlp_hub.scheduler.quota.idle import IdlePolicy
from mlp_hub.service.config import (
    DAY_S,
    MIB,
    AuditPolicy,
    DiskPolicy,
    KeepPolicy,
    MailPolicy,
    MonitoringPolicy,
    NoticePolicy,
    RunPolicy,
)
from mlp_hub.service.disk.rules import policy_for
from mlp_hub.service.health.deaths import Deaths
from mlp_hub.service.health.files import FilesWatch
from mlp_hub.service.platform import Platform
from mlp_hub.service.support.limits import ServiceLimits
from mlp_hub.service.tenants.groups import BadRule, GroupPolicy, policy_as_set
from mlp_hub.settings import Settings, SettingsError
from mlp_hub.settings.exporting import authorities
from mlp_hub.settings.origins import ONE_NAME_MEANS
from mlp_hub.site_receivers import (
    alertmanager_of,
    check_heads_webhook,
    exports_of,
    syslog_of,
    traces_of,
)
from mlp_hub.store import Database, StoreInUse, StoreUnavailable, WrongSchema
from mlp_hub.unix_sockets import url_of
from mlp_hub.web.site import make_application

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from mlp_hub.kubernetes.leader_label import LeaderLabel

log = logging.getLogger("mlp_hub.app")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
DRAIN_S = 3.0
STOP_S = 8.0
"""Safety: seconds in which all is closed; then the process ends, as it would if it were killed."""
EASE_S = 2.0
"""Tuning: seconds in which a leader that ends closes connections by its answers. The proxy closes idle ones sooner (patience.mjs)."""
UNFOUND_S = 1.5
"""Tuning: seconds until a cluster sends nobody more to a pod without the label of the leader."""
HUB_S = 50.0
"""Tuning: seconds that a question waits for a hub whose pod is replaced: a new leader knows nobody's token yet."""
STAY_FOUND_S = 5.0
SWITCH_S = 0.0005


class ServiceProcess:
    """The running service, made from its settings; `replica` is its number among those of a state directory."""

    def __init__(
        self, settings: Settings, executor: Executor, replica: int = 1, label: LeaderLabel | None = None
    ) -> None:
        self.settings = settings
        self.db = Database(settings.service_db_url, guard=True)
        self.executor = executor
        self.label = label
        self.platform = Platform(
            self.db,
            self.executor,
            time.time,
            policy_of(settings),
            alone=self.db.alone,
            groups=groups_of(settings),
            steady=time.monotonic,
        )
        hub_api = f"{url_of(settings.hub_at)}{settings.base}/hub/api"
        client = AttachedHub if settings.hub_attached else HubClient
        hold_s = HUB_S if settings.kubernetes_pod else 0.0
        self.hub = client(hub_api, settings.secret("service_token"), hold_s=hold_s)
        self.figures = ProxyFigures(settings.proxy_at, settings.secret("proxy_token"))
        self.service = make_service(
            self.platform,
            self.hub,
            config_of(settings),
            figures=self.figures,
            rates=rates_of(settings),
            cookie=settings.origins.cookie(f"{COOKIE}-{settings.port}"),
        )
        self.platform.problems.add(FilesWatch(settings.data_at).problems)
        self.deaths = Deaths(self.db, settings.private_dir / "state.json")
        self.leaving: asyncio.Future[None] | None = None
        self._while_leading = [BackgroundTask(work) for work in (self.deaths.watch, self._stay_found)]
        self.listeners = listeners_of(settings, replica)
        self.servers: list[HTTPServer] = []
        self.platform.on_lead.append(self._lead)
        self.platform.on_read.append(self._publish)
        self.platform.on_lost.append(self._lead_no_more)

    async def start(self) -> None:
        """Open the database and listen: from here on it says that it is alive, and whether it is ready."""
        self.db.open()
        # before anything is looked at: attempts that another database knows are nobody's here, and would be ended
        check_service(self.settings, await self.db.read(lambda tx: tx.settings.get(KEY)))
        await self.executor.open()
        if self.label is not None:  # a service of this pod may have led before it was killed
            await self.label.leave()
        application = make_application(self.service)
        gate = Gate(self.settings.connections_per_user, raise_descriptors() // 4)
        for listener in self.listeners:
            server = make_server(
                self.service,
                application,
                behind_proxy=listener.behind_proxy,
                gate=listener.admission(gate),
                only=listener.only,
            )
            server.add_sockets(listener.open())
            self.servers.append(server)
        log.info("listening on %s", ", ".join(str(listener.where) for listener in self.listeners))

    async def lead(self) -> None:
        """Return once this service leads, has taken up all there is, and is found where others look for the service."""
        await self.platform.start()

    async def _lead(self) -> None:
        await self._publish()
        for task in self._while_leading:
            task.start()

    def _lead_no_more(self) -> None:
        for task in self._while_leading:
            task.cancel()
        if self.label is not None:
            self.leaving = asyncio.ensure_future(self._unlabel(self.label))

    async def _unlabel(self, label: LeaderLabel) -> None:
        try:
            await label.leave()
        except (MessageError, OSError) as error:  # the next leader takes it off
            log.warning("this service's pod keeps the label of the leader: %s", error)

    async def _publish(self) -> None:
        for listener in self.listeners:
            await asyncio.to_thread(listener.publish)
        if self.label is not None:
            await self.label.take()

    async def _stay_found(self) -> None:
        """Take the sockets' names back that somebody else has by mistake, as one who was slow to see that it leads no more."""
        while True:
            await asyncio.sleep(STAY_FOUND_S)
            try:
                await self.platform.lease.ensure_held()
                await self._publish()
            except (OSError, Unavailable, MessageError) as error:
                log.warning("this service may not be found: %s", error)

    async def ease_out(self) -> None:
        """Leave the requests to the next leader, where this one is a pod: none is refused, and none is cut but streams.

        Who is refused a connection asks again, and finds the next one. So all connections are closed by answers first, then the
        cluster forgets this pod, and only then is nobody listened to.
        """
        if self.label is None or not self.platform.leads:
            return
        for server in self.servers:
            server.conn_params.no_keep_alive = True
        await asyncio.sleep(EASE_S)
        for task in self._while_leading:
            task.cancel()
        await self._unlabel(self.label)
        await asyncio.sleep(UNFOUND_S)
        for server in self.servers:
            server.stop()
        await finish_requests(DRAIN_S)

    async def stop(self) -> None:
        """Answer the requests in progress, then end; jobs continue."""
        for server in self.servers:
            server.stop()
        for listener in self.listeners[: len(self.servers)]:
            listener.close()
        close_all()
        self._lead_no_more()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                await asyncio.gather(*(server.close_all_connections() for server in self.servers))
        await self.platform.stop()
        await self.executor.close()
        if self.label is not None:
            await self._unlabel(self.label)
            await self.label.close()
        self.hub.close()
        self.figures.close()
        self.db.close()


def disk_of(settings: Settings) -> DiskPolicy:
    """Tell the platform how full the disk may become."""
    found = os.statvfs(settings.files_dir)  # of the files, which may be a volume of their own
    policy = policy_for(found.f_blocks * found.f_frsize, *settings.disk_limits)
    return replace(policy, reserve=settings.reserve_file)


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


def limits_of(settings: Settings) -> ServiceLimits:
    """Return the limits that the settings name: each field is the setting of its name."""
    return ServiceLimits(**{each.name: getattr(settings, each.name) for each in fields(ServiceLimits)})


def keep_of(settings: Settings) -> KeepPolicy:
    """Tell the platform how long to keep what nobody deletes; 0 is without a limit."""
    return KeepPolicy(
        job_s=settings.keep_jobs_days * DAY_S or None,
        jobs=settings.keep_jobs_most or None,
        job_bytes=settings.keep_jobs_mib * MIB or None,
        audit_s=settings.keep_audit_days * DAY_S or None,
    )


def audit_of(settings: Settings) -> AuditPolicy:
    """Tell the platform where heads of the audit log are written, and where its entries go. Raises `SettingsError`."""
    check_heads_webhook(settings, look_up=False)
    return AuditPolicy(
        settings.audit_heads_file,
        settings.audit_syslog,
        settings.audit_webhook,
        ship_syslog=syslog_of(settings),
        ship_file=settings.audit_ship_file,
    )


def monitoring_of(settings: Settings) -> MonitoringPolicy:
    """Tell the platform what else its metrics show."""
    certificate = None if settings.tls is None else settings.tls[0]
    return MonitoringPolicy(settings.metrics_people, certificate, settings.backup_record)


def policy_of(settings: Settings) -> RunPolicy:
    """Tell the platform how to run jobs."""
    backend = backend_of(settings)
    return RunPolicy(
        scheduling=scheduling_of(settings),
        idle=IdlePolicy(settings.idle_quota_after, settings.idle_quota_floor),
        keep=keep_of(settings),
        audit=audit_of(settings),
        traces_endpoint=traces_of(settings),
        traces_ca=authorities("MLP_TRACES_CA", settings.traces_ca),
        exports=exports_of(settings),
        alertmanager=alertmanager_of(settings),
        monitoring=monitoring_of(settings),
        disk=disk_of(settings),
        grace_s=settings.grace_s,
        job_network=settings.job_network,
        runtime_review=settings.runtime_review,
        environment_images=settings.kubernetes_environment_images,
        broker=broker_of(settings),
        charge_files=settings.charge_files,
        secrets_key=settings.secret_if_made("secrets_key"),
        data_endpoints=settings.data_endpoints,
        notices=notices_of(settings),
        upload_silent_s=settings.upload_silent_hours * HOUR_S,
        metric_points_max=settings.metric_points_max,
        metric_bytes_max=settings.metric_mib_max * MIB,
        metric_spool_max=settings.metric_spool_max * MIB,
        first_uid=settings.uid_base if os.getuid() == 0 else None,
        api_url=backend.service_url(settings) + API_BASES[0],
        data_url=backend.data_url(settings),
        limits=limits_of(settings),
        start_tries=settings.start_tries,
        unmount_idle_s=settings.unmount_idle_s,
        open_bytes_max=settings.open_jobs_mib * MIB,
        open_kinds_max=settings.open_kinds_max,
    )


def mail_of(settings: Settings) -> MailPolicy | None:
    """Tell by which server mail is sent, if any."""
    if not settings.mail_server:
        return None
    host, port = settings.mail_place()
    user, password = settings.mail_login()
    return MailPolicy(host, port, settings.mail_security, settings.mail_from, user, password)


def notices_of(settings: Settings) -> NoticePolicy:
    """Return the settings of notices to people about their jobs, for the platform."""
    return NoticePolicy(
        mail=mail_of(settings),
        mail_domains=settings.mail_domains,
        services=settings.notice_services,
        private=settings.notice_private,
        pages=f"{settings.url.rstrip('/')}{BASE}/",
        keep_s=settings.notice_keep_days * DAY_S,
        together_s=settings.notice_together_s,
        give_up_s=settings.notice_give_up_hours * HOUR_S,
    )


def groups_of(settings: Settings) -> GroupPolicy:
    """Tell the platform what people's groups mean. Raises SettingsError."""
    try:
        return policy_as_set(settings)
    except BadRule as bad:
        raise SettingsError(
            f"MLP_LOGIN_TENANTS, MLP_LOGIN_NEW_TENANTS, MLP_LOGIN_TENANT_QUOTA: {bad}"
        ) from None


def config_of(settings: Settings) -> Config:
    """Tell the HTTP side what it may be called: on loopback only names that are ours, against DNS rebinding."""
    origins = settings.origins
    allowed: frozenset[str] | None = None
    if settings.bind in LOOPBACK or settings.allowed_hosts:
        names = {*LOOPBACK, settings.bind, *settings.allowed_hosts, origins.host}
        if isinstance(settings.service_at, tuple):  # the name by which the other parts of the platform ask
            names.add(settings.service_at[0])
        allowed = frozenset(name.lower().strip("[]") for name in names)
    return Config(
        version=version("mlp-hub"),
        allowed_hosts=allowed,
        cookie_secret=settings.secret("cookie_secret").encode(),
        secure_cookies=origins.guarded_cookies or origins.platform.startswith("https:"),
        host_cookies=origins.guarded_cookies,
        recent_cookie=origins.cookie(f"{recent.COOKIE}-{settings.port}"),
        base=settings.base,
        app_origin=origins.of_label("{label}"),
        hub_attached=settings.hub_attached,
        warnings=() if origins.apart else (ONE_NAME_MEANS,),
    )


def rates_of(settings: Settings) -> Mapping[str, Rate]:
    """Return the rates at which callers can send requests."""
    return rates(
        api=settings.rate_api,
        change=settings.rate_changes,
        metrics=settings.rate_metrics,
        signup=settings.rate_signups,
        unknown_token=settings.rate_unknown_tokens,
    )


def listeners_of(settings: Settings, replica: int) -> list[Listener]:
    """Tell where the service listens: on its two sockets, and on TCP where the settings say so."""
    proxy, _ = settings.listens
    tenants = backend_of(settings).service_listens(settings)
    found = [
        Listener(settings.replica_socket(replica), True, settings.service_socket),
        Listener(settings.replica_tenant_socket(replica), False, settings.tenant_service_socket),
    ]
    if proxy is not None:
        found.append(Listener(proxy, True, proxies=settings.proxies))
    if tenants is not None:
        found.append(Listener(tenants, False))
    if (scraped := settings.metrics_listens) is not None:
        host, port = scraped
        found.append(Listener((host, port + replica - 1), False, only=ALWAYS))
    return found


def set_up_logging(level: str, kind: str) -> None:
    """Log to standard error; `kind` is text or json. A line for each request only below INFO."""
    lines.set_up(level, kind)
    logging.getLogger("mlp_hub.access").setLevel(logging.WARNING if level == "INFO" else level)


async def serve(settings: Settings, replica: int) -> None:
    """Run until SIGTERM or SIGINT."""
    app = ServiceProcess(
        settings, await backend_of(settings).make(settings), replica, await _label_of(settings)
    )
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    try:
        await app.start()
        leading, asked = (asyncio.ensure_future(what) for what in (app.lead(), ended.wait()))
        await asyncio.wait((leading, asked), return_when=asyncio.FIRST_COMPLETED)
        if leading.done():
            leading.result()
            await asked
        leading.cancel()
        log.info("stopping; jobs go on")
        await app.ease_out()
    finally:
        async with asyncio.timeout(STOP_S):
            await app.stop()


async def _label_of(settings: Settings) -> LeaderLabel | None:
    if not settings.kubernetes_pod:
        return None
    from mlp_hub.in_cluster import connect  # noqa: PLC0415 - loads the cluster's client
    from mlp_hub.kubernetes.leader_label import LeaderLabel  # noqa: PLC0415

    return LeaderLabel(await connect(settings), settings.kubernetes_pod)


async def _serve_and_end(settings: Settings, replica: int) -> None:
    """Run, and end this process then: a thread that looks at a slow disk, or at a huge file, keeps nobody waiting."""
    try:
        await serve(settings, replica)
    except TimeoutError:
        log.warning("stopping took longer than %s s; what is stored is whole all the same", STOP_S)
    logging.shutdown()
    os._exit(0)


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
    set_up_logging(
        os.environ.get("MLP_LOG_LEVEL", "INFO").upper(), os.environ.get("MLP_LOG_FORMAT", lines.TEXT)
    )
    try:
        _run(_serve_and_end(Settings.load(os.environ), int(sys.argv[1]) if sys.argv[1:] else 1))
    except (SettingsError, WrongSchema, StoreInUse, StoreUnavailable, Unavailable, OSError) as error:
        log.error("the service cannot run: %s", error)  # noqa: TRY400 - the cause is all there is to say
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
