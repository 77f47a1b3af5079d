"""What is checked when a job is submitted, each refusal with the value, the limit and the way out."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Container, Mapping
from pathlib import Path
from typing import NoReturn

import msgspec

from mlp_api.jobs import MOST_RANKS, JobCreate
from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.job import PRIORITIES, JobSpec
from mlp_hub.domain.resources import milli
from mlp_hub.scheduler.feasible import Possible
from mlp_hub.scheduler.model import Snapshot, Verdict
from mlp_hub.scheduler.placement import TOPOLOGIES
from mlp_hub.service.config import Paths
from mlp_hub.service.runtimes import RUNTIME_NAMES, WITH_PS, default_runtime, runtime_of
from mlp_hub.service.snapshot import waiting_job
from mlp_hub.service.wire_jobs import spec_of, workers_of

MOST_NAME = 50
MOST_SHAPES = 10_000
_SUFFIX = re.compile(r"-[0-9]+$")
_TOPOLOGY = re.compile(rf"({'|'.join(TOPOLOGIES)}|(required|preferred):[A-Za-z0-9][A-Za-z0-9._/-]{{0,62}})")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def checked_spec(asked: JobCreate, user: str, tenants: Container[str], default: str, paths: Paths) -> JobSpec:
    """Return the job that was asked for, with defaults filled in; raise `Refused` for what cannot be meant."""
    _check_program(asked)
    low, high = workers_of(asked.workers)
    if low > high:
        _refuse(
            f"workers {asked.workers} has a least number above its most; write MIN:MAX, as in {high}:{low}"
        )
    if high + asked.ps > MOST_RANKS:
        _refuse(f"{high} workers and {asked.ps} parameter servers are more than {MOST_RANKS} ranks")
    runtime = asked.runtime or default_runtime(high, asked.ps)
    known = runtime_of(runtime)
    if known is None:
        _refuse(f"there is no runtime {runtime}; choose one of {', '.join(RUNTIME_NAMES)}")
    if asked.ps and not known.ps:
        wanted = " or ".join(WITH_PS)
        _refuse(
            f"parameter servers (ps {asked.ps}) need runtime {wanted}, not {runtime}; leave ps out or use {wanted}"
        )
    if asked.priority not in PRIORITIES:
        _refuse(f"there is no priority {asked.priority}; choose one of {', '.join(PRIORITIES)}")
    if asked.gpu and not milli(asked.gpu):
        _refuse(
            f"gpu is {asked.gpu:g}, and 0.001 of one is the smallest share; ask for that at least, or for 0"
        )
    if asked.gpu_kind and not asked.gpu:
        _refuse(f"gpu_kind {asked.gpu_kind} without gpu asks for nothing; set gpu too")
    if asked.topology and not _TOPOLOGY.fullmatch(asked.topology):
        _refuse(
            f"topology {asked.topology!r} is unknown; "
            f"use {', '.join(TOPOLOGIES)}, required:LABEL or preferred:LABEL"
        )
    _check_env(asked)
    entry = None if asked.entry is None else entry_in(paths.home(user), asked.entry, user)
    return spec_of(asked, user, tenant_for(asked.tenant, tenants, default), runtime, entry)


class CanRun:
    """Whether jobs can ever run on these nodes with these quotas; made once for many."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._possible = Possible.of(snapshot.nodes, snapshot.tenants)
        self._known: dict[tuple[object, ...], Verdict | None] = {}

    def check(self, spec: JobSpec) -> Verdict | None:
        """Return why such a job can never run; None when it can."""
        shape = (
            *(spec.tenant, spec.per_worker, spec.workers_min, spec.workers_max),
            *(spec.ps, spec.gpu_kind, spec.topology),
        )
        if shape not in self._known:
            if len(self._known) >= MOST_SHAPES:
                self._known.clear()
            self._known[shape] = self._possible.check(waiting_job(spec, "new", 0.0))
        return self._known[shape]


