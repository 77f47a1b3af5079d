"""The chain of the audit log shows each change that somebody makes in the database by hand, on both databases."""

# ruff: noqa: S608 - the tests change the tables as somebody with a console would
from __future__ import annotations

import asyncio
import hashlib
import shutil
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from mlp_hub.domain.audit_chain import NO_HASH, entry_digest, link_hash
from mlp_hub.domain.tenants.tenant import Tenant
from mlp_hub.service.audit.heads import PublishedHead
from mlp_hub.service.audit.verify import ChainReport, verify
from mlp_hub.store import Database, migrate
from mlp_hub.store import engine as engines
from mlp_hub.store.errors import ValueRefused
from mlp_hub.store.repos.audit import CUT
from support.stores.postgres import PostgresServer

LATE = 1e9


def add(db: Database, first: int, last: int) -> None:
    for n in range(first, last + 1):
        with db.begin() as tx:
            tx.audit.add(float(n), "ann", "tenant.update", f"t{n}", tenant="red", detail={"cpu": n})


def head(db: Database, at: float) -> PublishedHead:
    with db.begin() as tx:
        return PublishedHead.of(tx.audit_chain.checkpoint(at))


def check(db: Database, heads: Sequence[PublishedHead] | None = None) -> ChainReport:
    return db.read_now(lambda tx: verify(tx, heads, LATE))


def told(report: ChainReport) -> list[str]:
    return [str(found.message) for found in report.breaks]


def by_hand(db: Database, *statements: str) -> None:
    with db.begin() as tx:
        for statement in statements:
            tx.connection.execute(text(statement))


def rechain(db: Database) -> None:
    """Write all links again so that they fit the rows, as somebody would who knows how it is done."""
    with db.begin() as tx:
        chain = tx.audit_chain
        rows = {row[0]: row for row in chain.entries(0, 10_000)}
        before, seq = NO_HASH, -1
        for number, entry, again, time, digest, _ in list(chain.links(-1, 10_000)):
            seq += 1
            fit = entry_digest(*rows[entry]) if time is None else digest
            made = link_hash(before, seq, entry, again, time, fit)
            change = "UPDATE audit_link SET seq = :seq, digest = :digest, hash = :hash WHERE seq = :old"
            tx.connection.execute(text(change), {"seq": seq, "digest": fit, "hash": made, "old": number})
            before = made


@pytest.fixture
def chained(db: Database) -> Database:
    """Nine entries, with a checkpoint at the beginning, after the third, the sixth and the last; links 0 to 12."""
    head(db, 1.0)
    for at in (1, 4, 7):
        add(db, at, at + 2)
        head(db, at + 2.5)
    return db


def heads_of(db: Database) -> list[PublishedHead]:
    with db.reading() as tx:
        links = [row for row in tx.audit_chain.links(-1, 10_000) if row[3] is not None]
    return [PublishedHead(seq, entry, made, time) for seq, entry, _, time, _, made in links]


def test_a_log_that_nobody_touched_is_sound(chained: Database) -> None:
    report = check(chained, heads_of(chained))
    assert told(report) == []
    assert (report.entries, report.links, report.outside) == (9, 12, 0)
    assert report.agreed is not None
    assert report.agreed.seq == 12
    assert report.last is not None
    assert report.last.entry == 9


def test_the_hash_is_what_the_documentation_says(db: Database) -> None:
    add(db, 1, 1)
    with db.reading() as tx:
        (row,) = tx.audit_chain.entries(0, 10)
        first, second = tx.audit_chain.links(-1, 10)

    def field(value: bytes | None) -> bytes:
        return (
            (-1).to_bytes(8, "big", signed=True) if value is None else len(value).to_bytes(8, "big") + value
        )

    number, time, *texts = row
    fields = [number.to_bytes(8, "big"), struct.pack(">d", time), *texts]
    digest = hashlib.sha256(b"".join(map(field, fields))).digest()
    assert digest == second.digest
    linked = [first.hash, (1).to_bytes(8, "big"), number.to_bytes(8, "big"), b"\0", None, digest]
    assert hashlib.sha256(b"".join(map(field, linked))).digest() == second.hash


