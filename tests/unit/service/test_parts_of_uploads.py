"""Parts of files count with their entries, and their number is bounded: no client sees them."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from wsgidav.dav_error import DAVError

from mlp_hub.dav.files import multipart_uploads
from mlp_hub.dav.files.multipart_uploads import FilePart, PartUploads
from mlp_hub.executors.shared_volume.trees.sizes import ENTRY
from mlp_hub.safe_path import DirHandle

BODY = bytes(100)


class Room:
    """Storage without an end, which notes what is charged."""

    def __init__(self) -> None:
        self.charged = 0
        self.looks = 0

    def request_room(self, uid: str, size: int, language: str) -> Any:
        return SimpleNamespace(status=200)

    def report_written(self, uid: str, held: int, grown: int, gone: int = 0) -> None:
        self.charged += grown
        self.looks += bool(gone)


class Files:
    """A dataset whose parts lie in a directory."""

    def __init__(self, path: Path) -> None:
        self._path, self.top = path, None
        self.access = SimpleNamespace(uid="d", language="en")

    @contextmanager
    def arriving(self) -> Iterator[DirHandle]:
        with DirHandle.at(self._path) as folder:
            yield folder


def send(room: Room, files: Files, name: str, begin: int = 0) -> int:
    part = FilePart(begin, begin + 1, len(BODY), hashlib.sha256(BODY).digest())
    uploads: Any = PartUploads(room, lambda *_: False)  # type: ignore[arg-type]
    status, _ = uploads.receive({"wsgi.input": io.BytesIO(b"x")}, files, (name,), part)
    return int(status)


def test_attack_a_part_of_one_byte_counts_with_its_entry_and_is_looked_at(tmp_path: Path) -> None:
    room, files = Room(), Files(tmp_path)
    assert [send(room, files, f"f{n}") for n in range(3)] == [202] * 3
    assert (room.charged, room.looks) == (3 * (1 + ENTRY), 3)
    assert send(room, files, "f0", 1) == 202
    assert (room.charged, room.looks) == (3 * (1 + ENTRY) + 1, 3), "an entry is one, however many parts come"


def test_attack_files_of_parts_are_bounded_in_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart_uploads, "MOST_BEGUN", 3)
    room, files = Room(), Files(tmp_path)
    for n in range(3):
        send(room, files, f"f{n}")
    with pytest.raises(DAVError, match="503"):
        send(room, files, "f3")
    assert send(room, files, "f0", 1) == 202, "what was begun goes on"
    assert len(list(tmp_path.iterdir())) == 3
