"""The one stream of a job: what there is, then what happens, then the end."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mlp_api.jobs import stream
from mlp_api.jobs.metrics import MetricBatch, MetricPoint
from mlp_api.localized import Detail, Text, writer
from mlp_hub.domain.errors import Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.state import bus
from mlp_language.message import ALL, from_data, verbatim
from mlp_language.render import ENGLISH
from support.rigs.platform_rig import Rig, running_rig
from support.waiting import until

Frame = dict[str, Any]


WRITE = writer(ENGLISH, ALL)


def said(kind: type, sent: Any) -> Any:
    """Read back what a frame says."""
    return Text(verbatim(sent)) if kind is Text else Detail(from_data(sent))


class Watching:
    """Collects frames in the background."""

    def __init__(self, rig: Rig, name: str, since: int = 0) -> None:
        self.frames: list[Frame] = []
        self.task = asyncio.ensure_future(self._read(rig, name, since))

    async def _read(self, rig: Rig, name: str, since: int) -> None:
        async for frame in rig.platform.watch(SYSTEM, "ann", name, since):
            sent = msgspec.json.encode(frame, enc_hook=WRITE)
            self.frames.append(msgspec.json.decode(sent))
            documented = msgspec.json.decode(sent, type=stream.Frame, dec_hook=said)
            assert msgspec.to_builtins(documented, enc_hook=WRITE) == self.frames[-1]

    def kinds(self) -> list[str]:
        return [f["type"] for f in self.frames]

    def phases(self) -> list[str]:
        seen = [f["job"]["phase"] for f in self.frames if f["type"] == "job"]
        return [p for i, p in enumerate(seen) if i == 0 or seen[i - 1] != p]

    def seqs(self) -> list[int]:
        return [p["seq"] for f in self.frames if f["type"] == "metrics" for p in f["points"]]

    def events(self) -> list[int]:
        return [e["seq"] for f in self.frames if f["type"] == "events" for e in f["events"]]

    def lines(self) -> list[str]:
        return [x["text"] for f in self.frames if f["type"] == "log" for x in f["lines"]]

    async def synced(self) -> None:
        async def look() -> bool:
            return "synced" in self.kinds()

        await until(look)


async def report(rig: Rig, name: str, first: int, last: int) -> None:
    points = [MetricPoint(n=n, t=float(n), v={"loss": 1 / n}) for n in range(first, last + 1)]
    await rig.platform.metrics.append(SYSTEM, "ann", name, MetricBatch(source="0.0.a", points=points))


async def test_a_watcher_from_the_start_sees_all_and_the_end(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 600})
        w = Watching(rig, "j")
        job = await rig.until("j", "running")
        await report(rig, "j", 1, 5)
        await report(rig, "j", 6, 10)
        rig.end(job)
        await w.task
        assert w.kinds()[0] == "job"
        assert w.kinds()[-1] == "end"
        assert w.phases()[-1] == "finished"
        assert w.seqs() == list(range(1, 11))
        assert w.events() == list(range(1, 7))
        assert w.lines() == ["simulated rank 0 runs on n1", "simulated rank 0 ended"]


async def test_a_watcher_who_comes_late_or_again_gets_what_is_missing(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 600})
        job = await rig.until("j", "running")
        await report(rig, "j", 1, 5000)
        rig.end(job)
        await rig.until("j", "finished")
        late = Watching(rig, "j")
        again = Watching(rig, "j", since=4990)
        await asyncio.gather(late.task, again.task)
        assert late.seqs() == list(range(1, 5001))
        assert again.seqs() == list(range(4991, 5001))
        assert late.kinds()[-2:] == ["synced", "end"]


async def test_a_waiting_job_tells_why_and_each_change_of_it(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("blocker", workers=4, sim={"DURATION": 30})
        await rig.until("blocker", "running")
        await rig.submit("first", workers=4, sim={"DURATION": 30})
        await rig.submit("second", workers=4)
        w = Watching(rig, "second")
        await w.synced()

        async def place(n: int) -> bool:
            whys = [f["why"] for f in w.frames if f["type"] == "why"]
            return bool(whys) and whys[-1]["position"] == n

        await until(lambda: place(2))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "first")
        await until(lambda: place(1))
        await rig.platform.jobs.cancel(SYSTEM, "ann", "second")
        await w.task
        assert w.kinds()[-1] == "end"


async def test_a_slow_watcher_misses_nothing_that_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bus.Bus.subscribe, "__defaults__", (4,))

    async with running_rig(tmp_path) as rig:
        # it runs until all is reported, however long that takes here: points of a job that has ended are not taken
        await rig.submit("j", sim={"DURATION": 60, "STOP": 0.01})
        await rig.until("j", "running")
        stream = rig.platform.watch(SYSTEM, "ann", "j")
        frames: list[Frame] = []
        async for frame in stream:
            frames.append(frame)
            if frame["type"] == "synced":
                for n in range(50):  # far more than the queue holds, while nobody reads
                    await report(rig, "j", 2 * n + 1, 2 * n + 2)
                await rig.platform.jobs.cancel(SYSTEM, "ann", "j")
        seqs = [p["seq"] for f in frames if f["type"] == "metrics" for p in f["points"]]
        assert seqs == list(range(1, 101))
        assert frames[-1] == {"type": "end"}


async def test_watching_a_job_that_is_deleted_ends(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 0.01})
        await rig.until("j", "finished")
        await rig.platform.jobs.delete(SYSTEM, "ann", "j")

        async def gone() -> bool:
            return not (await rig.platform.jobs.list(SYSTEM, "ann"))[0]

        await until(gone)
        with pytest.raises(Refused):
            await Watching(rig, "j").task


async def test_many_watchers_leave_nothing_behind(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        job = await rig.submit("j", sim={"DURATION": 600})
        watching = [Watching(rig, "j") for _ in range(20)]

        async def all_watch() -> bool:
            return all(w.kinds() for w in watching)

        await until(all_watch)
        for w in watching[:10]:
            w.task.cancel()
        await rig.until("j", "running")
        rig.end(job)
        await asyncio.gather(*(w.task for w in watching), return_exceptions=True)
        assert all(w.kinds()[-1] == "end" for w in watching[10:])
        assert rig.platform.bus._topics == {}


async def test_a_stream_just_stops_when_the_service_does(tmp_path: Path) -> None:
    async with running_rig(tmp_path) as rig:
        await rig.submit("j", sim={"DURATION": 30})
        w = Watching(rig, "j")
        await w.synced()
        await rig.platform.stop()
        await w.task
        assert "end" not in w.kinds()
