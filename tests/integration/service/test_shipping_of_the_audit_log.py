"""Each entry of the audit log reaches a real syslog and a file, whoever is killed between; bad entries and receivers hold nothing up."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from mlp_hub.service.audit import receivers, shipping
from mlp_hub.service.audit.keeper import ChainKeeper
from mlp_hub.service.audit.shipping import AuditShipping, ShippingDelay
from mlp_hub.service.config import AuditPolicy, NoticePolicy, SyslogReceiver
from mlp_hub.service.notices.sender import Sender
from mlp_hub.store import Database
from mlp_language.message import msg
from support.certificates import certificate
from support.monitoring import audit_shipper
from support.monitoring.syslog_server import SyslogServer
from support.waiting import wait_for


class Shipped:
    """A log, a clock that the test sets, and the component under test."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 1_000_000.0
        self.db = Database(str(root / "mlp.sqlite"))
        self.db.create_schema()
        self.file = root / "audit.jsonl"

    def add(self, count: int, action: str = "tenant.update", **detail: object) -> None:
        with self.db.begin() as tx:
            for n in range(count):
                tx.audit.add(self.now, "ann", action, f"t{n}", tenant="red", detail=detail)

    def make(self, receiver: SyslogReceiver | None = None, *, file: bool = False) -> AuditShipping:
        self.policy = AuditPolicy(ship_syslog=receiver, ship_file=self.file if file else None)
        return AuditShipping(self.db, lambda: self.now, self.policy)

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.file.read_text().splitlines()]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Shipped]:
    made = Shipped(tmp_path)
    yield made
    made.db.close()


@pytest.fixture
def servers() -> Iterator[list[SyslogServer]]:
    made: list[SyslogServer] = []
    yield made
    for one in made:
        one.kill()


def ship(shipping: AuditShipping) -> None:
    async def all_lots() -> None:
        while await shipping.turn():
            pass

    asyncio.run(all_lots())


def links(messages: Sequence[dict[str, Any]]) -> list[int]:
    return [one["link"] for one in messages]


def tcp(server: SyslogServer) -> SyslogReceiver:
    return SyslogReceiver("tcp", "127.0.0.1", int(server.place))


def test_each_entry_is_a_line_with_the_number_of_its_link_and_a_repetition_is_shipped_again(
    log: Shipped,
) -> None:
    log.add(1, cpu=4, why=msg("at {n}", n=3))
    made = log.make(file=True)
    ship(made)
    log.add(1, cpu=4, why=msg("at {n}", n=3))  # counted in the same entry
    ship(made)
    first, again = log.lines()
    assert {**first, "hash": ""} == {
        "type": "audit",
        "link": 1,
        "hash": "",
        "id": 1,
        "time": "1970-01-12T13:46:40.000Z",
        "actor": "ann",
        "action": "tenant.update",
        "object": "t0",
        "tenant": "red",
        "detail": {"cpu": 4, "why": "at 3"},
    }
    hashes = log.db.read_now(lambda tx: tx.audit_chain.hashes([1]))
    assert bytes.fromhex(first["hash"]) == hashes[1]
    assert (again["link"], again["id"], again["again"], again["detail"]["times"]) == (2, 1, True, 2)
    ship(log.make(file=True))
    assert len(log.lines()) == 2, "what a receiver has is not shipped again after a start"
    assert log.file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("transport", ["tcp", "tls", "udp", "unix", "unix-stream"])
def test_a_real_syslog_gets_every_entry_once_over_each_transport(
    log: Shipped, servers: list[SyslogServer], tmp_path: Path, transport: str
) -> None:
    path = certificate(tmp_path, "127.0.0.1") if transport == "tls" else None
    place = str(tmp_path / "log.sock") if transport.startswith("unix") else "0"
    server = SyslogServer(transport, tmp_path / "received", place, path)
    servers.append(server)
    log.add(3, name="zwölf\n<13>1 - forged\x00")
    many = 20 if transport == "udp" else 450  # of many at once, a full buffer drops datagrams
    log.add(many)
    kind: Any = transport.partition("-")[0]
    receiver = (
        SyslogReceiver("unix", server.place)
        if kind == "unix"
        else SyslogReceiver(kind, "127.0.0.1", int(server.place), ca=path)
    )
    ship(log.make(receiver))
    found = wait_for(lambda: server.messages if len(server.messages) >= 3 + many else None)
    assert links(found) == list(range(1, 4 + many))
    assert found[0]["detail"]["name"].startswith("zwölf\n<13>1 - forged")


