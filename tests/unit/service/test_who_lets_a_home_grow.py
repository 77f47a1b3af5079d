"""Who is stopped for what grows in a home: nobody for what another one wrote, and nobody before they could make room."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from mlp_hub.domain.errors import Refused
from mlp_hub.domain.jobs.job import Failure, Phase
from mlp_hub.executors.base import DiskUse
from mlp_hub.executors.workspace import Home, Place, Size, Sizes, Space
from mlp_hub.service.config import DAY_S, DiskPolicy, KeepPolicy
from mlp_hub.service.disk import watch
from mlp_hub.service.disk.rules import GIB, MIB, home_is_full
from mlp_hub.service.disk.watch import Disk
from mlp_hub.service.lifecycle.retention import Retention
from mlp_language.message import Message, Quantity, msg
from support.waiting import PATIENCE_S

DEEP = msg("directories nested more than {n} levels deep", n=200)
HOME = DiskPolicy(home=GIB)


class Machine:
    """What the watch sees: sizes of directories in MiB, what processes wrote, whose notebook servers hold quota."""

    measures = True
    in_a_file = True

    def __init__(self, policy: DiskPolicy) -> None:
        self.size: Counter[str] = Counter()
        self.unseen: dict[str, Message] = {}
        self.failures: list[Failure] = []
        self.wrote: Counter[str] = Counter()  # by attempt, or by user
        self.jobs: list[Any] = []
        self.servers: dict[str, list[str]] = {}
        self.points: dict[str, int] = {}  # bytes of metric points, by job
        self.free = 2**49
        self.ended: list[str] = []
        self.noted: list[tuple[Any, ...]] = []
        self.endless = False
        self.workspace = self
        self.disk = Disk(
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            lambda: 0.0,
            policy,
            lambda: self.jobs,
            lambda _: None,
            self._end_job,
        )
        self.disk.end_server = self._end_server

    def job(self, name: str) -> Any:
        spec = SimpleNamespace(user="ann", name=name, tenant="default")
        job = SimpleNamespace(
            uid=name, attempt=f"{name}.1", spec=spec, run=1, restarts=0, phase=Phase.RUNNING, title=name
        )
        self.jobs.append(job)
        return job

    async def read(self, work: Callable[[Any], Any]) -> Any:
        held = [
            SimpleNamespace(user=u, id=f"{u}/{name}") for u, names in self.servers.items() for name in names
        ]
        ledger = SimpleNamespace(held=lambda *_, **__: held)
        return work(
            SimpleNamespace(ledger=ledger, metrics=SimpleNamespace(sizes=lambda _: dict(self.points)))
        )

    async def write(self, work: Callable[[Any], object]) -> None:
        work(SimpleNamespace(audit=SimpleNamespace(add=lambda *args, **kw: self.noted.append((*args, kw)))))

    async def disk_use(self, asked: Sequence[str | Home]) -> dict[str | Home, DiskUse]:
        wrote = {whose: self.wrote[whose.user if isinstance(whose, Home) else whose] * MIB for whose in asked}
        return {whose: DiskUse(size, size) for whose, size in wrote.items()}

    async def spaces(self) -> dict[str, Space]:
        return {"all": Space(2**50, self.free)}

    async def sizes(self, wait_s: Mapping[Place, float], *, hurry: bool) -> Sizes:
        if self.endless:
            return Sizes({}, dict.fromkeys(wait_s, MIB))
        names = {place: place.user if isinstance(place, Home) else place.job for place in wait_s}
        return Sizes({p: Size(self.size[n] * MIB, self.unseen.get(n)) for p, n in names.items()}, {})

    async def _end_job(self, attempt: str, failure: Failure) -> None:
        self.ended.append(attempt)
        self.failures.append(failure)

    async def _end_server(self, user: str, _: str) -> None:
        self.ended.append(user)

    async def look(self, times: int = 1) -> list[str]:
        for _ in range(times):
            await self.disk.check_disk()
            await asyncio.sleep(0)
        return self.ended


@pytest.fixture(autouse=True)
def at_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look only when told."""
    monkeypatch.setattr(watch, "LOOK_EVERY_S", 3600.0)
    monkeypatch.setattr(watch, "PAUSE_S", 0.0, raising=False)


@asynccontextmanager
async def watched_machine(
    policy: DiskPolicy = HOME,
) -> AsyncIterator[Machine]:
    machine = Machine(policy)
    await machine.disk.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield machine
    finally:
        async with asyncio.timeout(PATIENCE_S):
            await machine.disk.stop()


async def test_no_job_is_stopped_for_writes_of_a_notebook_that_has_just_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watched_machine() as m:
        m.job("idle")
        m.servers = {"ann": [""]}
        await m.look(2)
        m.wrote["ann"] = m.size["ann"] = 5000
        await m.look()
        m.servers = {}
        m.size["ann"] = 5100
        assert await m.look(3) == ["ann"]


async def test_nobody_is_stopped_for_writes_of_a_job_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched_machine() as m:
        m.job("idle")
        flood = m.job("flood")
        m.servers = {"ann": [""]}
        await m.look(2)
        m.wrote[flood.attempt] = m.size["ann"] = 900
        await m.look()
        m.jobs.remove(flood)
        m.size["ann"] = 1100  # its last second
        assert await m.look(3) == []


async def test_a_job_whose_writes_no_kernel_counts_is_stopped_whatever_else_comes_and_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watched_machine() as m:
        job = m.job("allocates")
        for n in range(3):
            short = m.job(f"short-{n}")
            await m.look()
            m.jobs.remove(short)
            m.size["ann"] += 1100
            await m.look()
        assert m.ended == [job.attempt]


