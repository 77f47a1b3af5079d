"""What the files of a dataset are is told by their checksums, without reading them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from mlp_hub.executors.shared_volume import manifest
from mlp_hub.executors.shared_volume.manifest import manifest_of
from mlp_hub.executors.workspace import Contents
from mlp_hub.safe_path import DIGEST_ATTRIBUTE


def put(path: Path, content: bytes, *, checked: bool = True, at: int = 1_000_000_000) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, ns=(at, at))
    if checked:
        value = f"{len(content)} {at} {hashlib.sha256(content).hexdigest()}"
        os.setxattr(path, DIGEST_ATTRIBUTE, value.encode())


def digest(top: Path) -> str:
    found = manifest_of(top)
    assert found is not None
    return found.digest


def test_the_same_files_are_the_same_whenever_they_came_and_others_are_not(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    put(one / "train" / "a.bin", b"1234")
    put(one / "b.bin", b"12")
    put(other / "b.bin", b"12", at=2_000_000_000)
    put(other / "train" / "a.bin", b"1234", at=3_000_000_000)
    assert manifest_of(one) == manifest_of(other) == Contents(2, 6, 2, digest(one))
    put(other / "b.bin", b"13")
    assert digest(one) != digest(other)
    put(other / "b.bin", b"12")
    assert digest(one) == digest(other)
    (other / "b.bin").rename(other / "c.bin")
    assert digest(one) != digest(other)


def test_a_file_without_a_checksum_counts_by_its_modification_time(tmp_path: Path) -> None:
    put(tmp_path / "a", b"1234", checked=False)
    before = manifest_of(tmp_path)
    assert before is not None
    assert (before.files, before.checked) == (1, 0)
    put(tmp_path / "a", b"4321", checked=False, at=2_000_000_000)
    assert digest(tmp_path) != before.digest
    put(tmp_path / "b", b"1234")
    with (tmp_path / "b").open("ab") as file:  # its checksum is that of what it was
        file.write(b"5")
    after = manifest_of(tmp_path)
    assert after is not None
    assert (after.files, after.checked) == (2, 0)


def test_links_and_pipes_do_not_count_as_content_and_a_dataset_never_filled_is_empty(tmp_path: Path) -> None:
    empty = manifest_of(tmp_path / "none")
    assert empty == Contents(0, 0, 0, hashlib.sha256().hexdigest())
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "down").symlink_to("/etc")
    assert manifest_of(tmp_path) == empty


def test_a_dataset_with_too_many_files_has_no_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifest, "MOST_FILES", 3)
    for i in range(3):
        put(tmp_path / str(i), b"")
    assert manifest_of(tmp_path) is not None
    put(tmp_path / "3", b"")
    assert manifest_of(tmp_path) is None
