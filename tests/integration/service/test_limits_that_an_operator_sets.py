"""An operator's limits hold, and the refusal names them; a limit that cannot be stops the start with its bounds."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from mlp_api.jobs.runtimes import RuntimeUpdate
from mlp_api.teams.bookings import BookingCreate
from mlp_api.types import TenantCreate
from mlp_hub.api.auth.sessions import Sessions
from mlp_hub.api.edge.limits import RATES, Limiter
from mlp_hub.app import limits_of, notices_of, rates_of
from mlp_hub.domain.errors import Refused
from mlp_hub.service.apps.probing import Probing, ReplicaProbe
from mlp_hub.service.config import NoticePolicy
from mlp_hub.service.support.limits import DEFAULTS, ServiceLimits
from mlp_hub.settings import Settings, SettingsError
from support.rigs.platform_rig import FAST, Rig, running_rig

SMALL = ServiceLimits(
    secrets_per_owner=1, runtimes_per_tenant=1, windows_per_tenant=1, window_days=2, window_days_ahead=5
)


async def book(rig: Rig, name: str, start: timedelta, length: timedelta) -> None:
    begin = datetime.now(UTC) + start
    asked = BookingCreate(name=name, start=begin, end=begin + length, amount={"cpu": 1.0})
    await rig.platform.bookings.create("red", asked, actor="root")


async def test_each_limit_holds_and_the_refusal_names_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path, policy=replace(FAST, limits=SMALL)) as rig:
        p, hour, day = rig.platform, timedelta(hours=1), timedelta(days=1)
        await p.tenants.create(TenantCreate(name="red", cpu=2))
        await p.secrets.store_secret("one", {"key": "x"}, tenant="red", actor="ann")
        await p.secrets.store_secret("one", {"key": "y"}, tenant="red", actor="ann")  # the same one again
        with pytest.raises(Refused, match="there are 1 secrets"):
            await p.secrets.store_secret("two", {"key": "x"}, tenant="red", actor="ann")
        await p.secrets.store_secret("two", {"key": "x"}, user="ann", actor="ann")
        runtime = RuntimeUpdate(title="Mine")
        await p.runtimes.store_runtime("red", "one", runtime, actor="root", reviewer=True)
        with pytest.raises(Refused, match="red has 1 runtimes, which is the limit"):
            await p.runtimes.store_runtime("red", "two", runtime, actor="root", reviewer=True)
        with pytest.raises(Refused, match="the limit is 2 days"):
            await book(rig, "long", hour, 3 * day)
        with pytest.raises(Refused, match="must start within 5 days"):
            await book(rig, "late", 6 * day, hour)
        await book(rig, "one", hour, hour)
        with pytest.raises(Refused, match="red has 1 booked windows, which is the limit"):
            await book(rig, "two", 3 * hour, hour)


async def test_a_limit_that_was_lowered_keeps_what_is_there(tmp_path: Path) -> None:
    runtime = RuntimeUpdate(title="Mine")
    async with running_rig(tmp_path) as rig:
        await rig.platform.tenants.create(TenantCreate(name="red"))
        for name in ("one", "two"):
            await rig.platform.runtimes.store_runtime("red", name, runtime, actor="root", reviewer=True)
    async with running_rig(tmp_path, policy=replace(FAST, limits=SMALL)) as rig:
        assert len(await rig.platform.runtimes.list("red")) == 2
        await rig.platform.runtimes.store_runtime("red", "two", runtime, actor="root", reviewer=True)
        with pytest.raises(Refused, match="red has 1 runtimes"):
            await rig.platform.runtimes.store_runtime("red", "three", runtime, actor="root", reviewer=True)


async def test_a_session_ends_when_the_operator_says(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        now = [1000.0]
        sessions = Sessions(rig.db, lambda: now[0], lifetime_s=60.0)
        made = await sessions.create("ann", "token")
        now[0] += 59.0
        assert await sessions.get(made.id) is not None
        now[0] += 2.0
        assert await sessions.get(made.id) is None


async def test_a_replica_has_the_operators_time_to_answer() -> None:
    """Nobody listens at the address; with the default a replica has five minutes."""
    changed = asyncio.Event()
    probing = Probing(lambda _: changed.set(), patience_s=0.05)
    probing.keep("app", {"attempt": ReplicaProbe("127.0.0.1:1", "/", True)})
    await changed.wait()
    assert probing.overdue("app") == {"attempt"}
    probing.stop()
    assert DEFAULTS.app_start_s == 300.0


def test_limits_reach_the_service_from_the_environment() -> None:
    found = Settings.load(
        {"MLP_APPS_PER_USER": "7", "MLP_WHAT_IF_S": "5", "MLP_NOTICE_KEEP_DAYS": "3", "MLP_RATE_API": "1"}
    )
    assert limits_of(found) == replace(DEFAULTS, apps_per_user=7, what_if_s=5.0)
    assert notices_of(found).keep_s == 3 * 86_400
    assert notices_of(Settings.load({})).together_s == NoticePolicy().together_s
    limiter = Limiter(time.monotonic, rates_of(found))
    waits = [limiter.take_token("api", "ann") for _ in range(11)]
    assert (waits[:10], waits[10]) == ([0] * 10, 1)
    assert rates_of(Settings.load({})) == RATES
    # of the smallest rate one request passes all the same
    lowest = rates_of(Settings.load({"MLP_RATE_CHANGES": "0.001", "MLP_RATE_SIGNUPS": "0.001"}))
    assert (lowest["change"].burst, lowest["signup"].burst) == (5.0, 1.0)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MLP_APPS_PER_USER", "0", "it must be at least 1"),
        ("MLP_APPS_PER_USER", "-1", "it must be at least 1"),
        ("MLP_APPS_PER_USER", "1e3", "it must be a whole number"),
        ("MLP_WINDOW_DAYS", "367", "it must be at most 366"),
        ("MLP_RATE_API", "nan", "it must be at least 1"),
        ("MLP_RATE_API", "inf", "it must be at most 1e[+]06"),
        ("MLP_SESSION_DAYS", "0", "it must be at least 0.01"),
        ("MLP_SESSION_DAYS", "many", "it must be a number"),
        ("MLP_WHAT_IF_RAM", "1", "it must be at least 256"),
        ("MLP_KUBERNETES_PREWARMED_DISK", "1.5", "it must be at most 1"),
    ],
)
def test_a_limit_that_cannot_be_stops_the_start_with_its_bounds(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=f"{name} is '{value}'; {said}"):
        Settings.load({name: value})
