"""Apps as they cross the wire."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from mlp_api.apps import apps as api
from mlp_api.localized import Detail, Text
from mlp_hub.domain.apps.app import App, AppAccess, AppPhase, AppSpec
from mlp_hub.domain.jobs import names
from mlp_hub.domain.jobs.job import Job
from mlp_hub.domain.resources import Resources, milli, units
from mlp_hub.scheduler.model.outlook import Outlook
from mlp_hub.scheduler.model.types import Wait
from mlp_hub.service.apps.next_action import slot_of
from mlp_hub.service.jobs.forecasts import forecast_to
from mlp_hub.service.jobs.wire import job_to
from mlp_hub.service.support.units import when

PAGES = "/services/mlp/"
APPS_PATH = f"{PAGES}apps"
"""Given: the path below which apps answer; the gateway is there."""
_PHASES: Mapping[AppPhase, api.AppPhase] = {
    AppPhase.STARTING: "starting",
    AppPhase.RUNNING: "running",
    AppPhase.WAITING: "waiting",
    AppPhase.ERROR: "error",
    AppPhase.DELETING: "deleting",
}
_STATES: Mapping[AppPhase, api.AppState] = {
    AppPhase.STARTING: "creating",
    AppPhase.RUNNING: "ready",
    AppPhase.WAITING: "creating",
    AppPhase.ERROR: "error",
    AppPhase.DELETING: "deleting",
}
"""The contract's four states, by phase: the one place that says so."""
_ACCESS: Mapping[AppAccess, api.AppAccess] = {
    AppAccess.PRIVATE: "private",
    AppAccess.TENANT: "tenant",
    AppAccess.HUB: "hub",
}


def range_of(replicas: int | str) -> tuple[int, int]:
    """Return (least, most) of a number or a range `MIN:MAX`."""
    if isinstance(replicas, int):
        return replicas, replicas
    low, _, high = replicas.partition(":")
    return int(low), int(high)


def phases_of(state: str) -> list[AppPhase]:
    """Return the phases that mean one of the contract's states."""
    return [phase for phase, meant in _STATES.items() if meant == state]


def spec_of(asked: api.AppCreate, version: int, runtime: str) -> AppSpec:
    """Return the app to deploy, with defaults for the fields that were left out."""
    least, most = range_of(asked.replicas)
    return AppSpec(
        per_replica=Resources(cpu=milli(asked.cpu), gpu=milli(asked.gpu), ram=asked.ram),
        model=asked.model_name.partition("@")[0],
        version=version,
        command=asked.command or "",
        inner_port=asked.command_port,
        runtime=runtime,
        environment=asked.env_name or "",
        gpu_kind=asked.gpu_kind,
        least=least,
        most=most,
        idle_s=asked.idle,
        concurrency=asked.concurrency,
        priority=asked.priority,
        access=AppAccess(asked.access),
        env=dict(asked.env),
    )


def to_wire(
    app: App,
    replicas: Sequence[tuple[Job, Wait | None, float | None, Outlook | None]],
    answering: Collection[str],
    under_way: float | None,
    pages: str,
) -> api.Application:
    """Return an app; a waiting replica has the message of the last cycle, and the time when it may start.

    `pages` is the public address of the panel, with a slash at its end.
    """
    spec = app.spec
    running = [
        _replica(job, wait, at, outlook, job.attempt in answering) for job, wait, at, outlook in replicas
    ]
    url = f"{APPS_PATH}/{app.user}/{app.name}/"
    waits = next((one for one in running if one.phase == "queued"), None)
    said = waits.message.message if app.phase is AppPhase.WAITING and waits is not None else app.message
    return api.Application(
        name=app.name,
        user=app.user,
        tenant=app.tenant,
        gpu=units(spec.per_replica.gpu),
        cpu=units(spec.per_replica.cpu),
        model_name=names.reference(spec.model, spec.version) if spec.model else "",
        port=app.port,
        url=url,
        address=f"{pages.removesuffix(PAGES)}{url}",
        state=_STATES[app.phase],
        phase=_PHASES[app.phase],
        uid=app.uid,
        ram=spec.per_replica.ram,
        gpu_kind=spec.gpu_kind,
        replicas=spec.most if spec.least == spec.most else f"{spec.least}:{spec.most}",
        idle=spec.idle_s,
        concurrency=spec.concurrency,
        under_way=None if under_way is None else round(under_way, 1),
        wanted=app.wanted,
        ready=sum(one.ready for one in running),
        command=spec.command or None,
        command_port=spec.inner_port,
        runtime=spec.runtime,
        env_name=spec.environment or None,
        priority=spec.priority,
        access=_ACCESS[spec.access],
        generation=app.generation,
        failures=app.failures,
        message=Text(said),
        detail=Detail(said),
        tail=app.tail,
        running=running,
        created_at=when(app.made_at),
    )


def _replica(
    job: Job, wait: Wait | None, expected: float | None, outlook: Outlook | None, ready: bool
) -> api.AppReplica:
    shown = job_to(job, wait, expected)
    return api.AppReplica(
        replica=slot_of(job),
        phase=shown.phase,
        ready=ready,
        generation=0 if job.spec.replica is None else job.spec.replica.generation,
        node=job.placement[0] if job.placement else None,
        reason=shown.reason,
        message=shown.message,
        detail=shown.detail,
        position=shown.position,
        expected_start=shown.expected_start,
        started_at=shown.started_at,
        forecast=forecast_to(outlook),
    )
