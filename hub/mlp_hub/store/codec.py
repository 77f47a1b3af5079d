"""Domain values to text and back: the only place that writes and reads JSON of a column, and rows of jobs, tenants, runtimes, bookings and requests.

Rows of all else are made and read by their repositories.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar, get_type_hints

import msgspec

from mlp_hub.domain.jobs.job import AS_SUBMITTED, Failure, Job, JobSpec, Phase, RankStatus, Steered, Target
from mlp_hub.domain.jobs.stages import NO_TIMES, StageTimes
from mlp_hub.domain.resources import Pairs, Quota, Resources
from mlp_hub.domain.runtime.runtime import Runtime, RuntimeState
from mlp_hub.domain.tenants.tenant import Lowering, Tenant
from mlp_hub.domain.workload.booking import BookedWindow, Shortfall
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.store import tables
from mlp_hub.store.records import EndedJob, SchedulingShape, StoredRuntime
from mlp_language.message import NOTHING, Message, from_data, to_data

Values = dict[str, Any]
_Says = TypeVar("_Says", Lowering, Shortfall)

_spec = msgspec.json.Decoder(JobSpec)
_steered = msgspec.json.Decoder(Steered)
_shape = msgspec.json.Decoder(SchedulingShape)
_failure = msgspec.json.Decoder(Failure)
_ranks = msgspec.json.Decoder(tuple[RankStatus, ...])
_names = msgspec.json.Decoder(tuple[str, ...])
_pairs = msgspec.json.Decoder(Pairs)
_shares = msgspec.json.Decoder(tuple[tuple[str, Resources], ...])
_quota = msgspec.json.Decoder(Quota)
_runtime = msgspec.json.Decoder(Runtime)


class HistoryColumns(msgspec.Struct, array_like=True, frozen=True):
    """Data of a job that its columns lack; older hubs did not write the last one."""

    waiting_since: float | None
    waited: float
    ran: float = 0.0
    progress_from: int | None = None
    progress_since: float | None = None
    stages: StageTimes = NO_TIMES


RAN = HistoryColumns.__struct_fields__.index("ran")
"""Given: index of the seconds that earlier attempts ran in the JSON of `past`."""
_past_decoder = msgspec.json.Decoder(HistoryColumns)
_limits = msgspec.json.Decoder(dict[str, int])
_object = msgspec.json.Decoder(dict[str, Any])
_tenant_hints = get_type_hints(Tenant)
_TenantSettings = msgspec.defstruct(
    "_TenantSettings",
    [
        (f.name, _tenant_hints[f.name], f.default)
        for f in dataclasses.fields(Tenant)
        if f.name != "quota" and f.name not in tables.tenant.c
    ],
    omit_defaults=True,
)
"""Fields of a tenant without their own column."""
_tenant_settings = msgspec.json.Decoder(_TenantSettings)
_NONE = "[]"


def dumps(value: object) -> str:
    """Return the value as JSON text."""
    return _encoder.encode(value).decode()


def image_of(spec: str) -> str | None:
    """Return the image of a stored specification that its runtime names.

    None if the image of its environment has precedence: images that are fetched in advance run in the
    hub's namespace, and a member names the environment's image.
    """
    found = _spec.decode(spec)
    if found.own_runtime is None or (found.environment is not None and found.environment.image is not None):
        return None
    return found.own_runtime.image


def loads(text: str) -> Any:
    """Return what `dumps` was given, in JSON's own types."""
    return msgspec.json.decode(text)


def load_object(text: str) -> dict[str, Any]:
    """Return a JSON object."""
    return _object.decode(text)


def message_text(message: Message) -> str:
    """Return a message's column; empty where nothing is said."""
    # JSON escapes the NUL of a program's last words, which PostgreSQL cannot hold
    return dumps(to_data(message)) if message else ""


def message_of(column: str) -> Message:
    """Return the message of a column."""
    return from_data(_object.decode(column)) if column else NOTHING


def text(value: str) -> str:
    """Return what a text column can hold: PostgreSQL has no NUL, which a program's last words may have."""
    return value.replace("\0", "\ufffd")


def job_row(job: Job) -> Values:
    """Return the columns of a job, its version included."""
    return {
        "uid": job.uid,
        "user": job.spec.user,
        "name": job.spec.name,
        "run": job.run,
        "tenant": job.spec.tenant,
        "spec": dumps(job.spec),
        "submitted_at": job.submitted_at,
        "version": job.version,
        "sweep": None if job.spec.trial is None else job.spec.trial.sweep,
        "trial": None if job.spec.trial is None else job.spec.trial.number,
        **job_state(job),
    }


def job_state(job: Job) -> Values:
    """Return the columns of a job that change during its life, without its version."""
    return {
        "phase": job.phase.value,
        "target": job.target.value,
        "restarts": job.restarts,
        "failures": job.failures,
        "progress": job.progress,
        "reason": job.reason,
        "message": message_text(job.message),
        "placement": dumps(job.placement) if job.placement else _NONE,
        "queued_at": job.queued_at,
        "admitted_at": job.admitted_at,
        "started_at": job.started_at,
        "finished_at": job.finished_at,
        "failure": None if job.failure is None else dumps(job.failure),
        "ranks": dumps(job.ranks) if job.ranks else _NONE,
        "resize_to": dumps(job.resize_to) if job.resize_to else None,
        "ran_before": job.ran_before or None,
        "past": _past_of(job),
        "steered": None if job.steered == AS_SUBMITTED else dumps(job.steered),
    }


