"""Alerts by the service's own evaluation, on a real platform: notices once each, restarts, silences, and what an idle hub does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp.commands.alerts import _listed
from mlp.rendering.format import clock_time
from mlp_api.localized import writer
from mlp_api.platform.alerts import AlertBoard, SilenceCreate
from mlp_api.platform.notices import NotificationsSet
from mlp_api.types import TenantCreate, TenantUpdate
from mlp_hub.api.edge.answers import STRANGER
from mlp_hub.domain.errors import Refused, Unavailable
from mlp_hub.domain.notices.notice import Notice
from mlp_hub.domain.tenants.tenant import Role
from mlp_hub.service.alerts import service as alerts
from mlp_hub.service.alerts.evaluator import KEEP_S
from mlp_hub.service.config import MonitoringPolicy
from mlp_hub.service.metrics.service import MetricsService
from mlp_hub.service.monitoring import service as monitoring
from mlp_hub.service.monitoring.alert_rules import RULES
from mlp_hub.service.monitoring.history import SampleHistory
from mlp_hub.service.platform import Platform
from mlp_hub.service.support import limits
from mlp_hub.store.errors import StoreUnavailable
from mlp_language.message import msg
from mlp_language.render import ENGLISH
from support.rigs.platform_rig import FAST, Rig, running_rig
from support.waiting import until

OVER = "MLPTenantOverQuota"
WAIT_S, LONGER_S = 300.0, 601.0
UNREAD_HERE = {
    "DCGM_FI_DEV_XID_ERRORS": "of another exporter: Prometheus alone evaluates the rule",
    "mlp_points_lag_messages": "this rig has no Kafka",
}
"""Metrics of rules without a number in a rig, and why."""


@pytest.fixture(autouse=True)
def _each_evaluation_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitoring, "LOOK_S", 0.0)
    monkeypatch.setattr(alerts, "ADMINS_S", 0.0)


def tie(platform: Platform) -> None:
    """Say who administers the platform, and look at all numbers at each evaluation."""

    async def admins(users: Sequence[str]) -> list[str]:
        return [user for user in users if user == "root"]

    platform.alerts.platform_admins = admins


@asynccontextmanager
async def over_quota(tmp_path: Path) -> AsyncIterator[Rig]:
    """Run a hub in which team red, with its admin rita, holds more than its quota; blue is a team of bob."""
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        tie(p)
        await p.tenants.create(TenantCreate(name="red", cpu=3), actor="root")
        await p.tenants.create(TenantCreate(name="blue", cpu=3), actor="root")
        await p.tenants.set_member("red", "rita", Role.ADMIN, actor="root")
        await p.tenants.set_member("red", "ann", actor="root")
        await p.tenants.set_member("blue", "bob", Role.ADMIN, actor="root")
        for who in ("root", "rita", "ann", "bob"):
            asked = NotificationsSet(browser=["alert", "resolved"], quiet=None, timezone="UTC", channels=[])
            await p.notices.store_choices(who, asked, who)
        await rig.submit("long", tenant="red", cpu=2, sim={"DURATION": 6000})
        await rig.until("long", "running")
        await resize(rig, 1)
        yield rig


async def resize(rig: Rig, cpu: float) -> None:
    await rig.platform.tenants.update("red", TenantUpdate(cpu=cpu), actor="root")


async def turn(rig: Rig, ahead: float = 0.0) -> None:
    """Evaluate once, so many seconds later."""
    rig.ahead += ahead
    rig.platform.monitoring.events.last_cycle = rig.clock()  # as the cycles of that time would
    await rig.platform.alerts.evaluate()


async def fire(rig: Rig) -> None:
    await turn(rig)
    await turn(rig, WAIT_S + 1)


async def end(rig: Rig) -> None:
    await resize(rig, 3)
    await turn(rig)
    await turn(rig, KEEP_S + 1)


def told(rig: Rig, user: str) -> list[str]:
    """Return what somebody was told: the kinds with the rules, in order."""
    found: list[Notice] = rig.db.read_now(lambda tx: tx.notices.after(user, 0, 1000))
    return [f"{one.kind.value} {one.name}" for one in found if one.name.startswith("MLP")]


async def shown(rig: Rig, tenant: str | None = None) -> AlertBoard:
    return await rig.platform.alerts.shown(tenant)


def a_silence(rig: Rig, **fields: Any) -> SilenceCreate:
    until = datetime.fromtimestamp(rig.clock() + 3600, UTC)
    return SilenceCreate(**{"reason": "we know", "until": until, "rule": OVER, **fields})


async def test_the_service_reads_each_metric_that_its_rules_compare(tmp_path: Path) -> None:
    """A rule whose metric `samples` leaves out never fires, and the cases of `alert_cases.py` do not show it: they bring their own numbers."""
    async with running_rig(tmp_path) as rig:
        rig.platform.monitoring.events.last_cycle = rig.clock()
        read = SampleHistory(RULES).metrics
        unread = read - set(await rig.platform.monitoring.samples(read))
    assert unread == set(UNREAD_HERE), (
        f"add the family of {sorted(unread - set(UNREAD_HERE))} to Monitoring._families, `for_rules` too, or its reason to UNREAD_HERE"
    )


ONCE = [f"alert {OVER}", f"resolved {OVER}"]


async def test_the_people_whom_it_concerns_are_told_once_that_it_fires_and_once_that_it_is_over(
    tmp_path: Path,
) -> None:
    async with over_quota(tmp_path) as rig:
        await turn(rig)
        (one,) = (await shown(rig)).alerts
        assert (one.rule, one.tenant, one.state) == (OVER, "red", "pending")
        assert told(rig, "root") == []
        for _ in range(3):
            await turn(rig, WAIT_S / 2)
        board = await shown(rig, "red")
        (one,) = board.alerts
        assert (one.state, board.firing, str(one.value)) == ("firing", 1, "1")
        assert "Team red holds 1 of cpu more than its limit" in str(one.description)
        assert told(rig, "root") == told(rig, "rita") == ONCE[:1]
        await end(rig)
        for _ in range(3):
            await turn(rig, 60)
        assert told(rig, "root") == told(rig, "rita") == ONCE
        assert told(rig, "ann") == told(rig, "bob") == []
        (one,) = (await shown(rig)).alerts
        assert one.state == "resolved"
        assert (await shown(rig, "blue")).alerts == []


@pytest.mark.parametrize("stop", ["crash", "restart"])
async def test_a_restart_loses_and_repeats_no_notice(tmp_path: Path, stop: str) -> None:
    async with over_quota(tmp_path) as rig:

        async def again() -> None:
            if stop == "crash":
                rig.crash()
                await rig.start()
            else:
                await rig.restart()
            tie(rig.platform)

        await turn(rig)
        await again()
        await turn(rig)
        await turn(rig, WAIT_S + 1)
        assert told(rig, "root") == ONCE[:1]
        await again()
        await turn(rig)
        assert [one.state for one in (await shown(rig)).alerts] == ["firing"]
        await end(rig)
        await again()
        await turn(rig)
        assert told(rig, "root") == told(rig, "rita") == ONCE


async def test_a_database_that_takes_no_writes_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with over_quota(tmp_path) as rig:
        await turn(rig)
        write = rig.db.write

        async def refuse(*_: Any, **__: Any) -> None:
            raise StoreUnavailable(msg("it is full"))

        monkeypatch.setattr(rig.db, "write", refuse)
        rig.ahead += WAIT_S + 1
        with pytest.raises(Unavailable):
            await rig.platform.alerts.evaluate()
        monkeypatch.setattr(rig.db, "write", write)
        await turn(rig)
        assert told(rig, "root") == ONCE[:1]


async def test_while_nobody_knows_the_administrators_they_are_told_later(tmp_path: Path) -> None:
    async with over_quota(tmp_path) as rig:
        known = rig.platform.alerts.platform_admins

        async def away(_: Sequence[str]) -> list[str]:
            raise Unavailable(msg("it is away"))

        rig.platform.alerts.platform_admins = away
        await fire(rig)
        assert told(rig, "root") == []
        assert told(rig, "rita") == ONCE[:1]
        rig.platform.alerts.platform_admins = known
        await turn(rig)
        rig.platform.alerts.platform_admins = away  # from now on the last answer counts
        await end(rig)
        assert told(rig, "root") == told(rig, "rita") == ONCE


async def test_the_hub_is_asked_once_for_all_whom_alerts_concern(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with over_quota(tmp_path) as rig:
        asked: list[Sequence[str]] = []

        async def admins(users: Sequence[str]) -> list[str]:
            asked.append(users)
            return ["root"]

        rig.platform.alerts.platform_admins = admins
        await fire(rig)
        assert asked
        assert set(map(tuple, asked)) == {("ann", "bob", "rita", "root")}
        monkeypatch.setattr(alerts, "ADMINS_S", 1e9)
        asked.clear()
        await end(rig)
        assert asked == []
        assert told(rig, "root") == told(rig, "rita") == ONCE


async def test_a_silence_keeps_notices_away_and_its_end_brings_them(tmp_path: Path) -> None:
    async with over_quota(tmp_path) as rig:
        silences = rig.platform.alerts.silences
        made = await silences.make(a_silence(rig), tenant="red", of_team=False, actor="root")
        await fire(rig)
        board = await shown(rig)
        assert (board.firing, board.silenced, board.alerts[0].silence) == (0, 1, made.id)
        assert told(rig, "root") == told(rig, "rita") == []
        await silences.end(str(made.id), actor="root")
        await turn(rig)
        assert told(rig, "root") == told(rig, "rita") == ONCE[:1]
        await silences.make(a_silence(rig), tenant="", of_team=False, actor="root")
        await end(rig)
        assert told(rig, "root") == ONCE[:1]  # whoever silences it wants no more of it now
        await turn(rig, 3600)
        assert told(rig, "root") == told(rig, "rita") == ONCE, "and knows afterwards that it is over"


async def test_a_silence_that_is_made_while_the_hub_says_who_is_told_keeps_the_notice_away(
    tmp_path: Path,
) -> None:
    async with over_quota(tmp_path) as rig:
        p, made = rig.platform, list[int]()
        admins = p.alerts.platform_admins
        assert admins is not None

        async def admins_later(users: Sequence[str]) -> list[str]:
            if not made:
                asked = a_silence(rig)
                made.append((await p.alerts.silences.make(asked, tenant="", of_team=False, actor="root")).id)
            return list(await admins(users))

        await turn(rig)
        p.alerts.platform_admins = admins_later
        await turn(rig, WAIT_S + 1)
        assert len(made) == 1
        assert told(rig, "root") == []


async def test_a_silence_that_is_over_brings_the_notice_too(tmp_path: Path) -> None:
    async with over_quota(tmp_path) as rig:
        until = datetime.fromtimestamp(rig.clock() + 2 * WAIT_S, UTC)
        asked = a_silence(rig, until=until)
        await rig.platform.alerts.silences.make(asked, tenant="", of_team=False, actor="root")
        await fire(rig)
        assert told(rig, "root") == []
        await rig.restart()
        tie(rig.platform)
        await turn(rig)
        assert told(rig, "root") == []
        await turn(rig, 2 * WAIT_S)
        assert told(rig, "root") == ONCE[:1]


@pytest.mark.parametrize("how", ["by hand", "by hand after a crash", "by itself", "by itself during a crash"])
async def test_people_who_were_told_before_a_silence_are_told_again_when_it_ends_and_the_alert_still_fires(
    tmp_path: Path, how: str
) -> None:
    """As Alertmanager, whose repeated notification comes once the silence is over."""
    async with over_quota(tmp_path) as rig:
        await fire(rig)
        assert told(rig, "root") == told(rig, "rita") == ONCE[:1]
        until = datetime.fromtimestamp(rig.clock() + 300, UTC)
        made = await rig.platform.alerts.silences.make(
            a_silence(rig, until=until), tenant="red", of_team=False, actor="root"
        )
        for _ in range(3):
            await turn(rig, 60)
        assert told(rig, "root") == told(rig, "rita") == ONCE[:1]
        if how.startswith("by hand"):
            await rig.platform.alerts.silences.end(str(made.id), actor="root")
        else:
            rig.ahead += 301
        if "crash" in how:
            rig.crash()
            await rig.start()
            tie(rig.platform)
        for _ in range(3):
            await turn(rig, 1)
        assert told(rig, "root") == told(rig, "rita") == ONCE[:1] * 2
        await end(rig)
        assert told(rig, "root") == told(rig, "rita") == [*ONCE[:1], *ONCE]


async def test_a_silence_of_a_team_that_ends_tells_the_team_again_and_not_the_platform(
    tmp_path: Path,
) -> None:
    async with over_quota(tmp_path) as rig:
        await fire(rig)
        silences = rig.platform.alerts.silences
        made = await silences.make(a_silence(rig), tenant="red", of_team=True, actor="rita")
        other = await silences.make(a_silence(rig), tenant="blue", of_team=True, actor="bob")
        await turn(rig, 60)
        for one in (made, other):
            await silences.end(str(one.id), actor="root")
        await turn(rig, 1)
        assert (told(rig, "root"), told(rig, "rita")) == (ONCE[:1], ONCE[:1] * 2)


def of_quota(rig: Rig, user: str) -> list[str]:
    """Return what somebody was told of the quota: many restarts are another alert."""
    return [one for one in told(rig, user) if one in ONCE]


async def restarted(rig: Rig, stop: str) -> None:
    if stop == "crash":
        rig.crash()
        await rig.start()
    elif stop == "restart":
        await rig.restart()
    tie(rig.platform)


@pytest.mark.parametrize("stop", ["", "restart", "crash"])
@pytest.mark.parametrize("how", ["by itself", "by hand"])
async def test_an_alert_that_ends_right_after_its_silence_has_one_notice_of_its_end(
    tmp_path: Path, how: str, stop: str
) -> None:
    """Between the end of the silence and the evaluation that would notify again, it ends too."""
    async with over_quota(tmp_path) as rig:
        await fire(rig)
        silences = rig.platform.alerts.silences
        until = datetime.fromtimestamp(rig.clock() + 300, UTC)
        made = await silences.make(a_silence(rig, until=until), tenant="", of_team=False, actor="root")
        await resize(rig, 3)
        await turn(rig)  # from here on its condition is over
        await restarted(rig, stop)
        rig.ahead += 299
        if how == "by hand":
            await rig.platform.alerts.silences.end(str(made.id), actor="root")
        await turn(rig, 2)
        while "firing" in {one.state for one in (await shown(rig)).alerts}:
            await turn(rig, 60)  # after a restart it ends only when its window is full again
        for _ in range(3):
            await restarted(rig, stop)
            await turn(rig, 60)
        # after a restart it fires until its window is full, so people are told again before its end
        expected = [*ONCE[:1], *ONCE] if stop else ONCE
        assert of_quota(rig, "root") == of_quota(rig, "rita") == expected


@pytest.mark.parametrize("stop", ["", "restart", "crash"])
async def test_an_alert_that_ends_in_its_silence_has_its_notice_after_the_silence(
    tmp_path: Path, stop: str
) -> None:
    async with over_quota(tmp_path) as rig:
        await fire(rig)
        made = await rig.platform.alerts.silences.make(
            a_silence(rig), tenant="red", of_team=True, actor="rita"
        )
        await end(rig)
        assert (of_quota(rig, "root"), of_quota(rig, "rita")) == (ONCE, ONCE[:1]), (
            "the silence is one of the team"
        )
        await restarted(rig, stop)
        await turn(rig, 60)
        await rig.db.write(lambda tx: alerts.purge(tx, rig.clock() + alerts.RESOLVED_KEPT_S + 60))
        await rig.platform.alerts.silences.end(str(made.id), actor="rita")
        for _ in range(3):
            await turn(rig, 1)
            await restarted(rig, stop)
        assert of_quota(rig, "root") == of_quota(rig, "rita") == ONCE
        assert await rig.db.read(lambda tx: tx.alerts.owed_ones()) == []


async def test_people_without_a_notice_of_the_begin_get_none_of_the_end(tmp_path: Path) -> None:
    async with over_quota(tmp_path) as rig:
        silences = rig.platform.alerts.silences
        made = await silences.make(a_silence(rig), tenant="", of_team=False, actor="root")
        await fire(rig)
        await end(rig)
        await silences.end(str(made.id), actor="root")
        for _ in range(3):
            await turn(rig, 60)
        assert of_quota(rig, "root") == of_quota(rig, "rita") == []


async def test_an_alert_that_ends_while_another_inhibits_it_is_over_once_that_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlp_hub.service.alerts.telling.INHIBITING", ("MLPNodeLost",))
    async with over_quota(tmp_path) as rig:
        await fire(rig)
        real = rig.platform.alerts._monitoring.samples

        async def samples(metrics: frozenset[str]) -> Any:
            return {**await real(metrics), "mlp_node_ready": {(("node", "n1"),): 0.0}}

        rig.platform.alerts._monitoring.samples = samples  # type: ignore[method-assign]
        await fire(rig)
        assert told(rig, "root") == [f"alert {OVER}", "alert MLPNodeLost"]
        await end(rig)
        assert told(rig, "rita") == ONCE[:1]
        rig.platform.alerts._monitoring.samples = real  # type: ignore[method-assign]
        for ahead in (1, KEEP_S + 1, 1, 1):
            await turn(rig, ahead)
        assert told(rig, "root") == [
            f"alert {OVER}",
            "alert MLPNodeLost",
            "resolved MLPNodeLost",
            f"resolved {OVER}",
        ]
        assert told(rig, "rita") == ONCE


async def test_a_silence_that_is_made_during_an_evaluation_keeps_its_mark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evaluation stores what it knew of the alert before the silence."""
    async with over_quota(tmp_path) as rig:
        await turn(rig)
        rig.ahead += WAIT_S + 1
        stored, go_on, write = asyncio.Event(), asyncio.Event(), rig.db.write

        async def held_up(*args: Any, **more: Any) -> Any:
            found = await write(*args, **more)
            monkeypatch.setattr(rig.db, "write", write)
            stored.set()
            await go_on.wait()
            return found

        monkeypatch.setattr(rig.db, "write", held_up)
        silences = rig.platform.alerts.silences
        evaluation = asyncio.ensure_future(turn(rig))
        await stored.wait()
        made = asyncio.ensure_future(silences.make(a_silence(rig), tenant="", of_team=False, actor="root"))
        await rig.db.read(lambda tx: tx.alerts.silences(0))  # a silence that does not wait is stored by now
        go_on.set()
        await evaluation
        await silences.end(str((await made).id), actor="root")
        await turn(rig, 1)
        assert told(rig, "root") == ONCE[:1] * 2


