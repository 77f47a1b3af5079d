"""The disk of the hub is full: what ends ends as it did, no record is torn, what is lost is told, and then all goes on."""

from __future__ import annotations

import asyncio
import errno
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from mlp_hub import sandbox
from mlp_hub.executors.base import AttemptPhase, LaunchSpec
from mlp_hub.sandbox import control
from mlp_hub.sandbox.shim import files
from mlp_hub.sandbox.shim.logs import losses
from support.executors.executor_lab import ENDED, ROOT, Lab, eventually, until
from support.executors.small_disk import KINDS, SmallDisk, small_disk

pytestmark = pytest.mark.skipif(not ROOT, reason="only root may mount")
RECORD = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z (stdout|stderr) [FP] [^\n]*\n")
WAITS = """
import os, time
def until(path):
    while not os.path.exists("/workspace/ckpt/" + path): time.sleep(0.005)
print("up", flush=True)
"""


@pytest.fixture(params=KINDS)
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SmallDisk]:
    """Mount a small disk."""
    with small_disk(tmp_path / "disk", 32, request.param) as disk:
        yield disk


@pytest.fixture
def full_lab(disk: SmallDisk) -> Iterator[Lab]:
    """Hand out a lab on a small disk."""
    if sandbox.capabilities().mode is None:
        pytest.skip("no sandbox can be made on this machine")
    lab = Lab(disk.root)
    yield lab
    lab.close()
    assert lab.leftovers() == []


def say(full_lab: Lab, spec: LaunchSpec, name: str) -> None:
    """Leave a file, which needs no room, for the program."""
    Path(full_lab.workspace(spec), "ckpt", name).touch()


def records(full_lab: Lab, spec: LaunchSpec) -> bytes:
    return Path(full_lab.workspace(spec), "log/rank-0.log").read_bytes()


async def test_a_job_that_ends_well_meanwhile_has_ended_well(full_lab: Lab, disk: SmallDisk) -> None:
    executor = full_lab.executor()
    good = full_lab.spec(WAITS + "until('go')", workers=2)
    bad = full_lab.spec(WAITS + "until('go')\nraise SystemExit(3)")
    for spec in (good, bad):
        await executor.start(spec)
        await eventually(lambda spec=spec: full_lab.output(spec) == ["up"])
    disk.fill()
    say(full_lab, good, "go")
    say(full_lab, bad, "go")
    assert (await until(executor, good.attempt, ENDED)).phase is AttemptPhase.SUCCEEDED
    seen = await until(executor, bad.attempt, ENDED)
    assert seen.failure is not None
    assert seen.failure.exit_code == 3
    again = full_lab.executor()  # a hub that starts anew finds the same
    assert (await again.observe([good.attempt]))[good.attempt].phase is AttemptPhase.SUCCEEDED
    await again.forget(good.attempt)
    await again.close()
    await executor.close()


async def test_a_job_can_be_stopped_meanwhile(full_lab: Lab, disk: SmallDisk) -> None:
    executor = full_lab.executor()
    spec = full_lab.spec(WAITS + "until('never')")
    await executor.start(spec)
    await eventually(lambda: full_lab.output(spec) == ["up"])
    disk.fill()
    await executor.stop(spec.attempt, 5.0)
    assert (await until(executor, spec.attempt, ENDED)).phase is AttemptPhase.STOPPED
    await executor.close()


async def test_nothing_starts_and_nothing_fails_for_it(full_lab: Lab, disk: SmallDisk) -> None:
    executor = full_lab.executor()
    spec = full_lab.spec("print('ran')")
    disk.fill()
    for _ in range(3):
        with pytest.raises(OSError) as raised:  # noqa: PT011 - its number is asked for
            await executor.start(spec)
        assert raised.value.errno == errno.ENOSPC
        assert (await executor.observe([spec.attempt]))[spec.attempt].phase is AttemptPhase.ABSENT
    disk.free()
    await executor.start(spec)
    assert (await until(executor, spec.attempt, ENDED)).phase is AttemptPhase.SUCCEEDED
    assert full_lab.output(spec) == ["ran"]
    await executor.close()


async def test_the_log_has_whole_records_and_says_how_many_are_missing(
    full_lab: Lab, disk: SmallDisk
) -> None:
    code = (
        WAITS
        + """
number = 0
while not os.path.exists("/workspace/ckpt/go"):
    print("line", number, "x" * 200, flush=True)
    number += 1
    time.sleep(0.001)
print("lines", number)
"""
    )

    executor = full_lab.executor()
    spec = full_lab.spec(code)
    await executor.start(spec)
    await eventually(lambda: len(full_lab.output(spec)) > 20)
    disk.fill()
    size = len(records(full_lab, spec))
    await asyncio.sleep(0.5)
    assert len(records(full_lab, spec)) < size + 8192
    disk.free()
    await eventually(lambda: any("lost" in line for line in full_lab.output(spec)))
    say(full_lab, spec, "go")
    seen = await until(executor, spec.attempt, ENDED)
    assert seen.phase is AttemptPhase.SUCCEEDED
    await executor.close()
    assert RECORD.sub(b"", records(full_lab, spec)) == b""
    lines = full_lab.output(spec)
    told = [re.fullmatch(r"\[mlp\] (\d+) lines? of output lost here: the disk was full", x) for x in lines]
    lost = sum(int(found[1]) for found in told if found)
    kept = [int(line.split()[1]) for line in lines if line.startswith("line ")]
    assert lost == seen.lost_lines
    assert lost > 20
    assert lines[-1] == f"lines {lost + len(kept)}"
    assert kept == sorted(set(kept))


