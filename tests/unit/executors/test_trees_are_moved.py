"""A tree is copied as it is, whatever its programs made of it, and as often as it has to be begun again."""

from __future__ import annotations

import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from mlp_hub.executors.shared_volume.trees import tree_copy
from mlp_hub.executors.shared_volume.trees.tree_copy import Pass
from mlp_hub.executors.tenant_files import MovedWrongError
from mlp_hub.safe_path import DirHandle


class KilledError(Exception):
    """The process ended here."""


def nothing() -> None:
    """Go on."""


def killed_at(step: int) -> Callable[[], None]:
    """Return what lets so many steps pass."""
    left = [step]

    def check_cancelled() -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KilledError

    return check_cancelled


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with all that programs make."""
    top = tmp_path / "old"
    (top / "deep" / "er").mkdir(parents=True)
    (top / "deep" / "er" / "file").write_bytes(b"x" * (tree_copy.CHUNK + 7))
    (top / "again").hardlink_to(top / "deep" / "er" / "file")
    (top / "first").symlink_to("deep/er/file")
    (top / "out").symlink_to("/etc/passwd")
    (top / "loop").symlink_to("loop")
    (top / "empty").touch(mode=0o640)
    os.mkfifo(top / "pipe", 0o600)
    with (top / "holes").open("wb") as file:
        file.seek(1 << 30)
        file.write(b"end")
    os.setxattr(top / "empty", "user.mlp.properties", b"kept")
    os.utime(top / "empty", ns=(1_000_000_001, 2_000_000_002))
    (top / "deep").chmod(0o2750)
    os.utime(top / "deep", ns=(3_000_000_003, 4_000_000_004))
    return top


def copied(old: Path, new: Path, check_cancelled: Callable[[], None] = nothing) -> int:
    new.mkdir(exist_ok=True)
    done: list[int] = []
    with DirHandle.at(old) as source, DirHandle.at(new) as target:
        tree_copy.copy(source, target, Pass(check_cancelled, done.append))
    return sum(done)


def same(old: Path, new: Path) -> None:
    with DirHandle.at(old) as source, DirHandle.at(new) as target:
        tree_copy.compare(source, target, Pass(nothing))


def test_all_of_it_is_there_as_it_was(tree: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    copied(tree, new)
    same(tree, new)
    assert (new / "out").readlink() == Path("/etc/passwd")
    assert (new / "again").samefile(new / "deep" / "er" / "file")
    assert (new / "again").stat().st_nlink == 2
    assert (new / "holes").stat().st_size == (1 << 30) + 3
    assert (new / "holes").stat().st_blocks * 512 < 1 << 20
    assert stat.S_ISFIFO((new / "pipe").stat().st_mode)
    assert os.getxattr(new / "empty", "user.mlp.properties") == b"kept"
    assert (new / "empty").stat().st_mtime_ns == 2_000_000_002
    assert stat.S_IMODE((new / "empty").stat().st_mode) == 0o640
    assert stat.S_IMODE((new / "deep").stat().st_mode) == 0o2750
    assert (new / "deep").stat().st_mtime_ns == 4_000_000_004


def test_the_counted_size_covers_the_copied_files(tree: Path, tmp_path: Path) -> None:
    with DirHandle.at(tree) as top:
        total = tree_copy.added_up(top, nothing)
    assert copied(tree, tmp_path / "new") <= total


def test_a_copy_killed_at_any_step_can_be_continued(tree: Path, tmp_path: Path) -> None:
    step, whole = 0, False
    while not whole:
        new = tmp_path / f"new-{step}"
        try:
            copied(tree, new, killed_at(step))
            whole = True
        except KilledError:
            step += 1
            copied(tree, new)
        same(tree, new)
    assert step > 12, "there are steps to be killed at"


def test_a_half_written_file_is_copied_once_more_and_a_whole_one_is_not(tree: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    copied(tree, new)
    kept = (new / "empty").stat().st_ino
    (new / "holes").write_bytes(b"half")
    (new / "left-over").mkdir()
    (new / "left-over" / "x").touch()
    copied(tree, new)
    same(tree, new)
    assert (new / "empty").stat().st_ino == kept


def test_sockets_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old"
    old.mkdir()
    monkeypatch.chdir(old)
    with socket.socket(socket.AF_UNIX) as listens:
        listens.bind("sock")
        copied(old, tmp_path / "new")
        same(old, tmp_path / "new")
    assert list((tmp_path / "new").iterdir()) == []


@pytest.mark.parametrize("at", range(12))
def test_a_link_that_takes_the_place_of_a_directory_is_never_followed(tmp_path: Path, at: int) -> None:
    """Whoever swaps them at whatever step: nothing of what the link points to is in the copy."""
    old, secret, new = tmp_path / "old", tmp_path / "secret", tmp_path / "new"
    (old / "a" / "b").mkdir(parents=True)
    (old / "a" / "b" / "mine").write_text("mine")
    (secret / "b").mkdir(parents=True)
    (secret / "b" / "mine").write_text("theirs")
    (secret / "theirs").write_text("theirs")
    step = [at]

    def swap() -> None:
        step[0] -= 1
        if step[0] == -1:
            (old / "a").rename(old / "aside")
            (old / "a").symlink_to(secret)

    try:
        copied(old, new, swap)
    except OSError:
        return  # it was found out
    seen = [p.read_text() for p in new.rglob("*") if p.is_file() and not p.is_symlink()]
    assert "theirs" not in seen


def test_no_link_in_the_copy_is_written_through(tree: Path, tmp_path: Path) -> None:
    new, outside = tmp_path / "new", tmp_path / "outside"
    (new / "deep").mkdir(parents=True)
    outside.mkdir()
    (new / "deep" / "er").symlink_to(outside)
    (new / "empty").symlink_to(outside / "made")
    copied(tree, new)
    same(tree, new)
    assert list(outside.iterdir()) == []


def change_content(new: Path) -> None:
    at = (new / "again").stat()
    with (new / "again").open("r+b") as file:
        file.write(b"y")
    os.utime(new / "again", ns=(at.st_atime_ns, at.st_mtime_ns))


@pytest.mark.parametrize(
    "change",
    [
        change_content,
        lambda new: (new / "empty").unlink(),
        lambda new: (new / "more").touch(),
        lambda new: (new / "empty").chmod(0o600),
        lambda new: os.utime(new / "deep", ns=(1, 1)),
        lambda new: ((new / "first").unlink(), (new / "first").symlink_to("elsewhere")),
        lambda new: ((new / "pipe").unlink(), (new / "pipe").mkdir()),
    ],
    ids=["content", "gone", "more", "mode", "time", "link", "kind"],
)
def test_each_difference_is_found(tree: Path, tmp_path: Path, change: Callable[[Path], object]) -> None:
    new = tmp_path / "new"
    copied(tree, new)
    change(new)
    with pytest.raises(MovedWrongError, match=r"is not the same in both places"):
        same(tree, new)


def test_a_tree_that_is_too_deep_is_refused_with_its_path(tmp_path: Path) -> None:
    old = tmp_path / "old"
    old.joinpath(*["d"] * 102).mkdir(parents=True)
    with pytest.raises(MovedWrongError, match="more than 100 directories deep"):
        copied(old, tmp_path / "new")