@pytest.mark.parametrize("stop", ["crash", "restart"])
async def test_after_a_restart_an_alert_has_no_old_value_and_the_same_since_everywhere(
    tmp_path: Path, stop: str
) -> None:
    async with over_quota(tmp_path) as rig:
        await fire(rig)
        (before,) = (await shown(rig)).alerts
        assert (before.state_since, str(before.value)) == (before.fired_at, "1")
        await resize(rig, 0.5)
        if stop == "crash":
            rig.crash()
            await rig.start()
        else:
            await rig.restart()
        tie(rig.platform)
        (after,) = (await shown(rig)).alerts
        assert (after.state, after.state_since, after.since) == ("firing", before.state_since, before.since)
        assert str(after.value) == "not known yet"
        assert str(after.description) == (
            "Team red holds more than its quota. The value is not known yet since the restart of the service."
        )
        listed = json.loads(json.dumps(msgspec.to_builtins(after, enc_hook=writer(ENGLISH, STRANGER))))
        assert clock_time(listed["state_since"]) in str(_listed({"alerts": [listed], "silences": []}))
        await turn(rig)
        (measured,) = (await shown(rig)).alerts
        assert (str(measured.value), measured.state_since) == ("1.5", before.state_since)


async def test_a_restart_with_open_alerts_evaluates_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with over_quota(tmp_path) as rig:
        await fire(rig)
        monkeypatch.setattr(alerts, "SOON_S", 0.01)
        await rig.restart()
        tie(rig.platform)

        async def is_measured() -> bool:
            return str((await shown(rig)).alerts[0].value) != "not known yet"

        await until(is_measured)


