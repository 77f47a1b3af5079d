from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, inspect, text

from mlp_hub.domain.jobs.job import JobSpec, Phase, Target
from mlp_hub.domain.resources import ZERO, Resources
from mlp_hub.domain.tenants.tenant_context import SYSTEM
from mlp_hub.domain.workload.ledger import RequestPhase, ResourceRequest
from mlp_hub.store import Database, WrongSchema, codec, migrate
from mlp_hub.store import engine as engines
from mlp_hub.store.records import Lease
from mlp_hub.store.repos.workload.ledger import REQUESTS
from mlp_hub.store.tables import REVISION, metadata
from mlp_hub.store.tx import Tx
from mlp_language.message import msg

WAYS = {"in one step": "head", "by all revisions": REVISION}
"""Revisions to ask for: a new database goes through no revision unless one is named."""


@pytest.mark.parametrize("way", WAYS)
def test_the_schema_is_the_one_of_the_tables_however_it_was_made(empty_url: str, way: str) -> None:
    assert migrate.upgrade(empty_url, WAYS[way]) is None
    engine = engines.make_engine(engines.parse(empty_url), write=True)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "include_object": lambda *a: a[1] != "alembic_version"}
        )
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_a_new_database_has_the_same_tables_and_rows_as_one_that_went_through_all_revisions(
    empty_url: str,
) -> None:
    found = []
    for revision in WAYS.values():
        migrate.upgrade(empty_url, revision)
        engine = engines.make_engine(engines.parse(empty_url), write=True)
        with engine.connect() as connection:
            found.append(described(connection))
        engine.dispose()
        migrate.downgrade(empty_url, "base")
    one_step, all_revisions = found
    assert one_step.keys() == all_revisions.keys()
    assert one_step.keys() - {"tenants"} == {table.name for table in metadata.sorted_tables}
    for name, there in one_step.items():
        assert there == all_revisions[name], name


def described(connection: Connection) -> dict[str, dict[str, Any]]:
    """What a database tells of its tables, whatever the order, and the tenants in it. Repositories write all columns: defaults of the server may differ."""
    found = inspect(connection)
    tables = {}
    for name in found.get_table_names():
        columns = {c["name"]: (str(c["type"]), c["nullable"]) for c in found.get_columns(name)}
        tables[name] = {
            "columns": columns,
            "key": found.get_pk_constraint(name),
            "unique": ordered(found.get_unique_constraints(name)),
            "foreign": ordered(found.get_foreign_keys(name)),
            "indexes": ordered(found.get_indexes(name)),
        }
    return {**tables, "tenants": {"all": Tx(connection).tenants.all()}}


def ordered(parts: Iterable[Any]) -> list[str]:
    """What is equal of two reflected parts is equal as text, but for a condition that is an object."""
    return sorted(
        str(
            {
                k: str(v) if k != "dialect_options" else {n: str(o) for n, o in v.items()}
                for k, v in part.items()
            }
        )
        for part in parts
    )


def test_the_program_knows_its_newest_revision() -> None:
    assert migrate.head() == REVISION


def test_an_upgrade_makes_the_tables_and_a_second_one_does_nothing(empty_url: str) -> None:
    assert migrate.current(empty_url) is None
    assert migrate.upgrade(empty_url) is None
    assert migrate.upgrade(empty_url) == REVISION
    assert migrate.current(empty_url) == REVISION
    db = Database(empty_url, guard=True)
    db.open()
    with db.reading() as tx:
        assert tx.tenants.names() == {"default"}
    db.close()


def test_a_downgrade_to_base_leaves_no_table_behind(url: str) -> None:
    migrate.downgrade(url, "base")
    engine = engines.make_engine(engines.parse(url), write=True)
    with engine.connect() as connection:
        assert set(inspect(connection).get_table_names()) <= {"alembic_version"}
    engine.dispose()
    migrate.upgrade(url)
    assert migrate.current(url) == REVISION


def test_a_grade_of_isolation_that_never_was_in_force_is_not_claimed_after_an_upgrade(url: str) -> None:
    migrate.downgrade(url, "0005")
    engine = engines.make_engine(engines.parse(url), write=True)
    with engine.begin() as connection:
        connection.execute(text("UPDATE tenant SET isolation = 'dedicated' WHERE name = 'default'"))
        connection.execute(
            text("INSERT INTO lease (name, holder, expires_at) VALUES ('scheduler', 'old/1/a', 7.0)")
        )
    engine.dispose()
    migrate.upgrade(url)
    db = Database(url, guard=True)
    db.open()
    with db.reading() as tx:
        tenant = tx.tenants.get("default")
        assert tenant is not None
        assert tenant.isolation == "shared"
        assert tx.leases.get("scheduler") == Lease("old/1/a", 7.0, 0)
    db.close()


