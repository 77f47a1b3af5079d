"""Notifications that Alertmanager could not deliver: read from its text by numbers alone, and counted over an hour."""

from __future__ import annotations

from typing import Any, cast

import pytest

from mlp_hub.outbound.alertmanager import MOST, failed_in
from mlp_hub.service.alerts.deliveries import WINDOW_S, AlertDeliveries
from mlp_hub.service.config import AlertmanagerPolicy

NAME = "alertmanager_notifications_failed_total"


def test_the_numbers_of_each_way_are_summed_over_its_reasons() -> None:
    body = (
        f'# HELP {NAME} text\n{NAME}{{integration="email",reason="other"}} 3\n'
        f'{NAME}{{integration="email",reason="clientError"}} 2\n'
        f'{NAME}{{receiver_name="a",integration="webhook"}} 0\nalertmanager_alerts 7\n'
    )
    assert failed_in(body.encode()) == {"email": 5.0, "webhook": 0.0}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\xff\xfe",
        b"<html>" * 1000,
        f'{NAME}{{integration="<script>"}} 3'.encode(),
        f'{NAME}{{integration="email"}} NaN'.encode(),
        f'{NAME}{{integration="email"}} -3'.encode(),
        f'{NAME}{{integration="email"}} 1e999'.encode(),
        f'{NAME}{{integration="email"}} ++e.'.encode(),
        f"{NAME}{{}} 3".encode(),
        f'{NAME}{{integration="{"e" * 90}"}} 3'.encode(),
        f'x{NAME}{{integration="email"}} 3'.encode(),
    ],
)
def test_other_text_is_not_counted(body: bytes) -> None:
    assert failed_in(body) == {}


def test_ways_are_bounded() -> None:
    body = "\n".join(f'{NAME}{{integration="w{n}"}} 1' for n in range(10 * MOST))
    assert len(failed_in(body.encode())) == MOST


class Site:
    """Alertmanager as the sending process tells of it."""

    def __init__(self) -> None:
        self.now, self.said = 1000.0, dict[str, Any]()
        self.deliveries = AlertDeliveries(
            AlertmanagerPolicy("http://a"),
            lambda: cast("Any", self),
            clock=lambda: self.now,
            steady=lambda: self.now,
        )
        self.deliveries._sender = cast("Any", self)

    async def points(self, kind: str, address: str, data: str) -> dict[str, Any]:
        assert (kind, address) == ("alertmanager", "http://a")
        return self.said

    async def look(self, later: float = 60.0, **failed: float) -> Any:
        self.now += later
        self.said = {"failed": failed} if failed else {"why": "later", "code": "unreachable"}
        await self.deliveries.look()
        return self.deliveries.shown()


async def test_failures_of_the_last_hour_are_shown_and_older_ones_are_not() -> None:
    site = Site()
    first = await site.look(email=40, webhook=0)
    assert (first.state, first.failed) == ("ok", {}), (
        "what failed before it was first asked is not of this hour"
    )
    now = await site.look(email=42, webhook=0)
    assert (now.state, now.failed) == ("failed", {"email": 2})
    assert "email (2)" in str(now.text)
    again = await site.look(email=1, webhook=0)
    assert again.failed == {"email": 3}, "it began again, and one failed since"
    over = await site.look(later=WINDOW_S + 60, email=1, webhook=0)
    assert over.state == "ok"


async def test_failures_are_no_longer_shown_after_an_hour_without_an_answer() -> None:
    site = Site()
    await site.look(email=0)
    assert (await site.look(email=2)).failed == {"email": 2}
    assert (await site.look(later=WINDOW_S - 60)).failed == {"email": 2}
    assert (await site.look(later=120)).failed == {}


async def test_failures_while_it_was_not_asked_for_days_are_not_those_of_the_last_hour() -> None:
    site = Site()
    await site.look(email=1)
    back = await site.look(later=3 * 86400, email=41)
    assert (back.state, back.failed) == ("ok", {})
    assert (await site.look(email=42)).failed == {"email": 1}


async def test_one_that_does_not_answer_is_unknown_and_not_fine() -> None:
    site = Site()
    assert cast("Any", site.deliveries.shown()).state == "unknown"
    silent = await site.look()
    assert (silent.state, "does not answer" in str(silent.text)) == ("unknown", True)
    assert (await site.look(email=0)).state == "ok"
    gone = await site.look()
    assert (gone.state, gone.checked_at is not None) == ("unknown", True)


async def test_without_an_alertmanager_nothing_is_asked_or_shown() -> None:
    made = AlertDeliveries(
        None, lambda: pytest.fail("it starts a process"), clock=lambda: 0.0, steady=lambda: 0.0
    )
    made.start()
    await made.look()
    assert made.shown() is None
    assert not made._task.is_started
