from __future__ import annotations

import asyncio
import contextlib
import re
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from mlp_hub.domain.errors import Reason, Refused
from mlp_hub.store import Database, StoreInUse, StoreUnavailable, Tx, writer
from support.waiting import PATIENCE_S


def put(key: str, value: object = 1):
    return lambda tx: tx.settings.put(key, value)


def test_written_data_is_available_to_the_next_process(db: Database, url: str) -> None:
    asyncio.run(db.write(put("a", {"b": [1, None]})))
    db.close()
    other = Database(url)
    with other.reading() as tx:
        assert tx.settings.get("a") == {"b": [1, None]}
    other.close()


def test_writes_of_many_share_commits_and_keep_their_order(db: Database) -> None:
    async def run() -> list[int]:
        db.open()
        busy, hold = threading.Event(), threading.Event()
        first = asyncio.ensure_future(db.write(lambda tx: (busy.set(), hold.wait(60))))
        await asyncio.to_thread(busy.wait, 60)  # so the rest queues up
        rest = [asyncio.ensure_future(db.write(lambda tx, i=i: seen.append(i) or i)) for i in range(200)]
        await asyncio.sleep(0)
        hold.set()
        await first
        return await asyncio.gather(*rest)

    seen: list[int] = []
    assert asyncio.run(run()) == list(range(200)) == seen
    commits, works = db.group_commit
    assert works == 201
    assert commits < works / 2  # how many are in one is the writer's own matter


async def test_a_writer_without_work_sleeps(db: Database) -> None:
    await db.write(put("a"))
    thread = next(t for t in threading.enumerate() if t.name == "mlp-store-writer" and t.native_id)
    status = Path(f"/proc/self/task/{thread.native_id}/status")

    def woken() -> int:
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", status.read_text(), re.MULTILINE)
        assert found is not None
        return int(found[1])

    async def asleep() -> bool:
        before = woken()
        await asyncio.sleep(0.5)
        return woken() == before

    wait = 0
    while not await asleep():  # what the last commit still does may wake it
        wait += 1
        assert wait < 20, "it wakes again and again"
    await db.write(put("b"))
    with db.reading() as tx:
        assert tx.settings.get("b") == 1


async def test_a_database_that_cannot_be_opened_leaves_no_descriptor_behind(tmp_path: Path) -> None:
    db = Database(f"postgresql://nobody@/nothing?host={tmp_path}")
    with pytest.raises(StoreUnavailable):
        await db.write(put("a"))
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        with pytest.raises(StoreUnavailable):
            await db.write(put("a"))
    assert len(list(Path("/proc/self/fd").iterdir())) < before + 20
    db.close()


async def test_only_writes_that_need_not_be_durable_do_not_wait_for_the_disk(db: Database) -> None:
    if db.url.get_backend_name() != "sqlite":
        pytest.skip("PostgreSQL makes no difference")

    order: list[int] = []

    def level(tx: Tx, number: int) -> int:
        order.append(number)
        found: int = tx.connection.exec_driver_sql("PRAGMA synchronous").scalar_one()
        return found

    full, normal = 2, 1
    assert await db.write(partial(level, number=0)) == full
    assert await db.write(partial(level, number=1), durable=False) == normal
    assert await db.write(partial(level, number=2)) == full
    queued = [db.write(partial(level, number=n), durable=n % 3 == 0) for n in range(3, 100)]
    levels = await asyncio.gather(*queued)
    assert order == list(range(100))
    assert all(found == full for n, found in enumerate(levels, 3) if n % 3 == 0)


def test_a_full_database_is_trouble_until_a_write_goes_through_again(db: Database) -> None:
    big = "x" * 2_000_000

    def no_more_room(tx: Tx) -> None:
        if tx.connection.dialect.name == "sqlite":
            pages = tx.connection.scalar(text("PRAGMA page_count"))
            tx.connection.execute(text(f"PRAGMA max_page_count={pages + 10}"))

    async def run() -> None:
        await db.write(put("a"))
        assert db.trouble is None
        await db.write(no_more_room)
        with pytest.raises(StoreUnavailable):
            await db.write(put("big", big))
        assert db.trouble is not None
        assert "full" in db.trouble
        await db.write(put("b"))
        assert db.trouble is None

    if db._sqlite:
        asyncio.run(run())


