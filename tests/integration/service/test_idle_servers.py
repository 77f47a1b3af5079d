"""Idle notebook servers: counted down by their team's policy, stopped at the end, kept by their owner, over restarts and clock jumps."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import convert

from mlp_api.accounts.idle_servers import IdleServerPolicySet, ServerCountdown, ServerKeep, ServerUseReport
from mlp_api.types import ResourceRequestKey, ResourceRequestTry
from mlp_hub.domain.errors import Refused, Unavailable
from mlp_hub.domain.workload.idle_policy import IdleKind
from mlp_hub.service.quota.idle_policies import MOST_PASSED_S
from mlp_hub.service.quota.idle_servers import IdleServerStops
from mlp_language.message import msg
from support.rigs.platform_rig import Rig, running_rig

HOUR = 3600.0
KEY = ResourceRequestKey(id="ann/", applier="sp")


class Idle:
    """The platform with a server of ann's, a steady clock that the test moves, and a hub that notes which servers it ended."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.now = 0.0
        self.ended: list[tuple[str, str]] = []
        self.reasons: list[str] = []
        self.hub_is_there = True

    @property
    def stops(self) -> IdleServerStops:
        return self.rig.platform.idle_servers

    async def begin(self) -> None:
        """Make the platform use them; once again after its restart."""
        self.stops._monotonic = lambda: self.now
        self.stops._looked = None
        self.stops.end = self.end

    async def end(self, user: str, server: str) -> None:
        if not self.hub_is_there:
            raise Unavailable(msg("the hub does not answer"))
        self.ended.append((user, server))
        self.reasons.append(str(self.stops.ends_server_for(user)))  # the spawner asks for it in between

    async def server(self) -> None:
        asked = ResourceRequestTry(
            id=KEY.id, applier="sp", request_type="request", tenant="default", cpu=0.1, ram=100,
            user="ann", holder="ann's notebook",
        )  # fmt: skip
        await self.rig.platform.ledger.try_(asked)
        await self.rig.platform.ledger.confirm(KEY)

    async def policy(self, after: int = 120, grace: int = 10, tenant: str = "default") -> None:
        asked = IdleServerPolicySet(after_minutes=after, grace_minutes=grace)
        await self.rig.platform.idle_policies.put(IdleKind.SERVER, tenant, asked, actor="lea")

    async def later(self, seconds: float, idle_s: float | None) -> ServerCountdown | None:
        """Return the countdown some seconds later, after a report of the server if there is one."""
        self.now += seconds
        if idle_s is not None:
            self.stops.report("ann", ServerUseReport(idle_s=idle_s))
        await self.stops.look()
        return next(iter(self.stops.of_user("ann")), None)


@asynccontextmanager
async def idle(root: Path) -> AsyncIterator[Idle]:
    async with running_rig(root) as rig:
        made = Idle(rig)
        await made.begin()
        await made.server()
        yield made


