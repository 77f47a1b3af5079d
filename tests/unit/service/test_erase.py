"""A job's directory is removed, whatever its programs made of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlp_hub.executors.shared_volume.trees import removal
from mlp_hub.executors.shared_volume.trees.removal import remove_directory, turn_of
from mlp_hub.executors.workspace import Unfinished


def test_directories_nested_deeper_than_a_path_is_long_are_removed(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    at = os.open(job, os.O_RDONLY)
    for _ in range(2500):
        os.mkdir("deep", dir_fd=at)
        below = os.open("deep", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    remove_directory(job)
    assert not job.exists()


def test_links_are_removed_and_what_they_name_stays(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    job = tmp_path / "job"
    (job / "ckpt" / "more").mkdir(parents=True)
    for place in (job, job / "ckpt", job / "ckpt" / "more"):
        (place / "root").symlink_to("/")
        (place / "other").symlink_to(outside)
        (place / "loop").symlink_to(place)
        os.mkfifo(place / "pipe")
    os.link(outside / "kept", job / "hard")
    remove_directory(job)
    assert not job.exists()
    assert (outside / "kept").read_text() == "kept"


def test_a_directory_that_was_closed_to_everybody_is_removed(tmp_path: Path) -> None:
    closed = tmp_path / "job" / "ckpt" / "closed"
    closed.mkdir(parents=True)
    (closed / "file").touch()
    closed.chmod(0)
    remove_directory(tmp_path / "job")
    assert not (tmp_path / "job").exists()


@pytest.mark.parametrize("what", ["nothing", "link", "file"])
def test_a_path_that_is_not_a_directory_does_not_prevent_removal(tmp_path: Path, what: str) -> None:
    job = tmp_path / "job"
    (tmp_path / "outside").mkdir()
    if what == "link":
        job.symlink_to(tmp_path / "outside")
    elif what == "file":
        job.touch()
    remove_directory(job)
    assert not os.path.lexists(job)
    assert (tmp_path / "outside").exists()


def test_many_directories_are_removed_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "MOST_NAMES", 3)
    job = tmp_path / "job"
    for n in range(8):
        for k in range(8):
            (job / f"d{n}" / f"e{k}" / "more").mkdir(parents=True)
            (job / f"d{n}" / f"f{k}").touch()
    remove_directory(job)
    assert not job.exists()


def test_leftovers_of_an_interrupted_removal_are_removed_by_the_next(tmp_path: Path) -> None:
    job = tmp_path / "job"
    for n in range(8):
        (job / f"d{n}" / "e").mkdir(parents=True)
        (job / f"d{n}" / "file").touch()
    left = iter(range(12))

    def check_cancelled() -> None:
        if next(left, None) is None:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        remove_directory(job, check_cancelled)
    assert job.exists()
    remove_directory(job)
    assert not job.exists()


def test_directories_created_as_fast_as_they_are_removed_do_not_occupy_a_thread(tmp_path: Path) -> None:
    """What a thread of the owner's does at any speed is done here between any two steps."""
    top = tmp_path / "pets"
    (top / "made-0").mkdir(parents=True)
    made = 0

    def makes_another() -> None:
        nonlocal made
        made += 1
        for place in [top, *(p for p in top.iterdir() if p.is_dir())]:
            (place / f"made-{made}").mkdir(exist_ok=True)

    with pytest.raises(Unfinished):
        remove_directory(top, turn_of(20, makes_another))
    remove_directory(top, turn_of(10_000, lambda: None))
    assert not top.exists()