async def test_nothing_is_accepted_while_the_file_of_the_database_is_gone_or_another_one(
    db: Database,
) -> None:
    if db.url.get_backend_name() != "sqlite":
        pytest.skip("PostgreSQL keeps its files itself")

    await db.write(put("a"))
    file, aside = Path(str(db.url.database)), Path(f"{db.url.database}-aside")
    file.rename(aside)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="is missing or was replaced"):
            await db.write(put("lost"))
    assert "put it back" in (db.trouble or "")
    assert not file.exists()
    file.write_bytes(aside.read_bytes())
    with pytest.raises(StoreUnavailable, match="is missing or was replaced"):
        await db.write(put("lost"))
    aside.replace(file)
    await db.write(put("b"))
    assert db.trouble is None
    with db.reading() as tx:
        assert [tx.settings.get(k) for k in ("a", "lost", "b")] == [1, None, 1]


def test_one_that_raises_takes_back_only_its_own_work(db: Database) -> None:
    def bad(tx: Tx) -> None:
        tx.settings.put("bad", 1)
        raise Refused(Reason.CONFLICT, "no")

    def broken(tx: Tx) -> None:
        tx.settings.put("broken", 1)
        tx.connection.execute(text("SELECT nonsense FROM nowhere"))

    async def run() -> list[object]:
        works = [put("a"), bad, put("b"), broken, put("c")]
        return await asyncio.gather(*(db.write(w) for w in works), return_exceptions=True)

    results = asyncio.run(run())
    assert isinstance(results[1], Refused)
    assert isinstance(results[3], StoreUnavailable)
    assert [results[0], results[2], results[4]] == [None, None, None]
    with db.reading() as tx:
        assert [tx.settings.get(k) for k in ("a", "bad", "b", "broken", "c")] == [1, None, 1, None, 1]


async def test_a_first_work_that_raises_is_undone_with_its_transaction_and_the_rest_is_stored(
    db: Database,
) -> None:
    commits = db.group_commit[0]

    def refused(tx: Tx) -> None:
        tx.settings.put("bad", 1)
        raise LookupError("no")

    first = db.write(refused)
    rest = [db.write(lambda tx, n=n: tx.settings.put(f"good{n}", n)) for n in range(3)]  # type: ignore[misc]
    found = await asyncio.gather(first, *rest, return_exceptions=True)
    assert [type(each) for each in found] == [LookupError, *[type(None)] * 3]
    names = ("bad", "good0", "good1", "good2")
    assert await db.read(lambda tx: [tx.settings.get(name) for name in names]) == [None, 0, 1, 2]
    assert db.group_commit[0] > commits, "of what was refused alone nothing is committed"
    before = db.group_commit[0]
    with pytest.raises(LookupError):
        await db.write(refused)
    assert db.group_commit[0] == before
    assert await db.read(lambda tx: tx.settings.get("bad")) is None


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
@pytest.mark.parametrize("place", [0, 1])
async def test_no_work_is_reported_as_stored_after_it_caught_the_error_of_a_statement(
    db: Database, place: int
) -> None:
    def catch(tx: Tx) -> None:
        tx.settings.put("bad", 1)
        with contextlib.suppress(SQLAlchemyError):
            tx.connection.execute(text("SELECT * FROM no_table"))

    works = [put("a"), put("b")]
    works.insert(place, catch)
    found = await asyncio.gather(*(db.write(work) for work in works), return_exceptions=True)
    assert [isinstance(each, StoreUnavailable) for each in found] == [i == place for i in range(3)]
    names = ("bad", "a", "b")
    assert await db.read(lambda tx: [tx.settings.get(name) for name in names]) == [None, 1, 1]


