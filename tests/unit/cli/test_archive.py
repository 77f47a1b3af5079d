"""Archives of folders that others write into, and of archives that are not what they were."""

from __future__ import annotations

import errno
import io
import itertools
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from mlp_hub.cli.backups import archive
from mlp_hub.cli.backups.backup import is_part
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.settings import Settings
from support.memory import peak


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "homes"
    (root / "ann" / "deep" / "er").mkdir(parents=True)
    (root / "ann" / "a.txt").write_text("a" * 3000)
    (root / "ann" / "run.sh").write_text("#!/bin/sh\n")
    (root / "ann" / "run.sh").chmod(0o750)
    (root / "ann" / "deep" / "er" / "\udcff odd \n name").write_bytes(b"\0\1")
    (root / "ann" / "away").symlink_to("/etc/shadow")
    (root / "ann" / "folder").symlink_to("deep")
    (root / "ann" / "deep" / "shut").mkdir(mode=0o500)
    os.mkfifo(root / "ann" / "pipe")
    return root


def written(tree: Path, to: Path, *, compress: bool = False) -> archive.Counted:
    writer = archive.ArchiveWriter(to, compress=compress)
    writer.data("HEAD", b"head")
    writer.tree("homes", tree)
    writer.close()
    return writer.counted


def seen(root: Path) -> dict[str, tuple[int, object]]:
    found: dict[str, tuple[int, object]] = {}
    for path in sorted(root.rglob("*")):
        there = path.lstat()
        what = str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        if not path.is_fifo():
            found[str(path.relative_to(root))] = (there.st_mode, what)
    return found


@pytest.mark.parametrize("compress", [False, True])
def test_a_tree_comes_back_as_it_was_with_links_as_links(tree: Path, tmp_path: Path, compress: bool) -> None:
    counted = written(tree, tmp_path / "b", compress=compress)
    assert (counted.files, counted.changed, counted.unread) == (3, 0, 0)
    assert archive.check(tmp_path / "b").files == 4
    assert archive.read(tmp_path / "b", "HEAD") == b"head"
    (tmp_path / "new").mkdir()
    archive.extract(tmp_path / "b", tmp_path / "new")
    assert seen(tmp_path / "new" / "homes") == seen(tree)


def test_only_its_owner_may_read_an_archive(tree: Path, tmp_path: Path) -> None:
    written(tree, tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("longer", [b"", b"more than was there" * 500])
def test_a_file_that_changes_while_it_is_read_makes_no_broken_archive(tmp_path: Path, longer: bytes) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 5000)
    fd = os.open(path, os.O_RDONLY)
    reader = archive._Exactly(fd, 5000)
    first = reader.read(1000)
    path.write_bytes(longer)
    assert len(first + reader.read()) == 5000
    assert reader.short is (not longer)
    os.close(fd)


