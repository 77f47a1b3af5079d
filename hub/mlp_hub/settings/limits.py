"""Settings of limits that people meet: what one user or one team can have, and how often they can ask; a part of `Settings`."""

from __future__ import annotations

from dataclasses import dataclass

from mlp_hub.settings.values import setting


@dataclass(frozen=True, kw_only=True)
class LimitSettings:
    """Settings of limits. A name that is a field of `ServiceLimits` too reaches the service as that field."""

    __slots__ = ()  # `Settings` makes them: of two bases that have some no class can be made

    rate_api: float = setting(
        500.0,
        "Requests a second of one caller to the API; ten times as many may come at once.",
        kind="float",
        low=1,
        high=1e6,
        limit="requests",
    )
    rate_changes: float = setting(
        0.1,
        "Changes a second that one caller adds to the audit log; 5,000 times as many may come at once. Platform admins have no limit.",
        kind="float",
        low=0.001,
        high=1e6,
        limit="requests",
    )
    rate_metrics: float = setting(
        200.0,
        "Batches of metric points a second of one caller; ten times as many may come at once.",
        kind="float",
        low=1,
        high=1e6,
        limit="requests",
    )
    rate_signups: float = setting(
        0.2,
        "Sign-ups a second from one address; 50 times as many may come at once.",
        kind="float",
        low=0.001,
        high=1e6,
        limit="requests",
    )
    rate_unknown_tokens: float = setting(
        20.0,
        "Requests a second with unknown tokens from one address; five times as many may come at once.",
        kind="float",
        low=0.1,
        high=1e6,
        limit="requests",
    )
    session_days: float = setting(
        14.0,
        "A login in a browser ends after this time.",
        kind="float",
        unit="days",
        low=0.01,
        high=365,
        limit="requests",
    )
    start_tries: int = setting(
        5,
        "Starts of an attempt that meet an error of the executor, until the job fails.",
        kind="int",
        low=1,
        high=100,
        limit="jobs",
    )
    open_jobs_mib: int = setting(
        64,
        "Programs and variables of one user's jobs that have not ended.",
        kind="int",
        unit="MiB",
        low=1,
        high=65_536,
        limit="jobs",
    )
    open_kinds_max: int = setting(
        1000,
        "Different requests for resources among one user's waiting jobs; each costs every scheduling cycle a little.",
        kind="int",
        low=1,
        high=1_000_000,
        limit="jobs",
    )
    sweeps_per_user: int = setting(
        500,
        "Sweeps and arrays of one user, with those that have ended.",
        kind="int",
        low=1,
        high=100_000,
        limit="jobs",
    )
    notebook_processes: int = setting(
        2048,
        "Processes and threads of a notebook server in a sandbox.",
        kind="int",
        low=64,
        high=1_000_000,
        limit="notebooks",
    )
    notebook_tmp: int = setting(
        512,
        "Size of `/tmp` of a notebook server. Its files are in memory.",
        kind="int",
        unit="MiB",
        low=1,
        high=1_000_000,
        limit="notebooks",
    )
    apps_per_user: int = setting(50, "Apps of one user.", kind="int", low=1, high=10_000, limit="apps")
    app_keys: int = setting(50, "Keys of one app.", kind="int", low=1, high=10_000, limit="apps")
    app_start_s: float = setting(
        300.0,
        "A replica of an app that has not answered for this time is ended, and another one starts. Large models take long to load.",
        kind="float",
        unit="s",
        low=5,
        high=86_400,
        limit="apps",
    )
    app_retry_max_s: float = setting(
        300.0,
        "Longest time between two starts of an app whose replicas end at once.",
        kind="float",
        unit="s",
        low=1,
        high=86_400,
        limit="apps",
    )
    app_visit_hours: float = setting(
        12.0,
        "A browser that uses an app is led past the hub again after this time.",
        kind="float",
        unit="hours",
        low=0.1,
        high=8760,
        limit="apps",
    )
    environments_per_tenant: int = setting(
        100,
        "Environments of one team.",
        kind="int",
        low=1,
        high=10_000,
        limit="data",
    )
    environments_at_once: int = setting(
        3,
        "Environments that this machine makes at a time, of each team one.",
        kind="int",
        low=1,
        high=64,
        limit="data",
    )
    environment_step_minutes: float = setting(
        30.0,
        "One step of making an environment, such as the installation of its packages.",
        kind="float",
        unit="minutes",
        low=1,
        high=1440,
        limit="data",
    )
    secrets_per_owner: int = setting(
        50,
        "Secrets of one team, or of one user.",
        kind="int",
        low=1,
        high=10_000,
        limit="teams",
    )
    runtimes_per_tenant: int = setting(
        50,
        "Runtimes of one team.",
        kind="int",
        low=1,
        high=1000,
        limit="teams",
    )
    windows_per_tenant: int = setting(
        100,
        "Booked windows of one team that are not over.",
        kind="int",
        low=1,
        high=1000,
        limit="teams",
    )
    window_days: int = setting(
        30,
        "Length of a booked window.",
        kind="int",
        unit="days",
        low=1,
        high=366,
        limit="teams",
    )
    window_days_ahead: int = setting(
        366,
        "Time until a booked window starts.",
        kind="int",
        unit="days",
        low=1,
        high=3660,
        limit="teams",
    )
    what_if_runs: int = setting(
        2,
        "What-if runs at a time, of all administrators together, one of each.",
        kind="int",
        low=1,
        high=64,
        limit="what-if",
    )
    what_if_jobs: int = setting(
        20_000,
        "Jobs of a what-if run.",
        kind="int",
        low=100,
        high=250_000,
        limit="what-if",
    )
    what_if_nodes: int = setting(
        10_000,
        "Nodes of a what-if run.",
        kind="int",
        low=10,
        high=200_000,
        limit="what-if",
    )
    what_if_s: float = setting(
        60.0,
        "Time of a what-if, of its two runs together.",
        kind="float",
        unit="s",
        low=1,
        high=3600,
        limit="what-if",
    )
    what_if_ram: int = setting(
        2048,
        "Memory of the process of a what-if.",
        kind="int",
        unit="MiB",
        low=256,
        high=1_000_000,
        limit="what-if",
    )
    unmount_idle_s: float = setting(
        300.0,
        "Encrypted files of a team are locked again after this time without use.",
        kind="float",
        unit="s",
        low=1,
        high=31_536_000,
    )
