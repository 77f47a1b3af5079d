"""Attacks by archives: what a backup brings that somebody made or changed."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import json
import os
import sqlite3
import tarfile
import tracemalloc
from pathlib import Path

import pytest

from mlp_hub.cli.backups import archive, manifest, restore
from mlp_hub.cli.errors import CommandFailed
from mlp_hub.cli.state.database import newest_revision
from mlp_hub.settings import Settings


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
