"""Capacity that is kept free: what tenants reserve for good, and what they booked for a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mlp_api.jobs.jobs import JobCreate
from mlp_api.teams.bookings import Booking, BookingCreate
from mlp_api.types import ResourceRequestTry, TenantCreate, TenantUpdate
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.booking import BookedWindow
from mlp_hub.executors.nodes import NodeInfo
from mlp_hub.service.bookings import service
from mlp_hub.service.support import limits
from mlp_hub.store.tx import Tx
from support.rigs.platform_rig import Rig, node, running_rig

LONG = {"DURATION": 60, "STOP": 0.1}
HOUR = 3600.0
DAY = 24 * HOUR


async def teams(rig: Rig, **blue: object) -> None:
    """Make red (ann's) without a quota, and blue (bob's) with four cores."""
    await rig.platform.tenants.create(TenantCreate(name="red"))
    await rig.platform.tenants.create(TenantCreate(name="blue", **{"cpu": 4, **blue}))
    for name, user in (("red", "ann"), ("blue", "bob")):
        await rig.platform.users.ensure(user)
        await rig.platform.tenants.set_member(name, user)


async def book(
    rig: Rig, start: float, end: float, *, name: str = "demo", tenant: str = "blue", **amount: float
) -> Booking:
    """Book from so many seconds from now until then."""
    now = rig.clock()
    asked = BookingCreate(
        name=name,
        start=datetime.fromtimestamp(now + start, UTC),
        end=datetime.fromtimestamp(now + end, UTC),
        amount=amount or {"cpu": 3.0},
    )
    return await rig.platform.bookings.create(tenant, asked, actor="root")


async def why(rig: Rig, user: str, name: str) -> tuple[str, str]:
    await rig.platform.admission.cycle()
    answer = await rig.platform.jobs.why(SYSTEM, user, name)
    return answer.reasons[0].reason, str(answer.reasons[0].message)


def notebook(tenant: str, name: str = "n", cpu: float = 1) -> ResourceRequestTry:
    return ResourceRequestTry(
        id=name, applier="sp", request_type="request", tenant=tenant, cpu=cpu, ram=100, user=name
    )


async def kept(rig: Rig, user: str, name: str) -> tuple[str, str]:
    """Return how much is kept free for others, and for whom, as a job's reason tells it."""
    (reason,) = (await rig.platform.jobs.why(SYSTEM, user, name)).reasons
    return next((str(f.value), str(f.who)) for f in reason.facts if f.key == "kept")


