"""Every setting of the platform: its name, default, unit and meaning, in one table.

A setting `some_name` is read from the environment variable `MLP_SOME_NAME`, else from `c.MLPHub.some_name` in
the traitlets file that `MLP_CONFIG` names, else it has its default. A key of `c.MLPHub` that is no setting
fails the start. Paths of the state directory are properties too (`_state_paths`).

Only the standard library is imported, and names of the contract; traitlets is, when `MLP_CONFIG` is set.
"""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, get_args

from mlp_api.terms import POLICIES, PlacementRule, PolicyName
from mlp_hub import _broker_values, _cluster_values, _origins
from mlp_hub._cluster_settings import ClusterSettings
from mlp_hub._executor_kinds import EXECUTOR_KINDS, ExecutorKind
from mlp_hub._login_settings import LoginSettings
from mlp_hub._setting_values import SettingsError, address, parse, setting
from mlp_hub._state_paths import StatePaths

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


def _default_home(environ: Mapping[str, str]) -> Path:
    base = environ.get("XDG_DATA_HOME") or str(Path(environ.get("HOME") or "/root") / ".local/share")
    return Path(base) / "mlp-hub"


@dataclass(frozen=True, slots=True)
class Settings(LoginSettings, ClusterSettings, StatePaths):
    """All settings, checked. Make one by `Settings.load(os.environ)`."""

    home: Path = setting(None, "State directory: databases, secrets, homes, jobs, logs.", kind="path")
    port: int = setting(8000, "Public TCP port, the only one that is opened.", kind="int", low=1, high=65535)
    bind: str = setting("127.0.0.1", "Address that the public port listens on.", kind="str")
    config: Path | None = setting(
        None,
        "A traitlets file: `c.MLPHub.*` sets what is listed here, the rest is JupyterHub's.",
        kind="path",
    )
    allowed_hosts: tuple[str, ...] = setting(
        (),
        "More host names under which the hub answers programs; browsers are led from there to `public_url`.",
        kind="list",
    )
    public_url: str = setting(
        "",
        "Address of the platform's pages as browsers have it, as `https://hub.example.org/`; "
        "empty: `http://localhost:PORT/`.",
        kind="str",
    )
    users_domain: str = setting(
        "",
        "Domain below which each user's notebook servers have a host name of their own (`NAME.DOMAIN`; all of them lead "
        "here), apart from the platform's; empty: `localhost`, where `public_url` is that too. `none`: all pages on one "
        "name, and one opened link of another user can be the account.",
        kind="str",
    )
    base_path: str = setting(
        "/",
        "Path below which all of the hub is, as `/mlp/`, where the names have other pages beside it; a gateway in front leaves it "
        "in the requests.",
        kind="str",
    )
    tls_cert: Path | None = setting(
        None,
        "File of a certificate with its chain (PEM): the public port then speaks TLS by itself, and takes a renewed file without "
        "a restart.",
        kind="path",
    )
    tls_key: Path | None = setting(
        None,
        "File of the key of `tls_cert` (PEM, not encrypted); unset: it stands in that file too.",
        kind="path",
    )
    trusted_proxies: tuple[str, ...] = setting(
        (),
        "Addresses or networks of the reverse proxies in front, whose X-Forwarded-For is believed, counted from the right; "
        "empty: nobody's, and all limits by address count a proxy as one.",
        kind="list",
    )
    hsts: int = setting(
        86_400,
        "So long browsers keep to TLS once they came over it (Strict-Transport-Security), where `public_url` is https; 0: not told.",
        kind="int",
        unit="s",
        low=0,
        high=63_072_000,
    )
    connections_max: int = setting(
        5000,
        "Connections that the public port holds at once; fewer where the limit of open files is too low for them.",
        kind="int",
        low=10,
        high=100_000,
    )
    connections_per_address: int = setting(
        1000,
        "Of these, from one address (of IPv6: one /64 network). Those of `trusted_proxies` count for whom they bring.",
        kind="int",
        low=10,
        high=100_000,
    )
    connections_per_user: int = setting(
        500,
        "Connections that one user's notebook servers and jobs hold to the service at once, and as many to the hub; "
        "requests and WebSockets that the public port holds to one user's notebook servers.",
        kind="int",
        low=10,
        high=100_000,
    )
    metric_points_max: int = setting(
        2_000_000,
        "Metric points that are stored of one job; later ones are dropped.",
        kind="int",
        low=1000,
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
    hub_listen_tenants: str = setting(
        "",
        "HOST:PORT at which the hub listens for notebook servers that are pods; empty: where they are, `kubernetes_address` "
        "and the port after the public one. For `service_listen_tenants` then the one after that.",
        kind="str",
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
    scheduling_policy: str = setting(
        "fair",
        "Whose job is next: " + ", ".join(f"{name} ({words})" for name, words in POLICIES.items()) + ".",
        kind="str",
        choices=get_args(PolicyName),
    )
    scheduling_half_life_s: float = setting(
        3600.0,
        "Under `fair`: use of the machines counts half when it is so old.",
        kind="float",
        unit="s",
        low=1,
        high=31_536_000,
    )
    scheduling_backfill: bool = setting(
        True, "Let smaller jobs pass one that waits for room, where that does not delay it.", kind="bool"
    )
    scheduling_preemption: bool = setting(
        True, "Stop or shrink jobs for more urgent ones, and to take back quota that was lent.", kind="bool"
    )
    scheduling_placement: str = setting(
        "fgd",
        "Where ranks go: fgd leaves the fewest GPUs that nobody can use; the others are for comparison.",
        kind="str",
        choices=get_args(PlacementRule),
    )
    scheduling_min_run_s: float = setting(
        30.0,
        "A job that has not run so long is neither stopped nor resized for others.",
        kind="float",
        unit="s",
        low=0,
        high=86_400,
    )
    scheduling_restart_cost_s: float = setting(
        0.0,
        "What stopping a job costs besides its work since the last checkpoint, when victims are compared.",
        kind="float",
        unit="s",
        low=0,
        high=86_400,
    )
    scheduling_aging_s: float = setting(
        600.0,
        "So long a wait is worth one point of priority.",
        kind="float",
        unit="s",
        low=1,
        high=31_536_000,
    )
    scheduling_seed: int = setting(0, "Under random placement: what it begins from.", kind="int", low=0)
    scheduling_patience: float = setting(
        2.5,
        "Under `finish`: a job is late once it has taken so many times its length.",
        kind="float",
        low=1,
        high=1000,
    )
    simulated_nodes: Path | None = setting(
        None,
        "A scenario file (as `mlp-hub simulate` reads) whose `nodes` the simulated executor has; unset: four of 16 cores.",
        kind="path",
    )
    apps_body_max: int = setting(
        100, "Body of a request to an app.", kind="int", unit="MiB", low=1, high=100_000
    )
    apps_answer_s: float = setting(
        300.0,
        "An app's answer to a request has begun after so long, or is waited for no longer.",
        kind="float",
        unit="s",
        low=1,
        high=86_400,
    )
    apps_wake_s: float = setting(
        60.0,
        "A request to an app that sleeps waits so long until it answers.",
        kind="float",
        unit="s",
        low=0,
        high=3600,
    )
    apps_key_rate: float = setting(
        50.0,
        "Requests a second to an app with one key; twice as many may come at once.",
        kind="float",
        low=0.01,
        high=1e6,
    )
    apps_tenant_rate: float = setting(
        500.0,
        "Requests a second to all apps of a tenant; twice as many may come at once.",
        kind="float",
        low=0.01,
        high=1e6,
    )
    idle_quota_after: float | None = setting(
        None,
        "A tenant that has been idle for so long has its guarantee lowered (what its lending limit keeps back, and what "
        "it reserves), until it asks for something; unset: never.",
        kind="float",
        unit="s",
        low=60,
        high=31_536_000,
    )
    idle_quota_floor: float = setting(
        0.5,
        "The share of its guarantee that such a tenant keeps, from 0 to 1.",
        kind="float",
        low=0,
        high=1,
    )
    keep_jobs_days: float = setting(
        90.0,
        "Jobs are deleted, with their directories, so long after they ended; 0: never.",
        kind="float",
        unit="days",
        low=0,
        high=36_500,
    )
    keep_jobs_most: int = setting(
        10_000,
        "Jobs that have ended are kept of one user; those that ended first are deleted first. 0: any number.",
        kind="int",
        unit="jobs",
        low=0,
    )
    keep_jobs_mib: int = setting(
        1024,
        "So much the database keeps of one user's jobs that have ended (programs, timelines, metrics); those that ended first "
        "are deleted first, the last one never. 0: any amount.",
        kind="int",
        unit="MiB",
        low=0,
    )
    keep_audit_days: float = setting(
        730.0,
        "Entries of the audit log are forgotten after so long; 0: never.",
        kind="float",
        unit="days",
        low=0,
        high=36_500,
    )
    disk_floor: int | None = setting(
        None,
        "Below so much free space no job is started, below half of it no notebook server, and who writes fastest is "
        "stopped; unset: a twentieth of the file system, from 1 to 10 GiB, a fifth of it at most. 0: never.",
        kind="int",
        unit="MiB",
        low=0,
    )
    job_disk_max: int | None = setting(
        None,
        "So much a job may hold in its directory, with its logs and metrics; unset: a fifth of the file system. 0: any amount.",
        kind="int",
        unit="MiB",
        low=0,
    )
    home_disk_max: int | None = setting(
        None,
        "So much a home may hold; unset: a fifth of the file system. 0: any amount.",
        kind="int",
        unit="MiB",
        low=0,
    )
    metric_spool_max: int = setting(
        256,
        "So much the processes of a job's attempt keep of what they reported in its directory; what would be more is dropped.",
        kind="int",
        unit="MiB",
        low=1,
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

    @classmethod
    def load(cls, environ: Mapping[str, str]) -> Settings:
        """Read the settings; raise SettingsError naming what is wrong."""
        given: dict[str, tuple[str, object]] = {}
        path = environ.get("MLP_CONFIG")
        if path:
            from mlp_hub._config_file import read_section  # noqa: PLC0415 - traitlets only where it is used

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
        if environ.get("KUBECONFIG") and EXECUTOR_KINDS[values.get("executor", "local")].cluster:
            values.setdefault("kubernetes_config", _cluster_values.kubeconfig(environ["KUBECONFIG"]))
        settings = cls(**values)
        _ = settings.base, settings.origins  # names that cannot be meant fail here
        _ = (
            settings.tls,
            settings.listens,
            settings.proxies,
            settings.in_front,
            settings.hub_listens,
        )  # and addresses
        _ = settings.volume
        settings.check_login()
        if settings.metrics_transport == "kafka":
            _broker_values.check_addresses(settings.kafka_bootstrap)
            _broker_values.read_security(settings.kafka_secrets)
        _cluster_values.check_name(settings.kubernetes_name)
        _cluster_values.check_networks("MLP_KUBERNETES_DNS", settings.kubernetes_dns)
        _cluster_values.check_networks("MLP_KUBERNETES_OPEN", settings.kubernetes_open)
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
    def disk_limits(self) -> tuple[int | None, int | None, int | None]:
        """What stays free, what a job and what a home may hold, in bytes; None is a share of the file system."""
        floor, job, home = (
            None if given is None else given * 2**20
            for given in (self.disk_floor, self.job_disk_max, self.home_disk_max)
        )
        return floor, job, home

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
    def hub_listens(self) -> tuple[str, int] | None:
        """Where the hub listens on TCP for pods, as (host, port), if that is told."""
        return address("MLP_HUB_LISTEN_TENANTS", self.hub_listen_tenants)

    @property
    def runs(self) -> ExecutorKind:
        """What depends on which executor it is."""
        return EXECUTOR_KINDS[self.executor]

    @property
    def files_dir(self) -> Path:
        """The tree that holds homes and jobs' files: what pods mount of it must not have the hub's secrets beside it."""
        if not self.runs.cluster:
            return self.home
        return self.kubernetes_files or self.home / "files"

    @property
    def tolerations(self) -> tuple[Mapping[str, Any], ...]:
        """Tolerations of all pods."""
        return _cluster_values.tolerations(self.kubernetes_tolerations)

    @property
    def volume(self) -> Mapping[str, Any]:
        """The source of the volume of all files, as a PersistentVolume has it."""
        return _cluster_values.volume(self.kubernetes_volume, self.files_dir)

    @property
    def proxies(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Networks of those who may connect to the proxy's port."""
        return _networks("MLP_SERVICE_PROXIES", self.service_proxies)

    @property
    def in_front(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Networks of the reverse proxies in front of the public port."""
        found = _networks("MLP_TRUSTED_PROXIES", self.trusted_proxies)
        if everybody := next((one for one in found if one.prefixlen == 0), None):
            raise SettingsError(
                f"MLP_TRUSTED_PROXIES has {everybody}, which is everybody; name the addresses of your proxies"
            )
        return found

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
        """What a user's number is added to for a system uid, where the hub is root."""
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
    def tls(self) -> tuple[Path, Path] | None:
        """Files of the public port's certificate and of its key, where it speaks TLS."""
        if self.tls_cert is None:
            if self.tls_key is not None:
                raise SettingsError(
                    "MLP_TLS_KEY is set, and MLP_TLS_CERT is not: name the certificate too, or neither"
                )
            return None
        return self.tls_cert, self.tls_key or self.tls_cert

    @property
    def url(self) -> str:
        """What a person opens in the browser."""
        return f"{self.origins.platform}{self.base}/"

    @property
    def base(self) -> str:
        """What the path of every page begins with, without a slash at its end: empty, or as `/mlp`."""
        return _origins.base_of(self.base_path)


def _networks(variable: str, given: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    try:
        return tuple(ip_network(one) for one in given)
    except ValueError as error:
        raise SettingsError(f"{variable}: {error}; it takes addresses and networks, as 10.0.0.0/8") from None


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"MLP_{name.upper()}"


def table() -> list[SettingDoc]:
    """List all settings for `--help` and the documentation, those of logging in and of a cluster last."""
    rows = []
    parts = (LoginSettings, ClusterSettings)
    place = {spec.name: n for n, part in enumerate(parts, 1) for spec in dataclasses.fields(part)}
    for spec in sorted(dataclasses.fields(Settings), key=lambda spec: place.get(spec.name, 0)):
        default = "$XDG_DATA_HOME/mlp-hub" if spec.name == "home" else _shown(spec.default)
        doc = spec.metadata["doc"]
        if spec.metadata["choices"]:
            doc += f" One of {', '.join(spec.metadata['choices'])}."
        rows.append(SettingDoc(spec.name, variable_of(spec.name), default, spec.metadata["unit"], doc))
    return rows


def _shown(value: object) -> str:
    if value is None or value in ("", ()):
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return {True: "1", False: "0"}[value] if isinstance(value, bool) else str(value)
