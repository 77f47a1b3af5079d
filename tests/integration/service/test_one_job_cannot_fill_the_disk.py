"""Real jobs that flood a small disk: who floods is stopped with the reason, others go on, and all goes on by itself."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.executors.shared_volume import workspace as shared_volume
from mlp_hub.executors.turns import Steps
from mlp_hub.executors.workspace import Size
from mlp_hub.service.config import DiskPolicy
from mlp_hub.service.disk.rules import MIB
from support.executors.executor_lab import ROOT
from support.executors.small_disk import KINDS, SmallDisk, small_disk
from support.rigs.disk_rig import STEADY, WRITES, running_rig
from support.waiting import until

pytestmark = pytest.mark.skipif(not ROOT, reason="only root may mount")
FLOODS = {
    "workspace": "out = open('/workspace/ckpt/big', 'wb')",
    "home": "import os\nout = open(os.path.expanduser('~/big'), 'wb')",
    "no name": "import os\nout = open('/workspace/ckpt/big', 'wb'); os.unlink('/workspace/ckpt/big')",
    "metrics": "out = open('/workspace/metrics/0.0.abc.jsonl', 'wb')",
}


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """Mount a small disk."""
    if sandbox.capabilities().mode is None:
        pytest.skip("no sandbox can be made on this machine")
    with small_disk(tmp_path / "disk", 256, request.param) as disk:
        yield disk


@pytest.mark.parametrize("where", FLOODS)
async def test_a_job_that_floods_the_disk_is_stopped_and_the_other_continues(
    disk: SmallDisk, where: str
) -> None:
    async with running_rig(disk, DiskPolicy(floor=60 * MIB)) as rig:
        await rig.go("steady", STEADY, "bob")
        await rig.go("flood", WRITES.format(how=FLOODS[where], mib=1000, pause=0.02))
        stopped = await rig.until("flood", "failed")
        assert stopped.reason == "disk"
        assert "stopped: the disk had" in str(stopped.message)
        assert "this job had written" in str(stopped.message)
        assert (await rig.platform.jobs.get(SYSTEM, "bob", "steady")).phase == "running"
        if where != "no name":  # its space is back with its end
            assert (await rig.platform.disk.problems())[0].reason == "DiskFull"
            await rig.submit("later", "bob", code="print(1)", runtime="plain", cpu=0.1)

            async def waits() -> bool:
                return await rig.reason("later", "bob") == "DiskFull"

            await until(waits, what="the reason")
            why = await rig.platform.jobs.why(SYSTEM, "bob", "later")
            assert why.reasons[0].numbers["floor_mib"] == 60
            assert (await rig.platform.jobs.get(SYSTEM, "bob", "steady")).phase == "running"
            if where == "home":
                (rig.directories.homes / "ann" / "big").unlink()
            else:
                await rig.platform.jobs.delete(SYSTEM, "ann", "flood")
            await rig.until("later", "finished", user="bob")

        async def is_well() -> bool:
            return not await rig.platform.disk.problems()

        await until(is_well)
        (rig.workspace("bob", "steady") / "ckpt/go").touch()
        done = await rig.until("steady", "finished", user="bob")
        assert done.restarts == 0


async def test_a_job_over_its_bound_is_stopped_with_the_numbers(
    disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set()

    def seen(top: Path) -> Steps[Size]:
        threads.add(threading.get_ident())
        return measure(top)

    measure = shared_volume.measure
    monkeypatch.setattr(shared_volume, "measure", seen)

    async with running_rig(disk, DiskPolicy(job=40 * MIB)) as rig:
        await rig.go("steady", STEADY, "bob")
        how = "[open(f'/workspace/ckpt/{n}', 'wb').write(bytes(1 << 20)) for n in range(60)]\nout = open('/dev/null', 'wb')"
        await rig.go("large", WRITES.format(how=how, mib=1, pause=0))
        stopped = await rig.until("large", "failed")
        assert stopped.reason == "disk"
        assert "the limit of a job is 40 MiB" in str(stopped.message)
        assert threads
        assert threading.get_ident() not in threads  # nothing of it on the event loop
        assert (await rig.platform.jobs.get(SYSTEM, "bob", "steady")).phase == "running"
        assert await rig.platform.disk.problems() == []


async def test_one_file_cannot_be_larger_than_a_job(disk: SmallDisk) -> None:
    async with running_rig(disk, DiskPolicy(job=100 * MIB, home=90 * MIB)) as rig:
        await rig.submit("file", code="open('big', 'wb').truncate(200 << 20)", runtime="plain", cpu=0.1)
        failed = await rig.until("file", "failed")
        assert "File too large" in str(failed.failure)


async def test_a_home_over_its_bound_stops_who_writes_to_it_and_takes_no_jobs(disk: SmallDisk) -> None:
    async with running_rig(disk, DiskPolicy(home=40 * MIB)) as rig:
        await rig.go("quiet", STEADY)
        await rig.go("writer", WRITES.format(how=FLOODS["home"], mib=80, pause=0.02))
        stopped = await rig.until("writer", "failed")
        assert "the limit of a home is 40 MiB" in str(stopped.message)
        assert (await rig.platform.jobs.get(SYSTEM, "ann", "quiet")).phase == "running"
        with pytest.raises(Refused) as refused:
            await rig.submit("more", code="print(1)", runtime="plain")
        assert refused.value.reason is Reason.DISK_FULL
        assert "delete files in it" in refused.value.msg
        (rig.directories.homes / "ann" / "big").unlink()

        async def taken() -> bool:
            try:
                await rig.submit("more", code="print(1)", runtime="plain", cpu=0.1)
            except Refused:
                return False
            return True

        await until(taken)
        await rig.until("more", "finished")


async def test_at_full_speed_to_the_last_byte_all_is_written_down(disk: SmallDisk) -> None:
    async with running_rig(disk, DiskPolicy(floor=60 * MIB)) as rig:
        await rig.go("steady", STEADY, "bob")
        assert (disk.root / "reserve").stat().st_size
        how = "import contextlib\nout = open('/workspace/ckpt/big', 'wb')\nwith contextlib.suppress(OSError):\n    while True: out.write(bytes(1 << 20))"
        await rig.go("flood", WRITES.format(how=how, mib=0, pause=0))
        stopped = await rig.until("flood", "failed")
        assert stopped.reason == "disk"
        await rig.platform.jobs.delete(SYSTEM, "ann", "flood")

        async def made_again() -> bool:
            return bool((disk.root / "reserve").stat().st_size)

        await until(made_again)
        (rig.workspace("bob", "steady") / "ckpt/go").touch()
        assert (await rig.until("steady", "finished", user="bob")).restarts == 0