async def test_reserved_capacity_is_kept_free_from_other_tenants_jobs_and_servers(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await teams(rig, reserved={"cpu": 3})
        await rig.submit("one", sim=LONG)
        await rig.until("one", "running")
        with pytest.raises(Refused, match="may use") as caught:
            await rig.submit("never", workers=2)
        assert caught.value.reason is Reason.EXCEEDS_MAX_QUOTA
        await rig.submit("two", sim=LONG)
        reason, message = await why(rig, "ann", "two")
        assert (reason, message) == ("WaitingForQuota", "Needs 1 cpu, 0 free. Starts when jobs of red end.")
        assert await kept(rig, "ann", "two") == ("3 cpu", "blue")
        with pytest.raises(Refused) as refused:
            await rig.platform.ledger.try_(notebook("red"))
        assert {f.key: f.number for f in refused.value.facts}["kept"] == 3
        assert (await rig.platform.tenants.get("red")).free.get("cpu") == 0.0
        assert await rig.platform.ledger.try_(notebook("blue")) is not None
        await rig.submit("own", user="bob", workers=2, sim=LONG)
        await rig.until("own", "running", user="bob")

        await rig.platform.tenants.update("blue", TenantUpdate(cpu=4))  # reserves nothing any more
        await rig.platform.jobs.cancel(SYSTEM, "bob", "own")
        await rig.until("two", "running")


async def test_before_a_window_opens_work_starts_only_if_it_ends_by_then_and_then_the_tenant_has_it(
    tmp_path: Path,
) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await teams(rig)
        made = await book(rig, HOUR, 2 * HOUR)
        assert (made.amount, made.open, made.made_by) == ({"cpu": 3.0}, False, "root")
        await rig.submit("endless", workers=2, sim=LONG)
        reason, message = await why(rig, "ann", "endless")
        assert reason == "Reserved"
        assert message.startswith("blue booked it at ")
        assert " UTC. Use --time-limit 3" in message
        await rig.submit("short", workers=2, time_limit=600, sim={"DURATION": 0.2})
        await rig.until("short", "finished")
        await rig.submit("small", sim=LONG)  # beside what is booked
        await rig.until("small", "running")

        rig.ahead += HOUR + 1
        await rig.restart()
        reason, message = await why(rig, "ann", "endless")
        assert reason == "WaitingForQuota"
        amount, whose = await kept(rig, "ann", "endless")
        assert (amount, whose.startswith("blue and window demo (")) == ("3 cpu", True)
        with pytest.raises(Refused) as refused:
            await rig.platform.ledger.try_(notebook("red"))
        assert {f.key: f.number for f in refused.value.facts}["kept"] == 3
        assert [b.open for b in await rig.platform.bookings.list("blue")] == [True]
        await rig.submit("own", user="bob", workers=3, sim={"DURATION": 0.2})
        await rig.until("own", "finished", user="bob")

        await rig.platform.bookings.remove("blue", "demo", actor="root")
        await rig.until("endless", "running")
        audit, _ = rig.db.read_now(lambda tx: tx.audit.page(tenant="blue"))
        assert [e.action for e in audit][:2] == ["booking.delete", "booking.create"]


async def test_an_offer_names_the_window_whose_end_it_waits_for(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await teams(rig)
        made = await book(rig, HOUR, 2 * HOUR)
        rig.ahead += HOUR + 1
        await rig.restart()
        wide = JobCreate(name="wide", code="1", workers=3, cpu=1, ram=100, tenant="red")
        offer = await rig.platform.jobs.offer("ann", wide)
        assert offer.fits_now is False
        assert offer.expected_start == made.end
        assert str(offer.expected_because).startswith("window demo (")
        assert str(offer.expected_because).endswith(" UTC) of blue closes then")


async def test_a_window_that_closes_lets_the_others_start_and_is_forgotten(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=4)) as rig:
        await teams(rig)
        rig.stands_at = time.time()  # or the window may be over before it was looked at
        await book(rig, -10, 1)
        await rig.submit("waits", workers=2, sim=LONG)
        assert (await why(rig, "ann", "waits"))[0] == "WaitingForQuota"
        rig.stands_at = None
        # nobody does anything: the scheduler wakes at the end of the window
        await rig.until("waits", "running")
        assert await rig.platform.bookings.list("blue") == []
        assert await rig.platform.bookings.review_windows() == 1
        assert rig.db.read_now(lambda tx: tx.bookings.current(0)) == []


async def refusal(rig: Rig, start: float, end: float, **kw: object) -> str:
    with pytest.raises(Refused) as caught:
        await book(rig, start, end, **kw)
    return str(caught.value)


async def test_an_impossible_booking_is_refused_with_its_numbers(tmp_path: Path) -> None:
    async with running_rig(tmp_path, node(cpu=8)) as rig:
        await teams(rig, reserved={"cpu": 1})
        await rig.platform.tenants.update("red", TenantUpdate(reserved={"cpu": 2}))
        assert "a window ends after it starts" in await refusal(rig, HOUR, HOUR)
        assert "which has passed" in await refusal(rig, -HOUR, -1)
        assert "the limit is 30 days" in await refusal(rig, 0, 31 * DAY)
        assert "a window must start within 366 days from now" in await refusal(rig, 400 * DAY, 401 * DAY)
        assert "storage does not belong to nodes" in await refusal(rig, 0, 1, rom=5)
        assert "amount is empty" in await refusal(rig, 0, 1, cpu=0)
        assert "'disk', which is not a resource" in await refusal(rig, 0, 1, disk=3)
        assert (await refusal(rig, 0, 1, tenant="nobody")).startswith("NotFound")

        await book(rig, HOUR, 3 * HOUR, cpu=2)
        assert "already has a booked window demo" in await refusal(rig, HOUR, 3 * HOUR, cpu=1)
        over = await refusal(rig, 0, 2 * HOUR, name="more", cpu=2)
        assert over.startswith("ExceedsMaxQuota: the quota of blue is 4 cpu, of which at ")
        assert (
            "1 is reserved for blue and 2 is booked for blue (demo); this window asks for 2. Book at most 1 cpu"
            in over
        )
        assert (await book(rig, 3 * HOUR, 4 * HOUR, name="after", cpu=3)).name == "after"
        over = await refusal(rig, 0, 2 * HOUR, name="wide", tenant="red", cpu=4)
        assert over.startswith("ExceedsMaxQuota: the nodes have 8 cpu, of which at ")
        assert "1 is reserved for blue, 2 is reserved for red and 2 is booked for blue (demo)" in over
        assert over.endswith("this window asks for 4. Book at most 3 cpu, or another time")
        assert "the nodes have 0 gpu; this window asks for 1. Book less" in await refusal(
            rig, 0, 1, tenant="red", gpu=1
        )
        await book(rig, 0, 2 * HOUR, name="fits", tenant="red", cpu=3)
        await rig.platform.tenants.remove_member("blue", "bob")
        with pytest.raises(Refused, match=r"2 booked windows \(demo and after\)"):
            await rig.platform.tenants.delete("blue")


async def test_windows_of_all_tenants_together_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WINDOWS_IN_ALL", 2)

    async with running_rig(tmp_path) as rig:
        await teams(rig)
        await book(rig, HOUR, 2 * HOUR, cpu=1.0)
        await book(rig, HOUR, 2 * HOUR, tenant="red", cpu=1.0)
        with pytest.raises(Refused, match="2 windows are booked, which is the limit of all") as caught:
            await book(rig, HOUR, 2 * HOUR, name="third", cpu=1.0)
        assert caught.value.reason is Reason.INVALID
        await rig.platform.bookings.remove("red", "demo", actor="root")
        assert (await book(rig, HOUR, 2 * HOUR, name="third", cpu=1.0)).name == "third"


async def test_windows_are_looked_at_again_only_when_something_can_have_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[float] = []
    real = service.changed

    def note(tx: Tx, nodes: Sequence[NodeInfo], now: float) -> list[tuple[BookedWindow, BookedWindow]]:
        looked.append(now)
        return real(tx, nodes, now)

    monkeypatch.setattr(service, "changed", note)

    async with running_rig(tmp_path) as rig:
        await teams(rig)
        await book(rig, 60, 2 * HOUR, cpu=1.0)

        async def looks() -> bool:
            looked.clear()
            await rig.platform.bookings.review_windows()
            return bool(looked)

        assert await looks()
        assert not await looks()
        rig.ahead += 61  # it opens
        assert await looks()
        assert not await looks()
        rig.executor.lose_node("n1")
        assert await looks()
        rig.ahead += service.REVIEW_EVERY_S
        assert await looks()
