"""Description of a sandbox as data: frozen, and the same in memory and in the run directory's JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

INSIDE = "/run/mlp/inside.py"
"""Where a sandbox finds the program that starts ranks and reports on them."""


@dataclass(frozen=True, slots=True)
class Bind:
    """A file or directory of the host that is seen inside.

    `src` is the host's path, `dst` the path inside. An `optional` one may be missing; a `device` one keeps
    device nodes usable. `dst` is never below /dev, which is read-only when binds are made: `_system` of the
    shim's `view.py` adds devices there.
    """

    src: str
    dst: str
    writable: bool = False
    optional: bool = False
    device: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link inside: `path` leads to `target`, both as seen inside.

    A bind stays with the directory that it was made from, also when another takes that one's place; a link to a path
    below a bind leads to whatever is there when it is followed.
    """

    path: str
    target: str


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the machine a sandbox may take.

    `cpu` is in thousandths of a core and gives its share when cores are scarce. `cpu_max`, in thousandths too,
    is the most it ever gets; `None` means `cpu` rounded up to whole cores, so that a small share may burst to
    one core; 0 means no ceiling. `ram_mib` counts all processes and the temporary files; 0 means no limit.
    Of several ranks each may hold `rank_ram_mib` of it, where a control group can count that; 0: they share it all.
    `pids` counts processes and threads. `tmp_mib` is the size of /tmp and of /dev/shm, each; `shm_mib`
    is that of /dev/shm if it is not 0. `file_mib` is the most that
    one file may have; 0 means no limit.
    """

    cpu: int = 1000
    ram_mib: int = 1024
    pids: int = 1024
    tmp_mib: int = 512
    file_mib: int = 0
    cpu_max: int | None = None
    rank_ram_mib: int = 0
    shm_mib: int = 0


@dataclass(frozen=True, slots=True)
class RankPlan:
    """The processes of a job in one sandbox.

    `mode` is one of three values: `single` (the sandbox's command is rank 0 itself), `gang` (all ranks
    are started side by side) or `launcher`. With the latter the sandbox's command, as mpiexec, starts
    the ranks, and `rank_env` is the variable with the number of each. `program` is the command of one
    rank, `programs` those of each rank where they differ. `envs` are each rank's additions to the
    environment. A rank has failed if its exit status is not in `success`. When rank `leader` ends,
    servers (role `ps`) are stopped at once and the others after `linger_s` seconds; `None`: the gang
    ends when all have ended. `abort` is a regular expression for the text that a rank writes to its
    error output when it ends all others itself; its first group is the exit status. `asks_all`: all
    processes of a rank are asked to end. Without it, only its first process is asked, and the others
    once that one has ended.
    """

    mode: str
    roles: tuple[str, ...]
    program: tuple[str, ...]
    envs: tuple[Mapping[str, str], ...] = ()
    rank_env: str = "PMI_RANK"
    leader: int | None = None
    linger_s: float = 0.0
    abort: str | None = None
    programs: tuple[tuple[str, ...], ...] = ()
    success: tuple[int, ...] = (0,)
    asks_all: bool = True


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """Full specification of a sandbox; paths are the host's unless noted otherwise.

    `uid` is the host's user (and group) id of the program, `None` for the hub's own. It takes effect
    only where the hub runs as root. `env` is the whole environment of the program. `cwd`, `argv` and
    `home_mount` are paths inside. `network` is `none` or `outbound`. `gpus` are indices of devices.
    `listen` is the path of a UNIX socket that is made outside, listening, and passed in; its number is
    in MLP_LISTEN_FD. `log_dir` gets `rank-N.log`; without a plan all output is rank 0's. `grace_s` is
    the default time between SIGTERM and SIGKILL. `hidden` are directories inside that are covered by
    empty ones. `memory_events`: inside, MLP_MEMORY_EVENTS is the file in which the kernel counts the
    processes that it killed there for lack of memory.
    """

    id: str
    argv: tuple[str, ...]
    env: Mapping[str, str]
    home_dir: str
    home_mount: str
    log_dir: str
    user_name: str = "user"
    uid: int | None = None
    binds: tuple[Bind, ...] = ()
    cwd: str | None = None
    limits: Limits = field(default_factory=Limits)
    network: str = "none"
    gpus: tuple[int, ...] = ()
    listen: str | None = None
    ranks: RankPlan | None = None
    time_limit: float | None = None
    grace_s: float = 10.0
    hostname: str = "sandbox"
    hidden: tuple[str, ...] = ()
    memory_events: bool = False
    links: tuple[Link, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON's types."""
        return asdict(self)
