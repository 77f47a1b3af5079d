"""Runtimes as data: how a job's ranks are started, what each of them finds, and when the job has ended.

The platform's own are the rows of `BUILT_IN`; a tenant's own are rows of the same type in the database, made and approved by
people. A job carries the row that it was submitted with, if that is a tenant's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from mlp_hub.domain.runtime import template
from mlp_language.message import Message, msg

WORKER, PS = "worker", "ps"
PYTHON = "python"
NOTEBOOK = ".ipynb"
"""Ending of programs that are notebooks."""
NOTEBOOK_TEXT = "from mlp.notebook_run import run_text\n"
"""Begin of the text of programs that are notebooks which came with the job."""


class RuntimeState(StrEnum):
    """Whether new jobs may use a runtime."""

    SUBMITTED = "submitted"  # waits for a platform admin's review
    APPROVED = "approved"
    DISABLED = "disabled"  # by a platform admin


@dataclass(frozen=True, slots=True)
class RankRole:
    """Role of ranks: `count` of the ranks that `--workers` gives, None: all the remaining ones.

    Ranks of the role `ps` are additional, and their number is that of `--ps`. `program` is the command
    of such a rank, None: the runtime's.
    """

    name: str
    count: int | None = None
    program: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Runtime:
    """A way to run a program on several ranks. Commands and values of variables are templates.

    A launcher, where there is one, starts the ranks, telling each its number in the variable `rank_env`; else all are started
    side by side. A rank has succeeded with an exit status among `success`; the first that has not ends the job. The job has
    ended when all ranks have, or, `linger_s` seconds later at the latest, when the first rank of the role `ends_with` has:
    at once where it has parameter servers, which never end by themselves.
    """

    name: str
    title: str
    description: str
    program: tuple[str, ...] = ("{program}",)
    env: Mapping[str, str] = field(default_factory=dict)
    roles: tuple[RankRole, ...] = (RankRole(WORKER),)
    launcher: tuple[str, ...] | None = None
    rank_env: str = "RANK"
    needs: str | None = None  # the Python package without which no program of it can start
    image: str | None = None  # of its ranks' containers, where they have some; None: that of jobs in general
    ends_with: str | None = None
    linger_s: float = 10.0
    success: tuple[int, ...] = (0,)
    least_workers: int = 1
    # of the platform's own only: a command that must be there and how to get it, the module with which Python programs are run
    # where it is there (by a `by_MODULE.py` of ours; `PYTHON` is everywhere), how a rank's output says that it ended all others, and what its launcher sets
    remedy: str = ""
    module: str | None = None
    abort: str | None = None
    launched: tuple[str, ...] = ()  # variables that its launcher sets for each rank, whatever the job says
    tenant: str | None = None  # None: everybody's
    state: RuntimeState = RuntimeState.APPROVED

    @property
    def has_ps(self) -> bool:
        """Whether it may have parameter servers."""
        return any(role.name == PS for role in self.roles)

    @property
    def of_ranks(self) -> frozenset[str]:
        """Names of variables whose value each rank gets individually, whatever the job sets."""
        own = {name for name, text in self.env.items() if not template.is_common(text)}
        return frozenset({*own, *self.launched, *(() if self.launcher is None else (self.rank_env,))})

    @property
    def size(self) -> int:
        """Characters of its texts, about."""
        commands = (self.program, self.launcher or (), *(role.program or () for role in self.roles))
        texts = (self.name, self.title, self.description, *self.env, *self.env.values())
        return sum(map(len, texts)) + sum(len(text) for command in commands for text in command)


_PS = RankRole(PS)

BUILT_IN: Mapping[str, Runtime] = {
    row.name: row
    for row in (
        Runtime(
            "mpi",
            "MPI",
            msg("All ranks in one MPI world; `from mpi4py import MPI`.").template,
            # fork: all ranks are in one sandbox, there is nobody to reach by ssh
            launcher=("{bin}/mpiexec.hydra", "-launcher", "fork", "-n", "{world_size}", "{start_rank}"),
            rank_env="PMI_RANK",
            needs="mpi4py",
            remedy="pip install mpich mpi4py",
            # an uncaught exception then aborts all ranks, where otherwise its rank would wait in MPI_Finalize for ever
            module="mpi4py",
            abort=r"^Abort\((-?\d+)\) on node \d+ \(rank \d+ in comm",
        ),
        Runtime(
            "tf",
            "TensorFlow",
            msg("TF_CONFIG is set for each rank; --ps adds parameter servers.").template,
            env={"TF_CONFIG": "{tf_config}"},
            roles=(RankRole("chief", 1), RankRole(WORKER), _PS),
            needs="tensorflow",
            ends_with="chief",
            module=PYTHON,
        ),
        Runtime(
            "torch",
            "PyTorch",
            msg("Started as with torchrun; needs torch in the job's environment.").template,
            launcher=(
                "{python}",
                "-m",
                "torch.distributed.run",
                "--nnodes=1",
                "--nproc-per-node={world_size}",
                "--master-addr={master}",
                "--master-port=29500",
                "--max-restarts=0",
                "--no-python",
                "{start_rank}",
            ),
            needs="torch",
            rank_env="RANK",
            module=PYTHON,
            launched=("LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"),
        ),
        Runtime(
            "plain",
            "Plain",
            msg("Each rank runs the program on its own; MLP_RANK tells them apart.").template,
        ),
    )
}
"""The platform's own runtimes by name, in the order in which they are offered. No tenant's has one of these names.

