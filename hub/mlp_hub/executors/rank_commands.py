"""Starts of a runtime's ranks: from its row and a job's shape to commands and environments, nothing run."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mlp_hub.domain.runtime import template
from mlp_hub.domain.runtime.runtime import PS, PYTHON, Runtime, misfit, roles_of
from mlp_hub.executors.base import CannotStart
from mlp_hub.safe_path import PathKind, kind_of
from mlp_hub.sandbox.spec import INSIDE, RankPlan
from mlp_language.message import msg

HOST = "127.0.0.1"
FIRST_PORT = 20_000
"""Given: ports count up from here by rank; the sandbox's network is its own, so they are always free."""
MOST_TEXT = 100_000
"""Limit of jobs: bytes of one argument or variable of a rank."""
MOST_IN_ALL = 64 * 2**20
"""Limit of jobs: bytes of the commands and variables of all ranks of a job."""


@dataclass(frozen=True, slots=True)
class Command:
    """Command of a job's program: its interpreter, its path inside, its arguments.

    `asks_all`: all of its processes are asked to end. Otherwise only the first one is, which ends the
    others.
    """

    by: tuple[str, ...]
    entry: str
    args: tuple[str, ...]
    asks_all: bool = True


@dataclass(frozen=True, slots=True)
class GangShape:
    """Job as its runtime sees it.

    `python` is the interpreter inside. `start` is the path of the program that starts ranks there, as ranks see it, with the
    other files of `sandbox/shim/programs` beside it; the default is the sandbox's path. `hosts` are those
    of the ranks, where each has a separate machine. `by_module` is then the argument that replaces
    running a program by a module, if that machine has it. `own` is the interpreter of an environment
    that the program has instead.
    """

    command: Command
    workers: int
    ps: int
    python: str
    start: str = INSIDE
    hosts: tuple[str, ...] = ()
    by_module: str = ""
    own: str = ""

    @property
    def program_python(self) -> str:
        """The interpreter that the program runs by."""
        return self.own or self.python

    @property
    def starter(self) -> tuple[str, ...]:
        """The command of the program that starts ranks inside, but its mode."""
        return (self.python, "-IS", self.start)

    def host(self, rank: int) -> str:
        """Return where a rank is reached by the others."""
        return self.hosts[rank] if self.hosts else HOST


@dataclass(frozen=True, slots=True)
class GangCommand:
    """The sandbox's own command, its additions to the environment, and what its ranks are."""

    argv: tuple[str, ...]
    ranks: RankPlan
    env: Mapping[str, str] = field(default_factory=dict)


def build(runtime: Runtime, shape: GangShape) -> GangCommand:
    """Return what the sandbox of such a job runs; raises `CannotStart` with the reason and the way out."""
    if wrong := misfit(runtime, shape.workers, shape.ps):
        raise CannotStart(wrong)
    roles = roles_of(runtime, shape.workers, shape.ps)
    lists = {
        "program": _program(runtime, shape),
        "args": shape.command.args,
        "start_rank": (*shape.starter, "rank"),
    }
    common = _common(runtime, shape, roles)
    shared = {
        name: template.fill(text, common) for name, text in runtime.env.items() if template.is_common(text)
    }
    own = {name: text for name, text in runtime.env.items() if name not in shared}
    templates = {role.name: role.program or runtime.program for role in runtime.roles}
    alike = len(set(templates.values())) == 1 and all(map(template.is_common, runtime.program))
    programs: list[tuple[str, ...]] = []
    envs: list[dict[str, str]] = []
    budget = _Budget()
    budget.count_texts(shared.values())
    for each in _of_ranks(common, shape, roles):
        if not (alike and programs):
            programs.append(template.fill_all(templates[each["role"]], each, lists))
            budget.count_texts(programs[-1])
        if own:
            envs.append({name: template.fill(text, each) for name, text in own.items()})
            budget.count_texts(envs[-1].values())
        elif alike:
            break
    leader = None if runtime.ends_with is None else roles.index(runtime.ends_with)
    if len(roles) == 1 and runtime.launcher is None and leader is None:
        alone = {"MLP_RANK": "0", "MLP_WORLD_SIZE": "1", **shared, **(envs[0] if envs else {})}
        return GangCommand(
            programs[0],
            RankPlan(
                "single",
                roles,
                programs[0],
                success=runtime.success,
                asks_all=shape.command.asks_all,
            ),
            alone,
        )
    plan = RankPlan(
        "gang" if runtime.launcher is None else "launcher",
        roles,
        programs[0],
        tuple(envs),
        programs=() if alike else tuple(programs),
        rank_env=runtime.rank_env,
        leader=leader,
        linger_s=0.0 if shape.ps else runtime.linger_s,
        abort=runtime.abort,
        success=runtime.success,
        asks_all=shape.command.asks_all,
    )
    if runtime.launcher is None:
        return GangCommand((*shape.starter, "gang"), plan, shared)
    launch = template.fill_all(runtime.launcher, common, lists)
    if runtime.remedy and not shape.hosts and not Path(launch[0]).exists():
        raise CannotStart(
            msg(
                "runtime {runtime} needs {program}, which is missing: {remedy}",
                program=launch[0],
                runtime=runtime.name,
                remedy=runtime.remedy,
            )
        )
    return GangCommand(launch, plan, shared)


