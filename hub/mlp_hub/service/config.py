"""Configuration that the platform is given once, at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from mlp_hub.domain.resources import HOUR_S
from mlp_hub.scheduler.model.types import SchedulingPolicy
from mlp_hub.scheduler.quota.idle import IdlePolicy
from mlp_hub.service.support.limits import DEFAULTS, ServiceLimits

DAY_S = 86_400.0
"""Given: seconds of a day."""
MIB = 2**20
"""Given: bytes of a MiB."""


@dataclass(frozen=True, slots=True)
class DiskPolicy:
    """Bounds of disk use: how much stays free, how much one job and one home may take; 0: any amount."""

    floor: int = 0
    job: int = 0
    home: int = 0
    reserve: Path | None = None  # a file that holds room for the platform's own last words

    @property
    def file(self) -> int:
        """Size of one file of a job, in its directory or at home, at most."""
        return max(self.job, self.home) if self.job and self.home else 0

    @property
    def is_on(self) -> bool:
        """Whether there is anything to watch."""
        return bool(self.floor or self.job or self.home)


@dataclass(frozen=True, slots=True)
class KeepPolicy:
    """Retention of jobs that have ended: duration, and number per user; None: without a limit.

    `job_bytes` counts their data in the database, not their directories.
    """

    job_s: float | None = None
    jobs: int | None = None
    job_bytes: int | None = None
    audit_s: float | None = None  # entries of the audit log

    @property
    def deletes_jobs(self) -> bool:
        """Whether jobs that have ended are ever deleted but by people."""
        return (self.job_s, self.jobs, self.job_bytes) != (None, None, None)


@dataclass(frozen=True, slots=True)
class SyslogReceiver:
    """Syslog that entries of the audit log are shipped to. Of `unix`, `host` is the path of the socket.

    The three files are for `tls`: certificates that sign the receiver's (None: those of the machine), our own certificate, its key.
    """

    transport: Literal["udp", "tcp", "tls", "unix"]
    host: str
    port: int = 0
    ca: Path | None = None
    certificate: Path | None = None
    key: Path | None = None


@dataclass(frozen=True, slots=True)
class AuditPolicy:
    """Places outside of the database that heads of the audit log's chain are written to, and how often; and where entries go."""

    heads_file: Path | None = None  # a file that only grows
    heads_syslog: str = ""  # a socket's path, or HOST:PORT
    heads_webhook: str = ""  # an address
    heads_every_s: float = 900.0
    ship_syslog: SyslogReceiver | None = None  # None: entries are not shipped to a syslog
    ship_file: Path | None = None  # a file that entries are appended to
    ship_poll_s: float = 1.0  # seconds between two looks for new entries
    ship_retry_s: float = 1.0  # first wait after a failure; doubles, a minute at most


@dataclass(frozen=True, slots=True)
class ExportPolicy:
    """Program of the site that metric points of jobs are handed on to: its kind (otlp, mlflow), address, and headers of requests.

    `tenants` are those whose jobs are exported; empty: all. `ca` are certificates in PEM that sign the program's; empty: those of
    public authorities. `packed`: requests are sent in gzip.
    """

    kind: str
    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tenants: tuple[str, ...] = ()
    ca: str = field(default="", repr=False)
    packed: bool = False


@dataclass(frozen=True, slots=True)
class AlertmanagerPolicy:
    """Alertmanager of the site, asked whether it delivers: its address, headers of requests, and certificates in PEM that sign its own."""

    address: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    ca: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class BrokerPolicy:
    """Broker that metric points pass through: its addresses, the topic and group there, and how it is spoken to.

    `security` has `protocol`, `mechanism`, `user`, `password`, `ca_file`, `certificate_file`, `key_file`, those that are given.
    """

    bootstrap: tuple[str, ...]
    topic: str = "mlp-metrics"
    group: str = "mlp-hub"
    security: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class MonitoringPolicy:
    """What metrics show beside the platform's own state: people, the certificate of the public port, the record of the last backup."""

    people: int = 0  # at most; those with the largest homes
    certificate: Path | None = None
    backup: Path | None = None


