"""Checks of a job that is submitted, each refusal with the value, the limit and the way out."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import NoReturn

import msgspec

from mlp_api.jobs import MOST_RANKS, JobCreate
from mlp_hub.domain.dimensions import BY_NAME
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import PHASES, PRIORITIES, ExternalJob, Job, JobSpec
from mlp_hub.domain.quantities import quantity
from mlp_hub.domain.resources import milli
from mlp_hub.domain.runtime.runtime import (
    BUILT_IN,
    NOTEBOOK,
    Runtime,
    RuntimeState,
    default_runtime,
    misfit,
    no_notebook,
)
from mlp_hub.domain.stored.data import targets
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.executors.external import ObservedExternalJob
from mlp_hub.executors.workspace import Workspace
from mlp_hub.safe_path import PathKind
from mlp_hub.scheduler.nodes.placement import TOPOLOGIES
from mlp_hub.service.jobs.wire import spec_of, workers_of
from mlp_hub.service.support.units import counted_from
from mlp_language.message import Message, msg

_TOPOLOGY = re.compile(rf"({'|'.join(TOPOLOGIES)}|(required|preferred):[A-Za-z0-9][A-Za-z0-9._/-]{{0,62}})")
ADDED_LATER = ("replace", "params", "provenance", "env_name", "workdir", "amounts")
"""Fields of a request that earlier versions did not have. Keys are remembered over an upgrade: unset, such a field counts as absent."""
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


async def checked_spec(  # noqa: PLR0917 - each is needed
    asked: JobCreate,
    user: str,
    tenants: Collection[str],
    default: str,
    workspace: Workspace,
    own: Mapping[str, Runtime] = MappingProxyType({}),
) -> JobSpec:
    """Return the requested job, with defaults filled in; raise `Refused` for invalid requests.

    `own` are the runtimes of its tenant by name, in any state.
    """
    _check_program(asked)
    low, high = workers_of(asked.workers)
    if low > high:
        _refuse(
            msg(
                "workers {workers} has a minimum above its maximum; write MIN:MAX, such as {high}:{low}",
                workers=asked.workers,
                high=high,
                low=low,
            )
        )
    if high + asked.ps > MOST_RANKS:
        _refuse(
            msg(
                "{high} workers and {ps} parameter servers are more than {most_ranks} ranks",
                high=high,
                ps=asked.ps,
                most_ranks=MOST_RANKS,
            )
        )
    runtime = runtime_for(asked.runtime or default_runtime(high, asked.ps), own)
    if (wrong := misfit(runtime, low, asked.ps)) and (runtime.tenant or not runtime.has_ps):
        _refuse(wrong)
    if asked.priority not in PRIORITIES:
        _refuse(
            msg(
                "priority {priority} does not exist; choose one of {priorities}",
                priority=asked.priority,
                priorities=", ".join(PRIORITIES),
            )
        )
    if asked.gpu and not milli(asked.gpu):
        _refuse(
            msg(
                "gpu is {gpu}, but the smallest share is 0.001; ask for 0.001 or more, or for 0",
                gpu=f"{asked.gpu:g}",
            )
        )
    if asked.gpu_kind and not asked.gpu:
        _refuse(msg("gpu_kind {gpu_kind} without gpu asks for nothing; set gpu too", gpu_kind=asked.gpu_kind))
    _check_amounts(asked)
    if asked.topology and not _TOPOLOGY.fullmatch(asked.topology):
        _refuse(
            msg(
                "topology {topology} is unknown; use {topologies}, required:LABEL or preferred:LABEL",
                topology=repr(asked.topology),
                topologies=", ".join(TOPOLOGIES),
            )
        )
    check_env(asked.env, asked.args, runtime)
    check_params(asked.params)
    entry = None if asked.entry is None else await entry_in(workspace, user, asked.entry)
    if entry is not None and entry.endswith(NOTEBOOK):
        _check_notebook(asked, runtime, high)
    if asked.workdir is not None:
        asked = msgspec.structs.replace(asked, workdir=await workdir_in(workspace, user, asked.workdir))
    spec = spec_of(asked, user, tenant_for(asked.tenant, tenants, default), runtime, entry)
    targets(spec.data, user)
    return spec


def brought_spec(found: ObservedExternalJob, tenants: Collection[str]) -> JobSpec:
    """Return a job that was made past the hub; raise `Refused` for an invalid one."""
    if found.fault is not None:
        _refuse(found.fault)
    if found.tenant not in tenants:
        raise Refused(
            Reason.FORBIDDEN,
            msg(
                "{user} is not a member of team {tenant}; an administrator of the team can change that",
                user=found.user,
                tenant=found.tenant,
            ),
        )
    ranks = found.workers + found.ps
    if ranks > MOST_RANKS:
        _refuse(msg("{ranks} pods are more than the limit of {most}", ranks=ranks, most=MOST_RANKS))
    return JobSpec(
        name=_job_name(found.what),
        user=found.user,
        tenant=found.tenant,
        runtime=found.runtime,
        per_worker=found.per_worker,
        workers_min=found.workers,
        workers_max=found.workers,
        ps=found.ps,
        time_limit=found.time_limit,
        brought=found.what,
    )


def _job_name(what: ExternalJob) -> str:
    """Return the name of a job: the object's own, and of a longer one what no other of its user's is called."""
    most = 50
    return what.name if len(what.name) <= most else f"{what.name[: most - 9]}-{what.uid[:8]}"


def runtime_for(name: str, own: Mapping[str, Runtime]) -> Runtime:
    """Return the runtime of this name that a job may have; raises `Refused`."""
    found = BUILT_IN.get(name) or own.get(name)
    if found is None:
        usable = [row.name for row in own.values() if row.state is RuntimeState.APPROVED]
        _refuse(
            msg(
                "runtime {name} does not exist; choose one of {names}",
                name=name,
                names=", ".join([*BUILT_IN, *usable]),
            )
        )
    if found.state is RuntimeState.SUBMITTED:
        _refuse(
            msg("runtime {name} waits for an administrator's review; use it when it is approved", name=name)
        )
    if found.state is RuntimeState.DISABLED:
        _refuse(msg("runtime {name} was disabled by an administrator of the hub; use another one", name=name))
    return found


async def check_runtime(
    runtime: Runtime, lacks: Callable[[str], Awaitable[bool]], env: Mapping[str, str]
) -> None:
    """Refuse a runtime whose package is not where jobs would look for it, before anything waits in the queue."""
    package = runtime.needs
    # who brings packages along may bring this one
    if package is None or "PYTHONPATH" in env or not await lacks(package):
        return
    others = [
        r.name
        for r in BUILT_IN.values()
        if r.needs != package and (r.needs is None or not await lacks(r.needs))
    ]
    _refuse(
        msg(
            "{package} is not installed on this hub, and runtime {name} needs it; choose an environment that has it (mlp env create, then --env-name), use one of {others}, or ask the operator to install it (mlp-hub doctor shows how)",
            package=package,
            name=runtime.name,
            others=", ".join(others),
        )
    )


def tenant_for(asked: str | None, tenants: Collection[str], default: str) -> str:
    """Return the tenant of the job; one that the user is not in answers like one that does not exist."""
    if asked is None:
        return default
    if asked not in tenants:
        raise no_such_tenant(asked, tenants)
    return asked


async def entry_in(workspace: Workspace, user: str, entry: str) -> str:
    """Return the script's path relative to the user's home; refuse what is not there or leaves it."""
    if "\0" in entry:
        _refuse(msg("entry has a NUL character, which a path cannot have"))
    found = await workspace.find_entry(user, entry)
    if found.path.startswith("/"):
        _refuse(
            msg(
                "entry {entry} is outside of your home directory; give a path below it, such as train.py",
                entry=entry,
            )
        )
    if found.kind is PathKind.OUTSIDE:
        _refuse(
            msg(
                "entry {entry} leaves your home directory; give a path below it, such as train.py",
                entry=entry,
            )
        )
    if found.kind is PathKind.DIRECTORY:
        _refuse(msg("entry {entry} is a directory; name the script in it", entry=entry))
    if found.alike:
        _refuse(
            msg(
                "your home directory has no file {path}; did you mean {alike}? Its name differs in case or in the encoding of its letters",
                path=found.path,
                alike=found.alike,
            )
        )
    if found.kind not in (PathKind.FILE, PathKind.UNKNOWN):
        _refuse(
            msg(
                "your home directory has no file {path}; check the path of the script",
                path=found.path,
            )
        )
    if found.unfit is not None:
        _refuse(found.unfit)
    return posixpath.normpath(found.path)


async def workdir_in(workspace: Workspace, user: str, workdir: str) -> str:
    """Return the path, relative to the user's home, of the directory in which a program is to start; refuse what is not there or leaves it."""
    if "\0" in workdir:
        _refuse(msg("workdir has a NUL character, which a path cannot have"))
    path = posixpath.normpath(workdir.removeprefix("~/"))
    if path.startswith("/") or ".." in PurePosixPath(workdir).parts:
        _refuse(
            msg(
                "workdir {workdir} is not a path below your home directory; give one without .., such as project/src",
                workdir=workdir,
            )
        )
    if path == ".":
        _refuse(
            msg(
                "workdir {workdir} is your home directory, in which programs start anyway; leave it out, or name a directory below it, such as project/src",
                workdir=workdir,
            )
        )
    found = await workspace.find_entry(user, path)
    if found.kind is PathKind.OUTSIDE:
        _refuse(
            msg(
                "workdir {workdir} leaves your home directory by a link; name a directory inside it",
                workdir=workdir,
            )
        )
    if found.kind in (PathKind.FILE, PathKind.OTHER):
        _refuse(
            msg("workdir {workdir} is not a directory; name the directory that holds it", workdir=workdir)
        )
    if found.kind is PathKind.MISSING:
        _refuse(
            msg(
                "your home directory has no directory {path}; create it, or check the path: it begins in your home, wherever you submit from",
                path=path,
            )
        )
    return path