async def test_a_lease_that_flaps_fires_its_alert_over_restarts_and_replicas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each replica leads for too short a time to see more than its own takeover."""
    async with running_rig(tmp_path) as rig:
        monkeypatch.setattr(alerts, "SOON_S", 3600.0)
        for _ in range(3):  # the first platform took it once
            rig.ahead += 30
            assert "MLPLeaseFlapping" not in {one.rule for one in (await shown(rig)).alerts}
            rig.crash()
            await rig.start()
            await turn(rig)
        rig.ahead += 30
        rig.crash()
        await rig.start()
        await turn(rig)
        (one,) = [one for one in (await shown(rig)).alerts if one.rule == "MLPLeaseFlapping"]
        assert (one.state, str(one.description)) == (
            "firing",
            "The lease was taken 5 times within 15 minutes.",
        )
        await turn(rig, 901)
        await turn(rig, KEEP_S + 1)
        (one,) = [one for one in (await shown(rig)).alerts if one.rule == "MLPLeaseFlapping"]
        assert one.state == "resolved"


async def test_a_silence_of_a_team_hides_nothing_from_the_platform(tmp_path: Path) -> None:
    async with over_quota(tmp_path) as rig:
        silences = rig.platform.alerts.silences
        made = await silences.make(a_silence(rig, rule=""), tenant="red", of_team=True, actor="rita")
        await fire(rig)
        assert (told(rig, "root"), told(rig, "rita")) == (ONCE[:1], [])
        assert (await shown(rig)).alerts[0].silence is None
        assert (await shown(rig, "red")).alerts[0].silence == made.id


async def test_alerts_and_silences_of_a_team_go_with_it(tmp_path: Path) -> None:
    async with over_quota(tmp_path) as rig:
        p = rig.platform
        await p.alerts.silences.make(a_silence(rig), tenant="blue", of_team=False, actor="root")
        await p.tenants.remove_member("blue", "bob", actor="root")
        await p.tenants.delete("blue", actor="root")
        p.alerts.forget_tenant("blue")
        assert (await shown(rig)).silences == []
        assert rig.db.read_now(lambda tx: tx.alerts.silences(0)) == []
        with pytest.raises(Refused):
            await shown(rig, "blue")


async def test_a_storm_of_alerts_is_told_in_few_notices(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        tie(rig.platform)
        asked = NotificationsSet(browser=["alert", "resolved"], quiet=None, timezone="UTC", channels=[])
        await rig.platform.notices.store_choices("root", asked, "root")
        teams = {(("resource", "cpu"), ("tenant", f"t{n}")): 1.0 for n in range(100)}

        async def samples(_: frozenset[str]) -> Any:
            return {"mlp_tenant_over_limit": teams, "mlp_build_info": {(): 1.0}}

        rig.platform.alerts._monitoring.samples = samples  # type: ignore[method-assign]
        await fire(rig)
        assert (await shown(rig)).firing == 100
        assert told(rig, "root") == [f"alert {OVER}"] * limits.ALERT_NOTICES
        last = rig.db.read_now(lambda tx: tx.notices.after("root", 0, 1000))[-1]
        assert "the page of the alerts has all" in str(last.text)
        await turn(rig, 3601)
        assert len(told(rig, "root")) == limits.ALERT_NOTICES  # the others count as told


async def test_the_rest_is_inhibited_while_an_alert_that_inhibits_fires(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mlp_hub.service.alerts.telling.INHIBITING", ("MLPNodeLost",))
    async with over_quota(tmp_path) as rig:
        real = rig.platform.alerts._monitoring.samples

        async def samples(metrics: frozenset[str]) -> Any:
            return {**await real(metrics), "mlp_node_ready": {(("node", "n1"),): 0.0}}

        rig.platform.alerts._monitoring.samples = samples  # type: ignore[method-assign]
        await fire(rig)
        assert {one.rule: one.inhibited for one in (await shown(rig)).alerts} == {
            OVER: True,
            "MLPNodeLost": False,
        }
        assert told(rig, "root") == ["alert MLPNodeLost"]
        rig.platform.alerts._monitoring.samples = real  # type: ignore[method-assign]
        await turn(rig)
        await turn(rig, KEEP_S + 1)
        await turn(rig)
        assert told(rig, "root") == ["alert MLPNodeLost", "resolved MLPNodeLost", f"alert {OVER}"]


async def test_what_the_operators_files_tell_fires_and_is_over_when_they_do(tmp_path: Path) -> None:
    record = tmp_path / "backup.json"
    policy = replace(FAST, monitoring=MonitoringPolicy(backup=record))
    async with running_rig(tmp_path / "rig", policy=policy) as rig:
        tie(rig.platform)

        def backed_up(days: float) -> None:
            record.write_text(json.dumps({"at": rig.clock() - days * 86_400, "size": 1}))

        async def rules() -> list[str]:
            await turn(rig)
            await turn(rig, LONGER_S)
            return [one.rule for one in (await shown(rig)).alerts if one.state == "firing"]

        assert await rules() == []
        backed_up(9)
        assert await rules() == ["MLPBackupOld"]
        backed_up(0)
        await turn(rig)
        await turn(rig, KEEP_S + 1)
        assert await rules() == []
        backed_up(9)
        assert await rules() == ["MLPBackupOld"]
        record.unlink()  # the site makes its backups by other means
        await turn(rig)
        await turn(rig, KEEP_S + 1)
        assert await rules() == []


async def test_kafkas_lag_is_judged_and_a_broker_that_is_away_ends_no_alert(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lag: list[int | None] = [20_000]
    monkeypatch.setattr(MetricsService, "lag", lambda _: lag[0])
    async with running_rig(tmp_path) as rig:
        tie(rig.platform)

        async def firing_with(messages: int | None) -> int:
            lag[0] = messages
            await turn(rig)
            await turn(rig, KEEP_S + 1)
            return (await shown(rig)).firing

        await turn(rig)
        await turn(rig, LONGER_S)
        assert await firing_with(20_000) == 1
        assert await firing_with(None) == 1
        assert await firing_with(0) == 0


async def test_a_hub_without_alerts_writes_nothing_and_looks_once_a_minute(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        p = rig.platform
        assert not p.alerts._is_busy()
        before = rig.db.group_commit
        for _ in range(5):
            await turn(rig)
        assert rig.db.group_commit == before
        await rig.submit("long", sim={"DURATION": 6000})
        assert p.alerts._is_busy()


BAD = {
    "reason": {"reason": "  "},
    "later than now": {"until": datetime(2001, 1, 1, tzinfo=UTC)},
    "within 30 days": {"until": datetime(9998, 1, 1, tzinfo=UTC)},
    "name a rule, a team or both": {"rule": ""},
    "no rule MLPNothing": {"rule": "MLPNothing"},
}


@pytest.mark.parametrize("word", BAD)
async def test_a_silence_without_what_it_needs_is_refused_in_words(tmp_path: Path, word: str) -> None:
    async with running_rig(tmp_path) as rig:
        silences = rig.platform.alerts.silences
        with pytest.raises(Refused, match=word):
            await silences.make(a_silence(rig, **BAD[word]), tenant="", of_team=False, actor="root")
        with pytest.raises(Refused, match="not about teams"):
            await silences.make(
                a_silence(rig, rule="MLPNodeLost"), tenant="default", of_team=False, actor="root"
            )
        with pytest.raises(Refused, match="gone"):
            await silences.make(a_silence(rig), tenant="gone", of_team=False, actor="root")
        assert silences.current(None) == []


async def test_jobs_that_fail_right_after_a_start_fire_their_alerts(tmp_path: Path) -> None:
    failures = {"MLPJobFailuresHigh", "MLPTenantJobFailuresHigh"}
    async with running_rig(tmp_path) as rig:
        tie(rig.platform)
        for n in range(11):
            await rig.submit(f"bad-{n}", sim={"DURATION": 0.05, "EXIT": 1})
        for n in range(11):
            await rig.until(f"bad-{n}", "failed")
        await turn(rig, 60)
        assert {one.rule: one.state for one in (await shown(rig)).alerts} == dict.fromkeys(
            failures, "pending"
        )
        await turn(rig, 121)
        assert {one.rule: one.state for one in (await shown(rig)).alerts} == dict.fromkeys(failures, "firing")
        # another start counts none of them again, and ends no alert whose window it does not know
        await rig.restart()
        tie(rig.platform)
        await turn(rig, 60)
        assert {one.rule: one.state for one in (await shown(rig)).alerts} == dict.fromkeys(failures, "firing")
