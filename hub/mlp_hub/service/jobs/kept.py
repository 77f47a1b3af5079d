"""Kept data of a run at its submission, to compare it and to run it again.

It is the program, parameters, environment and data. The program's file and the datasets are looked
at here. Commit and environment are the client's claims.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from mlp_api.jobs.jobs import Provenance
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.jobs.job import Job, JobSpec
from mlp_hub.domain.jobs.run import MOST_PARAMS, Origin, ParamValue, UsedDataset, scalars
from mlp_hub.domain.jobs.sweep import SubmittedFrom
from mlp_hub.domain.stored.data import DataUse
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.workspace import Workspace
from mlp_hub.service.lifecycle.noted import program_of
from mlp_hub.service.storage.manifests import with_digest
from mlp_hub.store.repos.jobs.runs import sha256_of
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

VARIABLES = "NOTEBOOK_VARIABLES"
"""Given: variable in which a notebook's `--with` comes."""
MOST_TOLD = 5
"""Safety: lines of an environment that a refusal names."""


@dataclass(frozen=True, slots=True)
class KeptRun:
    """Data stored beside a new job: its origin, as far as it is known in advance, and the texts that it names."""

    origin: Origin
    texts: tuple[str, ...] = ()


NOTHING_KEPT = KeptRun(Origin())


async def kept_of(workspace: Workspace, spec: JobSpec, said: Provenance | SubmittedFrom | None) -> KeptRun:
    """Return the data to keep of a job that is about to be stored."""
    program = None if spec.entry is None else await program_of(workspace, spec.user, spec.entry)
    environment = None if said is None or not said.environment else said.environment
    texts = tuple(text for text in (program, environment) if text is not None)
    if said is None and program is None:
        return NOTHING_KEPT
    origin = Origin(
        commit=None if said is None else said.commit,
        dirty=None if said is None else said.dirty,
        environment=None if environment is None else sha256_of(environment),
        program=None if program is None else sha256_of(program),
    )
    return KeptRun(origin, texts)


def params_of(spec: JobSpec) -> dict[str, ParamValue]:
    """Return what a run was told apart by: its parameters, and the variables of `--with` that are one value each."""
    return scalars({**_variables(spec), **spec.params})


def with_params(spec: JobSpec, wanted: Mapping[str, ParamValue]) -> dict[str, object]:
    """Return the fields of a job that is to run again with other parameters.

    What came from a notebook by `--with` is a variable of the program, and becomes another value there.
    """
    env, params = dict(spec.env), dict(spec.params)
    variables = _variables(spec)
    for name, value in wanted.items():
        if name in variables and name not in params:
            variables[name] = value
            env[VARIABLES] = msgspec.json.encode(variables).decode()
        else:
            params[name] = value
    if len(params) > MOST_PARAMS:
        raise Refused(
            Reason.INVALID,
            msg("{n} parameters; at most {most}", n=len(params), most=MOST_PARAMS),
        )
    return {"env": env, "params": params}


def _variables(spec: JobSpec) -> dict[str, object]:
    if VARIABLES not in spec.env:
        return {}
    try:
        said = msgspec.json.decode(spec.env[VARIABLES])
    except msgspec.MsgspecError:
        return {}
    return dict(said) if isinstance(said, dict) else {}


def keep(tx: Tx, job: Job, kept: KeptRun) -> None:
    """Store beside a new job what is kept of it; nothing where there is nothing."""
    spec = job.spec
    origin = kept.origin
    if spec.data:
        origin = replace(origin, data=tuple(_used(tx, use) for use in spec.data))
    if origin != Origin():
        tx.runs.put_origin(job.uid, origin, kept.texts)
    if spec.params or VARIABLES in spec.env:
        tx.runs.put_params(job.uid, params_of(spec))
    if spec.trial is not None:
        tx.runs.put_trial(job.uid, spec.trial)


def _used(tx: Tx, use: DataUse) -> UsedDataset:
    found = tx.datasets.find(SYSTEM, use.user, use.name)
    return UsedDataset(use.user, use.name, use.uid, 0 if found is None else found.item.used)


async def _check_data(workspace: Workspace, job: Job, spec: JobSpec, origin: Origin) -> None:
    """Refuse where the files of a dataset are not what they were when the run began."""
    for then in origin.data:
        now = await with_digest(workspace, spec.tenant, replace(then, digest=""))
        if then.digest and now.digest and now.digest != then.digest:
            raise Refused(
                Reason.CONFLICT,
                msg(
                    "dataset {name} has changed since {job} ran: it had {files} files with the checksum {then}, and now has {now_files} with {now}; to read it as it is now, run again without exactly",
                    name=DataUse(then.user, then.name).title(spec.user),
                    job=job.title,
                    files=then.files,
                    then=then.digest[:12],
                    now_files=now.files,
                    now=now.digest[:12],
                ),
            )


async def check_same(  # noqa: PLR0917 - each is compared
    workspace: Workspace, job: Job, spec: JobSpec, origin: Origin, before: str | None, said: Provenance | None
) -> None:
    """Refuse an exact rerun of a job if its script, its data or its environment has changed.

    `before` is the text of its environment then. Data that was not reported, then or now, cannot be
    compared.
    """
    if origin.program is not None and job.spec.entry is not None:
        now = await program_of(workspace, spec.user, job.spec.entry)
        if now is None or sha256_of(now) != origin.program:
            raise Refused(
                Reason.CONFLICT,
                msg(
                    "{entry} has changed since {name} ran; its text then is kept with the run: restore it, or run again without exactly",
                    entry=job.spec.entry,
                    name=job.title,
                ),
            )
    for then, now_used in zip(job.spec.data, spec.data, strict=True):
        if then.uid != now_used.uid:
            raise Refused(
                Reason.CONFLICT,
                msg(
                    "dataset {name} was deleted, and another one has its name now; run again without exactly to read that",
                    name=then.title(spec.user),
                ),
            )
    await _check_data(workspace, job, spec, origin)
    if job.spec.environment is not None and (
        spec.environment is None or spec.environment.lock != job.spec.environment.lock
    ):
        raise Refused(
            Reason.CONFLICT,
            msg(
                "environment {name} had other packages when {job} ran, with the lock {lock}: run again without exactly",
                name=job.spec.environment.name,
                job=job.title,
                lock=job.spec.environment.lock[:12],
            ),
        )
    then_in, now_in = job.spec.environment, spec.environment
    if then_in is not None and now_in is not None and then_in.image != now_in.image:
        raise Refused(
            Reason.CONFLICT,
            msg(
                "environment {name} had the image {image} when {job} ran; run again without exactly",
                name=then_in.name,
                job=job.title,
                image=then_in.image or "-",
            ),
        )
    if said is None or said.environment is None or before is None or said.environment == before:
        return
    raise Refused(
        Reason.CONFLICT,
        msg(
            "the environment has changed since {name} ran: {changes}; install those versions, or run again without exactly",
            name=job.title,
            changes=", ".join(_changes(before.splitlines(), said.environment.splitlines())),
        ),
    )


def _changes(then: Sequence[str], now: Sequence[str]) -> list[str]:
    """Say in a few words which lines are others now."""
    gone, new = sorted(set(then) - set(now)), sorted(set(now) - set(then))
    changes = [
        *(f"-{line[:80]}" for line in gone[:MOST_TOLD]),
        *(f"+{line[:80]}" for line in new[:MOST_TOLD]),
    ]
    more = len(gone) + len(new) - len(changes)
    return changes if more <= 0 else [*changes, f"... {more}"]
