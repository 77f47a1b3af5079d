"""Every setting of the platform: its name, default, unit and meaning, in one table.

A setting `some_name` is read from the environment variable `MLP_SOME_NAME`, else from `c.MLPHub.some_name` in
the traitlets file that `MLP_CONFIG` names, else it has its default. An unknown key of `c.MLPHub` fails the start.
Paths of the state directory are properties too (`state_paths`).

The module imports only the standard library and names of the contract; it imports traitlets if `MLP_CONFIG` is set.
"""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any

from mlp_hub.settings import broker_values, cluster_values
from mlp_hub.settings import origins as _origins
from mlp_hub.settings.cluster import ClusterSettings
from mlp_hub.settings.edge import EdgeSettings
from mlp_hub.settings.executor_kinds import EXECUTOR_KINDS, ExecutorKind
from mlp_hub.settings.exporting import ExportSettings, check_authorities
from mlp_hub.settings.keeping import KeepingSettings
from mlp_hub.settings.limits import LimitSettings
from mlp_hub.settings.login import LoginSettings
from mlp_hub.settings.notice import NoticeSettings
from mlp_hub.settings.parts import PartSettings
from mlp_hub.settings.scheduling import SchedulingSettings
from mlp_hub.settings.state_paths import StatePaths
from mlp_hub.settings.values import SettingsError, address, check_http, networks, parse, setting, variable_of

PARTS = (
    EdgeSettings,
    SchedulingSettings,
    KeepingSettings,
    LimitSettings,
    LoginSettings,
    ClusterSettings,
    PartSettings,
    ExportSettings,
)
"""Parts of `Settings` in addition to its own, in the order of the documentation."""
FIRST_UID = 300_000  # of the users of a machine's first hub; number 0 belongs to nobody

__all__ = ["SettingDoc", "Settings", "SettingsError", "table", "variable_of"]


@dataclass(frozen=True, slots=True)
class SettingDoc:
    """One row of the table of settings, as `--help` and the documentation show it."""

    name: str
    variable: str
    default: str
    unit: str
    doc: str
    limit: str = ""