Their descriptions are sentences that are read in every language.
"""
WITH_PS = tuple(row.name for row in BUILT_IN.values() if row.has_ps)


def default_runtime(workers_max: int, ps: int) -> str:
    """Return the runtime of a job that names none."""
    if ps:
        return WITH_PS[0]
    return "mpi" if workers_max > 1 else "plain"


def roles_of(runtime: Runtime, workers: int, ps: int) -> tuple[str, ...]:
    """Return the role of each rank by its number: those of the workers in the runtime's order, then the parameter servers."""
    left = workers - sum(role.count or 0 for role in runtime.roles)
    roles: list[str] = []
    for role in runtime.roles:
        if role.name != PS:
            roles += [role.name] * (max(left, 0) if role.count is None else role.count)
    return (*roles[:workers], *(PS,) * ps)


def misfit(runtime: Runtime, workers: int, ps: int) -> Message | None:
    """Return why a job of these ranks cannot use this runtime, and the right choice; None when it can."""
    if ps and not runtime.has_ps:
        return msg(
            "parameter servers (ps {ps}) need runtime {wanted}, not {runtime}; it has no parameter servers: "
            "leave ps out or use {wanted}",
            ps=ps,
            wanted=" or ".join(WITH_PS),
            runtime=runtime.name,
        )
    fixed = sum(role.count or 0 for role in runtime.roles)
    least = max(runtime.least_workers, fixed + 1 if ps else 0)
    if workers < least:
        needs = tuple(
            msg("{count} {role}", count=role.count or msg("at least 1"), role=role.name)
            for role in runtime.roles
            if role.name != PS
        )
        return msg(
            "runtime {runtime} starts {needs}: ask for --workers {least} or more, not {workers}",
            runtime=runtime.name,
            needs=needs,
            least=least,
            workers=workers,
        )
    return None


def no_notebook(runtime: Runtime, workers: int, ps: int) -> Message | None:
    """Say why a notebook cannot run so, and what is right; None when it can."""
    if workers > 1 or ps:
        return msg(
            "a notebook runs in one kernel, so it has one worker and no parameter servers, not {ranks} ranks: put code for several ranks into a script",
            ranks=workers + ps,
        )
    if runtime.launcher is not None:
        return msg(
            "runtime {runtime} has its own launcher, which cannot start a notebook's kernel; use {other}",
            runtime=runtime.name,
            other="plain",
        )
    return None
