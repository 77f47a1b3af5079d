"""Sweeps: start, look at, cancel, extend, delete."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from mlp_api.jobs.sweeps import Sweep, SweepCreate, SweepCurve, SweepExtend, SweepPreview
from mlp_api.types import Name
from mlp_hub.api.auth.scopes import JOBS_READ, JOBS_WRITE
from mlp_hub.api.edge.call import Call, Reply
from mlp_hub.api.edge.paging import ListPage, listed
from mlp_hub.api.routes import Relation, Route


class SweepQuery(ListPage, forbid_unknown_fields=True):
    """Which sweeps."""

    tenant: Name | None = None


class TrialCurvesQuery(Struct, forbid_unknown_fields=True):
    """How many values of each trial at most."""

    most: Annotated[int, Meta(ge=2, le=256)] = 100


async def create(call: Call) -> Sweep:
    """Start a sweep as the next run of its name; it is durable when the answer comes, and its trials are made after that.

    Trials are jobs called NAME.NUMBER, in the tenant's queue and quota like all others; few of them wait at a time. While the latest
    run of that name has not ended it is refused with `Conflict`.
    """
    return await call.platform.sweeps.create(
        call.context, call.user, call.body, language=call.reader.language
    )


async def preview(call: Call) -> SweepPreview:
    """Say how many trials a sweep would be, what it would take, and when it would end, without starting it."""
    return await call.platform.sweeps.preview(call.context, call.user, call.body)


async def list_(call: Call) -> Reply:
    """List a user's sweeps, the newest first, without their trials."""
    query: SweepQuery = call.query
    found, cursor = await call.platform.sweeps.list(
        call.context, call.user, tenant=query.tenant, **query.asked
    )
    return listed(call, found, cursor)


async def get(call: Call) -> Sweep:
    """Show a sweep with its trials."""
    return await call.platform.sweeps.get(call.context, call.user, call.params["sweep"])


async def curves(call: Call) -> list[SweepCurve]:
    """Give what the trials of a sweep reported of its metric."""
    query: TrialCurvesQuery = call.query
    return await call.platform.sweeps.curves(call.context, call.user, call.params["sweep"], query.most)


async def cancel(call: Call) -> Sweep:
    """Stop a sweep: no more trials are made, and trials in progress are ended."""
    return await call.platform.sweeps.cancel(call.context, call.user, call.params["sweep"])


async def extend(call: Call) -> Sweep:
    """Increase the budget of a sweep; one that has finished or was cancelled continues."""
    return await call.platform.sweeps.extend(call.context, call.user, call.params["sweep"], call.body)


async def delete(call: Call) -> Sweep:
    """Delete a sweep that has ended, with the jobs of its trials."""
    return await call.platform.sweeps.delete(call.context, call.user, call.params["sweep"])


_SWEEPS = "/users/{user}/sweeps"
_SWEEP = "/users/{user}/sweeps/{sweep}"

ROUTES = (
    Route("POST", _SWEEPS, create, "Start a sweep", Relation.SELF, JOBS_WRITE, body=SweepCreate, reply=Sweep, status=201, idempotent=True),
    Route("POST", f"{_SWEEPS}:preview", preview, "Say what a sweep would take", Relation.SELF, JOBS_READ, body=SweepCreate, reply=SweepPreview),
    Route("GET", _SWEEPS, list_, "List a user's sweeps", Relation.SELF, JOBS_READ, query=SweepQuery, reply=list[Sweep]),
    Route("GET", _SWEEP, get, "Show a sweep", Relation.OWNED, JOBS_READ, reply=Sweep),
    Route("GET", f"{_SWEEP}/curves", curves, "What a sweep's trials reported", Relation.OWNED, JOBS_READ, query=TrialCurvesQuery, reply=list[SweepCurve]),
    Route("PUT", f"{_SWEEP}:cancel", cancel, "Stop a sweep", Relation.OWNED, JOBS_WRITE, reply=Sweep),
    Route("PUT", f"{_SWEEP}:extend", extend, "Give a sweep more of its budget", Relation.SELF, JOBS_WRITE, body=SweepExtend, reply=Sweep),
    Route("DELETE", _SWEEP, delete, "Delete a sweep", Relation.SELF, JOBS_WRITE, reply=Sweep),
)  # fmt: skip