def _program(runtime: Runtime, shape: GangShape) -> tuple[str, ...]:
    by, entry, args = shape.command.by, shape.command.entry, shape.command.args
    if runtime.module and by[:1] == (shape.program_python,) and "-m" not in by:
        if shape.hosts:
            by = (*by, shape.by_module + runtime.module)
        elif runtime.module == PYTHON or _installed(runtime.module, shape.python):
            by = (*by, f"{os.path.dirname(shape.start)}/by_{runtime.module}.py")  # noqa: PTH120 - as it is written
    return (*by, entry, *args)


def _common(runtime: Runtime, shape: GangShape, roles: tuple[str, ...]) -> dict[str, str]:
    hosts = [f"{shape.host(rank)}:{FIRST_PORT + rank}" for rank in range(len(roles))]
    values = {
        "python": shape.program_python,
        "bin": os.path.dirname(shape.python),  # noqa: PTH120 - as it is written
        "entry": shape.command.entry,
        "world_size": str(len(roles)),
        "workers": str(shape.workers),
        "master": shape.host(0),
        "master_port": str(FIRST_PORT),
        "hosts": ",".join(hosts),
        "count": str(len(roles)),
    }
    for role in (role.name for role in runtime.roles):
        mine = [host for host, of in zip(hosts, roles, strict=True) if of == role]
        values |= {f"hosts.{role}": ",".join(mine), f"count.{role}": str(len(mine))}
    return values


class _OfRank(dict[str, str]):
    """Values of places for one rank; those that cost something are made when they are asked for."""

    def __init__(
        self, common: Mapping[str, str], shape: GangShape, roles: tuple[str, ...], rank: int
    ) -> None:
        super().__init__(common, rank=str(rank), role=roles[rank], host=shape.host(rank))
        self["port"] = str(FIRST_PORT + rank)
        self._shape, self._roles, self._rank = shape, roles, rank

    def __missing__(self, place: str) -> str:
        if place != "tf_config":
            raise KeyError(place)
        return _tf_config(self._shape, self._roles, self._rank)


def _of_ranks(common: dict[str, str], shape: GangShape, roles: tuple[str, ...]) -> Iterator[dict[str, str]]:
    seen: Counter[str] = Counter()
    for rank, role in enumerate(roles):
        values = _OfRank(common, shape, roles, rank)
        values["role_rank"] = str(seen[role])
        yield values
        seen[role] += 1


def _tf_config(shape: GangShape, roles: tuple[str, ...], rank: int) -> str:
    """Return TF_CONFIG. Without parameter servers all are workers and the first is chief, as MultiWorkerMirroredStrategy wants it."""
    kinds = roles if PS in roles else ("worker",) * len(roles)
    cluster: dict[str, list[str]] = {}
    for number, kind in enumerate(kinds):
        cluster.setdefault(kind, []).append(f"{shape.host(number)}:{FIRST_PORT + number}")
    task = {"type": kinds[rank], "index": kinds[:rank].count(kinds[rank])}
    return json.dumps({"cluster": cluster, "task": task})


class _Budget:
    """Limit on arguments that no kernel would start, or that would fill the memory.

    An example is a list of all hosts, in each of thousands of ranks.
    """

    def __init__(self) -> None:
        self._left = MOST_IN_ALL

    def count_texts(self, texts: Iterable[str]) -> None:
        """Count texts; raises `CannotStart` where one of them, or all together, are too long."""
        for text in texts:
            self._left -= len(text)
            if len(text) > MOST_TEXT or self._left < 0:
                raise CannotStart(
                    msg(
                        "the runtime's arguments or variables have more than {each} characters each or {all} together; ask for fewer ranks",
                        each=f"{MOST_TEXT:,}",
                        all=f"{MOST_IN_ALL:,}",
                    )
                )


def lacks(package: str, python: str, home: str, seen_at: str) -> bool:
    """Whether a job with this interpreter and home would lack a package; nothing is imported.

    `seen_at` is where the job has its home.
    """
    if python == sys.executable:
        there = importlib.util.find_spec(package) is not None
    else:
        there = _installed(package, python)
    return not there and not _at_home(package, python, home, seen_at)


def _installed(package: str, python: str) -> bool:
    return any(Path(python).parent.parent.glob(f"lib/python3*/*-packages/{package}/__init__.py"))


def _at_home(package: str, python: str, home: str, seen_at: str) -> bool:
    """Tell whether `pip install --user` brought it; no folder of the user's is listed, however full it is.

    What a link leads to outside of the home counts as there: the job will tell, who looks with no more rights than its user.
    """
    versions = [folder.name for folder in Path(python).parent.parent.glob("lib/python3*")]
    places = [f".local/lib/{name}/site-packages/{package}/__init__.py" for name in versions]
    return any(
        kind_of(home, place, seen_at) not in (PathKind.MISSING, PathKind.DIRECTORY) for place in places
    )
