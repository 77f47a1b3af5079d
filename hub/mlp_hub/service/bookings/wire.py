"""Booked windows as they cross the wire."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_api.localized import Text
from mlp_api.teams import bookings as booking_api
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.service.support.units import limit_to, when
from mlp_language.message import Message


def booking_to(window: BookedWindow, now: float, *, notes: Sequence[Message] = ()) -> booking_api.Booking:
    """Return a booked window for the wire, with its notes."""
    short = window.short
    return booking_api.Booking(
        tenant=window.tenant,
        name=window.name,
        start=when(window.start),
        end=when(window.end),
        amount=limit_to(window.amount) or {},
        open=window.start <= now < window.end,
        made_by=window.made_by,
        made_at=when(window.made_at),
        short=None
        if short is None
        else booking_api.BookingShort(
            since=when(short.since), left=limit_to(short.left) or {}, message=Text(short.message)
        ),
        notes=[Text(n) for n in notes],
    )