def still_there(job: Job) -> Refused:
    """Return the refusal of another run of a name while this one has not ended."""
    return Refused(
        Reason.CONFLICT,
        msg(
            "{name} run {run} has not ended, it is {phase}; to run it again, cancel it first or give another name",
            name=job.spec.name,
            run=job.run,
            phase=PHASES[job.phase],
        ),
    )


def fingerprint(asked: JobCreate | Mapping[str, object], *, of: str = "") -> str:
    """Return what tells two requests apart; `of` is the job that is to run again."""
    said = msgspec.to_builtins(asked)
    if of:
        said = {"resubmit": of, **said}
    else:
        for later in ADDED_LATER:
            if not said.get(later, True):
                del said[later]
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()


def _check_amounts(asked: JobCreate) -> None:
    """Refuse amounts of counted dimensions that no rank can have; 0 asks for nothing."""
    for dimension, amount in counted_from("amounts", asked.amounts).items():
        row = BY_NAME[dimension]
        if 0 < amount < row.least:
            _refuse(
                msg(
                    "{dimension} is {amount}, but the smallest amount is {least}; ask for {least} or more, or for 0",
                    dimension=dimension,
                    amount=amount,
                    least=quantity(dimension, row.least),
                )
            )
        if row.within is not None and amount > (most := getattr(asked, row.within)):
            _refuse(
                msg(
                    "{asked} per rank is more than its {most}, of which it is a part; ask for {limit} or less, or for more {whole}",
                    asked=quantity(dimension, amount),
                    most=quantity(row.within, most),
                    limit=most,
                    whole=row.within,
                )
            )