def job_of(row: Any) -> Job:
    """Return the job of a row with all its columns."""
    past = _past(row)
    spec, steered = _spec.decode(row.spec), AS_SUBMITTED
    if row.steered is not None:
        steered = _steered.decode(row.steered)
        spec = steered.effective_spec(spec)
    return Job(
        uid=row.uid,
        spec=spec,
        steered=steered,
        phase=Phase(row.phase),
        target=Target(row.target),
        submitted_at=row.submitted_at,
        run=row.run,
        restarts=row.restarts,
        failures=row.failures,
        progress=row.progress,
        reason=row.reason,
        message=message_of(row.message),
        placement=_names.decode(row.placement),
        queued_at=row.queued_at,
        admitted_at=row.admitted_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        failure=None if row.failure is None else _failure.decode(row.failure),
        ranks=_ranks.decode(row.ranks),
        resize_to=() if row.resize_to is None else _names.decode(row.resize_to),
        ran_before=row.ran_before or 0.0,
        waiting_since=past.waiting_since,
        waited=past.waited,
        ran=past.ran,
        progress_from=past.progress_from,
        progress_since=past.progress_since,
        stages=past.stages,
        version=row.version,
    )


def _usual(phase: str, queued_at: float | None, admitted_at: float | None) -> tuple[float | None, float]:
    """Return since when a job waits, and what it has waited, if all that happened to it is in these columns."""
    if phase == Phase.QUEUED:
        return queued_at, 0.0
    if queued_at is None or admitted_at is None:
        return None, 0.0
    return None, max(admitted_at - queued_at, 0.0)


def _past_of(job: Job) -> str | None:
    """Return the column of earlier events: null for most jobs, which wait once and run once."""
    usual = _usual(job.phase, job.queued_at, job.admitted_at)
    plain = not job.ran and job.progress_since is None and job.stages == NO_TIMES
    if plain and (job.waiting_since, job.waited) == usual:
        return None
    columns = (job.waiting_since, job.waited, job.ran, job.progress_from, job.progress_since)
    return dumps(columns if job.stages == NO_TIMES else (*columns, job.stages))


def spec_of(text: str) -> JobSpec:
    """Return a stored specification, as it was submitted."""
    found: JobSpec = _spec.decode(text)
    return found


def ran_of(row: Any) -> float:
    """Return how long all attempts that are over ran, of a row with a job's times and `past`."""
    ran = _past(row).ran
    if row.started_at is None or row.finished_at is None:
        return ran
    return float(ran + max(row.finished_at - row.started_at, 0.0))


def ran_before(row: Any) -> float:
    """Return how long all attempts before the last one ran, of such a row."""
    return _past(row).ran


def _past(row: Any) -> HistoryColumns:
    if row.past is not None:
        past: HistoryColumns = _past_decoder.decode(row.past)
        return past
    return HistoryColumns(*_usual(row.phase, row.queued_at, row.admitted_at))


def ended_of(row: Any) -> EndedJob:
    """Return what is known of a job that ended; its program is passed over."""
    past = _past(row)
    return EndedJob(
        row.uid,
        row.name,
        row.user,
        row.tenant,
        row.phase,
        row.restarts,
        row.submitted_at,
        row.queued_at,
        row.started_at,
        row.finished_at,
        past.waited,
        past.ran,
        _shape.decode(row.spec),
        row.run,
    )


def tenant_row(tenant: Tenant) -> Values:
    """Return the columns of a tenant that say how it is configured."""
    settings = {name: getattr(tenant, name) for name in _TenantSettings.__struct_fields__}
    return {
        "name": tenant.name,
        "cpu": tenant.quota.cpu,
        "gpu": tenant.quota.gpu,
        "ram": tenant.quota.ram,
        "rom": tenant.quota.rom,
        "kinds": dumps(tenant.quota.kinds),
        "amounts": dumps(tenant.quota.amounts) if tenant.quota.amounts else None,
        "weight": tenant.weight,
        "cohort": tenant.cohort,
        "parent": tenant.parent,
        "borrowing_limit": _optional(tenant.borrowing_limit),
        "lending_limit": _optional(tenant.lending_limit),
        "reserved": _optional(tenant.reserved),
        "queue_order": tenant.queue_order,
        "isolation": tenant.isolation,
        "network": tenant.network,
        "description": text(tenant.description),
        "settings": dumps(_TenantSettings(**settings)),
    }


