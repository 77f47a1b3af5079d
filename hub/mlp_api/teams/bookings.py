"""Objects of the REST contract about windows that a tenant booked. Units and conventions are those of `types`."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from msgspec import Meta

from mlp_api.localized import Text
from mlp_api.types import Amounts, Name, Request, Response

Moment = Annotated[datetime, Meta(tz=True)]


class BookingCreate(Request):
    """New booked window: from `start` to before `end` the amount is kept free for the tenant.

    The amount is in addition to the tenant's reservation.
    """

    name: Name
    start: Moment
    end: Moment
    amount: Annotated[Amounts, Meta(description="what is kept free: cpu, gpu, gpu:KIND, ram")]


class BookingShort(Response):
    """That a window can no longer be held in full: since when, what of it is kept free all the same, and why."""

    since: datetime
    left: dict[str, float]
    message: Text


class Booking(Response):
    """Booked window that is not over.

    `open`: the window has begun. `short`: a quota was lowered or nodes left, and the window no longer
    fits. It is null while all of the amount can be held, and again as soon as it can. `notes` are
    further remarks, as sentences.
    """

    tenant: str
    name: str
    start: datetime
    end: datetime
    amount: dict[str, float]
    open: bool
    made_by: str
    made_at: datetime
    short: BookingShort | None
    notes: list[Text]
