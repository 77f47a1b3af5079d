"""Who depends on what is stored hears of each write: also of one that failed as it seems, and of one nobody waits for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from mlp_api.types import ResourceRequestKey
from mlp_hub.domain.tenants.tenant import Member, Role
from mlp_hub.service.bookings.service import BookingService
from mlp_hub.service.quota.ledger import Ledger
from mlp_hub.service.tenants.service import TenantService
from mlp_hub.service.tenants.syncing import GROUP, Sync
from mlp_hub.service.tenants.users import UserService
from mlp_hub.store import StoreUnavailable


class Late:
    """A database that is at work on a write until it is told to fail, or to have done it."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.fails = False

    async def write(self, fn: object, *, durable: bool = True) -> None:
        await self.go.wait()
        if self.fails:
            raise StoreUnavailable("nobody knows whether it is stored")

    async def read(self, fn: object) -> tuple[Sync, list[object]]:
        return Sync(put=(), gone=(Member("red", "ann", Role.MEMBER, GROUP),), new=(), left_out=()), []


Call = Callable[[Any, list[str]], Coroutine[Any, Any, object]]


def tenants(db: Any, told: list[str]) -> TenantService:
    return TenantService(
        db, lambda: 0.0, changed=lambda: told.append("changed"), left=lambda: told.append("left")
    )


CALLS: dict[str, tuple[Call, list[str]]] = {
    "tenant": (lambda db, told: tenants(db, told).delete("red"), ["changed"]),
    "member": (lambda db, told: tenants(db, told).remove_member("red", "ann"), ["changed", "left"]),
    "groups": (lambda db, told: tenants(db, told).sync_groups("ann", []), ["changed", "left"]),
    "ledger": (
        lambda db, told: Ledger(db, lambda: 0.0, tuple, changed=lambda: told.append("changed")).cancel(
            ResourceRequestKey("ann/", "sp")
        ),
        ["changed"],
    ),
    "expiry": (
        lambda db, told: Ledger(
            db, lambda: 0.0, tuple, changed=lambda: told.append("changed")
        ).expire_requests(),
        ["changed"],
    ),
    "booking": (
        lambda db, told: BookingService(
            db, lambda: 0.0, tuple, changed=lambda: told.append("changed")
        ).remove("red", "night", actor="ann"),
        ["changed"],
    ),
    "default tenant": (
        lambda db, told: UserService(
            db, lambda: 0.0, changed=lambda: told.append("changed")
        ).set_default_tenant("ann", "red"),
        ["changed"],
    ),
}


@pytest.mark.parametrize("what", CALLS)
async def test_an_error_is_told_like_a_success_for_it_may_be_stored(what: str) -> None:
    db, told = Late(), []
    call, expected = CALLS[what]
    db.fails = True
    db.go.set()
    with pytest.raises(StoreUnavailable):
        await call(db, told)
    assert told == expected


@pytest.mark.parametrize("what", [name for name in CALLS if name != "expiry"])
async def test_an_abandoned_write_is_announced_once_it_is_stored_and_not_before(what: str) -> None:
    db, told = Late(), []
    call, expected = CALLS[what]
    request = asyncio.ensure_future(call(db, told))
    for _ in range(5):
        await asyncio.sleep(0)
    request.cancel()
    await asyncio.gather(request, return_exceptions=True)
    assert told == []
    db.go.set()
    for _ in range(10):
        await asyncio.sleep(0)
    assert told == expected
