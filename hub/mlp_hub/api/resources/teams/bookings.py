"""Windows of time that are booked for a tenant."""

from __future__ import annotations

from collections.abc import Sequence

from mlp_api.teams.bookings import Booking, BookingCreate
from mlp_hub.api.auth.scopes import TENANTS_READ, TENANTS_WRITE
from mlp_hub.api.edge.call import Call
from mlp_hub.api.routes import Relation, Route


async def list_(call: Call) -> Sequence[Booking]:
    """List a tenant's booked windows that are not over."""
    return await call.platform.bookings.list(call.params["tenant"])


async def create(call: Call) -> Booking:
    """Book a window for a tenant."""
    return await call.platform.bookings.create(call.params["tenant"], call.body, actor=call.principal.name)


async def remove(call: Call) -> Booking:
    """Give a booked window up."""
    return await call.platform.bookings.remove(
        call.params["tenant"], call.params["booking"], actor=call.principal.name
    )


_ALL = "/tenants/{tenant}/bookings"

ROUTES = (
    Route("GET", _ALL, list_, "List booked windows", Relation.MEMBER, TENANTS_READ, reply=list[Booking]),
    Route(
        "POST",
        _ALL,
        create,
        "Book a window",
        Relation.PLATFORM,
        TENANTS_WRITE,
        body=BookingCreate,
        reply=Booking,
        status=201,
        idempotent=True,
    ),
    Route(
        "DELETE",
        f"{_ALL}/{{booking}}",
        remove,
        "Give a booked window up",
        Relation.PLATFORM,
        TENANTS_WRITE,
        reply=Booking,
    ),
)