def test_repetitions_are_counted_in_their_entry_and_stay_checked(db: Database) -> None:
    for n in range(5):
        with db.begin() as tx:
            tx.audit.add(float(n), "ann", "member.set", "bob", detail={"role": "admin"})
            tx.audit.add(float(n), "ann", "member.set", "carl", detail={"role": "admin"})
    assert told(check(db)) == []
    by_hand(db, "UPDATE audit SET detail = replace(detail, '5', '4') WHERE object = 'bob'")
    assert told(check(db)) == ["entry 1 was changed"]


def test_an_entry_set_back_to_an_earlier_repetition_is_noticed(db: Database) -> None:
    earlier = ""
    for n in range(3):
        with db.begin() as tx:
            tx.audit.add(float(n), "ann", "member.set", "bob", detail={"role": "admin"})
            if n == 0:
                earlier = str(tx.connection.execute(text("SELECT detail FROM audit")).scalar_one())
    with db.begin() as tx:
        tx.connection.execute(text("UPDATE audit SET detail = :d"), {"d": earlier})
    assert told(check(db)) == ["entry 1 was changed"]


def test_a_refused_change_leaves_no_link(db: Database) -> None:
    class RefusedError(Exception):
        pass

    def work(tx: Any) -> None:
        tx.audit.add(5.0, "ann", "tenant.update", "red")
        raise RefusedError

    async def run() -> None:
        add(db, 1, 1)
        with pytest.raises(RefusedError):
            await db.write(work)
        await asyncio.gather(
            *(db.write(lambda tx, n=n: tx.audit.add(float(n), "bob", "x.y", f"o{n}")) for n in range(20)),  # type: ignore[misc]
            return_exceptions=True,
        )

    asyncio.run(run())
    report = check(db)
    assert told(report) == []
    assert report.entries == 21


FIELDS = {
    "actor": "actor = 'bob'",
    "action": "action = 'tenant.delete'",
    "object": "object = 'x'",
    "team": "tenant = 'blue'",
    "no team": "tenant = NULL",
    "an empty team": "tenant = ''",
    "details": "detail = '{}'",
    "time": "time = time + 0.001",
    "a field moved into the next": "actor = 'a', action = 'nntenant.update'",
}


@pytest.mark.parametrize("change", FIELDS.values(), ids=FIELDS)
def test_a_changed_field_names_its_entry(chained: Database, change: str) -> None:
    by_hand(chained, f"UPDATE audit SET {change} WHERE id = 5")
    assert told(check(chained)) == ["entry 5 was changed"]


@pytest.mark.parametrize("number", [1, 5, 9])
def test_a_removed_entry_is_named_at_the_beginning_in_the_middle_and_at_the_end(
    chained: Database, number: int
) -> None:
    by_hand(chained, f"DELETE FROM audit WHERE id = {number}")
    assert told(check(chained)) == [f"entry {number} was removed"]


def test_an_entry_removed_with_its_link_leaves_a_gap(chained: Database) -> None:
    by_hand(
        chained, "DELETE FROM audit WHERE id = 5", "DELETE FROM audit_link WHERE entry = 5 AND time IS NULL"
    )
    assert told(check(chained)) == ["links 6 to 6 of the chain were removed"]


def test_two_swapped_entries_are_both_named(chained: Database) -> None:
    by_hand(
        chained,
        "UPDATE audit SET id = 1000 WHERE id = 2",
        "UPDATE audit SET id = 2 WHERE id = 7",
        "UPDATE audit SET id = 7 WHERE id = 1000",
    )
    assert told(check(chained)) == ["entry 2 was changed", "entry 7 was changed"]


def test_swapped_links_do_not_follow_each_other(chained: Database) -> None:
    by_hand(
        chained,
        "UPDATE audit_link SET seq = 1000 WHERE seq = 2",
        "UPDATE audit_link SET seq = 2 WHERE seq = 3",
        "UPDATE audit_link SET seq = 3 WHERE seq = 1000",
    )
    first = told(check(chained))[0]
    assert first.startswith("link 2 of the chain, of entry 3, does not follow")


def test_an_inserted_entry_is_named(chained: Database) -> None:
    columns = "(id, time, actor, action, object, tenant, detail)"
    by_hand(
        chained,
        "UPDATE audit SET id = 100 WHERE id = 9",
        f"INSERT INTO audit {columns} VALUES (9, 9.0, 'eve', 'a.b', 'x', NULL, '{{}}')",
    )
    assert told(check(chained)) == ["entry 9 was changed", "entry 100 was inserted: it is not in the chain"]