def test_servers_waiting_before_an_upgrade_keep_waiting_and_no_capacity_is_set_aside_for_them(
    url: str,
) -> None:
    migrate.downgrade(url, "0017")
    engine = engines.make_engine(engines.parse(url), write=True)
    row = (
        "INSERT INTO resource_request (applier, id, kind, tenant, cpu, gpu, ram, rom, phase, created_at, expires_at,"
        ' shares, last, holder, "user") VALUES'
        " ('sp', :id, 'request', 'default', 1000, 0, 64, 0, :phase, 5.0, 90.0, :shares, 'claim', '', 'bob')"
    )
    shares = REQUESTS.row(
        ResourceRequest(
            "x", "sp", "default", ZERO, RequestPhase.TRIED, 0.0, shares=(("n1", Resources(cpu=1000)),)
        )
    )["shares"]
    with engine.begin() as connection:
        for name, phase, aside in (
            ("waits", "claimed", None),
            ("made", "claimed", shares),
            ("over", "cancelled", None),
        ):
            connection.execute(text(row), {"id": name, "phase": phase, "shares": aside})
    engine.dispose()
    migrate.upgrade(url)
    db = Database(url, guard=True)
    db.open()
    with db.reading() as tx:
        waiting = {r.id: r for r in tx.ledger.pending(10.0)}
        assert set(waiting) == {"waits", "made"}
        assert {(r.shares, r.last, r.created_at, r.expires_at) for r in waiting.values()} == {
            ((), "try", 5.0, 90.0)
        }
        over = tx.ledger.get("sp", "over")
        assert over is not None
        assert (over.phase, over.last) == (RequestPhase.CANCELLED, "cancel")
    db.close()


def test_a_service_refuses_a_database_of_another_revision(empty_url: str) -> None:
    db = Database(empty_url, guard=True)
    with pytest.raises(WrongSchema, match="mlp-hub up, which makes its tables"):
        db.open()
    migrate.upgrade(empty_url, "0005")
    with pytest.raises(WrongSchema, match="mlp-hub up, which updates its tables"):
        db.open()
    db.check_schema(or_older=True)
    migrate.upgrade(empty_url)
    with db.begin() as tx:
        tx.connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
        tx.settings.put("tables.works_from", "9998")
    for older in (False, True):
        with pytest.raises(WrongSchema, match="a newer version of MLP Hub made it"):
            db.check_schema(or_older=older)
    db.close()


def test_jobs_in_tables_of_any_older_version_can_be_aimed_at_suspension(empty_url: str) -> None:
    migrate.upgrade(empty_url, "0001")
    db = Database(empty_url)
    row = (
        'INSERT INTO job (uid, "user", name, tenant, spec, phase, target, submitted_at, restarts, failures, progress,'
        " message, placement, ranks, version) VALUES"
        " (:uid, 'ann', :name, 'default', '{}', :phase, 'run', 1, 0, 0, 0, '', '[]', '[]', 3)"
    )
    with db.begin() as tx:
        for n, phase in enumerate(("running", "queued", "finished")):
            tx.connection.execute(text(row), {"uid": f"j{n}", "name": phase, "phase": phase})
    with db.begin() as tx:
        assert tx.jobs.suspend_all([Phase.RUNNING], [Target.RUN]) == [("j0", "ann", "running")]
        tx.events.add("j0", 2.0, "asked", msg("asked to suspend"))
    with db.begin() as tx:
        found = tx.connection.execute(text("SELECT name, target, version FROM job ORDER BY uid")).all()
    assert [tuple(f) for f in found] == [
        ("running", "suspend", 4),
        ("queued", "run", 3),
        ("finished", "run", 3),
    ]
    db.close()


def test_tables_made_without_migrations_pass_for_migrated_ones(empty_url: str) -> None:
    db = Database(empty_url, guard=True)
    db.create_schema()
    db.open()
    with db.reading() as tx:
        assert tx.tenants.names() == {"default"}
    db.close()
    assert migrate.current(empty_url) == REVISION


TIMELINES = {
    # of each name its phase and restarts, when it was queued, admitted and finished, and its timeline
    "plain": (
        "finished",
        0,
        10.0,
        14.0,
        30.0,
        "submitted 10, admitted 14, running 15, ended 30, finished 30",
    ),
    "new": ("queued", 0, 20.0, None, None, "submitted 20"),
    "dropped": ("cancelled", 0, 20.0, None, 27.0, "submitted 20, cancelled 27"),
    "stopped": (
        "queued",
        1,
        10.0,
        None,
        None,
        "submitted 10, admitted 12, running 13, preempted 50, preempting 50, requeued 53",
    ),
    "resized": (
        "finished",
        1,
        10.0,
        60.0,
        90.0,
        "submitted 10, admitted 11, running 12, resize 58, resizing 58, resized 60, running 61, ended 90, finished 90",
    ),
    "paused": (
        "running",
        2,
        10.0,
        200.0,
        None,
        "submitted 10, suspended 14, resumed 40, admitted 45, running 46, attempt-failed 60, requeued 61, admitted 65,"
        " running 66, suspending 80, suspended 82, resumed 190, admitted 200, running 201",
    ),
}


