"""Acts that found no cluster are tried again: soon at first, then later and later, and soon again once one went through."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.domain.errors import OutOfReach
from mlp_hub.executors.kubernetes import put_off
from mlp_hub.executors.kubernetes.executor import KubernetesExecutor
from mlp_hub.executors.kubernetes.put_off import AGAIN_S, LATEST_AGAIN_S
from mlp_language.message import msg


class Timers:
    """What an event loop is asked to call later; nothing is called before the test says so."""

    def __init__(self) -> None:
        self.after: list[float] = []
        self.calls: list[Any] = []

    def call_later(self, seconds: float, call: Any) -> Any:
        self.after.append(seconds)
        self.calls.append(call)
        return SimpleNamespace(cancel=lambda: self.calls.remove(call))


class Unreached(KubernetesExecutor):
    """An executor whose cluster is there or not; of its acts only that they are tried counts."""

    def __init__(self) -> None:
        at: Any = SimpleNamespace(
            name="mlp", namespace="mlp", namespaces=(), directories=None, selector="a=b", gpu_metrics=""
        )
        ways: Any = SimpleNamespace(served=())
        client: Any = SimpleNamespace(namespaces=())
        super().__init__(client, at, ways, list)
        self.there = False
        self.told: list[str] = []
        self.on_change(self.told.append)
        self._fence: Any = SimpleNamespace(act=self._act)

    async def _open(self) -> None:
        """It is."""

    @asynccontextmanager
    async def _act(self, _epoch: int) -> AsyncIterator[None]:
        if not self.there:
            raise OutOfReach(msg("it does not answer"))
        yield

    async def acts(self, attempt: str) -> None:
        """Try something of an attempt."""
        try:
            async with self._acting(attempt, 1):
                pass
        except OutOfReach:
            assert not self.there


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    made = Timers()
    clockwork = SimpleNamespace(get_running_loop=lambda: made)
    monkeypatch.setattr(put_off, "asyncio", clockwork)
    return made


async def test_each_outage_is_looked_at_later_than_the_one_before_up_to_a_minute(timers: Timers) -> None:
    executor = Unreached()
    for _ in range(8):
        await executor.acts("a.0")
        await executor.acts("b.0")
        timers.calls.pop()()
        assert sorted(executor.told) == ["a.0", "b.0"], "each is told of once, by one timer for all"
        executor.told.clear()
    expected = [min(AGAIN_S * 2**n, LATEST_AGAIN_S) for n in range(8)]
    assert timers.after == expected
    assert expected[-1] == LATEST_AGAIN_S


async def test_one_act_that_goes_through_has_the_next_outage_looked_at_soon(timers: Timers) -> None:
    executor = Unreached()
    for _ in range(3):
        await executor.acts("a.0")
        timers.calls.pop()()
    executor.there = True
    await executor.acts("a.0")
    executor.there = False
    await executor.acts("a.0")
    assert timers.after[-1] == AGAIN_S


async def test_acts_that_were_put_off_wait_for_a_watch_that_is_cut(
    timers: Timers, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Unreached()
    await executor.acts("a.0")
    monkeypatch.setattr(type(executor._cache), "trouble", OutOfReach(msg("it does not answer")))
    timers.calls.pop()()
    assert executor.told == []
    executor._put_off.answers_again()  # as the watch does when it is back
    assert executor.told == ["a.0"]
    executor._put_off.answers_again()
    assert executor.told == ["a.0"]


async def test_a_closed_executor_begins_no_timer_and_ends_the_one_that_runs(timers: Timers) -> None:
    executor = Unreached()
    await executor.acts("a.0")
    executor._put_off.close()
    await executor.acts("a.0")
    assert (timers.calls, len(timers.after)) == ([], 1)