async def test_after_one_was_stopped_for_a_home_no_other_is_until_it_has_settled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watched_machine() as m:
        first, second = m.job("first"), m.job("second")
        await m.look(2)
        m.wrote[first.attempt] = m.size["ann"] = 2000
        assert await m.look() == [first.attempt]
        m.jobs.remove(first)
        m.wrote[second.attempt] = 3000
        m.size["ann"] = 5000
        assert await m.look(2) == [first.attempt]
        monkeypatch.setattr(watch, "SETTLES_S", 0.0)
        m.size["ann"] = 5100
        assert await m.look(2) == [first.attempt, second.attempt]


@pytest.mark.parametrize("bound", [0, GIB])
async def test_a_home_that_cannot_be_measured_ends_nothing_that_does_not_write(
    monkeypatch: pytest.MonkeyPatch, bound: int
) -> None:
    async with watched_machine(DiskPolicy(home=bound, floor=1)) as m:
        job = m.job("idle")
        m.servers = {"ann": [""]}
        m.size["ann"], m.unseen["ann"] = 10, DEEP
        assert await m.look(3) == []
        if bound:
            with pytest.raises(Refused) as refused:
                await m.disk.check_home("ann")
            assert refused.value.message.args["unseen"] == DEEP
        else:
            await m.disk.check_home("ann")
        m.size[job.uid] = m.wrote[job.attempt] = 500  # in its own directory
        assert await m.look(2) == []
        m.wrote["ann"] = 100  # where nobody sees it
        assert await m.look(2) == (["ann"] if bound else [])
        assert not bound or str(DEEP) in str(m.noted[0][-1]["detail"]["message"])


async def test_that_a_notebook_is_stopped_is_written_down_whether_or_not_the_hub_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watched_machine() as m:
        m.servers = {"ann": [""]}
        m.disk.end_server = lambda *_: asyncio.Event().wait()  # type: ignore[assignment,return-value]
        await m.look(2)
        m.wrote["ann"] = m.size["ann"] = 5000
        await m.look(2)
        assert [entry[2] for entry in m.noted] == ["server.stop"]
        assert m.disk.ends_servers_for("ann").args["bound"] == Quantity(1024, "MiB")


async def test_all_waiters_for_the_measurement_of_a_home_share_one_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watched_machine() as m:
        m.endless = True
        look, looks = m.disk.check_disk, []

        async def counted() -> None:
            looks.append(1)
            await look()

        monkeypatch.setattr(m.disk, "check_disk", counted)
        await asyncio.gather(*(m.disk.check_home("ann") for _ in range(5)))
        assert len(looks) == 1
        monkeypatch.setattr(watch, "PAUSE_S", 3600.0)
        await m.disk.check_home("bob")  # the loop waits since before that
        await m.disk.check_home("cat")
        assert len(looks) == 2


async def test_the_watch_ends_when_it_is_told_to_in_the_moment_that_somebody_wants_a_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watched_machine() as m:
        for _ in range(3):
            await asyncio.sleep(0.01)
            m.disk._wanted.set()
            await asyncio.sleep(0)
            async with asyncio.timeout(PATIENCE_S):
                await m.disk.stop()
            await m.disk.start()


async def test_deleting_old_jobs_ends_when_it_is_told_to_in_the_moment_that_one_ended() -> None:
    async def nothing(_: object) -> list[Any]:
        return []

    board: Any = SimpleNamespace(
        db=SimpleNamespace(read=nothing), on_change=lambda _: None, jobs={}, commit=nothing
    )
    retention = Retention(board, lambda: 0.0, KeepPolicy(job_s=DAY_S))
    first = iter([[], [], ([], set())])
    board.db.read = lambda _: _answer(next(first, None))
    await retention.start()
    await asyncio.sleep(0.1)
    retention._something.set()
    await asyncio.sleep(0)
    async with asyncio.timeout(PATIENCE_S):
        await retention.stop()


async def _answer(what: Any) -> Any:
    return what


def test_a_home_of_names_alone_is_said_to_be_one() -> None:
    wide = Size(30_040 * 4096, small=30_040)
    assert "holds 117 MiB (of which 30040 names of small files count 4 KiB each), more" in str(
        home_is_full("ann", wide, 50 * MIB)
    )
    assert "holds 117 MiB, more" in str(home_is_full("ann", replace(wide, small=100), 50 * MIB))


async def test_why_a_job_over_its_bound_is_stopped_is_said_with_quantities_not_with_texts() -> None:
    async with watched_machine(DiskPolicy(job=GIB)) as m:
        job = m.job("wide")
        m.size["wide"] = 2048
        assert await m.look() == [job.attempt]
        why = m.failures[0].localized_message.args["why"]
        assert isinstance(why, Message)
        assert why.args == {"used": Quantity(2048, "MiB"), "bound": Quantity(1024, "MiB")}


async def test_a_job_that_fills_the_database_with_points_is_stopped_before_the_disk_is_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with watched_machine(DiskPolicy(floor=1024 * MIB)) as m:
        m.job("reports")
        m.job("writes")
        m.free = 500 * MIB
        for n in range(3):
            m.points["reports"] = 300 * n * MIB
            m.size["writes"] = m.wrote["writes"] = 100 * n
            await m.look()
        assert m.ended == ["reports.1"]


async def test_points_count_towards_the_storage_limit_of_a_job(monkeypatch: pytest.MonkeyPatch) -> None:
    async with watched_machine(DiskPolicy(job=100 * MIB)) as m:
        m.job("reports")
        m.size["reports"] = 60
        m.points["reports"] = 50 * MIB
        await m.look()
        assert m.ended == ["reports.1"]
