"""Datasets that jobs read: the readers allowed, and the datasets in use.

A job reads datasets of the tenant that it belongs to: its user's, and those of other members if the
tenant shares them. A dataset that a job may not read appears not to exist.
"""

from __future__ import annotations

from dataclasses import replace

from mlp_hub.domain.errors import OutOfReach, Reason, Refused, not_found
from mlp_hub.domain.jobs.job import PHASES, JobSpec
from mlp_hub.domain.stored.data import DataUse, with_uid
from mlp_hub.domain.stored.dataset import Dataset, DatasetPhase
from mlp_hub.domain.tenants.tenant_context import SYSTEM, TenantContext
from mlp_hub.store.tx import Tx
from mlp_language.message import Message, msg

_STATES = {
    DatasetPhase.READY: msg("ready"),
    DatasetPhase.ERROR: msg("in error"),
    DatasetPhase.DELETING: msg("being deleted"),
}
"""State of a dataset in each phase with one name for all datasets, for sentences."""


def state_of(dataset: Dataset) -> Message:
    """Return what a dataset is, for sentences."""
    if dataset.phase is not DatasetPhase.CREATING:
        return _STATES[dataset.phase]
    if dataset.is_read_through:
        return msg("being examined")
    return msg("being uploaded") if dataset.source is None else msg("being copied")


class OnItsWay(OutOfReach):
    """Error: the files that a job needs of a read-through dataset are being fetched."""


def found_now(tx: Tx, spec: JobSpec) -> JobSpec:
    """Return a requested job with the datasets that its names mean now; raise `Refused` for unreadable ones."""
    return replace(spec, data=tuple(with_uid(use, _readable(tx, spec, use).item.uid) for use in spec.data))


def refusal(tx: Tx, spec: JobSpec) -> Refused | None:
    """Return why a job may not read, or no longer, what it was submitted with; None where it may."""
    for use in spec.data:
        try:
            found = _readable(tx, spec, use)
        except Refused as refused:
            return refused
        if found.item.uid != use.uid:
            return Refused(
                Reason.CONFLICT,
                msg(
                    "dataset {name} was deleted, and another one has its name now; submit the job again to read that",
                    name=use.title(spec.user),
                ),
            )
    return None


def check_unused(tx: Tx, dataset: Dataset, what: Message) -> None:
    """Refuse an action on a dataset while a job that reads it has not ended."""
    job = tx.jobs.reader_of(SYSTEM, dataset.item.uid, dataset.item.tenant)
    if job is not None:
        raise Refused(
            Reason.CONFLICT,
            msg(
                "dataset {name} is read by job {job} of {user}, which is {phase}, and cannot be {what} before that job has ended; wait for it or cancel it",
                name=dataset.item.name,
                job=job.title,
                user=job.spec.user,
                phase=PHASES[job.phase],
                what=what,
            ),
        )


def _readable(tx: Tx, spec: JobSpec, use: DataUse) -> Dataset:
    # of whom the job is sees all of its tenant, and what of that is shared with them is said below
    found = tx.datasets.find(TenantContext(spec.user, frozenset({spec.tenant})), use.user, use.name)
    own = use.user == spec.user
    if found is None or not (own or _shared(tx, spec, found)):
        raise not_found("dataset", use.title(spec.user))
    if found.item.tenant != spec.tenant:
        raise Refused(
            Reason.INVALID,
            msg(
                "dataset {name} belongs to team {theirs}, but the job to {tenant}; submit it to {theirs}, or upload the files again as another dataset of {tenant}",
                name=use.name,
                theirs=found.item.tenant,
                tenant=spec.tenant,
            ),
        )
    if use.part and not found.is_read_through:
        raise Refused(
            Reason.INVALID,
            msg(
                "dataset {name} is stored here completely, and a job gets all of it; leave out {part}: only datasets that are read through have parts",
                name=found.item.name,
                part=use.part[:100],
            ),
        )
    if found.phase is not DatasetPhase.READY:
        raise Refused(
            Reason.WRONG_STATE,
            msg(
                "dataset {name} is {state}; a job can read it when it is ready",
                name=use.title(spec.user),
                state=state_of(found),
            ),
        )
    return found


def _shared(tx: Tx, spec: JobSpec, dataset: Dataset) -> bool:
    if dataset.item.tenant != spec.tenant:
        return False
    tenant = tx.tenants.get(spec.tenant)
    return tenant is not None and tenant.datasets == "members"
