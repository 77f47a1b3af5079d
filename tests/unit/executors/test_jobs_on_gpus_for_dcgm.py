"""Files name the jobs on each GPU as long as they run, whatever process dies in between, and no fault of them stops a job."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from mlp_hub.executors.local.gpu_jobs import LONGEST, GpuJobFiles

NUMBERS = {3: 0, 0: 1, 7: 2}
"""By the number of a device's file its number for DCGM."""


def found(directory: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in directory.iterdir()}


def files_in(directory: Path) -> GpuJobFiles:
    return GpuJobFiles(directory, lambda: NUMBERS)


def test_a_job_is_in_the_files_of_its_gpus_until_it_ends(tmp_path: Path) -> None:
    place = tmp_path / "jobs"
    files = files_in(place)
    files.begin({})
    assert found(place) == {}
    files.add("a", "ann/digits@1", [3, 0])
    assert found(place) == {"0": "ann/digits@1\n", "1": "ann/digits@1\n"}
    # a second one shares a GPU
    files.add("b", "bob/nets@2", [0])
    assert found(place) == {"0": "ann/digits@1\n", "1": "ann/digits@1\nbob/nets@2\n"}
    files.remove("a")
    assert found(place) == {"1": "bob/nets@2\n"}
    files.remove("b")
    files.remove("b")
    files.remove("never")
    files.add("c", "bob/without", [])
    assert found(place) == {}


def test_a_new_process_corrects_what_one_that_was_killed_left(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("gone/job@1\n")
    (tmp_path / f".0.{os.getpid()}").write_text("half")
    (tmp_path / "1.0").write_text("theirs\n")
    (tmp_path / "README").write_text("theirs\n")
    files = files_in(tmp_path)
    files.begin({"b": ("bob/nets@2", [7]), "c": ("bob/no-gpu", [])})
    assert {name: text for name, text in found(tmp_path).items() if not name.startswith(".")} == {
        "1.0": "theirs\n",
        "2": "bob/nets@2\n",
        "README": "theirs\n",
    }
    files.add("a", "ann/digits@1", [3])
    assert found(tmp_path)["0"] == "ann/digits@1\n"
    assert not [name for name in found(tmp_path) if name.startswith(".")]


def test_the_exporter_can_read_a_file_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        files_in(tmp_path / "new").add("a", "ann/digits@1", [3])
    finally:
        os.umask(before)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "new" / "0").stat().st_mode & 0o777 == 0o644


def test_a_name_cannot_add_lines_or_grow_without_end(tmp_path: Path) -> None:
    files_in(tmp_path).add("a", "ann\nbob/fake@1\r\x1b[31m\ud800" + "x" * 5000, [3])
    text = (tmp_path / "0").read_text()
    assert text.count("\n") == 1
    assert text.startswith("ann?bob/fake@1??[31m?x")
    assert len(text) == LONGEST + 1


def test_a_link_in_the_place_of_a_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("keep")
    place = tmp_path / "jobs"
    place.mkdir()
    (place / "0").symlink_to(other)
    files_in(place).add("a", "ann/digits@1", [3])
    assert other.read_text() == "keep"
    assert (place / "0").read_text() == "ann/digits@1\n"
    assert not (place / "0").is_symlink()


def test_a_reader_sees_whole_files_only(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    line = "ann/" + "x" * 300
    files.add("a", line, [3])
    ended, torn = threading.Event(), []

    def read() -> None:
        while not ended.is_set():
            text = (tmp_path / "0").read_text()
            if not (text.startswith(line) and text.endswith("\n")):
                torn.append(text)

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(200):
        files.add("b", f"bob/{n}", [3])
        files.remove("b")
    ended.set()
    reader.join()
    assert torn == []


def test_a_directory_that_cannot_be_written_stops_nothing_and_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "jobs"
    place.write_text("a file")
    files = files_in(place)
    files.begin({})
    for _ in range(3):
        files.add("a", "ann/digits@1", [3])
        files.remove("a")
    files.add("a", "ann/digits@1", [3])
    assert len(caplog.records) == 1
    place.unlink()
    files.add("b", "bob/nets@2", [0])
    files.begin({"a": ("ann/digits@1", [3]), "b": ("bob/nets@2", [0])})
    assert found(place) == {"0": "ann/digits@1\n", "1": "bob/nets@2\n"}


def test_a_driver_that_fails_stops_nothing(tmp_path: Path) -> None:
    def fails() -> dict[int, int]:
        raise RuntimeError("the driver is gone")

    files = GpuJobFiles(tmp_path, fails)
    files.add("a", "ann/digits@1", [3])
    files.remove("a")
    assert found(tmp_path) == {}
