"""What the platform is told once, at its start."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.scheduler.idle import IdlePolicy
from mlp_hub.scheduler.model import SchedulingPolicy

DAY_S = 86_400.0
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Paths:
    """Where users' and jobs' files are on the hub's machine."""

    homes: Path  # {user}/ is the user's home
    jobs: Path  # {user}/{job}/ is the job's directory, /workspace for its ranks

    def home(self, user: str) -> Path:
        """Return the user's home directory."""
        return Path(self.home_name(user))

    def home_name(self, user: str) -> str:
        """Return the same as text: making a path costs much where every job comes by."""
        return f"{self.homes}/{component(user)}"

    def workspace(self, user: str, job: str) -> Path:
        """Return the job's directory."""
        return Path(self.workspace_name(user, job))

    def workspace_name(self, user: str, job: str) -> str:
        """Return the same as text."""
        return f"{self.jobs}/{component(user)}/{component(job)}"


@dataclass(frozen=True, slots=True)
class KeepPolicy:
    """How long jobs are kept that have ended, and how many of one user; None: without a limit.

    `job_bytes` is of what the database holds of them, not of their directories.
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
class RunPolicy:
    """How the platform runs jobs. Times in seconds."""

    scheduling: SchedulingPolicy = field(default_factory=SchedulingPolicy)
    idle: IdlePolicy = field(default_factory=IdlePolicy)  # when guarantees of idle tenants shrink
    keep: KeepPolicy = field(default_factory=KeepPolicy)  # when jobs that ended are deleted
    grace_s: float = 30.0  # between SIGTERM and SIGKILL
    job_network: str = "none"  # none or outbound
    first_uid: int | None = None  # user number N runs as first_uid + N; None: the hub's own uid
    api_url: str = ""  # what jobs are given as MLP_API_URL
    lease_s: float = 15.0  # so long after its last sign of life a platform may be followed by another
    cycle_every_s: float = 30.0  # a scheduling cycle at least so often (aging, nodes that come back)
    look_every_s: float = 5.0  # every job that runs is looked at at least so often
    backoff_s: float = 0.2  # first wait after an executor's error; doubles
    backoff_max_s: float = 30.0
    start_tries: int = 5  # of an attempt whose executor raises an error that may pass
    large_cycle: int = 300  # with more waiting jobs a cycle is planned in a thread
    check_core: bool = False  # hold the scheduling core against one made anew in each cycle: for tests
    metric_points_max: int = 2_000_000  # stored of one job; later ones are dropped
    idempotency_s: float = 86_400.0  # keys are remembered so long
    open_bytes_max: int = 64 * 2**20  # of one user's jobs that have not ended, in memory
    open_kinds_max: int = (
        1000  # different requests of one user's waiting jobs; each costs every cycle a little
    )


def component(name: str) -> str:
    """Return a name that is safe as one part of a path; refuse all others."""
    if not name or name in {".", ".."} or "/" in name or "\0" in name or len(name.encode()) > 255:
        raise Refused(Reason.INVALID, f"{name!r} cannot be used as a directory name")
    return name