def test_a_reused_number_of_a_removed_entry_is_found(chained: Database) -> None:
    """SQLite gives the id of a last row that is removed to the next one."""
    by_hand(chained, "DELETE FROM audit WHERE id = 9")
    if not chained.in_a_file:
        by_hand(chained, "SELECT setval(pg_get_serial_sequence('audit', 'id'), 8)")
    add(chained, 10, 10)
    assert told(check(chained)) == ["the id of entry 9 was given twice: the first entry with it was removed"]


@pytest.mark.parametrize("links", [True, False])
def test_a_removed_beginning_is_named(chained: Database, links: bool) -> None:
    cut = ["DELETE FROM audit WHERE id <= 2"]
    by_hand(chained, *cut, *(["DELETE FROM audit_link WHERE seq <= 2"] if links else []))
    if links:
        assert told(check(chained)) == ["the beginning of the chain was removed: link 3 is not a checkpoint"]
    else:
        assert told(check(chained)) == ["entry 1 was removed", "entry 2 was removed"]


def test_a_beginning_removed_at_a_checkpoint_shows_against_the_heads_outside(chained: Database) -> None:
    heads = heads_of(chained)
    by_hand(chained, "DELETE FROM audit WHERE id <= 3", "DELETE FROM audit_link WHERE seq < 4")
    assert told(check(chained)) == [], "without heads outside nothing tells it from retention"
    assert told(check(chained, heads)) == [
        "the chain begins at link 4, but retention removed links before 0 at most: its beginning was removed"
    ]


def test_a_cut_tail_shows_against_the_heads_outside_and_a_restored_backup_is_named_as_possible(
    chained: Database,
) -> None:
    heads = heads_of(chained)
    by_hand(chained, "DELETE FROM audit WHERE id > 6", "DELETE FROM audit_link WHERE seq > 8")
    assert told(check(chained, None)) == []
    (why,) = told(check(chained, heads))
    assert why.startswith("the chain ends at link 8, but the newest head outside is link 12 of ")
    assert why.endswith("entries at its end were removed, or an older backup was restored")
    assert told(check(chained, heads[:3])) == [], "database and heads cut alike: nothing here can tell"

    add(chained, 20, 29)  # it continues, and the removed end is still known
    head(chained, 30.0)
    now = heads_of(chained)
    (why,) = told(check(chained, [*heads, now[-1]]))
    assert why.startswith("link 12 is not the one that was written outside at ")
    assert "rewritten after link 8, or an older backup was restored" in why


def test_a_removed_chain_shows_against_the_heads_outside(chained: Database) -> None:
    heads = heads_of(chained)
    by_hand(chained, "DELETE FROM audit_link")
    (why,) = told(check(chained, heads))
    assert why.startswith("the whole chain was removed: the newest head outside is link 12")
    report = check(chained)
    assert (report.first, report.outside) == (None, 9)
    head(chained, 50.0)  # the hub begins another one
    add(chained, 51, 52)
    report = check(chained, heads)
    assert report.outside == 9
    assert told(report)[0].startswith("link 0 is not the one that was written outside at ")
    assert "rewritten after its beginning" in told(report)[0]


def test_a_rewritten_chain_shows_against_the_heads_outside(chained: Database) -> None:
    heads = heads_of(chained)
    by_hand(chained, "UPDATE audit SET actor = 'bob' WHERE id = 5")
    rechain(chained)
    assert told(check(chained)) == []
    (why,) = told(check(chained, heads))
    assert why.startswith("link 8 is not the one")
    assert "rewritten after link 4," in why


def test_a_cut_or_replaced_file_of_heads_shows_against_the_chain(chained: Database) -> None:
    heads = heads_of(chained)
    for left in ([], heads[:2]):
        (why,) = told(check(chained, left))
        assert why.startswith("the checkpoint at link 12 of ")
        assert "their file was cut or replaced" in why
    strange = [PublishedHead(seq, 0, bytes([seq]) * 32, 5.0) for seq in (4, 8, 12)]
    (why,) = told(check(chained, strange))
    assert "or these heads are of another hub" in why
    assert told(chained.read_now(lambda tx: verify(tx, heads[:2], 9.5 + 60))) == [], "it may be on its way"


