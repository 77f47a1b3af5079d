"""Booked windows whose quota shrank or whose nodes left: marked, never dropped, and whole again when they fit."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from mlp_api.teams.bookings import Booking, BookingCreate
from mlp_api.types import ResourceRequestKey, ResourceRequestTry, TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Refused
from mlp_language.message import Period, msg
from support.rigs.platform_rig import Rig, node, running_rig

DAY = 86_400.0


async def book(
    rig: Rig, name: str, cpu: float, *, tenant: str = "blue", start: float = DAY, hours: float = 8
) -> Booking:
    at = rig.clock() + start
    asked = BookingCreate(
        name=name,
        start=datetime.fromtimestamp(at, UTC),
        end=datetime.fromtimestamp(at + hours * 3600, UTC),
        amount={"cpu": cpu},
    )
    return await rig.platform.bookings.create(tenant, asked, actor="root")


async def only(rig: Rig, tenant: str = "blue") -> Booking:
    (window,) = await rig.platform.bookings.list(tenant)
    return window


def audited(rig: Rig) -> list[str]:
    found, _ = rig.db.read_now(lambda tx: tx.audit.page(tenant="blue"))
    return [e.action for e in found if e.action.startswith("booking")]


async def test_a_window_above_a_lowered_quota_is_named_and_marked_and_whole_again_with_the_quota(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=16)) as rig:
        await rig.platform.tenants.create(TenantCreate(name="blue", cpu=8))
        made = await book(rig, "demo", 8)
        assert made.short is None

        day = str(msg("{period}", period=Period(made.start.timestamp(), made.end.timestamp())))
        says = f"window demo of blue, {day}, no longer fits: needs 8 cpu, but 6 is left: the quota of blue is 6 cpu"
        told = await rig.platform.previews.preview_update("blue", TenantUpdate(cpu=6))
        assert [str(n.text) for n in told.notes if n.tone == "bad"] == [f"The {says}"]
        assert [(b.name, b.short is None) for b in told.bookings] == [("demo", False)]
        assert (await only(rig)).short is None  # asking changes nothing

        after = await rig.platform.tenants.update("blue", TenantUpdate(cpu=6))
        assert [str(n) for n in after.notes] == [f"The {says}"]
        short = (await only(rig)).short
        assert short is not None
        assert (short.left, str(short.message)) == (
            {"cpu": 6.0},
            "needs 8 cpu, but 6 is left: the quota of blue is 6 cpu",
        )
        assert (await only(rig)).amount == {"cpu": 8.0}
        assert (await rig.platform.tenants.update("blue", TenantUpdate(cpu=6))).notes == []

        await rig.restart()
        assert (await only(rig)).short == short
        told = await rig.platform.previews.preview_update("blue", TenantUpdate(cpu=9))
        assert f"The window demo of blue, {day}, fits again" in [str(n.text) for n in told.notes]
        back = await rig.platform.tenants.update("blue", TenantUpdate(cpu=9))
        assert [str(n) for n in back.notes] == [f"The window demo of blue, {day}, fits again"]
        assert (await only(rig)).short is None
        assert sorted(audited(rig)) == ["booking.create", "booking.short", "booking.whole"]


async def test_a_reservation_of_another_tenant_can_leave_a_window_too_little(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        for name in ("blue", "red"):
            await rig.platform.tenants.create(TenantCreate(name=name, cpu=8))
        await book(rig, "demo", 6)
        after = await rig.platform.tenants.update("red", TenantUpdate(cpu=8, reserved={"cpu": 5}))
        assert len(after.notes) == 1
        assert "window demo of blue" in str(after.notes[0])
        short = (await only(rig)).short
        assert short is not None
        assert (
            str(short.message)
            == "needs 6 cpu, but 3 is left: the nodes have 8 cpu, of which 5 is already reserved or booked"
        )
        await rig.platform.tenants.update("red", TenantUpdate(cpu=8))
        assert (await only(rig)).short is None
        await rig.platform.tenants.update("red", TenantUpdate(cpu=8, reserved={"cpu": 5}))
        gone = await rig.platform.tenants.delete("red")
        assert [n for n in gone.notes if "demo of blue" in str(n) and str(n).endswith("fits again")]


async def test_when_nodes_leave_the_windows_that_were_made_first_keep_theirs(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", cpu=8), node("n2", cpu=8)) as rig:
        for name in ("blue", "red"):
            await rig.platform.tenants.create(TenantCreate(name=name))
        await book(rig, "later", 5, tenant="red")
        rig.ahead += 1
        await book(rig, "demo", 10)
        gone = next(one for one in rig.executor.nodes() if one.name == "n2")
        rig.executor.remove_node("n2")
        first, second = await only(rig, "red"), await only(rig)
        assert first.short is None
        assert second.short is not None
        assert second.short.left == {"cpu": 3.0}
        snapshot = await rig.platform.admission.snapshot()
        assert {b.name: b.amount.cpu for b in snapshot.bookings} == {"later": 5000, "demo": 3000}

        await rig.platform.bookings.remove("red", "later", actor="root")
        short = (await only(rig)).short
        assert short is not None
        assert short.left == {"cpu": 8.0}
        with pytest.raises(Refused):  # what does not fit now is not crowded out by a new one
            await book(rig, "new", 1, tenant="red")
        rig.executor.set_node(gone)
        await rig.platform.bookings.review_windows()
        assert rig.db.read_now(lambda tx: tx.bookings.current(rig.clock()))[0].short is None


async def test_a_node_that_is_down_is_expected_back_until_the_window_opens(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node("n1", cpu=8), node("n2", cpu=8)) as rig:
        await rig.platform.tenants.create(TenantCreate(name="blue"))
        await book(rig, "demo", 12, start=600)
        rig.executor.lose_node("n2")
        assert (await only(rig)).short is None
        rig.ahead = 700
        short = (await only(rig)).short
        assert short is not None
        assert str(short.message) == "needs 12 cpu, but 8 is left: the nodes that are up have 8 cpu"
        rig.executor.restore_node("n2")
        assert (await only(rig)).short is None


async def test_a_server_that_runs_into_a_window_keeps_what_it_holds_and_the_booking_says_so(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        for name in ("blue", "red"):
            await rig.platform.tenants.create(TenantCreate(name=name, cpu=8))
        plain = await book(rig, "demo", 6, start=60)
        assert [str(n) for n in plain.notes] == [
            "a notebook server that runs into the window keeps its resources until it is stopped"
        ]
        for tenant, cpu in (("red", 3), ("blue", 1)):
            held = ResourceRequestTry(
                id=tenant, applier="sp", request_type="request", tenant=tenant, cpu=cpu, ram=100
            )
            await rig.platform.ledger.try_(held)
            await rig.platform.ledger.confirm(ResourceRequestKey(id=tenant, applier="sp"))
        assert [str(n) for n in (await only(rig)).notes] == [
            f"{plain.notes[0]}: servers of other teams hold 3 cpu now"
        ]
        rig.ahead = 120
        assert (await only(rig)).open
        assert rig.held("red").cpu == 3000
