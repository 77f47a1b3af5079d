"""Spool files are written by tenants' programs: none of them holds up the end of a job, or the service."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from mlp_hub.executors.shared_volume import spool


def _metrics(workspace: Path) -> Path:
    directory = workspace / "metrics"
    directory.mkdir()
    return directory


def test_a_name_that_cannot_be_stored_is_changed_and_its_point_kept(tmp_path: Path) -> None:
    (_metrics(tmp_path) / "0.0.a.jsonl").write_text('{"n": 1, "t": 1, "v": {"\\ud800": 1, "loss": 2}}\n')
    [[point]] = spool.read(tmp_path, "0.0.a", 0)
    assert point.v == {"?": 1, "loss": 2}
    msgspec.msgpack.encode(point.v)


def test_an_integer_too_large_for_a_float_becomes_a_usable_number(tmp_path: Path) -> None:
    nines = "9" * 400
    line = (
        f'{{"n": 1, "t": 1, "v": {{"progress": {nines}, "loss": -{nines}, "step": {2**64}, "epoch": 3}}}}\n'
    )
    (_metrics(tmp_path) / "0.0.a.jsonl").write_text(line)
    [[point]] = spool.read(tmp_path, "0.0.a", 0)
    assert point.v == {"progress": math.inf, "loss": -math.inf, "step": 2.0**64, "epoch": 3}


def test_the_files_of_a_job_share_the_bytes_that_are_read(tmp_path: Path) -> None:
    directory = _metrics(tmp_path)
    (directory / "0.0.a.jsonl").write_text('{"n": 1, "t": 1, "v": {"loss": 1}}\n')
    for name in "bcd":
        with (directory / f"0.0.{name}.jsonl").open("wb") as file:
            file.truncate(5 * 2**30)  # a hole: costs its user nothing
    room = spool.ByteAllowance(2**20)
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


def test_thousands_of_sources_are_stored_some_at_a_time_and_not_one_by_one(tmp_path: Path) -> None:
    directory = _metrics(tmp_path)
    for number in range(250):
        (directory / f"0.{number}.a.jsonl").write_text(
            '{"n": 1, "t": 1, "v": {}}\n{"n": 2, "t": 1, "v": {}}\n'
        )
    (directory / "1.0.b.jsonl").write_text('{"n": 1, "t": 1, "v": {}}\n' * 300)
    lots = list(spool.read_all(tmp_path, {"0.7.a": 1, "0.8.a": 2}, spool.ByteAllowance()))
    assert max(map(len, lots)) == spool.LOT
    assert len(lots) <= 4
    found = {source: [p.n for p in points] for lot in lots for source, points in lot}
    assert len(found) == 250
    assert (found["0.7.a"], found["0.9.a"], found["1.0.b"]) == ([2], [1, 2], [1])
    assert "0.8.a" not in found


def test_no_transaction_has_more_points_than_one_may_have_whatever_they_come_from(tmp_path: Path) -> None:
    directory = _metrics(tmp_path)

    def write(source: str, points: int) -> None:
        lines = (f'{{"n": {n}, "t": 1, "v": {{}}}}\n' for n in range(1, points + 1))
        (directory / f"{source}.jsonl").write_text("".join(lines))

    for number in range(99):
        write(f"0.{number:02}.a", 99)
    write("1.0.b", 12_000)
    counts = [
        sum(len(points) for _, points in lot) for lot in spool.read_all(tmp_path, {}, spool.ByteAllowance())
    ]
    assert sum(counts) == 99 * 99 + 12_000
    assert max(counts) == 5000
    assert len(counts) == 5


def test_a_spool_file_says_how_many_points_could_not_be_written(tmp_path: Path) -> None:
    directory = _metrics(tmp_path)
    point = '{"n": 1, "t": 1, "v": {"loss": 1}}\n'
    for name, text in {
        "0.0.whole": '{"lost":0                   }\n' + point,
        "1.0.some": '{"lost":8                   }\n' + point,
        "2.0.none": "",
        "3.0.old": point,
        "4.0.late": point + '{"lost":3}\n',
        "5.0.boast": '{"lost":' + "9" * 300 + "}\n",
        "6.0.odd": '{"lost":-1}\n{"lost":"2"}\n',
        "7.0.list": "[1]\n",
    }.items():
        (directory / f"{name}.jsonl").write_text(text)
    lost: dict[str, int | None] = {}
    lots = list(spool.read_all(tmp_path, {}, spool.ByteAllowance(), lost))
    assert sum(len(points) for lot in lots for _, points in lot) == 4
    assert lost == {"1.0.some": 8, "2.0.none": None, "5.0.boast": spool.MOST_MISSING}