HOSTILE = [
    "a\nb",
    "\r\n",
    "'; DROP TABLE audit; --",
    "\N{RIGHT-TO-LEFT OVERRIDE}x",
    "\\x00",
    "\N{PILE OF POO}" * 50,
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_hashed_as_they_are(db: Database, name: str) -> None:
    with db.begin() as tx:
        tx.audit.add(1.0, name, "a.b", name, detail={name: name})
    assert told(check(db)) == []
    with db.begin() as tx:
        tx.connection.execute(text("UPDATE audit SET object = :n"), {"n": name + " "})
    assert told(check(db)) == ["entry 1 was changed"]


def test_a_name_with_nul_is_stored_whole_or_refused_whole(db: Database) -> None:
    add(db, 1, 1)

    async def write() -> None:
        await db.write(lambda tx: tx.audit.add(2.0, "ann", "a.b", "x\0y"))

    if db.in_a_file:
        asyncio.run(write())
    else:
        with pytest.raises(ValueRefused):
            asyncio.run(write())
    add(db, 3, 3)
    report = check(db)
    assert (told(report), report.entries) == ([], 3 if db.in_a_file else 2)


@pytest.mark.parametrize(
    ("column", "value"),
    [("actor", "CAST(x'ff00fe' AS TEXT)"), ("time", "'soon'"), ("detail", "x'00'"), ("id", "2 + 9000000")],
)
def test_rows_of_broken_types_are_breaks_and_not_errors(chained: Database, column: str, value: str) -> None:
    if not chained.in_a_file:
        pytest.skip("PostgreSQL holds columns to their types")
    by_hand(chained, f"UPDATE audit SET {column} = {value} WHERE id = 5")
    report = check(chained, heads_of(chained))
    assert told(report)[0] in ("entry 5 was changed", "entry 5 was removed")


def test_links_of_other_types_are_breaks_and_no_errors(chained: Database) -> None:
    if not chained.in_a_file:
        pytest.skip("PostgreSQL holds columns to their types")
    by_hand(chained, "UPDATE audit_link SET hash = 'x', digest = 7 WHERE seq = 5")
    assert len(told(check(chained))) == 3, "the link, the next one, its entry"


def test_retention_cuts_at_a_checkpoint_alone_and_the_rest_stays_sound(chained: Database) -> None:
    heads = heads_of(chained)

    def forget(before: float, most: int = 100) -> int:
        with chained.begin() as tx:
            return tx.audit.delete_before(before, most, 100.0)

    assert forget(3.4) == 0, "the checkpoint after entry 3 is not old enough"
    assert forget(5.9) == 3
    assert forget(5.9) == 0
    assert told(check(chained)) == []
    cut = PublishedHead(heads[1].seq, heads[1].entry, heads[1].hash, heads[1].time, cut=True)
    report = check(chained, [*heads, cut])
    assert told(report) == []
    assert (report.entries, report.outside) == (6, 0)
    assert report.first is not None
    assert report.first.seq == 4

    by_hand(
        chained,
        "INSERT INTO audit (id, time, actor, action, object, detail) VALUES (2, 2.0, 'a', 'b', 'c', '{}')",
    )
    assert told(check(chained)) == [
        "1 entries up to 3 are there although the log was cut after them: they were inserted"
    ]


def test_a_cut_is_as_large_as_asked_for_and_takes_one_interval_at_least(chained: Database) -> None:
    def forget(most: int) -> int:
        with chained.begin() as tx:
            return tx.audit.delete_before(9.0, most, 100.0)

    assert [forget(1), forget(1), forget(1)] == [3, 3, 0]
    assert told(check(chained)) == []


def test_ids_are_not_given_again_where_all_entries_were_too_old(chained: Database) -> None:
    with chained.begin() as tx:
        assert tx.audit.delete_before(50.0, 100, 100.0) == 9
        entries, _ = tx.audit.page()
    assert [(e.id, e.action, e.actor) for e in entries] == [(10, CUT, "system")]
    add(chained, 101, 102)
    report = check(chained)
    assert told(report) == []
    assert report.entries == 3


def test_an_entry_that_is_repeated_after_the_cut_of_its_first_time_stays_sound(db: Database) -> None:
    def same(at: float) -> None:
        with db.begin() as tx:
            tx.audit.add(at, "ann", "member.set", "bob", detail={"role": "admin"})

    same(1.0)
    head(db, 2.0)
    same(3.0)
    head(db, 4.0)
    add(db, 5, 6)
    with db.begin() as tx:
        assert tx.audit.delete_before(2.5, 1, 100.0) >= 1
    assert told(check(db)) == []


def test_entries_of_an_older_database_are_outside_of_the_chain_and_counted(empty_url: str) -> None:
    migrate.upgrade(empty_url, "0042")
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    with engine.begin() as connection:
        for n in range(1, 6):
            connection.execute(
                text(
                    "INSERT INTO audit (time, actor, action, object, tenant, detail) "
                    f"VALUES ({n}.0, 'ann', 'tenant.update', 't{n}', NULL, '{{}}')"
                )
            )
    engine.dispose()
    migrate.upgrade(empty_url)
    db = Database(empty_url)
    try:
        assert (check(db).first, check(db).outside) == (None, 5)
        add(db, 10, 12)
        report = check(db)
        assert told(report) == []
        assert (report.outside, report.entries) == (5, 3)
        by_hand(db, "UPDATE audit SET actor = 'x' WHERE id = 3")
        assert told(check(db)) == [], "nobody can tell"
        by_hand(db, "UPDATE audit SET actor = 'x' WHERE id = 6")
        assert told(check(db)) == ["entry 6 was changed"]
        with db.begin() as tx:
            assert tx.audit.delete_before(4.0, 2, 100.0) == 2
            assert tx.audit.delete_before(4.0, 2, 100.0) == 1
            assert tx.audit.delete_before(4.0, 2, 100.0) == 0
        assert check(db).outside == 2
    finally:
        db.close()


def test_a_restored_backup_is_older_than_the_heads(tmp_path: Path, sqlite_template: Path) -> None:
    path, saved = tmp_path / "mlp.sqlite", tmp_path / "saved.sqlite"
    shutil.copy(sqlite_template, path)
    db = Database(str(path))
    head(db, 1.0)
    add(db, 2, 3)
    head(db, 4.0)
    db.close()
    shutil.copy(path, saved)
    db = Database(str(path))
    add(db, 5, 6)
    head(db, 7.0)
    heads = heads_of(db)
    db.close()
    for left in path.parent.glob("mlp.sqlite*"):
        left.unlink()
    shutil.copy(saved, path)
    db = Database(str(path))
    try:
        (why,) = told(check(db, heads))
        assert "or an older backup was restored" in why
    finally:
        db.close()


def test_two_services_on_one_database_make_one_chain(postgres: PostgresServer) -> None:
    postgres.run("CREATE DATABASE {} TEMPLATE {}", "twoservices", "template")
    dbs = [Database(postgres.url("twoservices")) for _ in range(2)]

    async def write(db: Database, who: str) -> None:
        def one(n: int) -> Callable[[Any], None]:
            return lambda tx: tx.audit.add(float(n), who, "a.b", f"o{n}")

        for n in range(50):
            await db.write(one(n))

    async def both() -> None:
        await asyncio.gather(write(dbs[0], "ann"), write(dbs[1], "bob"))

    try:
        asyncio.run(both())
        report = check(dbs[0])
        assert told(report) == []
        assert report.entries == 100
    finally:
        for db in dbs:
            db.close()
        postgres.run("DROP DATABASE {} WITH (FORCE)", "twoservices")


def test_an_entry_is_found_again_without_a_look_at_a_whole_team(db: Database) -> None:
    """A look at all entries of a team made each one slower than the one before."""
    from mlp_hub.store.repos.audit import _OF_OBJECT

    add(db, 1, 3)
    if not db.in_a_file:
        pytest.skip("the planner of PostgreSQL looks at the size of a table")
    with db.reading() as tx:
        query = _OF_OBJECT.params(name="x", since=0.0)
        asked = query.compile(tx.connection.engine, compile_kwargs={"literal_binds": True})
        plan = tx.connection.execute(text(f"EXPLAIN QUERY PLAN {asked}")).fetchall()
    assert any("ix_audit_object_id" in row.detail for row in plan), plan


def test_links_are_read_with_their_entries_a_few_at_a_time(db: Database) -> None:
    add(db, 1, 3)
    with db.begin() as tx:
        tx.audit.add(4.0, "ann", "tenant.update", "t4", detail={"text": "x" * 5000})
        tx.audit_chain.checkpoint(5.0)
        tx.connection.execute(text("DELETE FROM audit WHERE id = 2"))
    found = db.read_now(lambda tx: tx.audit_chain.shipped(-1, 100, 10**6))
    assert [(one.seq, one.entry, one.checkpoint, one.time, one.name) for one in found] == [
        (0, 0, 0.0, None, ""),
        (1, 1, None, 1.0, "t1"),
        (2, 2, None, None, ""),
        (3, 3, None, 3.0, "t3"),
        (4, 4, None, 4.0, "t4"),
        (5, 4, 5.0, None, ""),
    ]
    assert (found[1].tenant, found[1].detail, found[4].tenant) == ("red", {"cpu": 1}, None)
    assert [one.seq for one in db.read_now(lambda tx: tx.audit_chain.shipped(3, 100, 10))] == [4]
    assert [one.seq for one in db.read_now(lambda tx: tx.audit_chain.shipped(0, 2, 10**6))] == [1, 2]


def test_entries_of_a_team_with_a_thousand_teams_below_it_are_one_page(db: Database) -> None:
    """SQLite refused a query with a thousand alternatives, after the export's file had begun."""
    names = [f"t-{n}" for n in range(1200)]
    with db.begin() as tx:
        tx.tenants.insert(Tenant("top"), 100.0)
        for n, name in enumerate(names):
            tx.tenants.insert(Tenant(name, parent="top" if n < 1100 else names[n - 1100]), 100.0)
        tx.tenants.insert(Tenant("other"), 100.0)
        tx.audit.add(99.0, "ann", "tenant.update", "of-an-earlier-one", tenant=names[0])
        for name in ("top", names[0], names[-1], "other", "not-there"):
            tx.audit.add(101.0, "ann", "tenant.update", name, tenant=name)
    of = dict.fromkeys(["top", *db.read_now(lambda tx: tx.tenants.parents_below("top"))], 0)
    assert sorted(of) == sorted(["top", *names])
    found, following = db.read_now(lambda tx: tx.audit.page(of=of))
    assert ([one.name for one in found], following) == ([names[-1], names[0], "top"], None)
    late = {**of, names[0]: 4}
    found, _ = db.read_now(lambda tx: tx.audit.page(of=late))
    assert [one.name for one in found] == [names[-1], "top"]
    all_late = dict.fromkeys(of, 3)
    found, _ = db.read_now(lambda tx: tx.audit.page(of=all_late))
    assert [one.name for one in found] == [names[-1]]
    assert db.read_now(lambda tx: tx.audit.page(of={})) == ([], None)
    assert db.read_now(lambda tx: tx.tenants.parents_below("not-there")) == {}


def test_readers_of_older_entries_see_no_names_of_mail_addresses_and_the_chain_stays_sound(
    db: Database,
) -> None:
    """An older version stored whole addresses; the chain has the digest of these bytes."""
    head(db, 1.0)
    listed = "work (ann@example.org), home (a.nn+ml@example.com), hook (https://hooks.example.org)"
    with db.begin() as tx:
        tx.audit.add(2.0, "ann", "notifications.set", "ann", detail={"channels": listed})
        tx.audit.add(3.0, "ann", "notifications.set", "bob", detail={"channels": listed})
        tx.audit.add(4.0, "ann", "tenant.update", "red", detail={"description": "ask ann@example.org"})
    by_hand(db, f"UPDATE audit SET detail = '{{\"channels\": \"{listed}' WHERE object = 'bob'")
    stored = db.read_now(lambda tx: [bytes(row[6]) for row in tx.audit_chain.entries(0, 10)])
    shown = "work (***@example.org), home (***@example.com), hook (https://hooks.example.org)"
    page, _ = db.read_now(lambda tx: tx.audit.page())
    shipped = db.read_now(lambda tx: tx.audit_chain.shipped(-1, 10, 10**6))
    for details in (
        [one.detail for one in reversed(page)],
        [one.detail for one in shipped if one.checkpoint is None],
    ):
        assert details == [
            {"channels": shown},
            {"unreadable": f'{{"channels": "{shown}'},
            {"description": "ask ann@example.org"},  # what people write themselves is as they wrote it
        ]
    assert db.read_now(lambda tx: [bytes(row[6]) for row in tx.audit_chain.entries(0, 10)]) == stored
    assert listed.encode() in stored[0]
    report = check(db)
    assert len(report.breaks) == 1, "of the entry that was changed by hand, and of no other"