async def test_a_quiet_server_is_stopped_after_its_grace_and_a_computing_one_never(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.later(0, None)
        found = await made.later(30, 2 * HOUR)
        assert (found and found.left_s, made.ended) == (600, [])
        for n in range(1, 20):
            found = await made.later(30, 2 * HOUR + 30 * n)
            assert (found and found.left_s, made.ended) == (600 - 30 * n, [])
        await made.later(30, 3 * HOUR)
        assert made.ended == [("ann", "")]
        assert made.reasons == ["it was not used for 3 h, by the policy of default"]
        assert str(made.stops.ends_server_for("ann")) == ""
        # it works: whatever was before, nothing counts down
        for _ in range(100):
            found = await made.later(60, 0.0)
            assert found is not None
            assert found.left_s is None
        assert len(made.ended) == 1


async def test_without_a_policy_nothing_is_ever_stopped(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        for _ in range(10):
            assert await made.later(60, 1000 * HOUR) is None
        await made.policy()
        await made.later(0, None)
        await made.later(60, 2 * HOUR)
        await made.policy(after=0)
        assert await made.later(3600, 1000 * HOUR) is None
        assert made.ended == []


async def test_use_in_the_last_moment_stops_the_countdown(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy(grace=5)
        await made.later(0, None)
        await made.later(60, 2 * HOUR)
        for _ in range(4):
            await made.later(60, 3 * HOUR)
        found = await made.later(59, 3.0)
        assert (found and found.left_s, made.ended) == (None, [])


async def test_one_click_keeps_a_server_for_some_hours(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy(grace=5)
        await made.later(0, None)
        await made.later(60, 2 * HOUR)
        kept = await made.stops.keep("ann", ServerKeep(hours=1))
        assert (kept.left_s, kept.kept_s) == (None, HOUR)
        for _ in range(59):
            found = await made.later(60, 3 * HOUR)
            assert found is not None
            assert found.left_s is None
        found = await made.later(60, 3 * HOUR)
        assert (found and found.left_s, made.ended) == (300, [])
        entries = await made.rig.platform.db.read(lambda tx: [e.action for e in tx.audit.page()[0]])
        assert "server.keep" in entries


async def test_a_restart_loses_neither_countdown_nor_keeping(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy(grace=5)
        await made.later(0, None)
        await made.later(60, 2 * HOUR)
        await made.later(100, 2 * HOUR)
        made.rig.crash()
        await made.rig.start()
        await made.begin()
        found = next(iter(made.stops.of_user("ann")))
        assert found.left_s == 200
        made.now = -5e6  # a steady clock begins anew with the machine
        found_now = await made.later(0, None)
        assert (found_now and found_now.left_s, made.ended) == (200, [])
        await made.stops.keep("ann", ServerKeep(hours=2))
        made.rig.crash()
        await made.rig.start()
        await made.begin()
        assert next(iter(made.stops.of_user("ann"))).kept_s == 2 * HOUR


async def test_a_wall_clock_that_jumps_and_a_machine_that_slept_stop_nothing(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy(grace=10)
        await made.later(0, None)
        await made.later(60, 2 * HOUR)
        made.rig.ahead += 10 * 86_400
        found = await made.later(30, 2 * HOUR)
        assert found is None or found.left_s == 570, "the ledger's own row may have aged"
        found = await made.later(8 * HOUR, 2 * HOUR)
        assert found is None or found.left_s == 570 - MOST_PASSED_S
        assert made.ended == []


async def test_a_server_that_reports_nothing_is_not_stopped(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy(grace=5)
        for _ in range(100):
            found = await made.later(60, None)
        assert found is not None
        assert (found.left_s, made.ended) == (None, [])
        await made.later(60, 2 * HOUR)
        for _ in range(100):
            found = await made.later(120, None)
        assert found is not None
        assert (found.left_s is not None and found.left_s > 0, made.ended) == (True, [])


async def test_a_hub_that_is_away_stops_it_later_and_nothing_else_is_held_up(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy(grace=5)
        made.hub_is_there = False
        await made.later(0, None)
        await made.later(60, 2 * HOUR)
        for _ in range(4):
            await made.later(100, 3 * HOUR)
        assert made.ended == []
        made.hub_is_there = True
        await made.later(60, 3 * HOUR)
        assert made.ended == [("ann", "")]


async def test_attacks_on_others_servers_and_policies_find_nothing(tmp_path: Path) -> None:
    async with idle(tmp_path) as made:
        await made.policy()
        await made.later(0, None)
        with pytest.raises(Refused, match="server"):
            await made.stops.keep("bob", ServerKeep(hours=1))
        with pytest.raises(Refused, match="server"):
            await made.stops.keep("ann", ServerKeep(hours=1, server="other"))
        # who reports for servers that are not there fills no memory
        for n in range(1000):
            made.stops.report("bob", ServerUseReport(idle_s=1e9, server=f"s{n}"))
        assert (made.stops._reports, made.stops.of_user("bob")) == ({}, [])
        with pytest.raises(Refused):
            await made.policy(tenant="nowhere")


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (IdleServerPolicySet, {"after_minutes": -1}),
        (IdleServerPolicySet, {"after_minutes": 10, "grace_minutes": 0}),
        (IdleServerPolicySet, {"after_minutes": 10**9}),
        (IdleServerPolicySet, {"after_minutes": 1.5}),
        (ServerKeep, {"hours": 0}),
        (ServerKeep, {"hours": 25}),
        (ServerUseReport, {"idle_s": -1}),
        (ServerUseReport, {"idle_s": 1, "server": "x" * 256}),
    ],
)
def test_bad_input_is_refused(kind: type, body: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="Expected"):
        convert(body, kind)