def test_nothing_is_lost_when_shipper_and_receiver_are_killed_again_and_again(
    log: Shipped, servers: list[SyslogServer], tmp_path: Path
) -> None:
    server = SyslogServer("tcp", tmp_path / "received")
    servers.append(server)
    log.add(1)
    args = [
        sys.executable,
        audit_shipper.__file__,
        str(log.root / "mlp.sqlite"),
        "tcp",
        "127.0.0.1",
        server.place,
    ]
    for number in range(6):
        before = len(server.messages)
        shipper = subprocess.Popen([*args, str(log.file)])
        try:
            log.now += 1000
            log.add(700)
            wait_for(lambda before=before: len(server.messages) > before)
            if number % 2:
                server.kill()
                log.add(50, again=number)
                server.start()
        finally:
            shipper.kill()
            shipper.wait()
    ship(log.make(tcp(server), file=True))
    last = log.db.read_now(lambda tx: tx.audit_chain.last())
    assert last is not None
    for found in (links(server.messages), links(log.lines())):
        assert set(found) == set(range(1, last.seq + 1))
        firsts = list(dict.fromkeys(found))
        assert firsts == sorted(firsts), "in the order of the chain"
    # doubles are whole lots that were not confirmed yet
    assert len(server.messages) - last.seq <= 12 * shipping.MOST_AT_ONCE


