"""Spool files are written by tenants' programs: none of them holds up the end of a job, or the service."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from mlp_hub.service import spool


def _metrics(workspace: Path) -> Path:
    directory = workspace / "metrics"
    directory.mkdir()
    return directory


def test_a_name_that_cannot_be_stored_is_changed_and_its_point_kept(tmp_path: Path) -> None:
    (_metrics(tmp_path) / "0.0.a.jsonl").write_text('{"n": 1, "t": 1, "v": {"\\ud800": 1, "loss": 2}}\n')
    [[point]] = spool.read(tmp_path, "0.0.a", 0)
    assert point.v == {"?": 1, "loss": 2}
    msgspec.msgpack.encode(point.v)


def test_the_files_of_a_job_share_the_bytes_that_are_read(tmp_path: Path) -> None:
    directory = _metrics(tmp_path)
    (directory / "0.0.a.jsonl").write_text('{"n": 1, "t": 1, "v": {"loss": 1}}\n')
    for name in "bcd":
        with (directory / f"0.0.{name}.jsonl").open("wb") as file:
            file.truncate(5 * 2**30)  # a hole: costs its user nothing
    room = spool.Room(2**20)
    read = [list(spool.read(tmp_path, source, 0, room=room)) for source in spool.sources(tmp_path)]
    assert [len(batches) for batches in read] == [1, 0, 0, 0]
    assert -spool.MOST_LINE < room.left <= 0


def test_a_directory_of_countless_names_is_not_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "MOST_NAMES", 10)
    directory = _metrics(tmp_path)
    for number in range(50):
        (directory / f"0.0.{number}.jsonl").touch()
    assert len(spool.sources(tmp_path)) == 10