def test_times_of_jobs_from_before_an_upgrade_are_derived_from_their_timelines(url: str) -> None:
    spec = codec.dumps(JobSpec("j", "ann", "default", "plain", Resources(1000)))
    migrate.downgrade(url, "0010")
    engine = engines.make_engine(engines.parse(url), write=True)
    row = (
        'INSERT INTO job (uid, "user", name, tenant, spec, phase, target, submitted_at, queued_at, admitted_at,'
        " finished_at, restarts, failures, progress, message, placement, ranks, version) VALUES"
        " (:name, 'ann', :name, 'default', :spec, :phase, 'run', :queued, :queued, :admitted, :finished, :restarts,"
        " 0, 0, '', '[]', '[]', 3)"
    )
    step = "INSERT INTO job_event (job, seq, time, kind, message) VALUES (:job, :seq, :time, :kind, '')"
    with engine.begin() as connection:
        for name, (phase, restarts, queued, admitted, finished, timeline) in TIMELINES.items():
            values = {"name": name, "phase": phase, "restarts": restarts, "queued": queued, "spec": spec}
            connection.execute(text(row), {**values, "admitted": admitted, "finished": finished})
            for seq, entry in enumerate(timeline.split(", "), 1):
                kind, at = entry.split()
                connection.execute(text(step), {"job": name, "seq": seq, "kind": kind, "time": float(at)})
    engine.dispose()
    migrate.upgrade(url)
    db = Database(url, guard=True)
    db.open()
    with db.reading() as tx:
        found = [tx.jobs.get(SYSTEM, name) for name in TIMELINES]
    db.close()
    assert {j.uid: (j.waiting_since, j.waited, j.ran) for j in found if j is not None} == {
        "plain": (None, 4.0, 0.0),
        "new": (20.0, 0.0, 0.0),
        "dropped": (None, 7.0, 0.0),
        "stopped": (53.0, 2.0, 40.0),
        "resized": (None, 1.0, 48.0),
        "paused": (None, 4.0 + 5.0 + 4.0 + 10.0, 14.0 + 16.0),
    }


def test_jobs_of_before_names_had_runs_are_the_first_ones_and_keep_all_that_is_theirs(url: str) -> None:
    spec = codec.dumps(JobSpec("digits", "ann", "default", "plain", Resources(1000)))
    migrate.downgrade(url, "0012")
    engine = engines.make_engine(engines.parse(url), write=True)
    with engine.begin() as connection:
        connection.execute(
            text(
                'INSERT INTO job (uid, "user", name, tenant, spec, phase, target, submitted_at, restarts, failures,'
                " progress, message, placement, ranks, version) VALUES"
                " ('u1', 'ann', 'digits', 'default', :spec, 'finished', 'run', 1, 0, 0, 0, '', '[]', '[]', 3)"
            ),
            {"spec": spec},
        )
        connection.execute(text("INSERT INTO job_event VALUES ('u1', 1, 2.0, 'submitted', 'x', NULL)"))
        connection.execute(text("INSERT INTO job_token VALUES ('sha', 'u1', 1.0)"))
        connection.execute(text("INSERT INTO idempotency_key VALUES ('ann', 'k', 'f', 'u1', 1.0)"))
    engine.dispose()
    migrate.upgrade(url)
    db = Database(url, guard=True)
    db.open()
    with db.begin() as tx:
        first = tx.jobs.find(SYSTEM, "ann", "digits")
        assert first is not None
        assert (first.uid, first.run, first.spec.name) == ("u1", 1, "digits")
        assert [e.kind for e in tx.events.since("u1")] == ["submitted"]
        assert tx.tokens.job_of("sha") == "u1"
        assert tx.jobs.insert(replace(first, uid="u2", run=2))
        assert not tx.jobs.insert(replace(first, uid="u3", run=2))
        tx.events.add("u2", 3.0, "submitted", msg("again"))
    with db.begin() as tx:  # what belongs to a job still goes with it
        assert tx.jobs.remove("u1")
        assert tx.events.since("u1") == []
        assert tx.jobs.insert(replace(first, uid="u0", run=1))
        tx.events.add("u0", 3.0, "submitted", msg("once"))
    db.close()
    migrate.downgrade(url, "0012")
    engine = engines.make_engine(engines.parse(url), write=True)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT uid FROM job")).all() == [("u2",)]
        assert connection.execute(text("SELECT job FROM job_event")).all() == [("u2",)]
    engine.dispose()
    migrate.upgrade(url)
