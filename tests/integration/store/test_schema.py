from __future__ import annotations

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import inspect, text

from mlp_hub.domain.job import Phase, Target
from mlp_hub.store import Database, WrongSchema, migrate
from mlp_hub.store import engine as engines
from mlp_hub.store.records import Lease
from mlp_hub.store.tables import REVISION, metadata


def test_the_migrated_schema_is_the_one_of_the_tables(url: str) -> None:
    engine = engines.make_engine(engines.parse(url), write=True)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "include_object": lambda *a: a[1] != "alembic_version"}
        )
        assert compare_metadata(context, metadata) == []
        found = inspect(connection)
        for table in metadata.sorted_tables:
            if table.name == "alembic_version":
                continue
            assert {c["name"] for c in found.get_columns(table.name)} == {c.name for c in table.columns}
            keys = found.get_pk_constraint(table.name)["constrained_columns"]
            assert set(keys) == {c.name for c in table.primary_key}
            indexes = {i["name"] for i in found.get_indexes(table.name) if not i.get("duplicates_constraint")}
            assert {i.name for i in table.indexes} <= indexes
    engine.dispose()


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
        tx.events.add("j0", 2.0, "asked", "asked to suspend")
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