def test_a_receiver_that_hangs_or_dies_with_unread_entries_does_not_have_them(
    log: Shipped, servers: list[SyslogServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers, "PATIENCE_S", 0.3)
    server = SyslogServer("tcp", tmp_path / "received")
    servers.append(server)
    log.add(5)
    made = log.make(tcp(server))
    server.signal(signal.SIGSTOP)  # its machine takes the bytes, and nobody reads them
    with pytest.raises(TimeoutError, match="did not end the connection"):
        asyncio.run(made.turn())
    assert made.delays() == [ShippingDelay("syslog", 6, log.now)]
    server.kill()
    with pytest.raises(OSError):  # noqa: PT011 - whichever the system gives
        asyncio.run(made.turn())
    server.start()
    ship(made)
    assert links(server.messages)[-5:] == [1, 2, 3, 4, 5]
    assert made.delays() == [ShippingDelay("syslog", 0, None)]


@pytest.mark.parametrize("reads", [0, 10])
def test_a_connection_that_the_receiver_ended_before_it_read_all_counts_as_failed(reads: int) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def ends_early() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(reads)

    thread = threading.Thread(target=ends_early)
    thread.start()
    with server, pytest.raises(OSError):  # noqa: PT011 - as above
        receivers.send_to_syslog(
            SyslogReceiver("tcp", "127.0.0.1", server.getsockname()[1]), [b"x" * 50_000] * 40
        )
    thread.join()


def test_a_certificate_of_somebody_else_gets_nothing(
    log: Shipped, servers: list[SyslogServer], tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    server = SyslogServer("tls", tmp_path / "received", certificate=certificate(tmp_path, "127.0.0.1"))
    servers.append(server)
    log.add(1)
    for ca in (None, certificate(tmp_path / "other", "127.0.0.1")):
        with pytest.raises(OSError, match="certificate verify failed"):
            asyncio.run(log.make(SyslogReceiver("tls", "127.0.0.1", int(server.place), ca=ca)).turn())
    assert server.messages == []


def test_broken_removed_and_long_entries_hold_up_no_other(
    log: Shipped, servers: list[SyslogServer], tmp_path: Path
) -> None:
    server = SyslogServer("udp", tmp_path / "received")
    servers.append(server)
    log.add(5)
    with log.db.begin() as tx:
        tx.connection.execute(text("UPDATE audit SET detail = '{\"torn' WHERE id = 1"))
        tx.connection.execute(text("UPDATE audit SET actor = CAST(x'ff41' AS TEXT) WHERE id = 2"))
        tx.connection.execute(text("DELETE FROM audit WHERE id = 3"))
        tx.connection.execute(
            text("UPDATE audit SET detail = :broken WHERE id = 4"), {"broken": '{"said":{"said":7}}'}
        )
    log.add(1, "tenant.other", text="x" * 200_000)
    ship(log.make(SyslogReceiver("udp", "127.0.0.1", int(server.place)), file=True))
    found = wait_for(lambda: server.messages if len(server.messages) >= 6 else None)
    assert links(found) == [1, 2, 3, 4, 5, 6]
    assert found[0]["detail"] == {"unreadable": '{"torn'}
    assert found[1]["actor"] == "\ufffdA"
    assert found[2]["missing"]
    assert "actor" not in found[2]
    assert found[5]["detail"].keys() == {"left_out"}
    assert len(log.lines()[5]["detail"]["text"]) == 200_000, "a file takes it whole"


def test_a_torn_line_of_the_file_spoils_no_other_and_a_link_is_not_followed(log: Shipped) -> None:
    log.add(1)
    ship(log.make(file=True))
    with log.file.open("ab") as file:
        file.write(b'{"link": 2, "ha')
    log.add(1, "tenant.other")
    ship(log.make(file=True))
    assert [json.loads(one)["link"] for one in log.file.read_text().splitlines() if one.endswith("}")] == [
        1,
        2,
    ]
    moved = log.file.rename(log.file.with_suffix(".moved"))
    log.file.symlink_to(moved)
    log.add(1, "tenant.third")
    made = log.make(file=True)
    with pytest.raises(OSError):  # noqa: PT011 - whichever the system gives
        asyncio.run(made.turn())
    log.file.unlink()
    ship(made)
    assert links(log.lines()) == [3], "a file that was rotated away begins again"


def test_retention_removes_nothing_that_is_not_shipped(log: Shipped) -> None:
    log.file.mkdir()  # no file can be written
    made = log.make(file=True)
    keeper = ChainKeeper(log.db, lambda: log.now, log.policy, 50_000.0, Sender(NoticePolicy(), None))

    def keep(after: float) -> int:
        log.now += after
        asyncio.run(keeper.keep())
        return len(log.db.read_now(lambda tx: tx.audit.page())[0])

    keep(0)
    log.add(3)
    keep(900)
    log.add(1, "tenant.other")
    keep(901)
    assert keep(100_000) == 4
    assert keep(30) == 4
    with pytest.raises(OSError):  # noqa: PT011 - whichever the system gives
        asyncio.run(made.turn())
    (late,) = asyncio.run(made.problems())
    assert late.reason == "AuditUnshipped"
    assert not late.fails
    log.file.rmdir()
    ship(made)
    assert asyncio.run(made.problems()) == []
    keep(30)
    assert keep(30) < 4, "now they go"
    assert [one["action"] for one in log.lines()][:4] == ["tenant.update"] * 3 + ["tenant.other"]


def test_a_cursor_ahead_of_a_restored_database_begins_again(log: Shipped) -> None:
    log.add(2)
    with log.db.begin() as tx:
        tx.settings.put(shipping.PREFIX + "file", {"link": 999})
    ship(log.make(file=True))
    assert links(log.lines()) == [1, 2]
    for bad in ("x", {"link": "7"}, {"link": True}, None):
        with log.db.begin() as tx:
            tx.settings.put(shipping.PREFIX + "file", bad)
        ship(log.make(file=True))
    assert len(log.lines()) == 10


def test_it_is_off_by_default_and_looks_at_nothing(log: Shipped) -> None:
    async def started() -> int:
        made = AuditShipping(log.db, lambda: log.now, AuditPolicy())
        made.start()
        running = len(asyncio.all_tasks())
        await made.stop()
        return running

    assert asyncio.run(started()) == 1
