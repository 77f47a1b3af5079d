"""What the supervisor writes where there is no room: nothing of it raises, and what is lost is counted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from mlp_hub.cli.supervisor import notes


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "log"
    monkeypatch.setattr(notes, "_OUT", os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND))
    return path


@pytest.fixture
def log() -> notes._Log:
    return notes._Log()


def test_lines_that_find_no_room_are_counted_and_told_when_there_is_some(
    out: Path, log: notes._Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = notes._OUT
    log.say("one")
    monkeypatch.setattr(notes, "_OUT", os.open("/dev/full", os.O_WRONLY))
    log.say("two")
    log.say("three")
    monkeypatch.setattr(notes, "_OUT", good)
    log.say("four")
    texts = [line.split(" ", 1)[1] for line in out.read_text().splitlines()]
    assert texts == ["one", "2 lines of this log were lost: there was no room", "four"]


def test_text_after_half_a_line_starts_a_new_line(
    out: Path, log: notes._Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write
    monkeypatch.setattr(notes.os, "write", lambda fd, data: write(fd, data[:10]))
    log.say("one")
    monkeypatch.setattr(notes.os, "write", write)
    log.say("two")
    lines = out.read_text().splitlines()
    assert len(lines[0]) == 10
    assert [line.split(" ", 1)[1] for line in lines[1:]] == [
        "1 lines of this log were lost: there was no room",
        "two",
    ]


def test_a_missing_reader_is_not_an_error(log: notes._Log, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    monkeypatch.setattr(notes, "_OUT", writer)
    log.say("to nobody")
    assert log.lost == 1


def no_room(_fd: int, _data: bytes) -> int:
    raise OSError(28, "No space left on device")


def test_without_room_a_note_is_written_over_the_one_that_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "n"
    assert notes.write(str(path), {"pid": 123456, "long": "x" * 50})
    monkeypatch.setattr(notes.os, "write", no_room)
    assert notes.write(str(path), {"pid": 7})
    assert json.loads(path.read_text()) == {"pid": 7}
    assert list(tmp_path.iterdir()) == [path]


def test_without_room_and_without_an_earlier_one_a_note_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes.os, "write", no_room)
    assert not notes.write(str(tmp_path / "n"), {"pid": 7})
    assert not notes.write(str(tmp_path / "nowhere" / "n"), {"pid": 7})
    assert list(tmp_path.iterdir()) == []
