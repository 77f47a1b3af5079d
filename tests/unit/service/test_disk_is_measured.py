"""What a directory takes on disk, and who is stopped when too little is left."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TypeVar

import pytest

from mlp_hub.executors import turns as disk_turns
from mlp_hub.executors.base import DiskUse
from mlp_hub.executors.shared_volume import workspace as shared_volume
from mlp_hub.executors.shared_volume.directories import Directories
from mlp_hub.executors.shared_volume.fence import Fence
from mlp_hub.executors.shared_volume.trees import sizes
from mlp_hub.executors.shared_volume.trees.sizes import ENTRY, measure
from mlp_hub.executors.shared_volume.workspace import SharedVolumeWorkspace
from mlp_hub.executors.turns import Steps, TimeSlice, TimeSlices
from mlp_hub.executors.workspace import Home, Size, Space
from mlp_hub.service.disk import meter as disk_meter
from mlp_hub.service.disk.meter import Bounded, DiskMeter, Processes
from mlp_hub.service.disk.rules import (
    GIB,
    MIB,
    DiskWriter,
    fastest,
    policy_for,
    shortage,
    shortage_at_half,
    who_fills,
)
from support.files.descriptors import open_below

T = TypeVar("T")


def found(steps: Steps[T]) -> tuple[T, int]:
    """Go through all of it; return what was found, and how often it might have been left."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def size(top: Path) -> Size:
    return found(measure(top))[0]


def test_files_count_once_sparse_ones_with_their_disk_usage_and_links_are_not_followed(
    tmp_path: Path,
) -> None:
    top, outside = tmp_path / "top", tmp_path / "outside"
    (top / "a/b").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_bytes(os.urandom(8 * MIB))
    (top / "a/b/data").write_bytes(os.urandom(MIB))
    os.link(top / "a/b/data", top / "again")
    (top / "out").symlink_to(outside)
    with (top / "sparse").open("wb") as file:
        file.truncate(100 * MIB)
    used = size(top).used
    assert MIB <= used < 1.2 * MIB
    assert size(tmp_path / "missing") == Size(0)
    (tmp_path / "link").symlink_to(outside)
    assert size(tmp_path / "link") == Size(0)


def test_names_without_content_count_too(tmp_path: Path) -> None:
    for n in range(50):
        (tmp_path / str(n)).touch()
    (tmp_path / "full").write_bytes(os.urandom(MIB))
    found = size(tmp_path)
    assert (found.small, found.used) == (50, 50 * ENTRY + (tmp_path / "full").stat().st_blocks * 512)


def test_directories_too_deep_to_be_measured_are_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "DEEPEST", 10)
    (tmp_path / "d/d/d/d/d/d/d/d/d").mkdir(parents=True)
    assert not size(tmp_path).unseen
    (tmp_path / "d/d/d/d/d/d/d/d/d/d/d").mkdir(parents=True)
    assert size(tmp_path).unseen
    assert open_below(tmp_path) == []


def test_too_many_directories_to_remember_are_told_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizes, "MOST_BELOW", 10)
    for n in range(6):
        (tmp_path / str(n)).mkdir()
    assert not size(tmp_path).unseen
    for n in range(6):
        for m in range(6):
            (tmp_path / f"{n}/{m}").mkdir()
    assert size(tmp_path).unseen


def test_expensive_measurements_are_rare() -> None:
    turn = TimeSlice[Size](begun=100.0, cost_s=10.0)
    assert not turn.is_due(130, 1.0, hurry=True)
    assert turn.is_due(150, 1.0, hurry=True)
    assert not turn.is_due(250, 1.0, hurry=False)
    assert turn.is_due(301, 1.0, hurry=False)
    assert not turn.is_due(301, 500.0, hurry=False)


def endless(path: Path) -> Steps[Size]:
    """A home that nobody ever sees the end of."""
    assert path
    used = 0
    while True:
        used += MIB
        yield used


def test_a_home_without_end_keeps_no_other_from_being_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = {Home(f"huge-{n}"): Bounded(GIB) for n in range(20)}
    small = {Home(f"small-{n}"): Bounded(GIB) for n in range(20)}
    monkeypatch.setattr(
        shared_volume,
        "measure",
        lambda path: endless(path) if path.name.startswith("huge") else measure(path),
    )
    workspace = SharedVolumeWorkspace(Directories(tmp_path, tmp_path), Fence())
    monkeypatch.setattr(disk_turns, "LOOK_S", 0.005)
    monkeypatch.setattr(disk_meter, "LEAST_S", 0.0)
    meter = DiskMeter()

    def look(places: dict[Home, Bounded]) -> set[Home]:
        asked = {**places}
        found = asyncio.run(workspace.sizes(meter.waits(asked, hurry=True), hurry=True))
        return set(meter.note(asked, found))

    done = [look(huge | small) for _ in range(60)]
    assert set().union(*done) == set(small)
    assert set().union(*done[40:]) == set(small)  # also while all of the huge ones are under way
    before = [meter.least(key) for key in huge]
    assert min(before) >= MIB  # and each of these is gone on with
    for _ in range(40):
        look(huge | small)
    assert all(meter.least(key) > was for key, was in zip(huge, before, strict=True))
    assert not look({})
    assert meter.known == {}


