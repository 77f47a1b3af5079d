"""Archives of folders that others write into, and of archives that are not what they were."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import itertools
import json
import os
import signal
import sqlite3
import subprocess
import sys
import tarfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from mlp_hub.cli.backups import archive, manifest, restore
from mlp_hub.cli.backups.backup import is_part
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state.database import newest_revision
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


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE])
def test_attack_no_device_and_no_pipe_is_made(tmp_path: Path, kind: bytes) -> None:
    with tarfile.open(tmp_path / "b", "w") as tar:
        info = tarfile.TarInfo("odd")
        info.type, info.devmajor, info.devminor = kind, 1, 3
        tar.addfile(info)
    (tmp_path / "new").mkdir()
    with pytest.raises(CommandFailed, match="odd"):
        archive.extract(tmp_path / "b", tmp_path / "new")
    assert not list((tmp_path / "new").iterdir())


@pytest.mark.parametrize("to", ["/etc/passwd", "../b", "link"])
def test_attack_a_second_name_leads_nowhere_else(tmp_path: Path, to: str) -> None:
    with tarfile.open(tmp_path / "b", "w") as tar:
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        second = tarfile.TarInfo("second")
        second.type, second.linkname = tarfile.LNKTYPE, to
        tar.addfile(second)
    (tmp_path / "new").mkdir()
    with pytest.raises(CommandFailed, match="second name of nothing"):
        archive.extract(tmp_path / "b", tmp_path / "new")


@pytest.mark.parametrize("compress", [False, True])
def test_attack_a_header_that_fills_the_memory_is_refused(tmp_path: Path, compress: bool) -> None:
    """A name or an attribute is read whole, however long a header says it is."""
    info = tarfile.TarInfo("@LongLink")
    info.type, info.size = tarfile.GNUTYPE_LONGNAME, 64 << 20
    with tarfile.open(tmp_path / "b", "w:gz" if compress else "w") as tar:
        tar.addfile(info, io.BytesIO(bytes(info.size)))
    (tmp_path / "new").mkdir()
    tracemalloc.start()
    try:
        for read in (archive.check, lambda path: archive.extract(path, tmp_path / "new")):
            with pytest.raises(CommandFailed, match="is not a complete backup"):
                read(tmp_path / "b")
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


def test_attack_a_file_that_is_all_holes_is_not_written_out(tmp_path: Path) -> None:
    """Of a few bytes an archive may say that they are a file of any length."""
    info = tarfile.TarInfo("holes")
    info.pax_headers = {
        "GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "holes", "GNU.sparse.realsize": str(1 << 50),
    }  # fmt: skip
    body = b"1\n0\n1\n".ljust(512, b"\0") + b"x"
    info.size = len(body)
    with tarfile.open(tmp_path / "b", "w", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(info, io.BytesIO(body))
    (tmp_path / "new").mkdir()
    for read in (archive.check, lambda path: archive.extract(path, tmp_path / "new")):
        with pytest.raises(CommandFailed, match="holes is neither"):
            read(tmp_path / "b")
    assert not list((tmp_path / "new").iterdir())


def test_attack_no_kind_of_header_is_kept_in_memory_however_much_of_it_there_is(tmp_path: Path) -> None:
    """Where the holes of a file are, and attributes of all that follows: a few bytes are so much of them as one likes."""
    first = tarfile.TarInfo("holes")
    first.type = tarfile.GNUTYPE_SPARSE
    head = bytearray(first.tobuf(tarfile.GNU_FORMAT))
    head[482], head[483:495] = 1, b"%011o\0" % 1
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    more = b"".join(b"%011o\0" % 1 for _ in range(42)) + b"\1" + bytes(7)
    around = tarfile.TarInfo("all")
    around.type = tarfile.XGLTYPE
    said = b"".join(b"%d k%d=%s\n" % (12 + 1000, n, b"v" * (1007 - len(str(n)))) for n in range(10))
    around.size = len(said)
    pairs = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.name": "holes"}
    late = tarfile.TarInfo("holes")
    late.pax_headers = pairs
    body = b"%d\n" % (1 << 22) + b"1\n" * (1 << 23)
    late.size = len(body)
    (tmp_path / "one").write_bytes(gzip.compress(bytes(head) + more * 40_000))
    (tmp_path / "two").write_bytes(gzip.compress(around.tobuf(tarfile.GNU_FORMAT) + said))
    with tarfile.open(tmp_path / "three", "w:gz", format=tarfile.PAX_FORMAT) as tar:
        tar.addfile(late, io.BytesIO(body))
    for name in ("one", "two", "three"):
        tracemalloc.start()
        try:
            for read in (archive.check, lambda path: archive.read(path, "holes")):
                with pytest.raises(CommandFailed, match="is not a complete backup"):
                    read(tmp_path / name)
            assert tracemalloc.get_traced_memory()[1] < 16 << 20, name
        finally:
            tracemalloc.stop()


def test_attack_headers_before_headers_end(tmp_path: Path) -> None:
    name = tarfile.TarInfo("@LongLink")
    name.type, name.size = tarfile.GNUTYPE_LONGNAME, 2
    one = name.tobuf(tarfile.GNU_FORMAT) + b"n".ljust(512, b"\0")
    (tmp_path / "b").write_bytes(one * 2000)
    with pytest.raises(CommandFailed, match="is not a complete backup"):
        archive.check(tmp_path / "b")


def of_members(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """Write an archive that is whole, whatever its members are."""
    sums = {}
    with tarfile.open(path, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for info, content in members:
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
            data = f"link {info.linkname}".encode() if info.issym() else content
            sums[info.pax_headers.get("path", info.name)] = hashlib.sha256(data).hexdigest()
        end = tarfile.TarInfo(archive.CONTENTS)
        text = json.dumps(sums).encode()
        end.size = len(text)
        tar.addfile(end, io.BytesIO(text))
    return path


@pytest.mark.parametrize(
    "said",
    [{"uid": str(1 << 70)}, {"uid": "-5"}, {"uid": "-1", "gid": "-1"}, {"mtime": "nan"}, {"path": "a\0b"}, {"path": "."}],
    ids=str,
)  # fmt: skip
def test_attack_a_member_that_can_be_nowhere_is_refused_in_words(
    tmp_path: Path, said: dict[str, str]
) -> None:
    info = tarfile.TarInfo("odd")
    info.pax_headers = said
    of_members(tmp_path / "b", (info, b"x"))
    (tmp_path / "new").mkdir()
    with pytest.raises(CommandFailed, match=r"is not a complete backup|cannot be written out"):
        archive.extract(tmp_path / "b", tmp_path / "new")


def test_attack_a_time_that_no_file_can_have_is_the_nearest_one(tmp_path: Path) -> None:
    info = tarfile.TarInfo("late")
    info.pax_headers = {"mtime": "1e30"}
    of_members(tmp_path / "b", (info, b"x"))
    (tmp_path / "new").mkdir()
    archive.extract(tmp_path / "b", tmp_path / "new")
    assert (tmp_path / "new" / "late").stat().st_mtime == archive.LATEST


def test_attack_the_state_directory_itself_is_not_a_valid_archive_member(tmp_path: Path) -> None:
    """Its mode and owner are the command's to say."""
    top = tarfile.TarInfo(".")
    top.type, top.mode = tarfile.DIRTYPE, 0o777
    of_members(tmp_path / "b", (top, b""))
    (tmp_path / "new").mkdir(mode=0o711)
    with pytest.raises(CommandFailed, match="outside of the state directory"):
        archive.extract(tmp_path / "b", tmp_path / "new")
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o711


