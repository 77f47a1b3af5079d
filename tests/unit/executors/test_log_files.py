"""Ranks' logs: what is written, what rotation keeps, and what a cursor means."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mlp_hub.executors.shared_volume import logs as reader
from mlp_hub.sandbox.shim.logs import writer


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
    log = writer.RankLog(fd, 3)
    writer.Stream(log, "stderr").feed(b"hello\n")
    log.close()
    text = (workspace / "log/rank-3.log").read_text()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z stderr F hello\n", text)
    line = reader.read_log(str(workspace), 3).lines[0]
    assert (line.stream, line.text) == ("stderr", "hello")
    assert text.startswith(line.time)


def test_no_log_yet_is_an_empty_chunk(tmp_path: Path) -> None:
    assert reader.read_log(str(tmp_path / "nowhere"), 0, 7) == reader.LogChunk(0, (), 7)
    assert reader.tail_log(str(tmp_path), 0, 5).lines == ()


def test_a_progress_bar_is_one_line_also_between_lines_of_the_other_stream(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = writer.RankLog(fd, 0)
    bar, out = writer.Stream(log, "stderr"), writer.Stream(log, "stdout")

    def writes(stream: writer.Stream, text: bytes) -> None:
        stream.feed(text)
        stream._rest_since -= writer.FLUSH_AFTER
        stream.flush_idle()

    writes(bar, b" 10%")
    seen = reader.read_log(str(workspace), 0)
    assert [(x.text, x.partial) for x in seen.lines] == [(" 10%", True)]
    writes(out, b"epoch 1\n")
    writes(bar, b"\r 20%")
    later = reader.read_log(str(workspace), 0, seen.offset)
    assert [(x.text, x.partial) for x in later.lines] == [("epoch 1", False), ("\r\x1b[J 20%", True)]
    writes(bar, b"\r100%\n")
    bar.end()
    whole = reader.tail_log(str(workspace), 0, 10)
    assert [(x.text, x.partial) for x in whole.lines] == [("\r\x1b[J100%", False), ("epoch 1", False)]


def test_a_line_printed_after_a_finished_progress_bar_appears_after_it(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = writer.RankLog(fd, 0)
    out, bar = writer.pair(log)
    for n in (1, 2):  # as tqdm and print do; the next bar may have begun when the line is read
        bar.feed(b"\r 50%\r100%\n\r  0%")
        out.feed(b"epoch %d\n" % n)
    bar.feed(b"\r100%\n")
    for text in (
        b"\r outer 50%",
        b"\n\r inner 99%",
        b"\x1b[A\n\r          ",
        b"\x1b[A\r outer 100%",
        b"\n",
    ):
        bar.feed(text)
    out.feed(b"done\n")
    for stream in (out, bar):
        stream.end()
    shown = [x.text.removeprefix("\r\x1b[J") for x in reader.read_log(str(workspace), 0).lines]
    assert shown == ["100%", "epoch 1", "100%", "epoch 2", "100%", " outer 100%", "done"]


def test_a_bar_that_begins_behind_one_that_has_ended_is_still_seen_after_the_other_streams_line(
    place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "FLUSH_AFTER", 0.0)
    workspace, fd = place
    out, bar = writer.pair(writer.RankLog(fd, 0))
    bar.feed(b"\r100%\n\r  0%")
    bar.flush_idle()
    out.feed(b"epoch 1\n")
    bar.flush_idle()
    shown = [(x.text.removeprefix("\r\x1b[J"), x.partial) for x in reader.read_log(str(workspace), 0).lines]
    assert shown[-1] == ("  0%", True)


def test_a_line_in_the_midst_of_a_display_of_several_rows_makes_no_copy_of_it(
    place: tuple[Path, int],
) -> None:
    workspace, fd = place
    log = writer.RankLog(fd, 0)
    out, display = writer.pair(log)
    for n in range(9):  # it rests behind its last row, and comes back to the first one
        display.feed(b"%b\r\x1b[Kone %d\n\r\x1b[Ktwo %d\n" % (b"\x1b[2A" if n else b"", n, n))
        if n:
            out.feed(b"beside %d\n" % n)
    for stream in (out, display):
        stream.end()
    shown = [x.text.removeprefix("\r\x1b[J") for x in reader.read_log(str(workspace), 0).lines]
    assert [text for text in shown if "beside" not in text] == ["one 8", "two 8"]


def test_the_stream_that_moves_its_cursor_is_read_first(place: tuple[Path, int]) -> None:
    out, bar = writer.pair(writer.RankLog(place[1], 0))
    assert writer.steered_first([(1, 1), (2, 1), (9, 1)], {1: out, 2: bar}) == [(1, 1), (2, 1), (9, 1)]
    bar.feed(b"\r 50%")
    assert writer.steered_first([(1, 1), (2, 1), (9, 1)], {1: out, 2: bar}) == [(2, 1), (1, 1), (9, 1)]


def test_of_a_progress_bar_of_hours_only_what_it_wrote_last_is_read(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = writer.RankLog(fd, 0)
    bar = writer.Stream(log, "stderr")
    for n in range(4000):
        bar.feed(b"\r%d steps " % n + b"#" * 40)
        bar._rest_since -= writer.FLUSH_AFTER
        bar.flush_idle()
    (line,) = reader.tail_log(str(workspace), 0, 10).lines
    assert line.text == f"\r\x1b[J3999 steps {'#' * 40}"


def test_half_a_line_waits_for_its_end(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = writer.RankLog(fd, 0)
    stream = writer.Stream(log, "stdout")
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
    monkeypatch.setattr(writer.time, "monotonic", lambda: now)
    log = writer.RankLog(fd, 0)
    stream = writer.Stream(log, "stdout")
    stream.feed(b"10%")
    assert stream.flush_idle() == writer.FLUSH_AFTER
    now += writer.FLUSH_AFTER
    assert stream.flush_idle() is None
    assert everything(workspace) == ["10%"]
    stream.feed(b" 20%\n")
    assert everything(workspace) == ["10% 20%"]
    log.close()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.text(
            st.characters(blacklist_characters="\n\r\b\x0b\x0c\x1b", blacklist_categories=("Cs",)),
            max_size=60,
        ),
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
    log = writer.RankLog(fd, 0)
    stream = writer.Stream(log, "stdout")
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
    monkeypatch.setattr(writer, "SEGMENT", 1000)
    log = writer.RankLog(fd, 0)
    stream = writer.Stream(log, "stdout")
    for number in range(500):
        stream.feed(b"line %03d\n" % number)
    log.close()
    assert len(list((workspace / "log").iterdir())) == writer.KEPT + 1
    first = reader.read_log(str(workspace), 0, 0, 5)
    assert [line.text for line in first.lines] == [f"line {n:03d}" for n in range(5)]
    lines = everything(workspace)
    assert lines[0] == "line 000"
    assert lines[-1] == "line 499"
    (told,) = [line for line in lines if line.startswith("[mlp]")]
    lines.remove(told)
    assert lines == sorted(lines)
    dropped = dropped_lines = at = 0
    while (chunk := reader.read_log(str(workspace), 0, at)).offset != at:
        dropped, dropped_lines, at = (
            dropped + chunk.dropped,
            dropped_lines + chunk.dropped_lines,
            chunk.offset,
        )
    one = len("2026-01-01T00:00:00.000000000Z stdout F line 000\n")
    assert dropped_lines == 500 - len(lines)
    assert dropped == dropped_lines * one
    assert told.startswith(
        f"[mlp] {dropped_lines} lines ({dropped / 1024:.1f} KiB) are missing here: a log keeps"
    )
    tail = reader.tail_log(str(workspace), 0, 2)
    assert (tail.dropped, tail.dropped_lines) == (dropped, dropped_lines)
    assert at == 500 * one
    assert [line.text for line in reader.tail_log(str(workspace), 0, 2).lines] == ["line 498", "line 499"]


def test_lines_are_counted_on_by_the_next_writer_and_parts_of_lines_are_none(
    place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, fd = place
    monkeypatch.setattr(writer, "SEGMENT", 1000)
    for attempt in range(10):
        log = writer.RankLog(fd, 0)
        stream = writer.Stream(log, "stdout")
        for number in range(50):
            stream.feed(b"half of it")
            stream._rest_since -= writer.FLUSH_AFTER
            stream.flush_idle()
            stream.feed(b" line %03d\n" % (attempt * 50 + number))
        log.close()
    lines = everything(workspace)
    (told,) = [line for line in lines if line.startswith("[mlp]")]
    # at either end of a gap there may be half a line
    assert abs(500 - (len(lines) - 1) - int(told.split()[1])) <= 1


def test_a_reader_inside_a_dropped_range_gets_only_the_number_of_bytes(
    place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, fd = place
    monkeypatch.setattr(writer, "SEGMENT", 1000)
    stream = writer.Stream(writer.RankLog(fd, 0), "stdout")
    for number in range(500):
        stream.feed(b"line %03d\n" % number)
    chunk = reader.read_log(str(workspace), 0, 2000)
    assert chunk.dropped_lines is None
    assert re.match(r"\[mlp\] [0-9.]+ KiB are missing here", chunk.lines[0].text)


def test_a_tail_has_whole_lines_and_reading_continues_at_its_offset(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = writer.RankLog(fd, 0)
    stream = writer.Stream(log, "stdout")
    for number in range(3000):
        stream.feed(b"line %04d\n" % number)
    for count in (1, 60, 80, 2999, 3000, 10_000):
        chunk = reader.tail_log(str(workspace), 0, count)
        assert [line.text for line in chunk.lines] == [f"line {n:04d}" for n in range(3000)][-count:]
    stream.feed(b"and on\n")
    assert [line.text for line in reader.read_log(str(workspace), 0, chunk.offset).lines] == ["and on"]
    log.close()


def test_another_attempt_continues_where_the_last_one_ended(place: tuple[Path, int]) -> None:
    workspace, fd = place
    for attempt in range(2):
        log = writer.RankLog(fd, 0)
        writer.Stream(log, "stdout").feed(b"attempt %d\n" % attempt)
        log.close()
    assert everything(workspace) == ["attempt 0", "attempt 1"]


class Disk:
    """Stands between a log and its disk: so many bytes go through, the rest finds it full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.room: int | None = None
        self._write = os.write
        monkeypatch.setattr(writer.os, "write", self.write)

    def write(self, fd: int, data: bytes) -> int:
        if self.room is None:
            return self._write(fd, data)
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = self._write(fd, bytes(data)[: self.room])
        self.room -= done
        return done


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 400), st.integers(1, 9))
def test_a_full_disk_tears_no_record_and_all_that_is_lost_is_told(
    tmp_path_factory: pytest.TempPathFactory, room: int, count: int
) -> None:
    workspace = tmp_path_factory.mktemp("log")
    (workspace / "log").mkdir()
    fd = os.open(workspace / "log", os.O_RDONLY | os.O_DIRECTORY)
    log = writer.RankLog(fd, 0)
    stream = writer.Stream(log, "stdout")
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch)
        stream.feed(b"before\n")
        disk.room = room
        for number in range(count):
            stream.feed(b"line %d\nand more\n" % number)
            assert (workspace / "log/rank-0.log").read_bytes().endswith(b"\n")
        lost = log.lost
        disk.room = None
        assert log.tell()
        stream.feed(b"after\n")
    log.close()
    os.close(fd)
    lines = everything(workspace)
    told = [line for line in lines if line.startswith("[mlp]")]
    assert sum(int(line.split()[1]) for line in told) == lost
    assert bool(told) == bool(lost)
    assert len(lines) == 2 + 2 * count - lost + len(told)
    assert (lines[0], lines[-1]) == ("before", "after")