def check_can_run(possible: CanRun, spec: JobSpec) -> None:
    """Refuse a job that can never run, with the numbers."""
    verdict = possible.check(spec)
    if verdict is not None:
        raise Refused(verdict.reason, verdict.message)


def check_runtime(runtime: str, lacks: Callable[[str], str | None], env: Mapping[str, str]) -> None:
    """Refuse a runtime whose package is not where jobs would look for it, before anything waits in the queue."""
    package = lacks(runtime)
    if package is None or "PYTHONPATH" in env:  # who brings packages along may bring this one
        return
    others = [name for name in RUNTIME_NAMES if name != runtime and lacks(name) is None]
    _refuse(
        f"{package} is not installed on this hub, and runtime {runtime} needs it; use one of {', '.join(others)}, "
        "or ask the operator to install it (mlp-hub doctor says how)"
    )


def tenant_for(asked: str | None, tenants: Container[str], default: str) -> str:
    """Return the tenant of the job; one that the user is not in answers like one that does not exist."""
    if asked is None:
        return default
    if asked not in tenants:
        raise not_found("tenant", asked)
    return asked


def entry_in(home: Path, entry: str, user: str) -> str:
    """Return the script's path relative to the user's home; refuse what is not there or leaves it."""
    if "\0" in entry:
        _refuse("entry holds a NUL character, which no path can")
    relative = entry
    for prefix in ("~/", f"/home/{user}/", f"{home}/"):
        relative = relative.removeprefix(prefix)
    if relative.startswith("/"):
        _refuse(f"entry {entry} is outside of your home directory; give a path below it, as in train.py")
    root = os.path.realpath(home)
    real = os.path.realpath(os.path.join(root, relative))  # noqa: PTH118 - realpath keeps it a string
    if os.path.commonpath([root, real]) != root:
        _refuse(f"entry {entry} leaves your home directory; give a path below it, as in train.py")
    if os.path.isdir(real):  # noqa: PTH112
        _refuse(f"entry {entry} is a directory; name the script in it")
    if not os.path.isfile(real):  # noqa: PTH113
        _refuse(f"there is no file {relative} in your home directory; check the path of the script")
    return os.path.normpath(relative)


def free_name(name: str, taken: Collection[str]) -> str:
    """Return a name like this one that is not taken: digits-2, digits-3, ..."""
    base = _SUFFIX.sub("", name)
    number = 2
    while True:
        suffix = f"-{number}"
        candidate = base[: MOST_NAME - len(suffix)].rstrip("-") + suffix
        if candidate not in taken:
            return candidate
        number += 1


def name_taken(name: str, taken: Collection[str]) -> Refused:
    """Return the refusal of a name that the user's jobs already have."""
    free = free_name(name, taken)
    return Refused(
        Reason.CONFLICT, f"you have a job {name} already; delete it, or take a free name such as {free}"
    )


def fingerprint(asked: JobCreate) -> str:
    """Return what tells two requests apart."""
    return hashlib.sha256(msgspec.json.encode(asked)).hexdigest()


def _check_program(asked: JobCreate) -> None:
    if asked.entry is None and asked.code is None:
        _refuse("nothing to run: give entry (a script in your home directory) or code (the program's text)")
    if asked.entry is not None and asked.code is not None:
        _refuse("both entry and code are given; give exactly one of them")
    if asked.code is not None and not asked.code.strip():
        _refuse("code is empty; give the program's text")


def _check_env(asked: JobCreate) -> None:
    for name, value in asked.env.items():
        if not _ENV_NAME.fullmatch(name):
            _refuse(f"env {name[:128]!r} is no name of a variable; use letters, digits and _, no digit first")
        if name.startswith("MLP_"):
            _refuse(f"env {name} is set by the platform; names that begin with MLP_ are reserved")
        if "\0" in value:
            _refuse(f"env {name} holds a NUL character, which no variable can")
    for arg in asked.args:
        if "\0" in arg:
            _refuse("an argument holds a NUL character, which none can")


def _refuse(msg: str) -> NoReturn:
    raise Refused(Reason.INVALID, msg)
