"""A request as a job's specification: its team, its runtime, its script and other names are looked up."""

from __future__ import annotations

import posixpath
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from pathlib import PurePosixPath
from typing import NoReturn

from mlp_api.jobs.jobs import JobCreate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import JobSpec
from mlp_hub.domain.runtime.runtime import BUILT_IN, Runtime, RuntimeState
from mlp_hub.domain.tenants.tenant import no_such_tenant
from mlp_hub.executors.workspace import Workspace
from mlp_hub.logs.concern import current
from mlp_hub.safe_path import PathKind
from mlp_hub.service.jobs import validation, wire
from mlp_language.message import Message, msg

Places = tuple[Collection[str], str]
"""Tenants of a user, and the one that a request means which names none."""


async def requested_spec(
    asked: JobCreate,
    user: str,
    places: Places,
    workspace: Workspace,
    own_of: Callable[[JobSpec], Awaitable[Mapping[str, Runtime]]],
) -> JobSpec:
    """Return the requested job, with defaults filled in; raise `Refused` for invalid requests.

    `own_of` returns the runtimes of its tenant by name, in any state.
    """
    spec = replace(wire.spec_of(asked, user), request_id=current().request_id)
    validation.check_request(spec)
    spec = replace(spec, tenant=tenant_for(spec.tenant, *places))
    if spec.runtime not in BUILT_IN:
        spec = replace(spec, own_runtime=runtime_for(spec.runtime, await own_of(spec)))
    if spec.entry is not None:
        spec = replace(spec, entry=await entry_in(workspace, user, spec.entry))
    if spec.workdir is not None:
        spec = replace(spec, workdir=await workdir_in(workspace, user, spec.workdir))
    validation.check_resolved(spec)
    return spec


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


def tenant_for(asked: str, tenants: Collection[str], default: str) -> str:
    """Return the tenant of the job; one that the user is not in is answered like one that does not exist."""
    if not asked:
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


def _refuse(text: Message) -> NoReturn:
    raise Refused(Reason.INVALID, text)
