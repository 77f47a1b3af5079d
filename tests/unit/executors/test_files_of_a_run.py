"""Files below a directory, while their program changes them."""

from __future__ import annotations

import asyncio
import os
import tempfile
import threading
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from wsgidav import util

from mlp_hub.dav.files import listing
from mlp_hub.dav.files.resources import OneFile
from mlp_hub.domain.errors import Refused
from mlp_hub.executors.shared_volume import files
from mlp_hub.executors.shared_volume.checkpoints import newest_checkpoint
from mlp_hub.executors.shared_volume.files import list_directory, open_file
from mlp_hub.service.support.units import when


def read_all(top: Path, path: str) -> bytes:
    file = open_file(top, path)
    try:
        return asyncio.run(file.read(0, 100))
    finally:
        file.close()


def test_a_directory_that_becomes_a_link_and_back_leads_nowhere(tmp_path: Path) -> None:
    top, outside = tmp_path / "job", tmp_path / "outside"
    for directory, text in ((top / "ckpt", "mine"), (outside, "secret")):
        directory.mkdir(parents=True)
        (directory / "file").write_text(text)
    (top / "link").symlink_to(outside)
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for one, other in (("ckpt", "aside"), ("link", "ckpt"), ("ckpt", "link"), ("aside", "ckpt")):
                (top / one).rename(top / other)

    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        found = set()
        for _ in range(2000):
            try:
                found.add(read_all(top, "ckpt/file"))
                found.update(e.name.encode() for e in list_directory(top, "ckpt", "", 10).entries)
            except Refused:
                continue
    finally:
        stop.set()
        swapper.join()
    assert found <= {b"mine", b"file"}


def test_an_open_file_is_read_to_its_end_though_its_name_is_another_file_by_now(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    file = open_file(tmp_path, "file")
    (tmp_path / "new").write_bytes(b"newer")
    (tmp_path / "new").replace(tmp_path / "file")
    assert (file.size, asyncio.run(file.read(0, 10))) == (3, b"old")
    tag = file.tag
    file.close()
    file.close()
    assert open_file(tmp_path, "file").tag != tag


def test_a_directory_of_very_many_is_refused_and_not_held_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOST_ENTRIES", 3)
    for n in range(4):
        (tmp_path / str(n)).touch()
    with pytest.raises(Refused, match="more than 3 entries"):
        list_directory(tmp_path, "", "", 2)


def test_a_job_that_has_no_directory_yet_has_no_files(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="file / does not exist here"):
        list_directory(tmp_path / "nothing", "", "", 10)


@pytest.fixture
def odd_times() -> Iterator[Path]:
    """Make files with times that no date has, where the file system keeps them: tmpfs does."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        (Path(place) / "ckpt").mkdir()
        for name, seconds in (("late", 1 << 42), ("early", -(1 << 42))):
            path = Path(place) / "ckpt" / name
            path.write_text("x")
            os.utime(path, (seconds, seconds))
            assert path.stat().st_mtime == seconds
        yield Path(place)


def test_attack_a_time_that_no_date_has_keeps_no_directory_from_being_listed(odd_times: Path) -> None:
    page = list_directory(odd_times, "ckpt", "", 10)
    assert [(entry.name, when(entry.modified).year) for entry in page.entries] == [
        ("early", 1970),
        ("late", 9999),
    ]
    file = open_file(odd_times, "ckpt/late")
    assert formatdate(file.modified, usegmt=True).endswith("9999 23:59:59 GMT")
    file.close()
    newest = newest_checkpoint(odd_times)
    assert newest is not None
    assert when(newest).year == 9999
    for path in (odd_times / "ckpt").iterdir():
        assert "GMT" in listing._entry(path.name, path.stat(), None)["modified"]
        one = OneFile.__new__(OneFile)  # of no request
        one._found = path.stat()
        assert util.get_rfc1123_time(one.get_last_modified()).endswith("GMT")