def test_a_line_whose_rest_was_lost_is_not_glued_to_the_next(
    place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, fd = place
    disk = Disk(monkeypatch)
    log = writer.RankLog(fd, 0)
    stream = writer.Stream(log, "stderr")
    long = writer.LONGEST + 100
    stream.feed(b"x" * long)
    disk.room = 0
    stream.feed(b"\n")
    disk.room = None
    stream.feed(b"next\n")
    log.close()
    assert everything(workspace) == [
        "x" * writer.LONGEST,
        "[mlp] 1 line of output lost here: the disk was full",
        "next",
    ]


def test_a_partial_record_of_a_killed_writer_is_cut_off(place: tuple[Path, int]) -> None:
    workspace, fd = place
    log = writer.RankLog(fd, 0)
    writer.Stream(log, "stdout").feed(b"whole\n" + b"y" * (writer.LONGEST + 1))
    log.close()
    with (workspace / "log/rank-0.log").open("ab") as file:
        file.write(b"2026-01-01T00:00:00.000000000Z stdout F half a rec")
    log = writer.RankLog(fd, 0)
    writer.Stream(log, "stdout").feed(b"of the next attempt\n")
    log.close()
    assert everything(workspace) == ["whole", "y" * writer.LONGEST, "of the next attempt"]


def test_the_bucket_takes_what_is_written(place: tuple[Path, int]) -> None:
    workspace, fd = place
    bucket = writer.Bucket()
    log = writer.RankLog(fd, 0, bucket)
    writer.Stream(log, "stdout").feed(b"\n" * 1000)
    log.close()
    assert bucket.taken == (workspace / "log/rank-0.log").stat().st_size > 40_000


def test_the_tail_is_the_last_lines_whole(place: tuple[Path, int]) -> None:
    stream = writer.Stream(None, "stderr")
    stream.feed(b"x" * 5000 + b"\nlast but one\nlast\n")
    assert stream.tail == "last but one\nlast"


def test_a_flood_is_slowed_to_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(writer.time, "monotonic", lambda: now)
    bucket = writer.Bucket(rate=100, burst=1000)
    bucket.take(900)
    assert bucket.wait() == 0
    bucket.take(300)
    assert bucket.wait() == pytest.approx(2.01)
    now += 2.01
    assert bucket.wait() == 0


def test_new_lines_are_read_from_each_cursor_and_never_past_a_bound(place: tuple[Path, int]) -> None:
    workspace, fd = place
    streams = [writer.Stream(writer.RankLog(fd, rank), "stdout") for rank in range(2)]
    for stream in streams:
        stream.feed(b"before\n")
    first = reader.read_new(str(workspace), {0: 0, 1: 0, 2: 0})
    assert [(chunk.rank, [line.text for line in chunk.lines]) for chunk in first] == [
        (0, ["before"]),
        (1, ["before"]),
    ]
    streams[1].feed(b"after\n")
    cursors = {chunk.rank: chunk.offset for chunk in first}
    (second,) = reader.read_new(str(workspace), cursors)
    assert (second.rank, [line.text for line in second.lines]) == (1, ["after"])
    bounded = reader.read_log(str(workspace), 1, 0, until=cursors[1])
    assert ([line.text for line in bounded.lines], bounded.offset) == (["before"], cursors[1])
    assert reader.read_log(str(workspace), 1, cursors[1], until=cursors[1]).lines == ()
    tail = reader.tail_log(str(workspace), 1, 10, cursors[1])
    assert ([line.text for line in tail.lines], tail.offset) == (["before"], cursors[1])


def test_a_bound_before_a_gap_is_not_passed(place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, fd = place
    monkeypatch.setattr(writer, "SEGMENT", 1000)
    stream = writer.Stream(writer.RankLog(fd, 0), "stdout")
    for number in range(500):
        stream.feed(b"line %03d\n" % number)
    kept = [base for base, _ in writer.segments(os.open(workspace / "log", os.O_RDONLY), 0)]
    in_gap = kept[1] - 10
    end_of_first = (workspace / "log" / "rank-0.log").stat().st_size
    assert reader.read_log(str(workspace), 0, end_of_first, until=in_gap).offset == end_of_first


def test_a_tail_is_bounded_in_bytes(place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, fd = place
    monkeypatch.setattr(reader, "TAIL", 10_000)
    stream = writer.Stream(writer.RankLog(fd, 0), "stdout")
    for number in range(1000):
        stream.feed(b"line %03d\n" % number)
    texts = [line.text for line in reader.tail_log(str(workspace), 0, 1000).lines]
    assert texts == [f"line {n:03d}" for n in range(1000)][-len(texts) :]
    assert 150 < len(texts) < 250
