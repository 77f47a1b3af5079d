"""Environments that jobs run in: the one that a name means, and the ones in use.

A job runs in an environment of the tenant that it belongs to. It keeps the one that it was
submitted with, which cannot be deleted before the job has ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from mlp_hub.domain.errors import Reason, Refused, not_found
from mlp_hub.domain.jobs.job import PHASES, JobSpec
from mlp_hub.domain.runtime.environment import Environment, EnvironmentPhase, EnvironmentUse, packages_of
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.quota.refusals import holder_of
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

STATES = {
    EnvironmentPhase.CREATING: msg("being made"),
    EnvironmentPhase.READY: msg("ready"),
    EnvironmentPhase.ERROR: msg("in error"),
    EnvironmentPhase.DELETING: msg("being deleted"),
}
"""State of an environment in each phase, for sentences."""


def not_here() -> Refused:
    """Return the refusal of a hub whose jobs run in containers."""
    return Refused(
        Reason.INVALID,
        msg(
            "jobs of this hub run in containers, whose packages are in an image: make the environment from an image that has them (--image REGISTRY/NAME:TAG)"
        ),
    )


def no_images() -> Refused:
    """Return the refusal of a hub that starts no containers."""
    return Refused(
        Reason.INVALID,
        msg(
            "image: this hub starts no containers; leave it out, and name the packages of the environment (-f requirements.txt)"
        ),
    )


def found_now(tx: Tx, spec: JobSpec, *, images: bool) -> tuple[JobSpec, Mapping[str, str]]:
    """Return a job that is asked for with the environment that its name means now, and the packages of that; raise `Refused`.

    `images`: whether ranks run in containers, which an environment of packages is nothing for.
    """
    if spec.environment is None:
        return spec, {}
    found = _ready(tx, spec.tenant, spec.environment.name)
    if (found.image is not None) is not images:
        raise not_here() if images else no_images()
    files = tx.stored.get(found.files)
    directory = "" if files is None else files.name
    use = EnvironmentUse(found.name, found.uid, found.digest, directory, found.image)
    return replace(spec, environment=use), packages_of(found.lock)


def refusal(tx: Tx, spec: JobSpec) -> Refused | None:
    """Return why a job may not, or no longer, have the environment that it was asked for with; None where it may."""
    if spec.environment is None:
        return None
    try:
        found = _ready(tx, spec.tenant, spec.environment.name)
    except Refused as refused:
        return refused
    if found.uid == spec.environment.uid:
        return None
    return Refused(
        Reason.CONFLICT,
        msg(
            "environment {name} was deleted, and another one has its name now; submit the job again to run in that",
            name=found.name,
        ),
    )


def check_unused(tx: Tx, environment: Environment, now: float) -> None:
    """Refuse to delete an environment while a job that runs in it has not ended, or a notebook server that would lose its files.

    A server whose image it is keeps that, and is none.
    """
    job = next(iter(tx.jobs.using_environment(SYSTEM, environment.uid, environment.tenant)), None)
    if job is not None and job.spec.replica is not None:
        raise Refused(
            Reason.CONFLICT,
            msg(
                "environment {name} is used by app {app} of {user} and cannot be deleted before that; delete the app, or deploy it "
                "with another environment",
                name=environment.name,
                app=job.spec.replica.name,
                user=job.spec.user,
            ),
        )
    if job is not None:
        raise Refused(
            Reason.CONFLICT,
            msg(
                "environment {name} is used by job {job} of {user}, which is {phase}, and cannot be deleted before the job has ended; wait for it or cancel it",
                name=environment.name,
                job=job.title,
                user=job.spec.user,
                phase=PHASES[job.phase],
            ),
        )
    servers = tx.ledger.in_environment(environment.uid, environment.tenant, now)
    if servers and environment.image is None:
        raise Refused(
            Reason.CONFLICT,
            msg(
                "environment {name} is used by {server}, which was started with it, and cannot be deleted before that server has ended; stop the server, or start it with another environment",
                name=environment.name,
                server=holder_of(servers[0]),
            ),
        )


def _ready(tx: Tx, tenant: str, name: str) -> Environment:
    found = tx.environments.find(tenant, name)
    if found is None or found.name != name:
        raise not_found("environment", name)
    if found.phase is not EnvironmentPhase.READY:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "environment {name} is {state}; a job can use it when it is ready",
                name=name,
                state=STATES[found.phase],
            ),
        )
    return found