def tenant_of(row: Any) -> Tenant:
    """Return the tenant of a row."""
    return Tenant(
        name=row.name,
        quota=Quota(
            row.cpu,
            row.gpu,
            row.ram,
            row.rom,
            _limits.decode(row.kinds),
            {} if row.amounts is None else _limits.decode(row.amounts),
        ),
        weight=row.weight,
        cohort=row.cohort,
        parent=row.parent,
        borrowing_limit=None if row.borrowing_limit is None else _quota.decode(row.borrowing_limit),
        lending_limit=None if row.lending_limit is None else _quota.decode(row.lending_limit),
        reserved=None if row.reserved is None else _quota.decode(row.reserved),
        queue_order=row.queue_order,
        isolation=row.isolation,
        network=row.network,
        description=row.description,
        idle_since=row.idle_since,
        lowered=None if row.lowered is None else _with_message(row.lowered, Lowering),
        **msgspec.structs.asdict(_tenant_settings.decode(row.settings or "{}")),
    )


def lowering_text(lowering: Lowering | None) -> str | None:
    """Return a column of `tenant`."""
    return None if lowering is None else _saying(lowering)


def _saying(value: Lowering | Shortfall) -> str:
    """Return as JSON what has a message beside its own fields."""
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    return dumps({**fields, "message": to_data(value.message)})


def _with_message(column: str, kind: type[_Says]) -> _Says:
    fields = _object.decode(column)
    hints = get_type_hints(kind)
    said = {k: v if k == "message" else msgspec.convert(v, hints[k]) for k, v in fields.items()}
    return kind(**{**said, "message": from_data(fields["message"])})


def booking_row(window: BookedWindow) -> Values:
    """Return the columns of a booked window."""
    return {
        "tenant": window.tenant,
        "name": window.name,
        "starts_at": window.start,
        "ends_at": window.end,
        "amount": dumps(window.amount),
        "made_by": window.made_by,
        "made_at": window.made_at,
        "short": shortfall(window.short),
    }


def shortfall(short: Shortfall | None) -> str | None:
    """Return the column of a window that can no longer be held in full."""
    return None if short is None else _saying(short)


def booking_of(row: Any) -> BookedWindow:
    """Return the booked window of a row."""
    return BookedWindow(
        row.tenant,
        row.name,
        row.starts_at,
        row.ends_at,
        _quota.decode(row.amount),
        row.made_by,
        row.made_at,
        None if row.short is None else _with_message(row.short, Shortfall),
    )


def runtime_row(stored: StoredRuntime) -> Values:
    """Return the columns of a tenant's runtime."""
    runtime = stored.runtime
    return {
        "tenant": runtime.tenant,
        "name": runtime.name,
        "definition": dumps(runtime),
        "state": runtime.state.value,
        "changed_by": stored.changed_by,
        "changed_at": stored.changed_at,
    }


def runtime_of(row: Any) -> StoredRuntime:
    """Return the runtime of a row."""
    runtime = replace(_runtime.decode(row.definition), state=RuntimeState(row.state))
    return StoredRuntime(runtime, row.changed_by, row.changed_at)


def request_row(request: ResourceRequest) -> Values:
    """Return the columns of a resource request."""
    amount = request.amount
    return {
        "applier": request.applier,
        "id": request.id,
        "kind": request.kind,
        "tenant": request.tenant,
        "cpu": amount.cpu,
        "gpu": amount.gpu,
        "ram": amount.ram,
        "rom": amount.rom,
        "kinds": pairs_text(amount.kinds),
        "amounts": pairs_text(amount.amounts),
        "phase": request.phase.value,
        "created_at": request.created_at,
        "expires_at": request.expires_at,
        "node": request.node,
        "shares": dumps(request.shares) if request.shares else None,
        "holder": request.holder,
        "user": request.user,
        "last": request.last,
        "environment": request.environment,
    }


def request_of(row: Any) -> ResourceRequest:
    """Return the resource request of a row."""
    return ResourceRequest(
        id=row.id,
        applier=row.applier,
        tenant=row.tenant,
        amount=Resources(row.cpu, row.gpu, row.ram, row.rom, pairs_of(row.kinds), pairs_of(row.amounts)),
        phase=RequestPhase(row.phase),
        created_at=row.created_at,
        expires_at=row.expires_at,
        node=row.node,
        holder=row.holder,
        user=row.user,
        kind=row.kind,
        shares=shares_of(row.shares),
        last=row.last,
        environment=row.environment,
    )


def pairs_of(text: str | None) -> Pairs:
    """Return amounts by name: gpu thousandths by kind, or the counted dimensions."""
    return () if text is None else _pairs.decode(text)


def pairs_text(pairs: Pairs) -> str | None:
    """Return amounts by name as they are stored."""
    return dumps(pairs) if pairs else None


def shares_of(text: str | None) -> tuple[tuple[str, Resources], ...]:
    """Return what a request takes of which node."""
    return () if text is None else _shares.decode(text)


def _optional(quota: Quota | Mapping[str, Any] | None) -> str | None:
    return None if quota is None else dumps(quota)


def _plain(value: object) -> object:
    """Turn mappings of other types (a read-only view, say) into what JSON has."""
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"cannot store a {type(value).__name__}")


_encoder = msgspec.json.Encoder(enc_hook=_plain)