@pytest.mark.parametrize("compress", [False, True])
def test_an_archive_that_was_cut_or_changed_is_refused(tree: Path, tmp_path: Path, compress: bool) -> None:
    whole = tmp_path / "b"
    written(tree, whole, compress=compress)
    content = whole.read_bytes()
    end = -500 if compress else content.index(b"CONTENTS") - 100
    for bad in (b"", b"nonsense", content[: len(content) // 4], content[:end]):
        (tmp_path / "bad").write_bytes(bad)
        with pytest.raises(CommandFailed, match="is not a complete backup"):
            archive.check(tmp_path / "bad")
    if not compress:
        (tmp_path / "bad").write_bytes(content.replace(b"a" * 3000, b"a" * 2999 + b"b"))
        with pytest.raises(CommandFailed, match="is not what was written"):
            archive.check(tmp_path / "bad")


@pytest.mark.parametrize("names", [["../out"], ["/etc/out"], ["link", "link/out"]])
def test_nothing_is_written_outside_of_the_folder(tmp_path: Path, names: list[str]) -> None:
    with tarfile.open(tmp_path / "b", "w") as tar:
        for name in names:
            info = tarfile.TarInfo(name)
            if name == "link":
                info.type, info.linkname = tarfile.SYMTYPE, str(tmp_path)
                tar.addfile(info)
            else:
                info.size = 3
                tar.addfile(info, io.BytesIO(b"bad"))
    (tmp_path / "new").mkdir()
    with pytest.raises(CommandFailed, match="outside of the state directory"):
        archive.extract(tmp_path / "b", tmp_path / "new")
    assert not (tmp_path / "out").exists()


def test_entries_that_nobody_could_restore_are_left_out_and_counted(tmp_path: Path) -> None:
    root = tmp_path / "homes"
    root.mkdir()
    (root / "kept").write_text("kept")
    with (root / "holes").open("wb") as file:
        file.truncate(1 << 42)
    for deep, name in ((1100, "d"), (18, "n" * 250)):
        at = os.open(root, os.O_RDONLY)
        for _ in range(deep):
            os.mkdir(name, dir_fd=at)
            below = os.open(name, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        os.close(at)

    counted = written(root, tmp_path / "b")

    assert (counted.files, counted.unread) == (1, 3)
    why = {name[:20]: why for name, why in counted.left_out}
    assert why["homes/holes"].startswith("4096.0 GiB of it are holes, more than 1 GiB")
    assert sum(text == "lies too deep, or its path is too long" for text in why.values()) == 2
    archive.check(tmp_path / "b")
    (tmp_path / "new").mkdir()
    archive.extract(tmp_path / "b", tmp_path / "new")
    assert (tmp_path / "new" / "homes" / "kept").read_text() == "kept"
    for name in ("d", "n" * 250):
        subprocess.run(["rm", "-rf", str(root / name)], check=True)


def test_a_file_of_two_names_is_kept_once_and_has_both_again(tmp_path: Path) -> None:
    root = tmp_path / "homes"
    root.mkdir()
    (root / "one").write_bytes(b"x" * 100_000)
    (root / "two").hardlink_to(root / "one")
    os.utime(root / "one", (1 << 40, 1 << 40))
    assert written(root, tmp_path / "b").size == 100_000
    archive.check(tmp_path / "b")
    (tmp_path / "new").mkdir()
    archive.extract(tmp_path / "b", tmp_path / "new")
    assert (tmp_path / "new/homes/one").samefile(tmp_path / "new/homes/two")


def test_a_link_at_the_path_of_the_written_file_is_not_followed(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "b").symlink_to(tmp_path / "victim")
    written(tree, tmp_path / "b")
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (tmp_path / "b").is_symlink()


LEASE = """
import fcntl, signal, sys, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
held = open(sys.argv[1], "r+")
fcntl.fcntl(held, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def leased(tree: Path) -> Iterator[Path]:
    """A file that a program holds a lease on: whoever opens it is made to wait, or is refused."""
    path = tree / "ann" / "a.txt"
    holder = subprocess.Popen([sys.executable, "-c", LEASE, path], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    yield path
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()


def test_a_lease_on_a_file_keeps_that_file_out_and_no_backup_from_being_made(
    tree: Path, leased: Path, tmp_path: Path
) -> None:
    with pytest.raises(BlockingIOError):
        os.open(leased, os.O_RDONLY | os.O_NONBLOCK)
    counted = written(tree, tmp_path / "b")
    assert (counted.files, counted.unread) == (2, 1)
    archive.check(tmp_path / "b")


@pytest.mark.parametrize("moments", list(itertools.product([False, True], repeat=4)))
@pytest.mark.parametrize("other", ["folder", "file"])
def test_an_entry_that_becomes_a_link_during_the_read_is_one_entry_in_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moments: tuple[bool, ...], other: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    home = tmp_path / "homes" / "ann"
    home.mkdir(parents=True)
    home.joinpath("away").symlink_to(outside)
    if other == "folder":
        home.joinpath("here").mkdir()
        home.joinpath("here").chmod(0o777)
    else:
        home.joinpath("here").write_text("plain")
    coming = iter(moments)
    real = os.stat

    def swapping(path: object, **kwargs: object) -> os.stat_result:
        if path in ("here", "away") and next(coming, False):
            (home / "here").rename(home / "between")
            (home / "away").rename(home / "here")
            (home / "between").rename(home / "away")
        return real(path, **kwargs)  # type: ignore[arg-type, call-overload]

    monkeypatch.setattr(os, "stat", swapping)
    written(tmp_path / "homes", tmp_path / "b")
    monkeypatch.undo()
    archive.check(tmp_path / "b")
    with tarfile.open(tmp_path / "b") as tar:
        names = tar.getnames()
    assert len(set(names)) == len(names)
    (tmp_path / "new").mkdir()
    archive.extract(tmp_path / "b", tmp_path / "new")
    assert outside.stat().st_mode & 0o777 == 0o700


def test_a_file_that_becomes_something_else_before_it_is_opened_is_left_out(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.stat
    for name, become in (("a.txt", lambda p: p.symlink_to("/etc")), ("run.sh", lambda p: p.mkdir())):

        def swapping(path: object, *, name: str = name, become: object = become, **kwargs: object) -> object:
            found = real(path, **kwargs)  # type: ignore[arg-type, call-overload]
            if path == name:
                (tree / "ann" / name).unlink()
                become(tree / "ann" / name)  # type: ignore[operator]
            return found

        monkeypatch.setattr(os, "stat", swapping)
        counted = written(tree, tmp_path / name)
        monkeypatch.undo()
        assert counted.changed + counted.unread == 1
        archive.check(tmp_path / name)


def test_a_disk_that_is_full_or_broken_makes_no_backup_with_holes(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(archive.DirHandle, "read", broken)
    writer = archive.ArchiveWriter(tmp_path / "b", compress=False)
    with pytest.raises(OSError, match="Input/output"):
        writer.tree("homes", tree)
    writer.close()


@pytest.mark.parametrize("kinds", [(tarfile.SYMTYPE, tarfile.DIRTYPE), (tarfile.REGTYPE, tarfile.REGTYPE)])
def test_a_name_that_is_in_an_archive_twice_is_refused(tmp_path: Path, kinds: tuple[bytes, bytes]) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o700)
    with tarfile.open(tmp_path / "b", "w") as tar:
        for kind in kinds:
            info = tarfile.TarInfo("homes")
            info.type, info.linkname, info.mode = kind, str(outside), 0o777
            tar.addfile(info)
    with pytest.raises(CommandFailed, match="is in it twice"):
        archive.check(tmp_path / "b")
    (tmp_path / "new").mkdir()
    with pytest.raises(CommandFailed):
        archive.extract(tmp_path / "b", tmp_path / "new")
    assert outside.stat().st_mode & 0o777 == 0o700


def test_a_file_that_reuses_an_inode_number_is_not_a_hard_link_of_the_removed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "homes"
    for user in ("ann", "bob"):
        (home / user).mkdir(parents=True)
        (home / user / "one").write_text(f"of {user}")
        (home / user / "two").hardlink_to(home / user / "one")
    real = os.fstat

    def one_number(fd: int) -> os.stat_result:
        found = real(fd)
        # as a file system gives it to the next file, which was made at another moment
        more = {"st_blocks": found.st_blocks, "st_ctime_ns": found.st_ino}
        return os.stat_result([found.st_mode, 7, *found[2:]], more)

    monkeypatch.setattr(os, "fstat", one_number)
    written(home, tmp_path / "b")
    monkeypatch.undo()
    (tmp_path / "new").mkdir()
    archive.extract(tmp_path / "b", tmp_path / "new")
    for user in ("ann", "bob"):
        one, two = (tmp_path / "new/homes" / user / name for name in ("one", "two"))
        assert one.read_text() == f"of {user}"
        assert one.samefile(two)


def test_of_many_files_an_archive_keeps_little_in_memory(tmp_path: Path) -> None:
    root = tmp_path / "homes"
    for n in range(3000):
        (root / f"{n // 100}").mkdir(parents=True, exist_ok=True)
        (root / f"{n // 100}" / f"{n}").touch()

    assert peak(lambda: written(root, tmp_path / "b")) < 3000 * 700
    assert peak(lambda: archive.check(tmp_path / "b")) < 3000 * 1000


def test_a_link_in_somebodys_home_is_restored_as_it_was(tmp_path: Path) -> None:
    settings = Settings.load({"MLP_HOME": str(tmp_path)})
    for name, kind in {
        "homes": tarfile.DIRTYPE,
        "homes/ann/link": tarfile.SYMTYPE,
        "secrets/key": tarfile.REGTYPE,
    }.items():
        info = tarfile.TarInfo(name)
        info.type = kind
        assert is_part(settings, PurePosixPath(name), info), name
