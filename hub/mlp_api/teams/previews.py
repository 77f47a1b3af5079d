"""Objects of the REST contract about what a change of a tenant would mean. Units and conventions are those of `types`."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from mlp_api.localized import Text
from mlp_api.teams.bookings import BookingShort
from mlp_api.types import Response

Tone = Literal["good", "wait", "bad", "idle"]


class PreviewOver(Response):
    """A tenant that would hold more of a dimension than it may hold then, with all others as they are."""

    tenant: str
    dimension: str
    inuse: float
    may_hold: float
    above: float


class PreviewJob(Response):
    """A job of a preview."""

    user: str
    name: str
    tenant: str


class PreviewWait(Response):
    """A job of the tenant that would wait then: since when (the last time that it was put into the queue), and why."""

    user: str
    name: str
    since: datetime
    reason: str
    message: Text


class PreviewStop(Response):
    """A running job that would be stopped (`shrunk`: lose workers) then, for which other job, and why."""

    user: str
    name: str
    tenant: str
    for_user: str
    for_name: str
    for_tenant: str
    shrunk: bool
    message: Text


class PreviewBooking(Response):
    """A booked window, of any tenant, that would no longer fit (`short`) or would fit again (null)."""

    tenant: str
    name: str
    start: datetime
    end: datetime
    short: BookingShort | None


class PreviewNote(Response):
    """One sentence of a preview, with its tone."""

    tone: Tone
    text: Text


class TenantPreview(Response):
    """Preview of an update of a tenant; the request itself changes nothing.

    The update stops nothing. `stopped` are jobs whose room other jobs would take, as the scheduler
    decides on the tenants after the update. `back_inside` is the time when the tenant is expected to
    hold no more than it may, from the time limits of the running work. It is null where the tenant
    holds no more anyway, or where no time is known. `back_inside_because` is the end that makes it so,
    or the reason why no end does so. Lists hold 20 jobs at most. `notes` have everything as sentences,
    and count all jobs.
    """

    tenant: str
    over: list[PreviewOver]
    could_start: list[PreviewJob]
    waiting: list[PreviewWait]
    stopped: list[PreviewStop]
    back_inside: datetime | None
    back_inside_because: Text
    bookings: list[PreviewBooking]
    notes: list[PreviewNote]