def _check_program(asked: JobCreate) -> None:
    if asked.entry is None and asked.code is None:
        _refuse(
            msg("nothing to run: give entry (a script in your home directory) or code (the program's text)")
        )
    if asked.entry is not None and asked.code is not None:
        _refuse(msg("both entry and code are given; give exactly one of them"))
    if asked.code is not None and not asked.code.strip():
        _refuse(msg("code is empty; give the program's text"))


def _check_notebook(asked: JobCreate, runtime: Runtime, workers: int) -> None:
    if unfit := no_notebook(runtime, workers, asked.ps):
        _refuse(unfit)
    if asked.args:
        _refuse(msg("a notebook takes no arguments; give it params, such as {example}", example="lr=0.1"))


def check_env(env: Mapping[str, str], args: Iterable[str], runtime: Runtime) -> None:
    """Refuse variables and arguments that no program can have, or that are the platform's or the runtime's."""
    for name, value in env.items():
        if not _ENV_NAME.fullmatch(name):
            _refuse(
                msg(
                    "env {name} is not a variable name; use letters, digits and _, and no digit first",
                    name=repr(name[:128]),
                )
            )
        if name.startswith("MLP_"):
            _refuse(
                msg("env {name} is set by the platform; names that begin with MLP_ are reserved", name=name)
            )
        if name in runtime.of_ranks:
            _refuse(
                msg(
                    "env {name} is set by runtime {runtime} for each rank; leave it out, or use a runtime that does not set it",
                    name=name,
                    runtime=runtime.name,
                )
            )
        if "\0" in value:
            _refuse(msg("env {name} has a NUL character, which a variable cannot have", name=name))
    for arg in args:
        if "\0" in arg:
            _refuse(msg("an argument has a NUL character, which an argument cannot have"))


def check_params(params: Mapping[str, object]) -> None:
    """Refuse parameters that no program can be told."""
    for name, value in params.items():
        if isinstance(value, str) and "\0" in value:
            _refuse(msg("parameter {name} has a NUL character, which a variable cannot have", name=name))


def _refuse(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)
