"""Checks of a job that is submitted, each refusal with the value, the limit and the way out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import NoReturn

from mlp_api.jobs.jobs import MOST_RANKS
from mlp_hub.domain.dimensions import BY_NAME
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import PRIORITIES, ExternalJob, JobSpec
from mlp_hub.domain.quantities import quantity
from mlp_hub.domain.resources import Resources
from mlp_hub.domain.runtime.runtime import NOTEBOOK, Runtime, misfit, no_notebook
from mlp_hub.domain.stored.data import targets
from mlp_hub.executors.external import ObservedExternalJob
from mlp_hub.scheduler.nodes.placement import TOPOLOGIES
from mlp_hub.service.jobs.wire import workers_to
from mlp_language.message import Message, msg

_TOPOLOGY = re.compile(rf"({'|'.join(TOPOLOGIES)}|(required|preferred):[A-Za-z0-9][A-Za-z0-9._/-]{{0,62}})")
_ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


def check_request(spec: JobSpec) -> None:
    """Refuse what is wrong with a request by itself, before anything that it names is looked up."""
    _check_program(spec)
    low, high = spec.workers_min, spec.workers_max
    if low > high:
        _refuse(
            msg(
                "workers {workers} has a minimum above its maximum; write MIN:MAX, such as {high}:{low}",
                workers=workers_to(spec),
                high=high,
                low=low,
            )
        )
    if high + spec.ps > MOST_RANKS:
        _refuse(
            msg(
                "{high} workers and {ps} parameter servers are more than {most_ranks} ranks",
                high=high,
                ps=spec.ps,
                most_ranks=MOST_RANKS,
            )
        )
    if spec.priority not in PRIORITIES:
        _refuse(
            msg(
                "priority {priority} does not exist; choose one of {priorities}",
                priority=spec.priority,
                priorities=", ".join(PRIORITIES),
            )
        )
    if spec.gpu_kind and not spec.per_worker.gpu:
        _refuse(msg("gpu_kind {gpu_kind} without gpu asks for nothing; set gpu too", gpu_kind=spec.gpu_kind))
    _check_amounts(spec.per_worker)
    if spec.topology and not _TOPOLOGY.fullmatch(spec.topology):
        _refuse(
            msg(
                "topology {topology} is unknown; use {topologies}, required:LABEL or preferred:LABEL",
                topology=repr(spec.topology),
                topologies=", ".join(TOPOLOGIES),
            )
        )
    check_params(spec.params)
    targets(spec.data, spec.user)


def check_resolved(spec: JobSpec) -> None:
    """Refuse a request whose runtime does not fit to the rest of it; all that it names was found."""
    runtime = spec.started_by
    if (wrong := misfit(runtime, spec.workers_min, spec.ps)) and (runtime.tenant or not runtime.has_ps):
        _refuse(wrong)
    check_env(spec.env, spec.args, runtime)
    if spec.entry is not None and spec.entry.endswith(NOTEBOOK):
        if unfit := no_notebook(runtime, spec.workers_max, spec.ps):
            _refuse(unfit)
        if spec.args:
            _refuse(msg("a notebook takes no arguments; give it params, such as {example}", example="lr=0.1"))


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


def _check_amounts(per_rank: Resources) -> None:
    """Refuse amounts of counted dimensions that no rank can have."""
    for dimension, amount in per_rank.amounts:
        row = BY_NAME[dimension]
        if amount < row.least:
            _refuse(
                msg(
                    "{dimension} is {amount}, but the smallest amount is {least}; ask for {least} or more, or for 0",
                    dimension=dimension,
                    amount=amount,
                    least=quantity(dimension, row.least),
                )
            )
        if row.within is not None and amount > (most := getattr(per_rank, row.within)):
            _refuse(
                msg(
                    "{asked} per rank is more than its {most}, of which it is a part; ask for {limit} or less, or for more {whole}",
                    asked=quantity(dimension, amount),
                    most=quantity(row.within, most),
                    limit=most,
                    whole=row.within,
                )
            )


def _check_program(spec: JobSpec) -> None:
    if spec.entry is None and spec.code is None:
        _refuse(
            msg("nothing to run: give entry (a script in your home directory) or code (the program's text)")
        )
    if spec.entry is not None and spec.code is not None:
        _refuse(msg("both entry and code are given; give exactly one of them"))
    if spec.code is not None and not spec.code.strip():
        _refuse(msg("code is empty; give the program's text"))


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