def test_when_the_transaction_is_lost_all_of_its_batch_are_told_and_the_next_ones_work(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MAX_BATCH_S", PATIENCE_S)  # a slow machine would make a batch of each
    begun, gate = threading.Event(), threading.Event()

    def hold(tx: Tx) -> None:
        begun.set()
        gate.wait(PATIENCE_S)

    def lose(tx: Tx) -> None:
        if tx.connection.dialect.name == "sqlite":
            # what SQLite does by itself when the disk is full
            tx.connection.connection.dbapi_connection.execute("ROLLBACK")
            raise SQLAlchemyError("disk full")
        tx.connection.execute(text("SELECT pg_terminate_backend(pg_backend_pid())"))

    async def run() -> list[object]:
        db.open()
        first = asyncio.ensure_future(db.write(hold))
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        rest = [asyncio.ensure_future(db.write(w)) for w in (put("a"), lose, put("b"))]
        await asyncio.sleep(0)
        gate.set()
        results = await asyncio.gather(first, *rest, return_exceptions=True)
        await db.write(put("c"))
        return results

    results = asyncio.run(run())
    told = [isinstance(r, StoreUnavailable) for r in results]
    with db.reading() as tx:
        kept = [tx.settings.get(k) for k in ("a", "b", "c")]
    assert told[1:3] == [True, True]
    # the last one was either in the lost batch, or in the next one
    assert kept == [None, None if told[3] else 1, 1]


def test_a_commit_that_fails_is_told_to_those_who_were_refused_too(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(tx: Tx) -> None:
        raise Refused(Reason.WAITING_FOR_QUOTA, "a neighbour has it")

    async def run() -> list[object]:
        db.open()
        connection = db._writer._connection

        def fail(*_: object) -> None:
            raise SQLAlchemyError("no space left")

        monkeypatch.setattr(connection.dialect, "do_commit", fail)
        works = [asyncio.ensure_future(db.write(w)) for w in (put("a"), refuse)]
        results = await asyncio.gather(*works, return_exceptions=True)
        monkeypatch.undo()
        await db.write(put("b"))
        return results

    results = asyncio.run(run())
    # the second was told of the lost commit, or ran in a batch of its own that had its own lost commit
    assert [type(r) for r in results] == [StoreUnavailable, StoreUnavailable]
    with db.reading() as tx:
        assert (tx.settings.get("a"), tx.settings.get("b")) == (None, 1)


def test_a_reader_sees_one_state_throughout_and_cannot_write(db: Database) -> None:
    with db.begin() as tx:
        tx.settings.put("a", 1)
    with db.reading() as tx:
        assert tx.settings.get("a") == 1
        with db.begin() as other:
            other.settings.put("a", 2)
        assert tx.settings.get("a") == 1
    with db.reading() as tx:
        assert tx.settings.get("a") == 2
    with pytest.raises(StoreUnavailable), db.reading() as tx:
        tx.settings.put("a", 3)


async def test_a_synchronous_transaction_of_another_process_excludes_the_service(
    db: Database, url: str
) -> None:
    def add(tx: Tx) -> None:
        tx.settings.put("n", (tx.settings.get("n") or 0) + 1)

    other = Database(url)

    def work() -> None:
        for _ in range(25):
            with other.begin() as tx:
                add(tx)

    thread = asyncio.get_running_loop().run_in_executor(None, work)
    await asyncio.gather(*(db.write(add) for _ in range(25)))
    await thread
    other.close()
    with db.reading() as tx:
        assert tx.settings.get("n") == 50


def test_only_one_service_works_on_a_file_and_on_postgresql_a_second_may_stand_by(
    db: Database, url: str
) -> None:
    db.open()
    second = Database(url, guard=True)
    assert second.alone is (db.url.get_backend_name() == "sqlite")
    if second.alone:
        with pytest.raises(StoreInUse, match="another service"):
            second.open()
    else:
        second.open()
        second.close()
        second = Database(url, guard=True)
    command = Database(url)
    with command.begin() as tx:
        tx.settings.put("from", "a command")
    command.close()
    db.close()
    second.open()
    second.close()


async def test_closing_finishes_what_is_queued_and_refuses_the_rest(db: Database) -> None:
    works = [asyncio.ensure_future(db.write(put(f"k{i}"))) for i in range(20)]
    await asyncio.sleep(0)
    writer = db._writer
    db.close()
    await asyncio.gather(*works)
    with pytest.raises(StoreUnavailable, match="closed"):
        writer.submit(put("late"))


async def test_one_who_stopped_waiting_does_no_harm(db: Database) -> None:
    gone = asyncio.ensure_future(db.write(put("gone")))
    await asyncio.sleep(0)
    gone.cancel()
    await db.write(put("b"))
    with db.reading() as tx:
        assert tx.settings.get("b") == 1


def test_a_file_that_is_not_a_database_is_reported_as_such(tmp_path) -> None:
    path = tmp_path / "mlp.sqlite"
    path.write_bytes(b"not a database" * 1000)
    db = Database(str(path))
    with pytest.raises(StoreUnavailable, match="not a database"):
        asyncio.run(db.write(put("a")))
    db.close()
    with pytest.raises(ValueError, match="sqlite or postgresql"):
        Database("mysql://host/db")


def test_the_service_s_store_needs_neither_the_orm_nor_alembic() -> None:
    code = (
        "import sys, asyncio, tempfile\n"
        "from mlp_hub.store import Database\n"
        "d = tempfile.mkdtemp()\n"
        "db = Database(d + '/x.sqlite'); db.create_schema()\n"
        "asyncio.run(db.write(lambda tx: tx.tenants.all())); db.close()\n"
        "bad = [m for m in ('sqlalchemy.orm', 'alembic', 'numpy', 'jupyterhub', 'pydantic') if m in sys.modules]\n"
        "sys.exit(repr(bad) if bad else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