@pytest.mark.skipif(os.geteuid() != 0, reason="owners are given by root alone")
def test_attack_setuid_programs_of_root_are_not_restored(tmp_path: Path) -> None:
    members = []
    for name, uid in (("roots", 0), ("theirs", 54_321)):
        info = tarfile.TarInfo(name)
        info.mode, info.uid, info.gid = 0o6755, uid, uid
        members.append((info, b"x"))
    of_members(tmp_path / "b", *members)
    (tmp_path / "new").mkdir()
    archive.extract(tmp_path / "b", tmp_path / "new")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "new").iterdir()}
    assert modes == {"roots": 0o755, "theirs": 0o6755}


class Blanks(io.RawIOBase):
    """As many as one likes."""

    def read(self, size: int = -1) -> bytes:
        return b" " * size


@pytest.mark.parametrize("name", [archive.CONTENTS, "MANIFEST.json"])
def test_attack_what_is_read_whole_has_no_length_that_fills_the_memory(tmp_path: Path, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.size = 128 << 20
    with tarfile.open(tmp_path / "b", "w:gz", compresslevel=1) as tar:
        tar.addfile(info, Blanks())
    tracemalloc.start()
    try:
        with pytest.raises(CommandFailed, match=f"{name} "):
            archive.check(tmp_path / "b") if name == archive.CONTENTS else archive.read(tmp_path / "b", name)
        assert tracemalloc.get_traced_memory()[1] < 32 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text", [b"[]", b"5", b'"a"', b"[" * 100_000], ids=["list", "number", "text", "deep"]
)
def test_attack_contents_of_another_form_are_refused_in_words(tmp_path: Path, text: bytes) -> None:
    info, end = tarfile.TarInfo("n" * 200), tarfile.TarInfo(archive.CONTENTS)
    end.size = len(text)
    with tarfile.open(tmp_path / "b", "w") as tar:
        for n in range(400):
            info.name = f"{n:0200}"
            tar.addfile(info)
        tar.addfile(end, io.BytesIO(text))
    with pytest.raises(CommandFailed, match="is not a complete backup"):
        archive.check(tmp_path / "b")


def test_attack_another_way_to_pack_is_not_unpacked(tmp_path: Path) -> None:
    """What of xz has to be in memory its first bytes say, and they may say gibibytes."""
    with tarfile.open(tmp_path / "b", "w:xz") as tar:
        tar.addfile(tarfile.TarInfo("a"))
    with pytest.raises(CommandFailed, match="is not a complete backup"):
        archive.check(tmp_path / "b")


def test_of_many_files_an_archive_keeps_little_in_memory(tmp_path: Path) -> None:
    root = tmp_path / "homes"
    for n in range(3000):
        (root / f"{n // 100}").mkdir(parents=True, exist_ok=True)
        (root / f"{n // 100}" / f"{n}").touch()

    assert peak(lambda: written(root, tmp_path / "b")) < 3000 * 700
    assert peak(lambda: archive.check(tmp_path / "b")) < 3000 * 1000


@pytest.mark.parametrize(
    "odd", [{"revision": 5}, {"running": 5}, {"files": "yes"}, {"program": None}], ids=str
)
def test_attack_a_head_of_another_form_is_refused_in_words(tmp_path: Path, odd: dict[str, object]) -> None:
    head = manifest.Manifest(
        "now", "1", "0001", "sqlite", "sqlite", files=True, running=[], waiting=[], servers=[]
    )
    assert manifest.decode(head.encode(), tmp_path) == head
    for text in (json.dumps({**json.loads(head.encode()), **odd}), "[" * 100_000):
        with pytest.raises(CommandFailed, match="is not a backup of MLP Hub"):
            manifest.decode(text.encode(), tmp_path)


def _link(name: str, to: Path) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, str(to)
    return info


@pytest.mark.parametrize(
    "place", ["db", "db/mlp.sqlite", "databases/platform", "homes", "bindings.json", "run", "first-uid"]
)
def test_attack_nothing_is_restored_through_a_link_that_a_backup_brings(tmp_path: Path, place: str) -> None:
    outside, home = tmp_path / "outside", tmp_path / "home"
    outside.mkdir()
    copy = tmp_path / "copy"
    with contextlib.closing(sqlite3.connect(copy)) as connection:
        connection.execute("CREATE TABLE brought (text)")
    head = manifest.Manifest(
        "now", "1", newest_revision(), "sqlite", "sqlite", files=True, running=[], waiting=[], servers=[]
    )
    members = [
        (tarfile.TarInfo(manifest.NAME), head.encode()),
        *((tarfile.TarInfo(f"databases/{name}"), copy.read_bytes()) for name in ("platform", "hub")),
    ]
    link = _link(place, outside / ("mlp.sqlite" if place.endswith("sqlite") else ""))
    of_members(tmp_path / "b", *(one for one in members if one[0].name != place), (link, b""))
    settings = Settings.load({"MLP_HOME": str(home)})
    with pytest.raises(CommandFailed, match="is in no backup"):
        restore.restore(settings, tmp_path / "b")
    assert (list(outside.iterdir()), home.exists()) == ([], False)


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