def test_a_measurement_can_be_left_in_the_middle_of_a_directory_and_holds_no_others_open(
    tmp_path: Path,
) -> None:
    for n in range(3 * sizes.STEP):
        (tmp_path / str(n)).touch()
    (tmp_path / "d" / "d" / "d").mkdir(parents=True)
    turns, looks = TimeSlices[str, Size](), 0
    steps = measure(tmp_path)
    next(steps)
    assert set(open_below(tmp_path)) == {tmp_path}  # its own descriptor, and the one that lists
    whole, parts = found(steps)
    assert parts >= 2
    assert whole == size(tmp_path)
    while not (done := dict(turns.measure_due({"a": lambda: measure(tmp_path)}, lambda _: 0.0, hurry=False))):
        looks += 1
    assert done == {"a": whole}
    turns.keep({})
    steps.close()
    assert open_below(tmp_path) == []


@pytest.mark.parametrize(
    ("writers", "free", "stopped"),
    [
        ([("a", 500, 60.0), ("b", 100, 60.0)], 1000, "a"),
        ([("a", 500, 60.0), ("b", 100, 2.0)], 1000, "b"),  # who just began
        ([("a", 50, 60.0)], 1000, None),  # what is left lasts it for long
        ([("a", 5, 60.0)], 0, None),  # nothing would be won
        ([("a", 0, 0.0)], 0, None),
        ([], 0, None),
    ],
)
def test_the_fastest_writer_is_stopped_if_that_helps(
    writers: list[tuple[str, int, float]], free: int, stopped: str | None
) -> None:
    all_of_them = [DiskWriter(uid, "ann", grown * MIB, over) for uid, grown, over in writers]
    found = fastest(all_of_them, free * MIB, GIB)
    assert (found and found.uid) == stopped


def test_bytes_written_by_processes_add_up_including_ended_ones() -> None:
    processes, ann = Processes(), Home("ann")
    for written, stored in ((500, 500), (0, 0), (300, 300), (900, 300)):
        processes.note([ann], {ann: DiskUse(written * MIB, stored * MIB, 7)})
    assert processes.written[ann].grown()[0] == 900 * MIB
    assert processes.wrote(ann) == 300 * MIB  # of which so much went to the disk
    assert processes.unlinked == {ann: 7}
    assert processes.wrote(Home("bob")) == 0
    processes.note([], {})
    assert processes.written == {}


def writer(uid: str, grown: int, over: float = 60.0) -> DiskWriter:
    return DiskWriter(uid, "ann", grown * MIB, over)


@pytest.mark.parametrize(
    ("grown", "wrote", "lost", "stopped"),
    [
        (600, {"hidden": 900}, 1000, "seen"),  # whose directory grows explains most of it
        (100, {"hidden": 900}, 1000, "hidden"),
        (0, {"hidden": 900, "other": 300}, 1000, "hidden"),
        (0, {"hidden": 400}, 1000, None),  # somebody else fills it: no tenant
        (100, {"hidden": 400}, 1000, "seen"),
        (0, {"hidden": 900}, 0, None),  # it writes the same place again and again
        (0, {}, 1000, None),
    ],
)
def test_a_writer_of_files_outside_all_directories_is_stopped_if_those_fill_the_disk(
    grown: int, wrote: dict[str, int], lost: int, stopped: str | None
) -> None:
    by_writes = [writer(uid, amount) for uid, amount in wrote.items()]
    first = who_fills([writer("seen", grown)], by_writes, (lost * MIB, 60.0), 500 * MIB, GIB)
    assert (first and first.uid) == stopped


def test_notebook_servers_are_started_down_to_half_of_the_floor() -> None:
    assert shortage(Space(8 * GIB, GIB // 2 + 1), GIB)
    assert shortage_at_half(Space(8 * GIB, GIB // 2 + 1), GIB) is None
    assert "less than the 1024 MiB" in str(shortage_at_half(Space(8 * GIB, GIB // 2 - 1), GIB))
    assert shortage_at_half(Space(8 * GIB, GIB, 1000, 30), GIB) is None
    assert "20 more files" in str(shortage_at_half(Space(8 * GIB, GIB, 1000, 20), GIB))


def test_a_file_system_of_any_size_has_a_floor_that_makes_sense() -> None:
    floors = {size: policy_for(size * GIB, None, None, None).floor / GIB for size in (1, 20, 100, 1000)}
    assert floors == {1: pytest.approx(0.2), 20: 1, 100: 5, 1000: 10}
    assert policy_for(100 * GIB, 0, 0, 0).is_on is False
    assert policy_for(100 * GIB, 0, None, 0).file == 0


def test_a_disk_without_inodes_is_full_too() -> None:
    assert shortage(Space(GIB, GIB // 2, 1000, 900), MIB) is None
    assert "10 more files" in str(shortage(Space(GIB, GIB // 2, 1000, 10), MIB))
    assert "less than the 1024 MiB" in str(shortage(Space(GIB, GIB // 2), GIB))
