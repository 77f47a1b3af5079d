"""Notebook servers that flood a small disk are named and ended as jobs are, whatever way they write."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_api.types import ResourceRequestTry
from mlp_hub import sandbox
from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.service.config import DiskPolicy
from mlp_hub.service.disk.rules import MIB
from support.executors.executor_lab import ROOT
from support.executors.small_disk import SmallDisk, small_disk
from support.rigs.disk_rig import STEADY, WRITES, DiskRig, running_rig
from support.waiting import until

pytestmark = pytest.mark.skipif(not ROOT, reason="only root may mount")
FLOODS = {
    "named": "import os\nout = open(os.path.expanduser('~/big'), 'wb')",
    "no name": "import os\nout = open(os.path.expanduser('~/big'), 'wb'); os.unlink(out.name)",
}
NOBODY_HOLDS = """
import os, socket, time
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
there.setblocking(False); here.setblocking(False)
kept = []
while True:
    path = os.path.expanduser('~/part')
    try:
        with open(path, 'wb') as out:
            os.unlink(path)
            out.write(bytes(8 << 20)); out.flush()
            try:
                socket.send_fds(here, [b'x'], [out.fileno()])
            except BlockingIOError:
                kept.append((here, there))
                here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
                socket.send_fds(here, [b'x'], [out.fileno()])
    except OSError:
        pass  # on a disk that is full already it waits to be stopped, however late it is looked at
    time.sleep(0.1)
"""


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """Mount a small disk."""
    if sandbox.capabilities().mode is None:
        pytest.skip("no sandbox can be made on this machine")
    with small_disk(tmp_path / "disk", 256, request.param) as disk:
        yield disk


@pytest.fixture
def ext4(tmp_path: Path) -> Iterator[SmallDisk]:
    """Mount one whose writes the kernel counts by process."""
    if sandbox.capabilities().mode is None:
        pytest.skip("no sandbox can be made on this machine")
    with small_disk(tmp_path / "disk", 256, "ext4") as disk:
        yield disk


async def is_ended(rig: DiskRig, user: str) -> None:
    async def look() -> bool:
        return rig.ended == [user]

    await until(look, what=f"the server of {user} to be ended")

    async def told() -> bool:
        return bool((await rig.platform.audit.entries(action="server.stop"))[0])

    await until(told)


async def is_well(rig: DiskRig) -> None:
    async def look() -> bool:
        return not await rig.platform.disk.problems()

    await until(look, what="room")


@pytest.mark.parametrize("way", FLOODS)
async def test_a_notebook_that_floods_the_disk_is_ended_and_its_users_job_continues(
    disk: SmallDisk, way: str
) -> None:
    async with running_rig(disk, DiskPolicy(floor=60 * MIB)) as rig:
        await rig.go("steady", STEADY, "bob")
        await rig.go("mine", STEADY)
        await rig.serve("import time; time.sleep(600)", "bob")
        await rig.serve(WRITES.format(how=FLOODS[way], mib=1000, pause=0.02))
        await is_ended(rig, "ann")
        (entry,) = (await rig.platform.audit.entries(action="server.stop"))[0]
        assert (entry.actor, entry.object) == ("system", "ann's notebook")
        said = str(entry.detail["message"])
        assert "stopped: the disk had" in said
        assert "the notebook of ann had written" in said
        if way == "named":
            (rig.directories.homes / "ann" / "big").unlink()
        await is_well(rig)
        assert rig.ended == ["ann"]
        for user, name in (("bob", "steady"), ("ann", "mine")):
            (rig.workspace(user, name) / "ckpt/go").touch()
            assert (await rig.until(name, "finished", user=user)).restarts == 0


async def test_deleted_files_that_a_notebook_holds_open_count_for_its_users_home(disk: SmallDisk) -> None:
    async with running_rig(disk, DiskPolicy(home=40 * MIB)) as rig:
        await rig.serve(WRITES.format(how=FLOODS["no name"], mib=80, pause=0.02))
        await is_ended(rig, "ann")
        (entry,) = (await rig.platform.audit.entries(action="server.stop"))[0]
        assert "the limit of a home is 40 MiB" in str(entry.detail["message"])
        assert await rig.platform.disk.problems() == []


async def test_a_writer_of_files_that_no_process_holds_is_identified_by_its_written_bytes(
    ext4: SmallDisk,
) -> None:
    async with running_rig(ext4, DiskPolicy(floor=60 * MIB)) as rig:
        await rig.go("steady", STEADY, "bob")
        pipes = "import os\nr, w = os.pipe()\nwhile True: os.write(w, bytes(60000)); os.read(r, 60000)"
        await rig.go("pipes", pipes, "bob")  # which writes more, and nothing to the disk
        await rig.serve(NOBODY_HOLDS)
        await is_ended(rig, "ann")
        await is_well(rig)
        for name in ("steady", "pipes"):
            assert (await rig.platform.jobs.get(SYSTEM, "bob", name)).phase == "running"


async def test_below_the_floor_a_notebook_may_be_started_to_make_room_and_below_half_of_it_none(
    ext4: SmallDisk,
) -> None:
    full = ext4.root / "ballast"

    async with running_rig(ext4, DiskPolicy(floor=100 * MIB)) as rig:

        def fill_to(free: int) -> None:
            with full.open("ab") as file:
                file.write(bytes(rig.disk.free_bytes() - free))

        async def waits_for(words: str) -> None:
            async def look() -> bool:
                why = await rig.platform.jobs.why(SYSTEM, "bob", "later")
                return bool(why.reasons) and words in str(why.reasons[0].message)

            await until(look, what=words)

        await asyncio.to_thread(fill_to, 60 * MIB)
        await until(rig.platform.disk.problems, what="a look at the disk")
        await rig.submit("later", "bob", code="print(1)", runtime="plain", cpu=0.1)
        await waits_for("No job starts: the disk is nearly full.")
        assert "notebook servers are started" in str((await rig.platform.disk.problems())[0].message)
        await rig.serve("import time; time.sleep(600)")
        await asyncio.to_thread(fill_to, 30 * MIB)
        await waits_for("Nothing starts: the disk is nearly full.")
        asked = ResourceRequestTry("cat/", "sp", "request", "default", user="cat", cpu=0.1, ram=100)
        with pytest.raises(Refused) as refused:
            await rig.platform.ledger.try_(asked)
        assert refused.value.reason is Reason.DISK_FULL
        assert refused.value.msg == "Nothing starts: the disk is nearly full. Delete jobs that ended."
        full.unlink()
        await rig.until("later", "finished", user="bob")
        assert rig.ended == []
