"""Ranks' logs: what is written, what rotation keeps, and what a cursor means."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlp_hub.executors import logs as reader
from mlp_hub.executors.shim import logs


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    (tmp_path / "log").mkdir()
    fd = os.open(tmp_path / "log", os.O_RDONLY | os.O_DIRECTORY)
    yield tmp_path, fd
    os.close(fd)


def everything(workspace: Path, rank: int = 0, limit: int = 1000) -> list[str]:
    lines: list[str] = []
    at = 0
    while (chunk := reader.read_log(str(workspace), rank, at, limit)).offset != at:
        lines += [line.text for line in chunk.lines]
        at = chunk.offset
    return lines


def test_a_line_has_its_time_stream_and_mark(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = logs.RankLog(fd, 3)
    logs.Stream(log, "stderr").feed(b"hello\n")
    log.close()
    text = (workspace / "log/rank-3.log").read_text()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stderr F hello\n", text)
    line = reader.read_log(str(workspace), 3).lines[0]
    assert (line.stream, line.text) == ("stderr", "hello")
    assert text.startswith(line.time)


def test_no_log_yet_is_an_empty_chunk(tmp_path: Path) -> None:
    assert reader.read_log(str(tmp_path / "nowhere"), 0, 7) == reader.LogChunk(0, (), 7)
    assert reader.tail_log(str(tmp_path), 0, 5).lines == ()


def test_half_a_line_waits_for_its_end(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = logs.RankLog(fd, 0)
    stream = logs.Stream(log, "stdout")
    stream.feed(b"one\ntw")
    assert everything(workspace) == ["one"]
    stream.feed(b"o\n")
    assert everything(workspace) == ["one", "two"]
    stream.feed(b"three")
    stream.end()
    assert everything(workspace) == ["one", "two", "three"]
    log.close()


def test_a_half_line_that_waits_too_long_is_shown_and_put_together_later(
    place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, fd = place
    now = 100.0
    monkeypatch.setattr(logs.time, "monotonic", lambda: now)
    log = logs.RankLog(fd, 0)
    stream = logs.Stream(log, "stdout")
    stream.feed(b"10%")
    assert stream.flush_idle() == logs.FLUSH_AFTER
    now += logs.FLUSH_AFTER
    assert stream.flush_idle() is None
    assert everything(workspace) == ["10%"]
    stream.feed(b" 20%\n")
    assert everything(workspace) == ["10% 20%"]
    log.close()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.text(st.characters(blacklist_characters="\n", blacklist_categories=("Cs",)), max_size=60),
        max_size=12,
    ),
    st.data(),
)
def test_lines_come_back_as_they_were_however_they_were_cut(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], data: st.DataObject
) -> None:
    workspace = tmp_path_factory.mktemp("log")
    (workspace / "log").mkdir()
    fd = os.open(workspace / "log", os.O_RDONLY | os.O_DIRECTORY)
    log = logs.RankLog(fd, 0)
    stream = logs.Stream(log, "stdout")
    rest = "".join(line + "\n" for line in lines).encode()
    while rest:
        cut = data.draw(st.integers(1, len(rest)))
        stream.feed(rest[:cut])
        rest = rest[cut:]
    stream.end()
    log.close()
    os.close(fd)
    assert everything(workspace, limit=data.draw(st.integers(1, 20))) == lines


def test_rotation_keeps_the_start_and_the_end_and_tells_what_is_gone(
    place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, fd = place
    monkeypatch.setattr(logs, "SEGMENT", 1000)
    log = logs.RankLog(fd, 0)
    stream = logs.Stream(log, "stdout")
    for number in range(500):
        stream.feed(b"line %03d\n" % number)
    log.close()
    assert len(list((workspace / "log").iterdir())) == logs.KEPT + 1
    first = reader.read_log(str(workspace), 0, 0, 5)
    assert [line.text for line in first.lines] == [f"line {n:03d}" for n in range(5)]
    lines = everything(workspace)
    assert lines[0] == "line 000"
    assert lines[-1] == "line 499"
    assert lines == sorted(lines)
    dropped = at = 0
    while (chunk := reader.read_log(str(workspace), 0, at)).offset != at:
        dropped, at = dropped + chunk.dropped, chunk.offset
    one = len("2026-01-01T00:00:00.000000000Z stdout F line 000\n")
    assert dropped == (500 - len(lines)) * one
    assert at == 500 * one
    assert [line.text for line in reader.tail_log(str(workspace), 0, 2).lines] == ["line 498", "line 499"]


def test_a_tail_is_whole_lines_and_its_offset_goes_on_behind_them(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = logs.RankLog(fd, 0)
    stream = logs.Stream(log, "stdout")
    for number in range(3000):
        stream.feed(b"line %04d\n" % number)
    for count in (1, 60, 80, 2999, 3000, 10_000):
        chunk = reader.tail_log(str(workspace), 0, count)
        assert [line.text for line in chunk.lines] == [f"line {n:04d}" for n in range(3000)][-count:]
    stream.feed(b"and on\n")
    assert [line.text for line in reader.read_log(str(workspace), 0, chunk.offset).lines] == ["and on"]
    log.close()


def test_another_attempt_goes_on_where_the_last_one_ended(place: tuple[Path, int]) -> None:
    workspace, fd = place
    for attempt in range(2):
        log = logs.RankLog(fd, 0)
        logs.Stream(log, "stdout").feed(b"attempt %d\n" % attempt)
        log.close()
    assert everything(workspace) == ["attempt 0", "attempt 1"]


def test_a_full_disk_loses_lines_and_nothing_else(
    place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, fd = place
    log = logs.RankLog(fd, 0)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(logs.os, "write", full)
    logs.Stream(log, "stdout").feed(b"lost\n")
    monkeypatch.undo()
    assert log.lost > 0
    log.close()


def test_the_tail_is_the_last_lines_whole(place: tuple[Path, int]) -> None:
    stream = logs.Stream(None, "stderr")
    stream.feed(b"x" * 5000 + b"\nlast but one\nlast\n")
    assert stream.tail == "last but one\nlast"


def test_a_flood_is_slowed_to_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(logs.time, "monotonic", lambda: now)
    bucket = logs.Bucket(rate=100, burst=1000)
    bucket.take(900)
    assert bucket.wait() == 0
    bucket.take(300)
    assert bucket.wait() == pytest.approx(2.01)
    now += 2.01
    assert bucket.wait() == 0


def test_following_yields_what_is_there_and_what_comes(place: tuple[Path, int]) -> None:
    workspace, fd = place

    async def go() -> list[str]:
        log = logs.RankLog(fd, 0)
        stream = logs.Stream(log, "stdout")
        stream.feed(b"before\n")
        got = []
        async for chunk in reader.follow(str(workspace), 2):
            got += [line.text for line in chunk.lines]
            if got == ["before"]:
                stream.feed(b"after\n")
            if "after" in got:
                log.close()
                return got
        raise AssertionError

    assert asyncio.run(go()) == ["before", "after"]