async def test_lines_that_were_lost_are_counted_also_where_the_shim_is_killed_before_there_is_room_again(
    full_lab: Lab, disk: SmallDisk
) -> None:
    code = WAITS + "until('go')\nfor _ in range(30): print('x' * 1000)\nprint(flush=True)\nuntil('end')"

    executor = full_lab.executor()
    spec = full_lab.spec(code)
    await executor.start(spec)
    await eventually(lambda: full_lab.output(spec) == ["up"])
    disk.fill()
    say(full_lab, spec, "go")
    shim = files.read_json(full_lab.run_dir(spec), "claim")
    assert shim is not None
    await eventually(lambda: losses.count_of(full_lab.run_dir(spec)) > 0)
    os.kill(shim["pid"], signal.SIGKILL)
    seen = await until(executor, spec.attempt, {AttemptPhase.LOST})
    assert 0 < seen.lost_lines <= 31
    disk.free()
    await executor.close()


async def test_a_frozen_shim_is_killed_and_its_lost_lines_are_known_until_it_is_forgotten(
    full_lab: Lab, disk: SmallDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "ANSWERS_S", 0.1)
    code = WAITS + "until('go')\nfor _ in range(30): print('x' * 1000)\nprint(flush=True)\nuntil('end')"
    executor = full_lab.executor()
    spec = full_lab.spec(code)
    await executor.start(spec)
    await eventually(lambda: full_lab.output(spec) == ["up"])
    disk.fill()
    say(full_lab, spec, "go")
    await eventually(lambda: losses.count_of(full_lab.run_dir(spec)) > 0)
    shim = files.read_json(full_lab.run_dir(spec), "claim")
    assert shim is not None
    os.kill(shim["pid"], signal.SIGSTOP)
    await executor.kill(spec.attempt)
    seen = (await executor.observe([spec.attempt]))[spec.attempt]
    assert seen.phase is AttemptPhase.LOST
    assert 0 < seen.lost_lines <= 31
    again = full_lab.executor()  # the next service finds the same
    assert (await again.observe([spec.attempt]))[spec.attempt].lost_lines == seen.lost_lines
    await again.close()
    await executor.forget(spec.attempt)
    assert (await executor.observe([spec.attempt]))[spec.attempt].phase is AttemptPhase.ABSENT
    disk.free()
    await executor.close()


def test_no_program_starts_where_not_even_the_number_of_its_lost_lines_has_room(disk: SmallDisk) -> None:
    disk.fill()
    with pytest.raises(OSError) as raised:  # noqa: PT011 - its number is asked for
        losses.Losses(str(disk.root))
    assert files.is_full(raised.value)


async def test_a_last_line_that_was_lost_is_told_as_soon_as_there_is_room(
    full_lab: Lab, disk: SmallDisk
) -> None:
    code = WAITS + "until('go')\nfor _ in range(30): print('x' * 1000)\nprint(flush=True)\nuntil('end')"

    executor = full_lab.executor()
    spec = full_lab.spec(code)
    await executor.start(spec)
    await eventually(lambda: full_lab.output(spec) == ["up"])
    disk.fill()
    say(full_lab, spec, "go")
    shim = files.read_json(full_lab.run_dir(spec), "claim")
    assert shim is not None
    await eventually(lambda: _read_by(shim["pid"]) > 31_000)
    disk.free()
    await eventually(lambda: any("lost" in line for line in full_lab.output(spec)))
    say(full_lab, spec, "end")
    assert (await until(executor, spec.attempt, ENDED)).phase is AttemptPhase.SUCCEEDED
    await executor.close()


def _read_by(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("rchar")))


async def test_an_end_without_room_kept_for_it_waits_for_room(full_lab: Lab, disk: SmallDisk) -> None:
    """As where the file system cannot keep any."""

    executor = full_lab.executor()
    spec = full_lab.spec(WAITS + "until('go')")
    await executor.start(spec)
    await eventually(lambda: full_lab.output(spec) == ["up"])
    os.unlink(f"{full_lab.run_dir(spec)}/exit.json.reserve")
    disk.fill()
    child = files.read_json(full_lab.run_dir(spec), "state.json")["child"]
    say(full_lab, spec, "go")
    await eventually(lambda: files.start_time(child) is None)
    assert (await executor.observe([spec.attempt]))[spec.attempt].phase is AttemptPhase.RUNNING
    disk.free()
    assert (await until(executor, spec.attempt, ENDED)).phase is AttemptPhase.SUCCEEDED
    await executor.close()