def _default_home(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME") or "/root") / ".local/share")
    return Path(base) / "mlp-hub"


@dataclass(frozen=True, slots=True)
class Settings(
    LoginSettings,
    ClusterSettings,
    PartSettings,
    KeepingSettings,
    LimitSettings,
    NoticeSettings,
    ExportSettings,
    SchedulingSettings,
    EdgeSettings,
    StatePaths,
):
    """All settings, checked. Make one by `Settings.load(os.environ)`."""

    home: Path = setting(None, "State directory: databases, secrets, homes, jobs, logs.", kind="path")
    port: int = setting(8000, "Public TCP port, the only one that is opened.", kind="int", low=1, high=65535)
    bind: str = setting("127.0.0.1", "Address that the public port listens on.", kind="str")
    config: Path | None = setting(
        None,
        "A traitlets file: `c.MLPHub.*` sets what is listed here, the rest is JupyterHub's.",
        kind="path",
    )
    metric_points_max: int = setting(
        2_000_000,
        "Metric points that are stored of one job; later ones are dropped.",
        kind="int",
        low=1000,
        limit="runs",
    )
    metric_mib_max: int = setting(
        256,
        "MiB of metric points that are stored of one job; later ones are dropped. They count as files of the job do.",
        kind="int",
        low=1,
        limit="runs",
    )
    metrics_transport: str = setting(
        "http",
        "Way of metric points into the database: http (straight), kafka (by way of a topic of Apache Kafka).",
        kind="str",
        choices=("http", "kafka"),
    )
    kafka_bootstrap: tuple[str, ...] = setting(
        (), "HOST:PORT of brokers of that Kafka, some of them or all.", kind="list"
    )
    kafka_topic: str = setting("mlp-metrics", "Topic of the points; nobody else may write to it.", kind="str")
    kafka_group: str = setting("mlp-hub", "Consumer group of the services that read it.", kind="str")
    kafka_secrets: Path | None = setting(
        None,
        "A TOML file, readable by its owner alone, of how the brokers are spoken to: protocol, mechanism, user, password, "
        "ca_file, certificate_file, key_file.",
        kind="path",
    )
    service_listen: str = setting(
        "",
        "HOST:PORT at which the service listens for the proxy, besides its socket; empty: nowhere.",
        kind="str",
    )
    service_listen_tenants: str = setting(
        "",
        "HOST:PORT at which the service listens for notebook servers and jobs, and for who asks whether it is ready, besides its "
        "socket; empty: nowhere.",
        kind="str",
    )
    metrics_listen: str = setting(
        "",
        "HOST:PORT, or a port of 127.0.0.1 alone, at which the service answers `GET /metrics`, besides its public address; with "
        "replicas, each further one at the next port. A token is needed here too. Empty: nowhere.",
        kind="str",
    )
    metrics_people: int = setting(
        0,
        "People at most whose homes and teams `GET /metrics` shows by name, for the dashboards of JupyterHub, those with the largest homes first; 0: nobody.",
        kind="int",
        low=0,
        high=20_000,
    )
    dcgm_job_dir: Path | None = setting(
        None,
        "Directory in which a file for each GPU names its jobs, on one machine: the DCGM exporter reads it by `--hpc-job-mapping-dir`. Unset: none.",
        kind="path",
    )
    traces_endpoint: str = setting(
        "",
        "Address of a collector of OpenTelemetry that traces of ended runs are posted to (OTLP over HTTP, protobuf), as "
        "http://collector:4318/v1/traces. Needs the extra `otlp`. Empty: no traces are exported.",
        kind="str",
    )
    traces_ca: Path | None = setting(
        None,
        "Certificates that sign the one of `traces_endpoint`, in PEM; unset: those of public authorities.",
        kind="path",
    )
    service_proxies: tuple[str, ...] = setting(
        ("127.0.0.0/8", "::1"),
        "Addresses or networks whose connections to `service_listen` are taken, and whose X-Forwarded-For is believed.",
        kind="list",
    )
    replicas: int = setting(
        1,
        "Services on the platform's database: one leads, the others stand by and take over. More than one needs PostgreSQL.",
        kind="int",
        low=1,
        high=9,
    )
    admin_name: str = setting("admin", "Name of the first administrator.", kind="str")
    database_url: str = setting(
        "",
        "SQLAlchemy URL of the platform's database; empty means SQLite in the state directory.",
        kind="str",
    )
    hub_database_url: str = setting(
        "", "SQLAlchemy URL of JupyterHub's database; empty means SQLite in the state directory.", kind="str"
    )
    executor: str = setting(
        "local",
        "Where jobs run: "
        + "; ".join(f"{name} ({about.words})" for name, about in EXECUTOR_KINDS.items())
        + ".",
        kind="str",
        choices=tuple(EXECUTOR_KINDS),
    )
    simulated_nodes: Path | None = setting(
        None,
        "A scenario file (as `mlp-hub simulate` reads) whose `nodes` the simulated executor has; unset: four of 16 cores.",
        kind="path",
    )
    allow_no_sandbox: bool = setting(
        False, "Run although this machine has no sandbox: users are then not kept apart.", kind="bool"
    )
    grace_s: float = setting(
        30.0,
        "Time between SIGTERM and SIGKILL when a job is stopped.",
        kind="float",
        unit="s",
        low=0,
        high=3600,
    )
    notebook_cpu: float = setting(0.2, "CPU of a notebook server.", kind="float", unit="cores", low=0.1)
    notebook_ram: int = setting(1024, "Memory of a notebook server.", kind="int", unit="MiB", low=100)
    notebook_network: str = setting(
        "outbound",
        "Network of notebook servers, where slirp4netns is found.",
        kind="str",
        choices=("none", "outbound"),
    )
    job_network: str = setting(
        "none",
        "Network of jobs' ranks, where slirp4netns is found.",
        kind="str",
        choices=("none", "outbound"),
    )
    package_index: str = setting(
        "",
        "Address of the index that packages of environments come from, as `https://packages.example.org/simple`; empty: as uv and pip of "
        "this machine are told, by `UV_DEFAULT_INDEX`, `UV_INDEX_URL`, `PIP_INDEX_URL` or pip's configuration file.",
        kind="str",
    )
    runtime_review: bool = setting(
        True,
        "Whether a runtime that a tenant registers waits for an administrator's review before jobs may use it.",
        kind="bool",
    )
    node_name: str = setting("", "Name of this machine's node; empty means its host name.", kind="str")
    node_cpu: float | None = setting(
        None, "Cores of this machine's node, instead of what is found.", kind="float", unit="cores", low=0.1
    )
    node_ram: int | None = setting(
        None, "Memory of this machine's node, instead of what is found.", kind="int", unit="MiB", low=100
    )
    node_gpus: int | None = setting(
        None, "GPUs of this machine's node, instead of what is found.", kind="int", unit="devices", low=0
    )
    node_gpu_kind: str = setting("", "Kind of those GPUs, instead of what is found.", kind="str")
    node_cpu_overcommit: float = setting(
        3.0,
        "CPU given out for each core that is there, of a cluster's nodes too; CPU is a share, not a pinned core. 1: every rank "
        "has its own.",
        kind="float",
        low=1,
        high=64,
    )
    node_ram_reserve: int = setting(
        512, "Memory kept for the platform itself and never given out.", kind="int", unit="MiB", low=0
    )
    first_uid: int | None = setting(
        None,
        "Where the hub runs as root, user number N gets this system uid plus N. Without it, the first `up` takes a range of "
        "100000 that no other hub of the machine has, and the state directory keeps it.",
        kind="int",
        low=1000,
        high=2**31,
    )
    log_max: int = setting(
        16,
        "Size at which a component's log is rotated; one older file is kept.",
        kind="int",
        unit="MiB",
        low=1,
    )
    log_format: str = setting(
        "text",
        "Form of the lines that the components log: text (for people), json (one JSON object a line, for a log collector).",
        kind="str",
        choices=("text", "json"),
    )

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Settings:
        """Read the settings; raise SettingsError naming what is wrong."""
        given: dict[str, tuple[str, object]] = {}
        path = environ.get("MLP_CONFIG")
        if path:
            from mlp_hub.settings.config_file import read_section  # noqa: PLC0415 - traitlets only where it is used

            known = [f.name for f in dataclasses.fields(cls) if f.name != "config"]
            for name, value in read_section(Path(path).absolute(), known).items():
                given[name] = (f"c.MLPHub.{name}", value)
        for spec in dataclasses.fields(cls):
            variable = variable_of(spec.name)
            if environ.get(variable):
                given[spec.name] = (variable, environ[variable])
        values: dict[str, Any] = {
            spec.name: parse(given[spec.name][0], given[spec.name][1], spec.metadata)
            for spec in dataclasses.fields(cls)
            if spec.name in given
        }
        values.setdefault("home", _default_home(environ).absolute())
        config = EXECUTOR_KINDS[values.get("executor", "local")].config
        if config is not None and environ.get(config.variable):
            values.setdefault(config.setting, cluster_values.config_path(config, environ[config.variable]))
        settings = cls(**values)
        # names and addresses that cannot be meant fail here
        _ = settings.base, settings.origins, settings.tls, settings.listens, settings.proxies
        _ = settings.in_front, settings.hub_listens, settings.data_listens, settings.metrics_listens
        _ = settings.volume
        settings.check_parts()
        settings.check_login()
        settings.check_mail()
        settings.check_audit()
        settings.check_exports()
        check_http("MLP_TRACES_ENDPOINT", settings.traces_endpoint)
        check_authorities(
            "MLP_TRACES_CA", settings.traces_ca, "MLP_TRACES_ENDPOINT", settings.traces_endpoint
        )
        if settings.metrics_transport == "kafka":
            broker_values.check_addresses(settings.kafka_bootstrap)
            broker_values.read_security(settings.kafka_secrets)
        cluster_values.check_name(settings.kubernetes_name)
        cluster_values.check_gpu_metrics(settings.kubernetes_gpu_metrics, settings.kubernetes_gpu_metrics_job)
        cluster_values.check_namespaces(
            settings.kubernetes_namespaces,
            settings.kubernetes_name,
            pod=settings.kubernetes_pod,
            capacity=settings.kubernetes_capacity,
        )
        _ = settings.capacity
        cluster_values.check_networks("MLP_KUBERNETES_DNS", settings.kubernetes_dns)
        cluster_values.check_networks("MLP_KUBERNETES_OPEN", settings.kubernetes_open)
        if settings.replicas > 1 and settings.service_db_url.startswith("sqlite:"):
            raise SettingsError(
                f"MLP_REPLICAS is {settings.replicas}; several services need PostgreSQL: name it with MLP_DATABASE_URL"
            )
        return settings

    def to_environ(self) -> dict[str, str]:
        """Give all settings as environment variables, so that a child needs no file; but `MLP_CONFIG` and what is secret."""
        found: dict[str, str] = {}
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if value is None or value in ("", ()) or spec.name == "config" or spec.metadata["secret"]:
                continue
            if isinstance(value, bool):
                text = "1" if value else "0"
            else:
                text = ",".join(value) if isinstance(value, tuple) else str(value)
            found[variable_of(spec.name)] = text
        return found

    # What follows from settings.

    @property
    def audit_heads_file(self) -> Path:
        """File that heads of the audit log's chain are appended to."""
        return self.audit_heads or self.home / "audit-heads.jsonl"

    @property
    def services(self) -> tuple[str, ...]:
        """Names of the services as components of this hub: `service`, `service-2`, ..."""
        return ("service", *(f"service-{number}" for number in range(2, self.replicas + 1)))

    @property
    def listens(self) -> tuple[tuple[str, int] | None, tuple[str, int] | None]:
        """Where the service listens on TCP, as (host, port): for the proxy, and for sandboxes."""
        proxy = address("MLP_SERVICE_LISTEN", self.service_listen)
        tenants = address("MLP_SERVICE_LISTEN_TENANTS", self.service_listen_tenants)
        if proxy is not None and tenants is not None and proxy[1] == tenants[1]:
            raise SettingsError(
                f"MLP_SERVICE_LISTEN and MLP_SERVICE_LISTEN_TENANTS both name port {proxy[1]}; give them two, which tell the "
                "proxy from sandboxes"
            )
        return proxy, tenants

    @property
    def metrics_listens(self) -> tuple[str, int] | None:
        """Where the first service listens on TCP for scrapers, as (host, port)."""
        raw = self.metrics_listen
        found = address("MLP_METRICS_LISTEN", f"127.0.0.1:{raw}" if raw.isascii() and raw.isdigit() else raw)
        if found is not None and found[1] + self.replicas - 1 > 65535:
            raise SettingsError(
                f"MLP_METRICS_LISTEN is {raw!r}; {self.replicas} replicas need as many ports from there on, up to 65535"
            )
        return found

    @property
    def runs(self) -> ExecutorKind:
        """Kind of the executor, with all that depends on it."""
        return EXECUTOR_KINDS[self.executor]

    @property
    def files_dir(self) -> Path:
        """Tree of homes and jobs' files: the hub's secrets must not be beside the directories that pods mount."""
        setting = self.runs.files_setting
        if not setting:
            return self.home
        named: Path | None = getattr(self, setting)
        return named or self.home / "files"

    @property
    def config_file(self) -> Path | None:
        """The file that leads to the system where jobs run, if the executor needs one and it is named."""
        config = self.runs.config
        named: Path | None = None if config is None else getattr(self, config.setting)
        return named

    @property
    def tolerations(self) -> tuple[Mapping[str, Any], ...]:
        """Tolerations of all pods."""
        return cluster_values.tolerations(self.kubernetes_tolerations)

    @property
    def capacity(self) -> Mapping[str, str]:
        """Amounts that the hub gives out where it may not read nodes."""
        return cluster_values.capacity(self.kubernetes_capacity)

    @property
    def volume(self) -> Mapping[str, Any]:
        """The source of the volume of all files, as a PersistentVolume has it."""
        return cluster_values.volume(self.kubernetes_volume, self.files_dir)

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Networks of those who may connect to the proxy's port."""
        return networks("MLP_SERVICE_PROXIES", self.service_proxies)

    @property
    def service_db_url(self) -> str:
        """SQLAlchemy URL of the platform's own database."""
        return self.database_url or f"sqlite:///{self.service_db_file}"

    @property
    def hub_db_url(self) -> str:
        """SQLAlchemy URL of JupyterHub's database."""
        return self.hub_database_url or f"sqlite:///{self.db_dir / 'jupyterhub.sqlite'}"

    @property
    def uid_base(self) -> int:
        """Offset of users' numbers for their system uids, if the hub is root."""
        return self.first_uid or self.recorded_uid or FIRST_UID

    @property
    def origins(self) -> _origins.Origins:
        """The names by which browsers reach the platform and users' servers."""
        return _origins.find(
            bind=self.bind,
            port=self.port,
            public_url=self.public_url,
            users_domain=self.users_domain,
            tls=self.tls is not None,
        )

    @property
    def url(self) -> str:
        """Address that people open in the browser."""
        return f"{self.origins.platform}{self.base}/"

    @property
    def base(self) -> str:
        """Begin of the path of every page, without a slash at its end: empty, or for example `/mlp`."""
        return _origins.base_of(self.base_path)


def table() -> list[SettingDoc]:
    """List all settings for `--help` and the documentation, part by part."""
    rows = []
    place = {spec.name: n for n, part in enumerate(PARTS, 1) for spec in dataclasses.fields(part)}
    for spec in sorted(dataclasses.fields(Settings), key=lambda spec: place.get(spec.name, 0)):
        default = "$XDG_DATA_HOME/mlp-hub" if spec.name == "home" else _shown(spec.default)
        doc = spec.metadata["doc"]
        if spec.metadata["choices"]:
            doc += f" One of {', '.join(spec.metadata['choices'])}."
        rows.append(
            SettingDoc(
                spec.name, variable_of(spec.name), default, spec.metadata["unit"], doc, spec.metadata["limit"]
            )
        )
    return rows


def _shown(value: object) -> str:
    if value is None or value in ("", ()):
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return {True: "1", False: "0"}[value] if isinstance(value, bool) else str(value)
