"""Every setting of the platform: its name, default, unit and meaning, in one table.

A setting `some_name` is read from the environment variable `MLP_SOME_NAME`, else from `c.MLPHub.some_name` in
the traitlets file that `MLP_CONFIG` names, else it has its default. A key of `c.MLPHub` that is no setting
fails the start. Paths of the state directory are properties here, so that all processes agree on them.

Only the standard library is imported; traitlets is, when `MLP_CONFIG` is set.
"""

# ruff: noqa: RUF009 - `setting` makes a dataclass field
from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mlp_hub._setting_values import SettingsError, parse, setting

SOCKET_PATH_MAX = 107  # bytes in sockaddr_un.sun_path, less its final NUL
LONGEST_SOCKET = "private/proxy-api.sock"

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
class Settings:
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
        (), "Host names by which browsers may call, besides the bind address and localhost.", kind="list"
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
        "Of these, from one address (of IPv6: one /64 network). Behind a reverse proxy all come from its address.",
        kind="int",
        low=10,
        high=100_000,
    )
    connections_per_user: int = setting(
        500,
        "Connections that one user's notebook servers and jobs hold to the service at once, and as many to the hub.",
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
        "Where jobs run: in sandboxes on this machine, or on nodes that are simulated.",
        kind="str",
        choices=("local", "simulated"),
    )
    scheduling_policy: str = setting(
        "fair",
        "Whose job is next: fair (share of the machines, now and lately), maxmin (share of the machines, now alone), "
        "fifo (first come, first served), priority (priority, then age), finish (who would be late first).",
        kind="str",
        choices=("fair", "maxmin", "fifo", "priority", "finish"),
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
        choices=("fgd", "bestfit", "packing", "spread", "random"),
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
        "CPU given out for each core that is there; CPU is a share, not a pinned core. 1: every rank has its own.",
        kind="float",
        low=1,
        high=64,
    )
    node_ram_reserve: int = setting(
        512, "Memory kept for the platform itself and never given out.", kind="int", unit="MiB", low=0
    )
    first_uid: int = setting(
        300000,
        "Where the hub runs as root, user number N gets this system uid plus N.",
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
        return cls(**values)

    def to_environ(self) -> dict[str, str]:
        """Give all settings as environment variables, but `MLP_CONFIG`, so that a child needs no file."""
        found: dict[str, str] = {}
        for spec in dataclasses.fields(self):
            value = getattr(self, spec.name)
            if value is None or value in ("", ()) or spec.name == "config":
                continue
            if isinstance(value, bool):
                text = "1" if value else "0"
            else:
                text = ",".join(value) if isinstance(value, tuple) else str(value)
            found[variable_of(spec.name)] = text
        return found

    # Paths of the state directory.

    @property
    def run_dir(self) -> Path:
        """Sockets and pid files. Below `home` unless socket paths would be too long there."""
        wanted = self.home / "run"
        if len(os.fsencode(wanted / LONGEST_SOCKET)) <= SOCKET_PATH_MAX:
            return wanted
        short = hashlib.sha256(os.fsencode(self.home)).hexdigest()[:12]
        return Path("/tmp") / f"mlp-{short}-{os.getuid()}"  # noqa: S108 - the name is checked for its owner when made

    @property
    def private_dir(self) -> Path:
        """Sockets that only the platform may reach; mode 0700."""
        return self.run_dir / "private"

    @property
    def tenant_dir(self) -> Path:
        """Sockets that are bound into sandboxes."""
        return self.run_dir / "tenant"

    @property
    def proxy_api_socket(self) -> Path:
        """Where the proxy takes its routes from the hub."""
        return self.private_dir / "proxy-api.sock"

    @property
    def service_socket(self) -> Path:
        """The service's socket that the proxy sends to."""
        return self.private_dir / "mlp.sock"

    @property
    def tenant_service_socket(self) -> Path:
        """The service's socket that sandboxes reach."""
        return self.tenant_dir / "mlp.sock"

    @property
    def hub_socket(self) -> Path:
        """The hub's socket, for the proxy and the service."""
        return self.private_dir / "hub.sock"

    @property
    def tenant_hub_socket(self) -> Path:
        """The hub's socket that sandboxes reach."""
        return self.tenant_dir / "hub.sock"

    @property
    def secrets_dir(self) -> Path:
        """Secrets, one a file; mode 0700."""
        return self.home / "secrets"

    @property
    def db_dir(self) -> Path:
        """SQLite databases; mode 0700."""
        return self.home / "db"

    @property
    def service_db_file(self) -> Path:
        """The platform's own database, unless `database_url` names another."""
        return self.db_dir / "mlp.sqlite"

    @property
    def service_db_url(self) -> str:
        """SQLAlchemy URL of the platform's own database."""
        return self.database_url or f"sqlite:///{self.service_db_file}"

    @property
    def hub_db_url(self) -> str:
        """SQLAlchemy URL of JupyterHub's database."""
        return self.hub_database_url or f"sqlite:///{self.db_dir / 'jupyterhub.sqlite'}"

    @property
    def homes_dir(self) -> Path:
        """Users' home directories, one a user."""
        return self.home / "homes"

    @property
    def data_dir(self) -> Path:
        """The storage tree `/mlp` of the contract: jobs, datasets, models."""
        return self.home / "mlp"

    @property
    def jobs_dir(self) -> Path:
        """Jobs' output directories, `{user}/{job}`."""
        return self.data_dir / "jobs"

    @property
    def jobs_run_dir(self) -> Path:
        """Run directories of job attempts."""
        return self.home / "jobs-run"

    @property
    def servers_run_dir(self) -> Path:
        """Run directories of notebook servers."""
        return self.home / "servers-run"

    @property
    def log_dir(self) -> Path:
        """Logs of the components."""
        return self.home / "log"

    def secret_file(self, name: str) -> Path:
        """Tell where a secret is: cookie_secret, crypt_key, {proxy,service,spawner,operator}_token, admin-password."""
        return self.secrets_dir / name

    def secret(self, name: str) -> str:
        """Read a secret; OSError when `mlp-hub up` has not made it yet."""
        return self.secret_file(name).read_text().strip()

    @property
    def url(self) -> str:
        """What a person on this machine opens in the browser."""
        host = {"0.0.0.0": "127.0.0.1", "": "127.0.0.1", "::": "[::1]"}.get(self.bind, self.bind)  # noqa: S104 - compared, not bound
        return f"http://{f'[{host}]' if ':' in host and host[0] != '[' else host}:{self.port}/"


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return f"MLP_{name.upper()}"


def table() -> list[SettingDoc]:
    """List all settings for `--help` and the documentation."""
    rows = []
    for spec in dataclasses.fields(Settings):
        default = "$XDG_DATA_HOME/mlp-hub" if spec.name == "home" else _shown(spec.default)
        doc = spec.metadata["doc"]
        if spec.metadata["choices"]:
            doc += f" One of {', '.join(spec.metadata['choices'])}."
        rows.append(SettingDoc(spec.name, variable_of(spec.name), default, spec.metadata["unit"], doc))
    return rows


def _shown(value: object) -> str:
    if value is None or value in ("", ()):
        return ""
    return {True: "1", False: "0"}[value] if isinstance(value, bool) else str(value)