@dataclass(frozen=True, slots=True)
class MailPolicy:
    """Server that mail is sent by."""

    host: str
    port: int
    security: str  # starttls, tls or none
    sender: str
    user: str = ""
    password: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class NoticePolicy:
    """Ways to notify people of their jobs."""

    mail: MailPolicy | None = None  # None: no mail is sent
    mail_domains: tuple[str, ...] = ()  # that mail is sent to; empty: all
    services: tuple[str, ...] = ()  # schemes of Apprise's addresses that people may give
    private: tuple[str, ...] = ()  # hosts that may be at private addresses
    pages: str = ""  # address of the platform's pages, which what is told leads to
    keep_s: float = 14 * DAY_S  # notices are shown so long
    together_s: float = 30.0  # what follows so soon after something was told by a channel goes together
    retry_s: float = 10.0  # first wait after a failure; doubles
    retry_max_s: float = HOUR_S
    give_up_s: float = DAY_S  # what could not be told for so long is not told any more


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """Policy of running jobs. Times in seconds."""

    scheduling: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    idle: IdlePolicy = field(default_factory=IdlePolicy)  # when guarantees of idle tenants shrink
    keep: KeepPolicy = field(default_factory=KeepPolicy)  # when jobs that ended are deleted
    audit: AuditPolicy = field(default_factory=AuditPolicy)  # where heads of the audit log are written
    traces_endpoint: str = ""  # address of a collector that traces of runs are posted to; empty: none
    alertmanager: AlertmanagerPolicy | None = None  # None: nobody asks whether it delivers
    traces_ca: str = ""  # certificates in PEM that sign the collector's; empty: those of public authorities
    exports: tuple[ExportPolicy, ...] = ()  # programs that metric points are handed on to
    monitoring: MonitoringPolicy = field(default_factory=MonitoringPolicy)
    disk: DiskPolicy = field(default_factory=DiskPolicy)  # how full the disk may become
    grace_s: float = 30.0  # between SIGTERM and SIGKILL
    job_network: str = "none"  # none or outbound, of tenants that say nothing
    runtime_review: bool = True  # tenants' runtimes wait for a platform admin's word
    environment_images: tuple[str, ...] = ()  # of which members make environments all the same
    first_uid: int | None = None  # user number N runs as first_uid + N; None: the hub's own uid
    api_url: str = ""  # what jobs are given as MLP_API_URL
    data_url: str = ""  # and as MLP_DATA_URL, where files of datasets are not beside that
    lease_s: float = 9.0  # so long after its last sign of life a platform is followed by another; all of it takes 15 s at most
    cycle_every_s: float = 30.0  # a scheduling cycle at least so often (aging, nodes that come back)
    look_every_s: float = 5.0  # every job that runs is looked at at least so often
    backoff_s: float = 0.2  # first wait after an executor's error; doubles
    backoff_max_s: float = 30.0
    start_tries: int = 5  # of an attempt whose executor raises an error that may pass
    large_cycle: int = 300  # with more waiting jobs a cycle is planned in a thread
    check_core: bool = False  # hold the scheduling core against one made anew in each cycle: for tests
    broker: BrokerPolicy | None = None  # that metric points pass through; None: straight into the store
    metric_points_max: int = 2_000_000  # stored of one job; later ones are dropped
    metric_bytes_max: int = 256 * MIB  # bytes of them, about
    metric_spool_max: int = 256 * MIB  # bytes that a job's processes keep of their points in its directory
    unmount_idle_s: float = 300.0  # after which nobody's encrypted files are closed again
    charge_files: bool = False  # homes and jobs' directories take of their tenants' storage
    secrets_key: str = field(
        default="", repr=False
    )  # secrets of tenants are sealed with it; empty: none are kept
    data_endpoints: tuple[str, ...] = ()  # object stores that may be at private addresses
    notices: NoticePolicy = field(default_factory=NoticePolicy)
    limits: ServiceLimits = DEFAULTS  # that an operator can set, and refusals name
    upload_silent_s: float = 0.0  # an upload that nobody was heard of for so long has failed; 0: never
    idempotency_s: float = 86_400.0  # keys are remembered so long
    open_bytes_max: int = 64 * 2**20  # of one user's jobs that have not ended, in memory
    open_kinds_max: int = (
        1000  # different requests of one user's waiting jobs; each costs every cycle a little
    )
