"""Heads of the audit log's chain are written outside of the database, retention cuts at them, and faults of the file are told."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import text

from mlp_hub.service.audit.heads import PublishedHead, last_head, parse_head, read_heads
from mlp_hub.service.audit.keeper import ChainKeeper
from mlp_hub.service.audit.verify import verify
from mlp_hub.service.config import AuditPolicy, NoticePolicy
from mlp_hub.service.notices.sender import Sender
from mlp_hub.store import Database


class Kept:
    """A log with its file of heads, and a clock that the test sets."""

    def __init__(self, root: Path) -> None:
        self.now = 1_000_000.0
        self.file = root / "audit-heads.jsonl"
        self.db = Database(str(root / "mlp.sqlite"))
        self.db.create_schema()
        self.keeper = self.make()

    def make(self, *, keep_s: float | None = 50_000.0, syslog: str = "") -> ChainKeeper:
        """Return what a service that was just started has."""
        policy = AuditPolicy(self.file, syslog)
        return ChainKeeper(self.db, lambda: self.now, policy, keep_s, Sender(NoticePolicy(), None))

    def add(self, count: int, who: str = "ann") -> None:
        for n in range(count):
            with self.db.begin() as tx:
                tx.audit.add(self.now, who, "tenant.update", f"t{self.now}-{n}")

    def keep(self, after: float = 0.0) -> None:
        self.now += after
        asyncio.run(self.keeper.keep())

    def breaks(self, file: Path | None = None) -> list[str]:
        heads = read_heads(file or self.file).heads
        report = self.db.read_now(lambda tx: verify(tx, heads, self.now + 1000))
        return [str(found.message) for found in report.breaks]

    def problems(self) -> list[str]:
        return [found.reason for found in asyncio.run(self.keeper.problems())]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.db.close()


def test_a_head_is_written_every_quarter_of_an_hour_if_something_changed(kept: Kept) -> None:
    kept.keep()
    kept.add(2)
    kept.keep(30)
    assert [h.seq for h in read_heads(kept.file).heads] == [0]
    kept.keep(900)
    kept.keep(900)
    kept.add(1)
    kept.keep(900)
    assert [(h.seq, h.entry) for h in read_heads(kept.file).heads] == [(0, 0), (3, 2), (5, 3)]
    assert kept.breaks() == []
    assert kept.file.stat().st_mode & 0o777 == 0o600


def test_a_service_that_starts_continues_the_file_and_writes_a_head_that_is_missing(kept: Kept) -> None:
    kept.add(1)
    kept.keep()
    kept.add(1)
    with kept.db.begin() as tx:  # stored, and the service died before it was written outside
        tx.audit_chain.checkpoint(kept.now)
    kept.keeper = kept.make()
    kept.keep(10)
    kept.keeper = kept.make()
    kept.keep(10)
    assert [h.seq for h in read_heads(kept.file).heads] == [2, 4]
    assert kept.breaks() == []


def test_a_torn_line_spoils_no_other(kept: Kept) -> None:
    kept.keep()
    with kept.file.open("ab") as file:
        file.write(b'{"seq": 7, "ha')
    kept.add(1)
    kept.keep(900)
    found = read_heads(kept.file)
    assert ([h.seq for h in found.heads], found.bad) == ([0, 2], (2,))
    assert kept.breaks() == []


def test_a_removed_end_is_told_by_the_service_itself_and_retention_waits(kept: Kept) -> None:
    kept.keep()
    kept.add(3)
    kept.keep(900)
    with kept.db.begin() as tx:
        tx.connection.execute(text("DELETE FROM audit WHERE id > 1"))
        tx.connection.execute(text("DELETE FROM audit_link WHERE seq > 1"))
    assert kept.problems() == []
    kept.add(1)
    kept.keeper = kept.make()
    kept.keep(900)
    assert kept.problems() == ["AuditLogBroken"]
    assert "or an older backup was restored" in kept.breaks()[0]
    entries = kept.db.read_now(lambda tx: tx.audit.page())[0]
    kept.keep(100_000)
    kept.keep(100_000)
    assert kept.db.read_now(lambda tx: tx.audit.page())[0] == entries, "evidence stays"
    kept.keeper = kept.make()
    kept.keep(10)
    assert kept.problems() == ["AuditLogBroken"], "also after a start"


def test_retention_notes_its_cut_outside_before_it_removes_anything(kept: Kept) -> None:
    kept.keep()
    kept.add(3)
    kept.keep(900)
    kept.add(2)
    kept.keep(40_000)
    kept.keep(9_000)
    assert not any(h.cut for h in read_heads(kept.file).heads)
    kept.keep(2_000)
    cuts = [h.seq for h in read_heads(kept.file).heads if h.cut]
    assert cuts == [4]
    assert len(kept.db.read_now(lambda tx: tx.audit.page())[0]) == 2
    assert kept.breaks() == []
    kept.keep(100)
    assert [h.seq for h in read_heads(kept.file).heads if h.cut] == [4], "once"


def test_without_a_file_that_can_be_written_nothing_is_removed_and_a_problem_is_told(kept: Kept) -> None:
    kept.keep()
    kept.add(1)
    kept.keep(900)
    kept.file.rename(kept.file.with_suffix(".aside"))
    kept.file.mkdir()
    kept.add(1)
    kept.keep(900)
    kept.keep(60_000)
    assert kept.problems() == ["AuditHeadsUnwritten"]
    assert len(kept.db.read_now(lambda tx: tx.audit.page())[0]) == 2
    kept.file.rmdir()
    kept.keep(30)
    assert kept.problems() == []
    assert [h.seq for h in read_heads(kept.file).heads][-1] >= 4


def test_heads_are_never_written_through_a_link(kept: Kept, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("mine\n")
    kept.file.symlink_to(other)
    kept.keep()
    assert other.read_text() == "mine\n"
    assert kept.problems() == ["AuditHeadsUnwritten"]


def test_both_cut_alike_only_a_copy_elsewhere_tells(kept: Kept, tmp_path: Path) -> None:
    kept.keep()
    kept.add(2)
    kept.keep(900)
    kept.add(2)
    kept.keep(900)
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(kept.file.read_bytes())
    with kept.db.begin() as tx:
        tx.connection.execute(text("DELETE FROM audit WHERE id > 2"))
        tx.connection.execute(text("DELETE FROM audit_link WHERE seq > 3"))
    kept.file.write_bytes(b"".join(kept.file.read_bytes().splitlines(keepends=True)[:2]))
    assert kept.breaks() == []
    (why,) = kept.breaks(copy)
    assert why.startswith("the chain ends at link 3, but the newest head outside is link 6")


def test_the_syslog_gets_each_head_once(kept: Kept, tmp_path: Path) -> None:
    place = str(tmp_path / "log.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        syslog.bind(place)
        kept.keeper = kept.make(syslog=place)
        kept.keep()
        kept.keep(900)
        kept.add(1)
        kept.keep(900)
        syslog.settimeout(5)
        said = [syslog.recv(4096).decode() for _ in range(2)]
    assert [json.loads(line[line.index("{") :])["seq"] for line in said] == [0, 2]
    assert all(line.startswith("<110>1 1970-01-12T") and " mlp-hub - audit-head - {" in line for line in said)
    Path(place).unlink()
    kept.add(1)
    kept.keep(900)
    assert kept.problems() == ["AuditHeadsUnwritten"], "the file has it, the syslog does not answer"


GOOD = {"seq": 1, "entry": 1, "hash": "ab" * 32, "time": 1.5}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\0" * 200,
        b"[]",
        b"null",
        b"{" * 900,
        b"x" * 5000,
        json.dumps({**GOOD, "seq": -1}).encode(),
        json.dumps({**GOOD, "seq": True}).encode(),
        json.dumps({**GOOD, "seq": 2**70}).encode(),
        json.dumps({**GOOD, "hash": "zz" * 32}).encode(),
        json.dumps({**GOOD, "hash": "ab"}).encode(),
        json.dumps({**GOOD, "hash": 5}).encode(),
        json.dumps({**GOOD, "time": "now"}).encode(),
        b'{"seq": 1, "entry": 1, "hash": "' + b"ab" * 32 + b'", "time": 1e999}',
    ],
)
def test_a_line_without_a_head_is_skipped(line: bytes, tmp_path: Path) -> None:
    assert parse_head(line) is None
    path = tmp_path / "heads"
    head = PublishedHead(1, 1, b"\xab" * 32, 1.5)
    path.write_bytes(head.line() + line + b"\n" + head.line())
    assert read_heads(path).heads == (head, head)
    assert last_head(path) == head
