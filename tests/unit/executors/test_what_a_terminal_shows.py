"""Logs show what a terminal would: outputs that tqdm, rich and Keras wrote, and what a terminal emulator (pyte) made of them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlp.rendering import terminal
from mlp.rendering.history import History
from mlp_hub.executors import base
from mlp_hub.executors.shared_volume import logs as reader
from mlp_hub.sandbox.shim.logs import screen, writer

HERE = Path(__file__).parents[2] / "support" / "files" / "terminal"
RECORDED: dict[str, dict[str, Any]] = json.loads((HERE / "recorded.json").read_text())
PIECES = Path(__file__).parents[3] / "widgets" / "test" / "stream" / "terminal.json"
"""The same as the stream sends it; `widgets/test/stream/jobstore.test.ts` has to show the same of it."""


@pytest.fixture
def place(tmp_path: Path) -> Iterator[tuple[Path, int]]:
    (tmp_path / "log").mkdir()
    fd = os.open(tmp_path / "log", os.O_RDONLY | os.O_DIRECTORY)
    yield tmp_path, fd
    os.close(fd)


def flush(stream: writer.Stream) -> None:
    stream._rest_since -= writer.FLUSH_AFTER
    stream.flush_idle()


def written(place: tuple[Path, int], raw: bytes, seed: int) -> Iterator[list[dict[str, Any]]]:
    """Write it as a program would, in pieces of any size with pauses, and yield what a follower gets after each."""
    workspace, fd = place
    log = writer.RankLog(fd, 0)
    stream = writer.Stream(log, "stderr")
    draw = random.Random(seed)
    at = 0
    while raw:
        cut = draw.randint(1, 200)
        stream.feed(raw[:cut])
        raw = raw[cut:]
        if draw.random() < 0.4:
            flush(stream)
        if not raw:
            stream.end()
            log.close()
        chunk = reader.read_log(str(workspace), 0, at)
        at = chunk.offset
        yield [
            {"time": x.time, "stream": x.stream, "text": x.text, **({"partial": True} if x.partial else {})}
            for x in chunk.lines
        ]


def shown(lines: list[dict[str, Any]]) -> list[str]:
    return [row.rstrip() for line in lines for row in terminal.plain(line["text"]).split("\n")]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RECORDED)
def test_a_log_ends_with_the_same_rows_as_a_terminal(name: str, seed: int, place: tuple[Path, int]) -> None:
    raw = RECORDED[name]["raw"].encode()
    seen = History()
    for lines in written(place, raw, seed):
        seen.add_lines(0, lines, replay=False)
    expected = RECORDED[name]["shown"]
    assert shown(seen.log) == expected
    whole = reader.tail_log(str(place[0]), 0, 1000)
    assert [row.rstrip() for x in whole.lines for row in terminal.plain(x.text).split("\n")] == expected
    assert not any(x.partial for x in whole.lines)
    tail = writer.Stream(None, "stderr")
    tail.feed(raw)
    assert [row.rstrip() for row in tail.tail.split("\n")][-1] == expected[-1]


@pytest.mark.parametrize("name", RECORDED)
def test_the_front_end_is_held_to_the_same(
    name: str, place: tuple[Path, int], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(writer, "_now", lambda: b"2026-11-28T10:00:00.000000000Z")
    pieces = [lines for lines in written(place, RECORDED[name]["raw"].encode(), 1) if lines]
    if request.config.getoption("--golden"):
        there = json.loads(PIECES.read_text()) if PIECES.exists() else {}
        there[name] = {"pieces": pieces, "shown": RECORDED[name]["shown"]}
        PIECES.write_text(json.dumps(there, indent=1) + "\n")
    assert json.loads(PIECES.read_text())[name]["pieces"] == pieces


def test_a_log_in_progress_shows_the_same_rows_as_a_terminal_at_that_moment(place: tuple[Path, int]) -> None:
    workspace, fd = place
    stream = writer.Stream(writer.RankLog(fd, 0), "stderr")

    def now(data: bytes) -> list[str]:
        stream.feed(data)
        flush(stream)
        lines = reader.tail_log(str(workspace), 0, 100).lines
        return [row for x in lines for row in terminal.plain(x.text).split("\n")]

    assert now(b"begins\n\router 0/3") == ["begins", "outer 0/3"]
    assert now(b"\n\rinner 0/9\x1b[A") == ["begins", "outer 0/3", "inner 0/9"]
    assert now(b"\n\rinner 5/9\x1b[A") == ["begins", "outer 0/3", "inner 5/9"]
    assert now(b"\n\r         \x1b[A\router 1/3") == ["begins", "outer 1/3"]
    assert now(b"\n\rinner 0/9\x1b") == ["begins", "outer 1/3", "inner 0/9"]
    assert now(b"[A\router 2/3") == ["begins", "outer 2/3", "inner 0/9"]


def test_text_shown_before_the_first_carriage_return_is_kept(place: tuple[Path, int]) -> None:
    workspace, fd = place
    stream = writer.Stream(writer.RankLog(fd, 0), "stderr")
    stream.feed(b" 10% of it")
    flush(stream)
    stream.feed(b"\r 20%")
    stream.end()
    (line,) = reader.tail_log(str(workspace), 0, 10).lines
    assert terminal.plain(line.text) == " 20% of it"


def test_a_bar_of_hours_is_its_last_state_on_whatever_page_one_begins(place: tuple[Path, int]) -> None:
    workspace, fd = place
    stream = writer.Stream(writer.RankLog(fd, 0), "stderr")
    for step in range(8000):
        stream.feed(b"\r%6.2f%% |%-50s|" % (step / 79.99, b"#" * (step // 160)))
        flush(stream)
    stream.feed(b"\ndone\n")
    stream.end()
    expected = [f"100.00% |{'#' * 49} |", "done"]
    at, seen = 0, History()
    while (chunk := reader.read_log(str(workspace), 0, at)).offset != at:
        at = chunk.offset
        lines = [
            {"time": x.time, "stream": x.stream, "text": x.text, "partial": x.partial} for x in chunk.lines
        ]
        seen.add_lines(0, lines, replay=False)
    assert shown(seen.log) == expected
    assert [terminal.plain(x.text) for x in reader.tail_log(str(workspace), 0, 10).lines] == expected


def test_ten_thousand_redraws_of_nested_bars_push_nothing_out(place: tuple[Path, int]) -> None:
    workspace, fd = place
    stream = writer.Stream(writer.RankLog(fd, 0), "stderr")
    stream.feed(b"what matters\n")
    for step in range(10_000):
        stream.feed(b"\router %d\n\rinner %d\x1b[A" % (step // 100, step % 100))
    stream.end()
    lines = reader.tail_log(str(workspace), 0, 10).lines
    assert lines[0].text == "what matters"
    assert [terminal.plain(x.text) for x in lines][1:] == ["outer 99", "inner 99"]


def test_lines_of_both_kinds_follow_one_another(place: tuple[Path, int]) -> None:
    workspace, fd = place
    stream = writer.Stream(writer.RankLog(fd, 0), "stdout")
    expected = []
    for lot in range(3):
        stream.feed(b"\r  0%\r100%\n")
        expected.append("100%")
        for n in range(200):
            stream.feed(b"line %d of %d\n" % (n, lot))
            expected.append(f"line {n} of {lot}")
            if n % 20 == 0:
                flush(stream)
    stream.end()
    assert stream._screen is None
    lines = reader.tail_log(str(workspace), 0, 10_000).lines
    assert [terminal.plain(x.text) for x in lines] == expected


def test_writer_service_and_notebooks_mean_the_same() -> None:
    assert (screen.STATE, screen.BREAK) == (base.STATE, base.BREAK) == (terminal.STATE, terminal.BREAK)


def test_of_a_long_line_beside_a_bar_nothing_is_lost() -> None:
    terminal_of = screen.Screen()
    long = "é" * (screen.LONGEST + 3)
    left = terminal_of.write(f"50%\r100%\n{long}\n".encode())
    assert [*left, *terminal_of.shown()] == ["100%", long[: screen.LONGEST], "ééé"]


def test_windows_line_ends_and_colours_do_not_count_as_cursor_movement() -> None:
    assert not screen.steers(b"", b"one\r\ntwo\r\n\x1b[1;32mgreen\x1b[0m\n")
    assert screen.steers(b"\x1b", b"[A")
    assert screen.steers(b"", b"a\rb")
    assert screen.steers(b"", b"\x1b[2K")


@pytest.mark.parametrize("text", ["汉字", "a🎉", "é", "进度：50%|█▊  |"])
def test_no_pause_tears_a_character(text: str, place: tuple[Path, int]) -> None:
    for before in (b"", b"\r"):
        raw = before + text.encode()
        for cut in range(1, len(raw)):
            rank = cut + 100 * bool(before)
            stream = writer.Stream(writer.RankLog(place[1], rank), "stdout")
            stream.feed(raw[:cut])
            flush(stream)
            stream.feed(raw[cut:] + b"\n")
            stream.end()
            (line,) = reader.read_log(str(place[0]), rank).lines
            assert terminal.plain(line.text) == text


def test_an_incomplete_character_is_written_at_the_end(place: tuple[Path, int]) -> None:
    stream = writer.Stream(writer.RankLog(place[1], 0), "stdout")
    stream.feed("汉".encode()[:2])
    flush(stream)
    assert reader.read_log(str(place[0]), 0).lines == ()
    stream.end()
    assert reader.read_log(str(place[0]), 0).lines[0].text == "\ufffd"


def test_the_tail_of_one_long_line_begins_with_a_whole_character() -> None:
    stream = writer.Stream(None, "stderr")
    stream.feed(("汉" * 3000).encode())
    assert set(stream.tail) == {"汉"}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "汉",
                "\n",
                "\r",
                "\b",
                "\t",
                "\x1b[A",
                "\x1b[2A",
                "\x1b[K",
                "\x1b[J",
                "\x1b[5C",
                "\x1b[H",
                "\x1b7",
                "\x1b8",
                "\x1b[999999999999A",
                "\x1b[;;;;m",
                "\x1b]0;x\x07",
                "\x1b",
                "\x1b[2;3H",
                "\x9b",
            ]
        ),
        max_size=60,
    ),
    st.integers(0, 60),
)
def test_whatever_is_written_ends_as_plain_text_however_it_is_cut(parts: list[str], at: int) -> None:
    whole, cut = screen.Screen(), screen.Screen()
    raw = "".join(parts).encode()
    left = whole.write(raw)
    lefts = cut.write(raw[:at]) + cut.write(raw[at:])
    assert (left, whole.shown()) == (lefts, cut.shown())
    assert all(c >= " " for row in [*left, *whole.shown()] for c in row)
