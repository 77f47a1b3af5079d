"""Executors by the values of the setting `executor`, with their traits: all else asks a trait, and none asks for a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Ground(StrEnum):
    """What jobs and notebook servers run in: `up` prepares it, `down` ends servers in it, JupyterHub has a spawner for it.

    A value is a row of `GROUNDS` in `cli/lifecycle/grounds.py`, and of `SPAWNERS` in `hub_integration/configure.py`.
    """

    SANDBOX = "sandbox"
    CLUSTER = "cluster"


class Ranks(StrEnum):
    """Where ranks of jobs run, and so what is known of them, and who ends them, while no service runs."""

    HERE = "here"
    """Processes of this machine: their run directories list them, and `down` ends them."""
    ELSEWHERE = "elsewhere"
    """On other machines: the database lists them, and only the service ends them."""
    NOWHERE = "nowhere"
    """Simulated: none is left once the service has ended."""


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The file that leads to the system where jobs run: the setting that names it, and the variable by which other tools find it."""

    setting: str
    variable: str


SANDBOX_CHECKS = frozenset(
    {"sandbox", "cgroups", "network", "isolation", "mpi", "tensorflow", "torch", "gpu"}
)


@dataclass(frozen=True, slots=True)
class ExecutorKind:
    """A row of the table. `words` complete "Where jobs run: "."""

    words: str
    ground: Ground = Ground.SANDBOX
    ranks: Ranks = Ranks.HERE
    needs_sandbox: bool = False
    """Whether users are kept apart by this machine's sandbox, so that there has to be one."""
    checks: frozenset[str] = SANDBOX_CHECKS
    """Checks of the doctor that mean something for some executors only, and for this one."""
    files_setting: str = ""
    """Setting with the directory of the volume that ranks mount; empty: they have this machine's files, below the state directory."""
    config: ConfigFile | None = None


EXECUTOR_KINDS: Mapping[str, ExecutorKind] = {
    "local": ExecutorKind("in sandboxes on this machine", needs_sandbox=True),
    "simulated": ExecutorKind("on nodes that are simulated", ranks=Ranks.NOWHERE),
    "kubernetes": ExecutorKind(
        "as pods of a cluster, and notebook servers too",
        ground=Ground.CLUSTER,
        ranks=Ranks.ELSEWHERE,
        checks=frozenset({"cluster"}),
        files_setting="kubernetes_files",
        config=ConfigFile("kubernetes_config", "KUBECONFIG"),
    ),
}
SOME_CHECKS = frozenset().union(*(kind.checks for kind in EXECUTOR_KINDS.values()))
"""Checks of the doctor that do not concern every executor."""
